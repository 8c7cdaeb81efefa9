import pytest

from operators import CountWindow, IndexJoin, SPOJoin, StreamJoin


@pytest.mark.parametrize(
    ("on", "engine", "because"),
    [
        ("abs(R.x - S.x) <= 3", IndexJoin, "one column of each side decides"),
        ("R.x = S.x AND R.y != S.y", IndexJoin, "one column of each side decides"),
        ("R.x < S.x AND R.y > S.y", SPOJoin, "2 columns of each side decide"),
        ("R.x < S.x AND R.y > S.y AND abs(R.z - S.z) <= 1", SPOJoin, "3 columns of each side decide"),
        ("R.x < S.x AND abs(R.y - S.y) <= 1", SPOJoin, "2 columns of each side decide"),
        ("abs(R.x - S.x) <= 3 AND abs(R.y - S.y) <= 1", IndexJoin, "2 bands are a rectangle"),
        ("R.x = S.x AND R.y < S.y", IndexJoin, "an equality decides"),
        ("R.x != S.x", SPOJoin, "no range is asked for"),
    ],
)
def test_the_engine_follows_the_condition_and_the_plan_says_why(on: str, engine: type, because: str) -> None:
    join = StreamJoin("R", "S", on, CountWindow(1 << 20))
    assert type(join.engine) is engine
    assert f"auto: {engine.__name__}, since {because}" in str(join.plan())


def test_two_inequalities_over_a_few_rows_need_no_immutable_part() -> None:
    plan = str(StreamJoin("R", "S", "R.x < S.x AND R.y > S.y", CountWindow(1000)).plan())
    assert "auto: IndexJoin, since windows of up to 65,536 rows are a few sorted blocks" in plan
    assert "TieredRuns: two ranges narrow each other" in plan


def test_an_engine_that_was_named_needs_no_reason() -> None:
    assert "auto" not in str(StreamJoin("R", "S", "R.x < S.x", CountWindow(9), using=SPOJoin()).plan())


def test_the_plan_shows_the_index_and_why() -> None:
    plan = str(StreamJoin("R", "S", "abs(R.x - S.x) <= 3", CountWindow(1 << 20)).plan())
    assert "LeveledTrees: a range of one key" in plan
    plan = str(StreamJoin("R", "S", "abs(R.x - S.x) <= 3 AND abs(R.y - S.y) <= 1", CountWindow(1 << 20)).plan())
    assert "GridIndex: two bands are a rectangle" in plan
    plan = str(StreamJoin("R", "S", "R.x < S.x AND R.y > S.y", CountWindow(1 << 20)).plan())
    assert "TieredRuns: it holds sorted runs already" in plan
