"""What a launch shows on a terminal while it waits."""

import io

import pytest

from topology.on_ray.launching import LaunchProgress


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_note_takes_one_line_and_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    screen = Screen()
    with LaunchProgress(out=screen) as progress:
        progress.show("waiting for resources: " + "worker " * 20)
    shown = screen.getvalue().split("\r\x1b[K")
    assert [len(line) for line in shown] == [0, 40, 0]
