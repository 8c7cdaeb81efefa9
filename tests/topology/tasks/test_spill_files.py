"""Batches on disk that many queues share."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from topology.tasks.spill_files import SpillFiles


def rows(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": np.full(10, number), "t": pa.array([f"row {number}"] * 10).dictionary_encode()})


def test_batches_come_back_in_any_order() -> None:
    files = SpillFiles()
    written = [files.write(rows(number)) for number in range(5)]
    for number in (3, 0, 4, 1, 2):
        assert files.take(written[number]) == rows(number)
    assert files.nbytes == 0
    files.close()


def test_a_file_goes_away_with_its_last_batch(tmp_path: Path) -> None:
    files = SpillFiles(str(tmp_path), file_bytes=1)
    written = [files.write(rows(number)) for number in range(3)]
    assert files.open_files == 3
    files.drop(written[1])
    assert files.open_files == 2
    assert files.take(written[2]) == rows(2)
    assert files.take(written[0]) == rows(0)
    assert (files.open_files, files.nbytes) == (0, 0)
    assert files.take(files.write(rows(7))) == rows(7)
    files.write(rows(1))
    files.close()
    assert (files.open_files, files.nbytes) == (0, 0)
