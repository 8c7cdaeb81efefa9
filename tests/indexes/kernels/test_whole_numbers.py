from __future__ import annotations

import pytest

from indexes import check_whole_number


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "3", None])
def test_what_is_not_a_whole_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(KeyError, match="Owner: rows must be a whole number of 1 or more, not"):
        check_whole_number("Owner", "rows", value, error=KeyError)


@pytest.mark.parametrize(("value", "least", "optional"), [(1, 1, False), (2, 2, False), (None, 1, True), (0, 0, False)])
def test_what_is_one_passes(value: object, least: int, optional: bool) -> None:
    check_whole_number("Owner", "rows", value, least=least, optional=optional)


def test_an_optional_setting_says_that_none_is_fine() -> None:
    with pytest.raises(ValueError, match=r"^rows must be a whole number of 2 or more, or None, not 1$"):
        check_whole_number("", "rows", 1, least=2, optional=True)
