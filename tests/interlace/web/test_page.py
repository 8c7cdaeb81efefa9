"""The live page in a browser: what it says, shows and does, on a laptop and a phone, with mouse and keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import interlace as il
from interlace.web.server import WebServer
from tests.interlace.web.browser import chromium, started
from tests.interlace.web.busy_topologies import kept_busy, rows, trips_and_calls

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page, expect

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium: run make system-deps"),
]

PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


def missing(batch: pa.RecordBatch) -> pa.RecordBatch:
    raise KeyError("no such rack")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as made:
        yield made


@pytest.fixture(scope="module")
def offers() -> Iterator[WebServer]:
    """A join that is kept busy, and its page."""
    with trips_and_calls().launch(name="offers") as running, kept_busy(running), il.ui(running) as page:
        yield page


def opened(browser: Browser, server: WebServer, **options: object) -> Page:
    """The page in a new window; an error in its script fails the test."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.goto(server.url_with_token)
    expect(tab.locator("#view > *").first).to_be_visible()
    tab.problems = problems  # type: ignore[attr-defined]
    return tab


def closed(tab: Page) -> None:
    assert tab.problems == []  # type: ignore[attr-defined]
    tab.context.close()


def test_every_view_shows_what_the_topology_does(browser: Browser, offers: WebServer) -> None:
    tab = opened(browser, offers)
    assert "token" not in tab.url
    expect(tab.locator("#state")).to_have_text("running")
    expect(tab.locator("#speed")).to_contain_text("rows/s in")
    expect(tab.locator(".graph .box")).to_have_count(10)
    expect(tab.locator(".graph .edge-label").first).to_be_visible()
    tab.locator(".graph [data-component=gate]").click()
    expect(tab.locator("#chosen h2")).to_have_text("gate")
    tab.locator(".graph [data-component=collector]").hover()
    expect(tab.locator("#tip")).to_contain_text("age of rows here: p50")
    tab.get_by_role("tab", name="Over time").click()
    expect(tab.locator("figure")).to_have_count(13)
    expect(tab.locator("figure").first.locator("path.line")).to_have_count(2)
    tab.get_by_role("tab", name="Sources and late rows").click()
    expect(tab.get_by_role("cell", name="trips", exact=True).first).to_be_visible()
    tab.get_by_role("tab", name="Processes").click()
    expect(tab.locator(".worker")).to_have_count(1)
    expect(tab.locator(".worker .task")).to_have_count(11)
    tab.get_by_role("tab", name="Query").click()
    expect(tab.locator("pre")).to_contain_text("trips.distance > calls.least")
    tab.get_by_role("tab", name="Events and log").click()
    expect(tab.locator("#view")).to_contain_text("running at")
    closed(tab)


def test_everything_is_reached_with_the_keyboard(browser: Browser, offers: WebServer) -> None:
    tab = opened(browser, offers)
    tab.get_by_role("tab", name="Overview").focus()
    tab.keyboard.press("ArrowRight")
    expect(tab.get_by_role("tab", name="Over time")).to_have_attribute("aria-selected", "true")
    tab.keyboard.press("ArrowLeft")
    tab.locator(".graph [data-component=router]").focus()
    expect(tab.locator("#tip")).to_contain_text("router")
    tab.keyboard.press("Enter")
    expect(tab.locator("#chosen h2")).to_have_text("router")
    tab.keyboard.press("Escape")
    expect(tab.locator("#tip")).to_be_hidden()
    closed(tab)


def test_a_phone_shows_it_without_scrolling_sideways_and_a_theme_is_kept(browser: Browser, offers: WebServer) -> None:
    tab = opened(browser, offers, viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True)
    for name in ("Overview", "Over time", "Sources and late rows", "Processes", "Query", "Events and log"):
        tab.get_by_role("tab", name=name).click()
        expect(tab.locator("#view > *").first).to_be_visible()
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.locator("#theme").click()
    tab.reload()
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    closed(tab)


def test_the_source_that_all_wait_for_and_late_rows_are_shown(browser: Browser) -> None:
    with trips_and_calls().launch(name="waits") as running, il.ui(running) as page:
        columns = ["id", "ts", "least", "most"]
        running.send("trips", rows(0, 30_000, 1).select(["id", "ts", "distance", "fare"]))
        running.send("calls", rows(0, 1_000, 2).select(columns))
        running.send("calls", rows(0, 2_000, 2).select(columns), source="joined late")
        tab = opened(browser, page)
        expect(tab.locator("#summary")).to_contain_text("All wait for source")
        tab.get_by_role("tab", name="Sources and late rows").click()
        expect(tab.locator("tr.hot")).to_have_count(1)
        closed(tab)


def test_an_action_asks_first_and_a_failure_shows_the_traceback(browser: Browser) -> None:
    builder = il.TopologyBuilder("doomed")
    builder.input("in")
    builder.bolt("fails", il.MapBatches(missing)).shuffle_grouping("in")
    builder.sink().global_grouping("fails")
    running = il.LocalRuntime().launch(builder.build())
    with il.ui(running) as page:
        tab = opened(browser, page)
        tab.locator("[data-action=stop]").click()
        expect(tab.locator("#question")).to_have_text("Stop “doomed” now, for everyone who uses it?")
        tab.get_by_role("button", name="Cancel").click()
        assert running.status().state is il.State.RUNNING
        running.send("in", [{"x": 1}])
        expect(tab.locator("#state")).to_have_text("failed")
        expect(tab.locator("#summary")).to_contain_text("It has failed: KeyError: 'no such rack'")
        tab.get_by_role("tab", name="Events and log").click()
        expect(tab.locator("pre").first).to_contain_text("no such rack")
        closed(tab)
    with pytest.raises(il.TaskError):
        running.stop()


def test_stopping_stops_and_a_server_that_ends_is_noticed(browser: Browser) -> None:
    running = trips_and_calls().launch(name="brief")
    page = il.ui(running)
    tab = opened(browser, page)
    tab.locator("[data-action=stop]").click()
    tab.locator("#yes").click()
    expect(tab.locator("#state")).to_have_text("stopped")
    assert running.status().state is il.State.STOPPED
    page.close()
    expect(tab.locator("#fresh")).to_contain_text("what you see is old")
    tab.context.close()


def test_tasks_are_rebalanced_and_a_savepoint_is_made_from_the_page(browser: Browser, tmp_path: Path) -> None:
    runtime = il.LocalRuntime(state=tmp_path)
    with trips_and_calls().launch(runtime, name="kept") as running, kept_busy(running), il.ui(running) as page:
        tab = opened(browser, page)
        tab.locator("[data-action=rebalance]").click()
        tab.get_by_role("spinbutton", name="po-join").fill("3")
        tab.locator("#yes").click()
        expect(tab.locator(".graph [data-component=po-join]")).to_contain_text("po-join ×3")
        expect(tab.locator("#confirm")).to_be_hidden()
        tab.locator("[data-action=savepoint]").click()
        tab.locator("#yes").click()
        expect(tab.locator("#question")).to_contain_text("savepoints")
        tab.get_by_role("button", name="Cancel").click()
        closed(tab)


def test_what_cannot_be_done_is_refused_with_the_reason(browser: Browser, offers: WebServer) -> None:
    tab = opened(browser, offers)
    tab.locator("[data-action=savepoint]").click()
    tab.locator("#yes").click()
    expect(tab.locator("#refusal")).to_contain_text("state=")
    tab.context.close()
