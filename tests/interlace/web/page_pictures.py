"""Makes the pictures of the page that docs show: `python -m tests.interlace.web.page_pictures [FOLDER]`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Literal

from playwright.sync_api import ViewportSize

import interlace as il
from tests.interlace.web.browser import started
from tests.interlace.web.busy_topologies import kept_busy, trips_and_calls

FOLDER = Path(__file__).parents[3] / "docs" / "figures"
LAPTOP: ViewportSize = {"width": 1280, "height": 860}
SHOTS: tuple[tuple[str, ViewportSize, Literal["light", "dark"], str], ...] = (
    ("page-overview", LAPTOP, "light", "overview"),
    ("page-over-time", LAPTOP, "dark", "charts"),
)
SECONDS = 30
"""How long the topology runs before its picture is taken, so that charts have something to show."""


def main(folder: Path = FOLDER) -> None:
    """Take all pictures."""
    with started() as browser, trips_and_calls().launch(name="offers") as running, il.ui(running) as page:  # noqa: SIM117
        with kept_busy(running):
            time.sleep(SECONDS)
            for name, size, scheme, view in SHOTS:
                context = browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=1.25)
                tab = context.new_page()
                tab.goto(page.url_with_token)
                tab.wait_for_selector("#view > *")
                tab.locator(f"[data-view={view}]").click()
                tab.wait_for_timeout(2500)
                tab.screenshot(path=folder / f"{name}.png", full_page=True)
                context.close()
    with started() as browser, trips_and_calls().launch(name="offers") as running, il.ui(running) as page:  # noqa: SIM117
        with kept_busy(running, behind=60):
            time.sleep(SECONDS / 2)
            context = browser.new_context(viewport=LAPTOP, color_scheme="dark", device_scale_factor=1.25)
            tab = context.new_page()
            tab.goto(page.url_with_token)
            tab.get_by_role("tab", name="Sources and late rows").click()
            tab.wait_for_timeout(2500)
            tab.screenshot(path=folder / "page-sources.png")


if __name__ == "__main__":
    main(*(Path(given) for given in sys.argv[1:]))
