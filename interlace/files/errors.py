"""Errors of files, each with the remedy in its message."""

from __future__ import annotations

from collections.abc import Iterable


class FileError(ValueError):
    """A file that cannot be used as it is; the message names it and says what to do."""


class MissingFileError(FileError):
    """There is no such file."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names that are close to a wrong one, as the end of a message; empty if none is."""
    from difflib import get_close_matches

    among = list(known)
    folded = {each.casefold(): each for each in reversed(among)}
    close = [folded[each] for each in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    if not close:  # a part of the name, such as distance for trip_distance
        close = [each for each in among if len(name) > 2 and name.casefold() in each.casefold()][:3]
    return f"; did you mean {' or '.join(close)}?" if close else ""
