"""The table of built-in functions: SQL, Python expressions, types, evaluation and the page of queries all read it."""

from __future__ import annotations

from difflib import get_close_matches

from operators.functions.builtin import Builtin
from operators.functions.choice_functions import CHOICE_FUNCTIONS
from operators.functions.composed_functions import COMPOSED_FUNCTIONS
from operators.functions.number_functions import NUMBER_FUNCTIONS
from operators.functions.text_functions import TEXT_FUNCTIONS
from operators.functions.time_functions import TIME_FUNCTIONS

BUILTINS: dict[str, Builtin] = {
    builtin.name: builtin
    for builtin in (
        *CHOICE_FUNCTIONS,
        *NUMBER_FUNCTIONS,
        *TEXT_FUNCTIONS,
        *TIME_FUNCTIONS,
        *COMPOSED_FUNCTIONS,
    )
}
"""Every built-in function by its name."""

_BY_ANY_NAME = {name: builtin for builtin in BUILTINS.values() for name in (builtin.name, *builtin.aliases)}


def builtin_named(name: str) -> Builtin | None:
    """The built-in function of this name or alias, in any case; None if there is none."""
    return _BY_ANY_NAME.get(name.lower())


def similar_names(name: str) -> list[str]:
    """Names of built-in functions that look like this one."""
    return get_close_matches(name.lower(), [each for each in _BY_ANY_NAME if each.isidentifier()], n=2, cutoff=0.8)
