"""A URI opens a store that works, or an error says what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from tests.s3_server import below
from tests.topology.durable.stores import numbered, numbers, started
from topology.durable.open_store import open_store
from topology.durable.take_over import take_over
from topology.graph.errors import StoreError


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}"])
def test_a_directory_is_made_and_used(form: str, tmp_path: Path) -> None:
    directory = tmp_path / "new one" / "state"
    uri = form.format(directory if form == "{}" else str(directory).replace(" ", "%20"))
    log = started(open_store(uri))
    log.append(numbered(1))
    log.commit()
    assert any(path.name.startswith("segment-") for path in directory.iterdir())
    assert numbers(take_over(open_store(directory))) == [1]


def test_several_logs_live_in_folders_of_one_store(tmp_path: Path, s3_uri: str) -> None:
    for uri in (str(tmp_path), below(s3_uri, "folders")):
        for number, folder in enumerate(("input", "order")):
            log = started(open_store(uri, folder))
            log.append(numbered(number))
            log.commit()
        assert numbers(take_over(open_store(uri, "input"))) == [0]
        assert numbers(take_over(open_store(uri, "order"))) == [1]


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("ftp://host/place", "no store for ftp://; give a directory"),
        ("file://host/place", "three slashes"),
        ("file:///tmp/place?shared=true", "a directory has no options"),
        ("s3://bucket/place?shared=true", "cannot write to bucket/place on S3: .*shared"),
        ("", "empty path"),
        ("/dev/null/state", "cannot write to the directory /dev/null/state: Not a directory"),
        ("/proc/state", "cannot write to the directory /proc/state"),
        ("s3://", "cannot write to"),
    ],
)
def test_what_is_no_store_is_refused(uri: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        open_store(uri)


_AS_NOBODY = """
import os, sys
from topology.durable.open_store import open_store
if os.geteuid() == 0:
    os.setuid(65534)
try:
    open_store(sys.argv[1])
except OSError as error:
    print(type(error).__name__, error)
"""


def test_a_directory_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    finished = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(tmp_path)], capture_output=True, text=True, check=True
    )
    tmp_path.chmod(0o700)
    assert finished.stdout.startswith(f"StoreError cannot write to the directory {tmp_path}: Permission denied")


def test_new_directories_survive_as_entries_of_those_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def noticed(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        real(file)

    monkeypatch.setattr(os, "fsync", noticed)
    open_store(tmp_path / "one" / "two")
    assert synced[:2] == [str(tmp_path), str(tmp_path / "one")]


@pytest.mark.parametrize("place", ["@missing/log", "@bucket/a b^c", "@"])
def test_a_bucket_that_cannot_be_used_is_refused_without_its_keys(s3_uri: str, place: str) -> None:
    with pytest.raises(StoreError, match=r"cannot write to .* on S3") as caught:
        open_store(s3_uri.replace("@bucket", place).replace("test:test", "test:hidden"))
    told = "".join(traceback.format_exception(caught.value))
    assert "StoreError" in told
    assert "hidden@" not in told
