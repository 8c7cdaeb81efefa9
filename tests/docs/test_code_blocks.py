"""Every code block of the README and of docs/ runs exactly as printed, alone, and prints what is shown below it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS
from spark_bridge import SparkUnavailableError, require_java
from tests.docs.code_blocks import BLOCKS, PAGES, ROOT, CodeBlock
from tests.docs.fresh_process import FreshProcesses
from tests.docs.terminal import Terminal

PYTHON = [block for block in BLOCKS if block.language == "python"]


def starts(block: CodeBlock, word: str) -> bool:
    """Whether the code of a block has a word outside of comments: "spark" starts Spark, "Ray" uses a cluster of Ray."""
    return word in re.sub("#.*", "", block.code)


EMBEDDED = [block for block in PYTHON if not starts(block, "spark") and not starts(block, "Ray")]
CLUSTERED = list({block.code: block for block in PYTHON if block not in EMBEDDED}.values())
"""Each takes many seconds, so a program that stands on several pages runs once; what they show is the same."""
ON_RAY = [block for block in CLUSTERED if starts(block, "Ray")]
ON_SPARK = [block for block in CLUSTERED if block not in ON_RAY]

SHELL = [block for block in BLOCKS if block.language == "sh"]
PRINTING = [block for block in SHELL if block.shown]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshProcesses]:
    processes = FreshProcesses(tmp_path_factory.mktemp("blocks"))
    yield processes
    processes.close()


@pytest.mark.parametrize("block", EMBEDDED, ids=lambda block: block.name)
def test_a_block_runs_alone_and_prints_what_is_shown(block: CodeBlock, processes: FreshProcesses) -> None:
    finished = processes.run(block.code)
    assert (finished.status, finished.err) == (0, "")
    assert finished.out == block.shown


@pytest.mark.parametrize("block", ON_RAY, ids=lambda block: block.name)
def test_a_block_with_a_cluster_runs_alone_and_prints_what_is_shown(
    block: CodeBlock, ray_cluster: None, tmp_path: Path
) -> None:
    import ray

    check_program(block, tmp_path, RAY_ADDRESS=ray.get_runtime_context().gcs_address)


@pytest.mark.spark
@pytest.mark.parametrize("block", ON_SPARK, ids=lambda block: block.name)
def test_a_block_with_spark_runs_alone_and_prints_what_is_shown(block: CodeBlock, tmp_path: Path) -> None:
    check_program(block, tmp_path)


def check_program(block: CodeBlock, place: Path, **variables: str) -> None:
    if starts(block, "spark"):
        try:
            require_java()
        except SparkUnavailableError as error:
            pytest.skip(str(error))
    program = place / "program.py"
    program.write_text(block.code)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",  # the name of the machine may mean nothing to it
        **variables,
    }
    finished = subprocess.run(
        [sys.executable, program], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == block.shown


@pytest.mark.thorough  # starts processes
@pytest.mark.parametrize("block", PRINTING, ids=lambda block: block.name)
def test_a_shell_block_shows_on_a_terminal_what_is_shown(block: CodeBlock, tmp_path: Path) -> None:
    """It runs after the first block of its page that shows something, which makes the files of the examples."""
    first = next(each for each in PRINTING if each.page == block.page)
    terminal = Terminal(tmp_path)
    if first is not block:
        terminal.run(first.code)
    assert terminal.run(block.code) == block.shown


def test_a_program_on_several_pages_shows_the_same() -> None:
    assert len({(block.code, block.shown) for block in PYTHON}) == len({block.code for block in PYTHON})


def test_every_block_says_what_it_is() -> None:
    assert {block.language for block in BLOCKS} <= {"python", "text", "sh", "sql", "yaml"}


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.name)
def test_what_a_shell_block_calls_exists(block: CodeBlock) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"\bmake ([\w-]+)", block.code)) <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_modules_and_benchmarks_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for module in re.findall(r"python -m ([\w.]+)", text):
        assert importlib.util.find_spec(module) is not None, module
    assert set(re.findall(r"python -m benchmarks\s([\w-]+)", text)) <= set(BENCHMARKS)


def test_a_block_does_not_know_the_names_of_another(processes: FreshProcesses) -> None:
    assert processes.run("known = 1\nprint(known)").out == "1\n"
    assert "NameError" in processes.run("print(known)").err
