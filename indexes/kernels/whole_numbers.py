"""The check of settings that count something: rows, threads, elements."""

from __future__ import annotations


def check_whole_number(
    owner: str,
    setting: str,
    value: object,
    *,
    least: int = 1,
    optional: bool = False,
    error: type[Exception] = ValueError,
) -> None:
    """Raise `error` unless `value` is a whole number of at least `least`; with `optional`, None is fine too.

    >>> check_whole_number("SplitJoin", "fanout", 1, least=2)
    Traceback (most recent call last):
    ValueError: SplitJoin: fanout must be a whole number of 2 or more, not 1
    """
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        alternative = ", or None" if optional else ""
        what = f"{owner}: {setting}" if owner else setting
        raise error(f"{what} must be a whole number of {least} or more{alternative}, not {value!r}")
