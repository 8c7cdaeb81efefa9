"""Which tests run in which tier, and on which worker.

A plugin of pytest. `make check` is the quick tier (`--quick`): no Ray, no Spark, no recorded data, nothing marked
`thorough`, and a tenth of the random examples. `make test` is everything except `slow`. With `--slow` also that.

With several workers (pytest-xdist), all tests that need a cluster run on one of them: Ray and Spark then start once
per run. The tests of a file stay together, because they share fixtures.
"""

from __future__ import annotations

import pytest
from hypothesis import is_hypothesis_test, settings

CLUSTERS = {"ray_cluster": "ray", "spark": "spark"}
"""The fixtures that start a cluster, and the markers that their users get."""

NOT_QUICK = {*CLUSTERS.values(), "realdata", "slow", "thorough"}
QUICK_SHARE = 10
"""The quick tier runs one random example in so many."""


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at markers, and pytest-xdist at groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in CLUSTERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(CLUSTERS[fixture])
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="a long run: --slow"))
    if config.getoption("--quick"):
        _keep_the_quick(config, items)
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist
        _group(items)


def _keep_the_quick(config: pytest.Config, items: list[pytest.Item]) -> None:
    quick = [item for item in items if not any(mark.name in NOT_QUICK for mark in item.iter_markers())]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(quick)])
    items[:] = quick
    for test in {item.obj for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)}:
        # Hypothesis has no public way to change the settings of a decorated test; a test watches this one.
        own = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = settings(own, max_examples=max(1, own.max_examples // QUICK_SHARE))


def _group(items: list[pytest.Item]) -> None:
    """Name the tests that stay on one worker. The clusters' tests take longest, so their worker begins with them."""
    on_cluster = {item for item in items if any(item.get_closest_marker(marker) for marker in CLUSTERS.values())}
    for item in items:
        item.add_marker(pytest.mark.xdist_group("clusters" if item in on_cluster else item.path.stem))
    items.sort(key=lambda item: item not in on_cluster)
