"""Which tests run in which tier, and on which worker.

A plugin of pytest. `make check` is the quick tier (`--quick`): no Ray, no Spark, no recorded data, nothing marked
`thorough`, and a tenth of the random examples. `make test` is everything except `slow`, with a third of the random
examples: they are others in each run. With `--slow` all of it.

With several workers (pytest-xdist), half of the tests that need Ray share one of them and its cluster, the other half
a second one, and those that need Spark alone a third. Tests with clusters or machines of their own
(`machines`) disturb nobody and may run beside them. The tests of a file stay together, because they share fixtures.
"""

from __future__ import annotations

import pytest
from hypothesis import is_hypothesis_test, settings

CLUSTERS = {"ray_cluster": "ray", "machines": "ray", "spark": "spark"}
"""The fixtures that start a cluster, and the markers that their users get."""

NOT_QUICK = {*CLUSTERS.values(), "realdata", "slow", "thorough"}
SECOND_HALF = ("tests/operators/", "tests/interlace/", "tests/docs/")
"""Half of the tests that need Ray; they have a cluster to themselves, since both halves often wait."""

QUICK_SHARE, SHARE = 10, 3
"""The quick tier runs one random example in 10, the usual one every third."""


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at markers, and pytest-xdist at groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for fixture in CLUSTERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(CLUSTERS[fixture])
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="a long run: --slow"))
    if config.getoption("--quick"):
        _keep_the_quick(config, items)
    if not config.getoption("--slow"):
        _try_fewer(items, QUICK_SHARE if config.getoption("--quick") else SHARE)
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist
        _group(items)


def _keep_the_quick(config: pytest.Config, items: list[pytest.Item]) -> None:
    quick = [item for item in items if not any(mark.name in NOT_QUICK for mark in item.iter_markers())]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(quick)])
    items[:] = quick


def _try_fewer(items: list[pytest.Item], share: int) -> None:
    for test in {item.obj for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)}:
        # Hypothesis has no public way to change the settings of a decorated test; a test watches this one.
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is not None:  # a state machine has its settings elsewhere
            test._hypothesis_internal_use_settings = settings(own, max_examples=max(1, own.max_examples // share))


def _group(items: list[pytest.Item]) -> None:
    """Name the tests that stay on one worker. The clusters' tests take longest, so workers begin with them."""
    for item in items:
        cluster = _cluster_of(item)
        if cluster == "ray" and item.nodeid.startswith(SECOND_HALF):
            cluster = "ray, second half"
        item.add_marker(pytest.mark.xdist_group(cluster or item.path.stem))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    order = ("ray", "spark")
    cluster = _cluster_of(item)
    if cluster is not None:
        return order.index(cluster)
    return len(order) if _has_machines(item) else len(order) + 1


def _cluster_of(item: pytest.Item) -> str | None:
    """The cluster that decides where a test runs: Ray before Spark, because a test of both is long."""
    if _has_machines(item):
        return None
    return next((marker for marker in ("ray", "spark") if item.get_closest_marker(marker)), None)


def _has_machines(item: pytest.Item) -> bool:
    """Whether a test runs on machines of its own."""
    return "machines" in getattr(item, "fixturenames", ())
