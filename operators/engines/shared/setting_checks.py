"""Checks of an engine's settings, made when the engine is described. Messages name the engine and the remedy."""

from __future__ import annotations

from typing import Any, get_args

from indexes import CATALOGUE, check_whole_number
from operators.engines.shared.configured_index import ConfiguredIndex
from operators.query.errors import JoinError

AUTO = "auto"
"""The index is chosen from the query and the first rows."""


def check_number(engine: str, setting: str, value: object, *, least: int = 1, optional: bool = False) -> None:
    """Refuse a value that is not a whole number of at least `least`; with `optional`, None is fine too."""
    check_whole_number(engine, setting, value, least=least, optional=optional, error=JoinError)


def check_choice(engine: str, setting: str, value: object, choices: Any) -> None:
    """Refuse a value that is not one of a `Literal`'s."""
    if not isinstance(value, str) or value not in get_args(choices):
        wanted = " or ".join(repr(choice) for choice in get_args(choices))
        raise JoinError(f"{engine}: {setting} must be {wanted}, not {value!r}")


def check_flag(engine: str, setting: str, value: object) -> None:
    """Refuse a value that is not a boolean."""
    if not isinstance(value, bool):
        raise JoinError(f"{engine}: {setting} must be True or False, not {value!r}")


def check_index(engine: str, index: object, *, optional: bool = False, shared: bool = False) -> None:
    """Refuse a value that is not the name of an index or a configured one.

    optional: None is fine too and stands for the nested loop.
    shared:   the engine's threads share the index, so the index may bring settings of the engine along.
    """
    if index is None and optional:
        return
    if isinstance(index, ConfiguredIndex):
        if index.engine_settings and not shared:
            raise JoinError(
                f"{engine}: {index.name} brings settings of IndexJoin along ({', '.join(index.engine_settings)}), "
                "where threads share an index: leave them out"
            )
        return
    if not isinstance(index, str) or (index != AUTO and index not in CATALOGUE):
        nested = "None for the nested loop, or " if optional else ""
        raise JoinError(f"{engine}: index must be {nested}one of {', '.join([AUTO, *CATALOGUE])}; not {index!r}")
