"""Objects by their import path: `module.Name` or `module:Name`."""

from __future__ import annotations

import importlib
from typing import Any

from interlace.files.errors import did_you_mean


class ImportPathError(ValueError):
    """There is no such object; the message says what there is."""


def imported(path: str) -> Any:
    """The object that an import path names."""
    module_name, colon, name = path.partition(":")
    if not colon:
        module_name, _, name = path.rpartition(".")
    if not module_name or not name:
        raise ImportPathError(f"'{path}' is not an import path: write module.Name")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ImportPathError(f"there is no module '{error.name}' for '{path}'") from None
    except Exception as error:
        raise ImportPathError(f"module '{module_name}' cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            known = [each for each in dir(found) if not each.startswith("_")]
            raise ImportPathError(f"module '{module_name}' has no '{part}'{did_you_mean(part, known)}")
        found = getattr(found, part)
    return found
