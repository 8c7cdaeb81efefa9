"""Makes the pictures of the page that docs show: `python -m tests.interlace.web.page_pictures [FOLDER]`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa
from playwright.sync_api import Browser, Page, ViewportSize

import interlace as il
from interlace.web.server import WebServer
from tests.interlace.web.browser import started
from tests.interlace.web.busy_topologies import kept_busy, rows, trips_and_calls
from topology import Event, Status

FOLDER = Path(__file__).parents[3] / "docs" / "figures"
LAPTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
SECONDS = 30
"""How long topologies run before their pictures are taken, so that charts have something to show."""

PICTURES = ("overview", "by-node", "over-time", "sources", "bottleneck", "recovering", "phone")
Scheme = Literal["light", "dark"]


def main(folder: Path = FOLDER, seconds: float = SECONDS) -> None:
    """Take all pictures."""
    camera = Camera(folder, seconds)
    with started() as browser:
        camera.browser = browser
        with busy() as running, il.ui(running) as page:
            camera.wait()
            camera.take(page, "overview")
            camera.take(page, "over-time", scheme="dark", view="charts")
            camera.take(page, "phone", size=PHONE)
            with il.ui(staged(running, on_two_nodes)) as elsewhere:
                time.sleep(seconds / 4)
                camera.take(elsewhere, "by-node", scheme="dark", act=by_node)
        with busy(behind=60) as running, il.ui(running) as page:
            camera.wait()
            camera.take(page, "sources", scheme="dark", view="sources", whole=False)
        with narrow() as running, il.ui(running) as page:
            camera.wait()
            camera.take(page, "bottleneck")
        with busy() as running, il.ui(staged(running, recovering(seconds))) as page:
            camera.wait()
            camera.take(page, "recovering", view="events", whole=False)


def by_node(tab: Page) -> None:
    """Draw the graph by node."""
    tab.get_by_role("button", name="By node").click()


class Camera:
    """Opens the page of a server in a window of its own and takes its picture."""

    browser: Browser

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds

    def wait(self) -> None:
        """Let the topology run for a while."""
        time.sleep(self._seconds)

    def take(
        self,
        page: WebServer,
        name: str,
        *,
        view: str = "overview",
        size: ViewportSize = LAPTOP,
        scheme: Scheme = "light",
        whole: bool = True,
        act: Callable[[Page], None] = lambda tab: None,
    ) -> None:
        context = self.browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=1.25)
        tab = context.new_page()
        tab.goto(page.url_with_token)
        tab.wait_for_selector("#view > *")
        tab.locator(f"[data-view={view}]").click()
        act(tab)
        tab.wait_for_timeout(2500)
        tab.screenshot(path=self._folder / f"page-{name}.png", full_page=whole)
        context.close()


@contextmanager
def busy(behind: int = 0) -> Iterator[il.Handle]:
    """A join that is fed and read at a pace that it keeps easily."""
    with trips_and_calls().launch(name="offers") as running, kept_busy(running, 1000, 0.25, behind):
        yield running


def slowly(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Stands for code of a user's that asks another service about each batch."""
    time.sleep(0.05)
    return batch


@contextmanager
def narrow() -> Iterator[il.Handle]:
    """A topology in which one bolt is too slow for what comes in."""
    builder = il.TopologyBuilder("enriched trips")
    builder.input("trips")
    builder.bolt("clean", il.MapBatches(lambda batch: batch), parallelism=2).shuffle_grouping("trips")
    builder.bolt("lookup", il.MapBatches(slowly)).shuffle_grouping("clean")
    builder.bolt("score", il.MapBatches(lambda batch: batch)).shuffle_grouping("lookup")
    builder.sink().global_grouping("score")
    over = threading.Event()
    with ExitStack() as stack:
        running = stack.enter_context(il.LocalRuntime(edge_bytes=1 << 16).launch(builder.build()))

        def send() -> None:
            with suppress(il.InterlaceError):
                while not over.is_set():
                    running.send("trips", rows(0, 500, 1))

        def read() -> None:
            with suppress(il.InterlaceError):
                for _ in running.results():
                    if over.is_set():
                        return

        threads = [threading.Thread(target=send), threading.Thread(target=read)]
        for thread in threads:
            thread.start()
        yield running
        over.set()
        running.stop()
        for thread in threads:
            thread.join()


class Staged:
    """A handle whose status is changed for a picture: what it stands for takes a cluster, or lasts too short a time."""

    def __init__(self, running: il.Handle, change: Callable[[Status], Status]) -> None:
        self._running = running
        self._change = change

    def status(self) -> Status:
        return self._change(self._running.status())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running, name)


def staged(running: il.Handle, change: Callable[[Status], Status]) -> il.Handle:
    return cast(il.Handle, Staged(running, change))


def on_two_nodes(status: Status) -> Status:
    """As if half of the tasks ran elsewhere."""
    (worker,) = status.workers
    away = [task for task in worker.tasks if task[0] in ("mutable", "permutation") or task == ("po-join", 1)]
    near = tuple(task for task in worker.tasks if task not in away)
    workers = (replace(worker, node="node-1", tasks=near), replace(worker, node="node-2", tasks=tuple(away)))
    return replace(status, workers=workers)


def recovering(after: float) -> Callable[[Status], Status]:
    """As if a process had died at some moment."""
    why = "the process of 'offers/worker-1' died: it was killed by SIGKILL, perhaps for want of memory"
    lost = Event(time.time() + after, il.State.RECOVERING, why)

    def change(status: Status) -> Status:
        if time.time() < lost.at:
            return status
        return replace(status, state=il.State.RECOVERING, error=why, recoveries=1, events=(*status.events, lost))

    return change


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
