"""The live page in a browser: what it says, shows and does, on a laptop and a phone, with mouse and keyboard."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest

import interlace as il
from interlace.watching.watch import Watch
from interlace.web.desk import HandleDesk
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


@contextmanager
def notebook(html: str) -> Iterator[str]:
    """The address of a page on another port, as a notebook's is, that shows some HTML."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever).start()
    yield f"http://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def test_a_notebook_shows_the_page_in_a_frame_and_opens_it_in_a_tab(browser: Browser, offers: WebServer) -> None:
    with notebook(f'<link rel="icon" href="data:,">{offers._repr_html_()}') as address:
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        tab = context.new_page()
        problems: list[str] = []
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        tab.goto(address)
        inside = tab.frame_locator("iframe")
        expect(inside.locator("#state")).to_have_text("running")
        inside.get_by_role("tab", name="Query").click()
        expect(inside.locator("pre")).to_contain_text("trips.distance > calls.least")
        assert all("token" not in frame.url for frame in tab.frames)
        with context.expect_page() as opening:
            tab.get_by_text("Open the page of this topology").click()
        expect(opening.value.locator("#state")).to_have_text("running")
        assert "token" not in opening.value.url
        opening.value.reload()
        expect(opening.value.locator("#state")).to_have_text("running")
        assert problems == []
        context.close()


def test_two_pages_of_one_host_do_not_log_each_other_out(browser: Browser, offers: WebServer) -> None:
    with trips_and_calls().launch(name="other") as running, il.ui(running) as second:
        tab = opened(browser, offers)
        beside = tab.context.new_page()
        beside.goto(second.url_with_token)
        expect(beside.locator("#topology")).to_have_value("other")
        tab.reload()
        expect(tab.locator("#state")).to_have_text("running")
        expect(tab.locator("#topology")).to_have_value("offers")
        closed(tab)


def test_numbers_that_are_old_do_not_look_fresh(browser: Browser) -> None:
    with trips_and_calls().launch(name="stuck") as running:
        clock = [time.time()]
        watch = Watch(running, clock=lambda: clock[0])
        watch.look()
        desk = HandleDesk(running)
        desk._watch.close()
        desk._watch = watch
        with WebServer(desk) as page:
            tab = opened(browser, page)
            expect(tab.locator("#fresh.stale")).to_have_count(0)
            clock[0] += 75
            expect(tab.locator("#fresh.stale")).to_have_text("It has not answered for 75 s: what you see is old.")
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


GATE = threading.Semaphore(0)


def held(batch: pa.RecordBatch) -> pa.RecordBatch:
    GATE.acquire()
    return batch


def test_back_pressure_names_the_bottleneck_and_the_way_on_which_results_come_latest(browser: Browser) -> None:
    builder = il.TopologyBuilder("narrow")
    builder.input("in")
    builder.bolt("early", il.MapBatches(lambda batch: batch)).shuffle_grouping("in")
    builder.bolt("work", il.MapBatches(held)).shuffle_grouping("early")
    builder.sink().global_grouping("work")
    with il.LocalRuntime(edge_bytes=1 << 10).launch(builder.build()) as running, il.ui(running) as page:
        sending = threading.Thread(target=lambda: [running.send("in", rows(0, 100, 1)) for _ in range(40)])
        sending.start()
        reading = threading.Thread(target=lambda: [None for _ in running.results()])
        reading.start()
        tab = opened(browser, page)
        expect(tab.locator("#verdict.attention #summary")).to_contain_text("'work' is the bottleneck")
        expect(tab.locator(".box.culprit")).to_have_attribute("data-component", "work")
        expect(tab.locator("[data-component=early]")).to_contain_text("blocked")
        tab.get_by_role("tab", name="Over time").click()
        blocked = tab.locator("figure", has_text="Blocked by back-pressure")
        expect(blocked.locator(".legend")).to_contain_text("early")
        tab.get_by_role("tab", name="Overview").click()
        GATE.release(5)  # results come, after a wait
        expect(tab.locator(".trace")).to_contain_text("pass between")
        expect(tab.locator(".edge.path")).to_have_count(3)
        GATE.release(1000)
        sending.join()
        tab.locator("[data-action=drain-and-stop]").click()
        tab.locator("#yes").click()
        expect(tab.locator("#state")).to_have_text("stopped")
        reading.join()
        closed(tab)


def test_a_recovery_is_seen_while_it_lasts(browser: Browser) -> None:
    builder = il.TopologyBuilder("healing")
    builder.input("in")
    builder.bolt("work", il.MapBatches(lambda batch: batch)).shuffle_grouping("in")
    builder.sink().global_grouping("work")
    with il.LocalRuntime().launch(builder.build()) as running, il.ui(running) as page:
        tab = opened(browser, page)
        expect(tab.locator("#state")).to_have_text("running")
        with running._succession:  # type: ignore[attr-defined]  # what a life holds until the next one runs
            expect(tab.locator("#state")).to_have_text("recovering")
            expect(tab.locator("#verdict.recovering #summary")).to_contain_text("It is starting again")
        expect(tab.locator("#state")).to_have_text("running")
        closed(tab)


def test_the_graph_is_drawn_by_node(browser: Browser, offers: WebServer) -> None:
    tab = opened(browser, offers)
    expect(tab.locator(".graph .node")).to_have_count(0)
    tab.get_by_role("button", name="By node").click()
    expect(tab.locator(".graph .node")).to_have_count(1)
    expect(tab.locator(".graph .box")).to_have_count(10)
    expect(tab.locator(".graph [data-component=gate]")).to_contain_text("busy")
    expect(tab.locator(".graph .edge-label").first).to_be_visible()
    tab.get_by_role("button", name="By component").click()
    expect(tab.locator(".graph .node")).to_have_count(0)
    closed(tab)


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
        tab.get_by_role("tab", name="Events and log").click()
        expect(tab.locator("#view")).to_contain_text("recovering at")
        closed(tab)


def test_what_cannot_be_done_is_refused_with_the_reason(browser: Browser, offers: WebServer) -> None:
    tab = opened(browser, offers)
    tab.locator("[data-action=savepoint]").click()
    tab.locator("#yes").click()
    expect(tab.locator("#refusal")).to_contain_text("state=")
    tab.context.close()
