"""Options that hold for all inputs or for one: `--event-time ts`, or `--event-time a=ts --event-time b=time`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from interlace.command_line.outcome import mistake
from interlace.files.errors import did_you_mean

T = TypeVar("T")


def by_stream(option: str, given: Iterable[str], roles: Mapping[str, str], read: Callable[[str], T]) -> dict[str, T]:
    """The value for each stream that has one; `roles` gives the stream of each name that may stand before the `=`."""
    general: dict[str, T] = {}
    named: dict[str, T] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            general = {stream: read(text) for stream in roles.values()}
        elif name in roles:
            named[roles[name]] = read(value)
        else:
            known = ", ".join(roles)
            raise mistake(
                f"{option} {text}: there is no input '{name}'{did_you_mean(name, roles)}; its inputs: {known}"
            )
    return {**general, **named}


def bindings(given: Iterable[str]) -> dict[str, str]:
    """The file of each input, from `--input NAME=FILE`."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise mistake(f"--input {text}: write NAME=FILE, such as --input trips=trips.parquet")
        if name in found:
            raise mistake(f"--input {name} is given twice: a glob or a directory names several files")
        found[name] = path
    return found
