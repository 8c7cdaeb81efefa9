"""Out of order and idle sources as Ray actors: as on the embedded runtime."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators import RunningJoin
from tests.operators.intake.idle_course import check_idle_course, send_here, send_over_flight
from tests.operators.intake.out_of_order import BOUND, JOIN, SOURCES, late_rows, reported
from tests.operators.sent_readings import content
from topology import RayRuntime, Workers

pytestmark = pytest.mark.usefixtures("ray_cluster")


def test_results_and_late_rows_are_those_of_the_embedded_runtime() -> None:
    results, late = JOIN.collect_with_late(SOURCES, RayRuntime(placement=Workers(3)))
    assert content(results) == content(JOIN.collect(SOURCES))
    assert reported(late) == late_rows(SOURCES, BOUND)


def test_progress_ignores_a_silent_source() -> None:
    """The source that falls silent sends over Flight, the other from this process."""

    def send(running: RunningJoin, stream: str, table: pa.Table) -> None:
        (send_over_flight if stream == "S" else send_here)(running, stream, table)

    check_idle_course(RayRuntime(placement=Workers(2)), send)
