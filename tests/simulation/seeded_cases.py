"""A random join for each number: the same number always gives the same join."""

from __future__ import annotations

from random import Random

from hypothesis.control import BuildContext
from hypothesis.internal.conjecture.data import ConjectureData

from tests.surface import SurfaceCase, surface_cases


def case_of(seed: int, max_rows: int) -> SurfaceCase:
    """Draw a join from the whole query surface.

    Hypothesis has no public way to draw from a seed outside of a test.
    """
    data = ConjectureData(random=Random(seed))
    with BuildContext(data, is_final=True, wrapped_test=case_of):
        return data.draw(surface_cases(max_rows=max_rows, max_sources=3))
