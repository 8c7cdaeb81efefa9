"""With CI=true a skipped test fails, so a missing Java or data set cannot pass for success.

A plugin of pytest. The long runs behind `--slow` may still be skipped: they are left out on purpose.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


def _as_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"CI=true allows no skips. {reason}\nInstall what is missing: make system-deps"


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    expected = item.get_closest_marker("slow") or hasattr(report, "wasxfail")
    if report.skipped and _in_ci() and not expected:
        _as_failure(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _in_ci():
        _as_failure(report)
    return report
