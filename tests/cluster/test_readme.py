"""The README's section on clusters works as written, on two machines."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.cluster.conftest import MakeNetwork
from tests.docs.code_blocks import ROOT, code_blocks

PATH = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin:/sbin"}
LONG = 300


def test_its_commands_make_a_cluster_on_which_its_program_runs(machines: MakeNetwork, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    section = text.index("## On a cluster")
    blocks = [block for block in code_blocks(ROOT / "README.md") if block.line > text.count("\n", 0, section)]
    program = next(block for block in blocks if block.language == "python")
    commands = next(block for block in blocks if block.language == "sh").code
    (tmp_path / "program.py").write_text(program.code)
    setting, generate, head, node, run = (re.sub(r" +#.*", "", line) for line in commands.splitlines())

    first, second = machines(2).machines
    node = node.replace("10.0.0.1", first.address)
    generating = first.start("sh", "-ec", f"{setting}; {generate}", output=tmp_path / "token", settings=PATH)
    assert generating.wait() == 0, generating.output
    token = first.run("cat", "/tmp/ray/.ray/auth_token")  # HOME is /tmp/ray there
    second.run("sh", "-ec", f"mkdir /tmp/ray/.ray; printf %s {token} > /tmp/ray/.ray/auth_token")
    for machine, command, cwd in ((first, head, "/"), (second, node, "/"), (second, run, tmp_path)):
        line = f"cd {cwd}; {setting}; {command}"
        started = machine.start("sh", "-ec", line, output=tmp_path / "output", settings=PATH)
        assert started.wait(LONG) == 0, started.output
    assert started.output == program.shown
