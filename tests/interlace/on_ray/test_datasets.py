"""Datasets of Ray: their blocks are sources, and results come back as one."""

from __future__ import annotations

import pytest

import interlace as il


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Data's own options
@pytest.mark.usefixtures("ray_cluster")
def test_a_dataset_goes_in_and_another_comes_out() -> None:
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    numbers = ray.data.from_items([{"ts": number, "x": number % 7} for number in range(40)], override_num_blocks=4)
    builder = il.TopologyBuilder("squares")
    builder.input("numbers", il.Input(event_time="ts"))
    builder.bolt("squares", il.bolt(lambda rows: {"y": [x * x for x in rows["x"].to_pylist()]})).shuffle_grouping(
        "numbers"
    )
    builder.sink().global_grouping("squares")
    with il.LocalRuntime().launch(builder.build()) as running:
        assert il.send_dataset(numbers, running, "numbers") == 40
        assert il.send_dataset(numbers, running, "numbers") == 0
        running.finish()
        squares = il.results_dataset(running)
        assert sorted(row["y"] for row in squares.take_all()) == sorted((number % 7) ** 2 for number in range(40))
        assert il.results_dataset(running).count() == 0
