"""Where compiled kernels are kept: a directory that belongs to the user, whatever copy of the code is running."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path
from tempfile import gettempdir

VARIABLE = "INTERLACE_KERNEL_CACHE"
"""The environment variable that names another directory. One that is filled beforehand may be read-only."""


def cache_directory() -> Path | None:
    """The directory of this process, which exists; None if there is none that only this user can write to.

    The first that works: `$INTERLACE_KERNEL_CACHE`; `interlace/kernels` in the user's cache directory; a directory for
    temporary files, where the home is read-only.
    """
    return _usable(os.environ.get(VARIABLE, ""), os.environ.get("XDG_CACHE_HOME", ""), gettempdir())


@cache
def _usable(named: str, caches: str, temporary: str) -> Path | None:
    if named:
        chosen = Path(named).expanduser()
        try:
            chosen.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise NotADirectoryError(
                f"{VARIABLE}={named}: compiled kernels cannot be kept there ({error.strerror}): name a directory that "
                "exists or can be made, or unset the variable"
            ) from error
        return chosen
    for directory in (_of_the_user(caches), Path(temporary) / f"interlace-{os.geteuid()}" / "kernels"):
        if directory is not None and _is_own(directory):
            return directory
    return None


def _of_the_user(caches: str) -> Path | None:
    if os.path.isabs(caches):
        return Path(caches) / "interlace" / "kernels"
    try:
        return Path.home() / ".cache" / "interlace" / "kernels"
    except RuntimeError:  # a user without a home
        return None


def _is_own(directory: Path) -> bool:
    """Make the directory if need be; whether this user can write to it and no other can.

    Entries contain code, so one that somebody else has put there would run with this user's rights.
    """
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        found = [directory.lstat(), directory.parent.lstat()]
    except OSError:
        return False
    return all(map(_only_we_write, found)) and os.access(directory, os.W_OK)


def _only_we_write(found: os.stat_result) -> bool:
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not others
