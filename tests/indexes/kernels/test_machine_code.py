"""Machine code on disk: shared by processes, never trusted when damaged, bounded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from indexes.kernels import machine_code
from indexes.kernels.machine_code import MachineCode

REPOSITORY = Path(__file__).parents[3]


def test_an_entry_is_found_by_its_name(tmp_path: Path) -> None:
    MachineCode(tmp_path).save("one", ("code", 1))
    assert MachineCode(tmp_path).load("one") == ("code", 1)
    assert MachineCode(tmp_path).load("two") is None
    assert [file.name for file in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"", lambda content: b"x" + content])
def test_a_damaged_entry_counts_as_missing(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    store = MachineCode(tmp_path)
    store.save("one", "code")
    (tmp_path / "one").write_bytes(damage((tmp_path / "one").read_bytes()))
    assert store.load("one") is None
    store.save("one", "new code")
    assert store.load("one") == "new code"


def test_a_directory_that_is_gone_costs_only_the_entry(tmp_path: Path) -> None:
    store = MachineCode(tmp_path / "gone")
    with store.compiling("one"):
        store.save("one", "code")
    assert store.load("one") is None


def test_the_entries_used_last_stay_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MachineCode(tmp_path)
    for number in range(8):
        store.save(str(number), bytes(1000))
        os.utime(tmp_path / str(number), (number, number))
    assert store.load("0") is not None  # now it is the one used last
    monkeypatch.setattr(machine_code, "MOST_BYTES", 8500)
    store.save("8", bytes(1000))
    assert {file.name for file in tmp_path.iterdir()} == {"0", "6", "7", "8"}


COMPILE = """
import sys, time
from pathlib import Path
from indexes.kernels.machine_code import MachineCode

store, log = MachineCode(Path(sys.argv[1])), Path(sys.argv[2])
with store.compiling("kernel"):
    if store.load("kernel") is None:
        with log.open("a") as file:
            file.write("compiled ")
        time.sleep(0.5)
        store.save("kernel", "code")
"""


def test_one_process_compiles_and_the_others_wait_for_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", COMPILE, str(tmp_path), str(log)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    started = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert log.read_text() == "compiled "


HOLD = """
import sys, time
from pathlib import Path
from indexes.kernels.machine_code import MachineCode

with MachineCode(Path(sys.argv[1])).compiling("kernel"):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_process_that_dies_while_it_compiles_leaves_no_lock(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        holder.kill()
    with MachineCode(tmp_path).compiling("kernel"):  # would wait for ever
        assert (tmp_path / "locks").exists()
