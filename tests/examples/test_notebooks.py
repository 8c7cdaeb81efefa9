"""The notebooks of examples/ run, and the files keep what their cells show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SECONDS = 600

pytestmark = pytest.mark.filterwarnings("default")  # of Jupyter's own modules


def executed(notebook: Any) -> Any:
    """The notebook with the outputs of a kernel of its own, which ends with it."""
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": ROOT}}).execute()
    return notebook


def shown(cell: Any, kind: str = "text/html") -> str:
    """What the outputs of a cell show."""
    return " ".join(str(output["data"].get(kind, "")) for output in cell.outputs if "data" in output)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run from top to bottom, once"
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert any(shown(cell, "image/png") for cell in cells), "it has a plot"
    assert str(ROOT) not in path.read_text(), "a file of one machine is not part of an example"
    assert all(len(line) <= 100 for cell in cells for line in cell.source.splitlines()), "pages cut longer lines"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    executed(nbformat.read(path, 4))


def test_a_cell_that_waits_says_for_what_and_can_be_interrupted() -> None:
    sources = [
        'import interlace as il\nimport pyarrow as pa\nimport os, signal, threading\n'
        'join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10), select=["R.x", "S.x"])\n'
        'running = join.launch()\n'
        'running.send("R", pa.table({"x": [1, 2]}))',
        "list(running.results(timeout=2))",
        "threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()\nlist(running.results())",
        'running.send("S", pa.table({"x": [2]}))\nrunning.finish()\n'
        "[rows.to_pydict() for rows in running.results()]",
        "running.stop()\nrunning",
    ]  # fmt: skip
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[2].metadata["tags"] = ["raises-exception"]
    done = executed(nbformat.v4.new_notebook(cells=cells)).cells
    assert "R 2 rows, S 0 rows" in shown(done[1])
    assert "waiting for stream &#x27;S&#x27;: no source has sent rows" in shown(done[1])
    assert [output.ename for output in done[2].outputs if output.output_type == "error"] == ["KeyboardInterrupt"]
    assert "{'R.x': [1], 'S.x': [2]}" in shown(done[3], "text/plain"), "the topology is usable"
    assert "R join S" in shown(done[4])
    assert "stopped" in shown(done[4])
