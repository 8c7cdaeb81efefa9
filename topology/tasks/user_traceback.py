"""The part of a traceback that helps the author of a component."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

_PACKAGE = Path(__file__).parent.parent


def user_traceback(error: BaseException) -> str:
    """The traceback as text, without the frames of this package at its top."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and _is_ours(frames):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def _is_ours(frames: TracebackType) -> bool:
    return Path(frames.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE)
