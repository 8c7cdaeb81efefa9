"""The project keeps the rules of the house, and each rule notices a breach."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.house_rules import MOST_FILES, OUTSIDE, PACKAGES, RULES, public_names_exist

ROOT = Path(__file__).parent.parent

IN_AND_OUT = '"""A room. In: rows. Out: rows. Imports nothing."""\n'

BREACHES: dict[str, dict[str, str]] = {
    "packages_import_one_way": {"indexes/choice.py": "import topology\n"},
    "code_outside_a_package_imports_its_interface_only": {
        "benchmarks/planted.py": "from topology.graph.messages import Batch\n"
    },
    "every_folder_is_a_room": {"topology/planted/log.py": ""},
    "rooms_import_earlier_rooms_only": {"topology/graph/messages.py": "from topology.tasks.inbox import Inbox\n"},
    "every_room_says_what_flows_in_and_out_and_what_it_imports": {"topology/tasks/__init__.py": IN_AND_OUT},
    "rooms_stay_small": {f"indexes/kernels/planted_{number}.py": "" for number in range(MOST_FILES)},
    "ray_and_spark_stay_in_their_rooms": {"topology/local/runtime.py": "def late() -> None:\n    import ray\n"},
    "nothing_is_unpickled_or_hashed_by_process": {"topology/graph/hashing.py": "print(hash('a'))\n"},
    "streams_of_a_join_are_typed": {
        "operators/results/collector.py": "def take(batch):\n    return batch.stream == 'limits'\n",
    },
    "every_module_has_a_docstring": {"examples/planted.py": "print()\n"},
    "comparison_operators_have_one_table": {"operators/values/planted.py": 'MIRRORED = {"<": ">", "<=": ">="}\n'},
    "whole_numbers_have_one_check": {
        "operators/query/planted.py": "def f(n):\n    return isinstance(n, bool) or not isinstance(n, int)\n"
    },
    "operators_ask_for_capabilities_not_for_classes_of_indexes": {
        "operators/engines/shared/planted.py": "def f(index):\n    return isinstance(index, PIMTree)\n"
    },
    "tests_share_code_outside_of_test_files": {"tests/test_planted.py": "from tests.test_oracle import x\n"},
    "words_keep_one_meaning": {"operators/planted.py": '"""The door of a topology."""\n'},
}
"""For each rule, files that break it."""


@pytest.mark.parametrize("name", RULES)
def test_the_project_keeps(name: str) -> None:
    assert list(RULES[name](ROOT)) == []


def test_every_public_name_exists() -> None:
    assert list(public_names_exist()) == []


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's sources."""
    copy = tmp_path_factory.mktemp("sources")
    for folder in (*PACKAGES, *OUTSIDE, "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.parquet"))
    return copy


@pytest.mark.parametrize("name", RULES)
def test_a_breach_is_noticed(name: str, sources: Path) -> None:
    before: dict[Path, str | None] = {}
    try:
        for planted, text in BREACHES[name].items():
            path = sources / planted
            before[path] = path.read_text() if path.exists() else None
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        breaches = list(RULES[name](sources))
        assert breaches
        assert any(planted.split("/")[1] in breach for planted in BREACHES[name] for breach in breaches)
    finally:
        for path, text_before in before.items():
            if text_before is None:
                path.unlink()
            else:
                path.write_text(text_before)
