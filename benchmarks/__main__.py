"""`python -m benchmarks NAME [--quick] [--json FILE]`: run one benchmark and print its table.

The last line printed is one JSON object: {"name", "machine", "rows": [{"case", "ours", "peers", "ratio"}, ...]}.
`papers` has options of its own: `python -m benchmarks papers --help`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path

BENCHMARKS = {
    "aggregates": "benchmarks.aggregates",
    "as-of": "benchmarks.as_of",
    "indexes": "benchmarks.indexes",
    "spo-q1": "benchmarks.spo_q1",
    "engines": "benchmarks.engines",
    "first-row": "benchmarks.first_row",
    "pan-join": "benchmarks.pan_join",
    "papers": "benchmarks.papers.command",
    "pim-band": "benchmarks.pim_band",
    "ray": "benchmarks.ray_cluster",
    "recovery": "benchmarks.recovery",
    "ray-hop": "benchmarks.ray_hop",
    "scale-band": "benchmarks.scale_band",
    "scale-gate": "benchmarks.scale_gate",
    "spark-feed": "benchmarks.spark_feed",
    "split-order": "benchmarks.split_order",
    "log": "benchmarks.log",
    "kinds": "benchmarks.kinds",
    "multiway": "benchmarks.multiway",
    "mutable-plans": "benchmarks.mutable_plans",
    "watching": "benchmarks.watching",
    "two-bands": "benchmarks.two_bands",
}


def machine() -> str:
    """The hardware that figures are measured on, in one line."""
    model = platform.processor() or platform.machine()
    memory = 0.0
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            memory = int(line.split()[1]) / 2**20
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def main(arguments: list[str]) -> int:
    """Run the benchmark named on the command line."""
    if arguments[:1] == ["papers"]:  # a benchmark with options of its own
        print(f"papers on {machine()}", flush=True)
        return int(importlib.import_module(BENCHMARKS["papers"]).main(arguments[1:], machine()))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="smaller and shorter: to see that it works")
    parser.add_argument("--json", metavar="FILE", help="also write the JSON object to a file")
    options = parser.parse_args(arguments)
    os.environ.setdefault("INTERLACE_KERNELS", "compiled")  # figures are those of machine code from the first row on
    print(f"{options.name} on {machine()}", flush=True)
    result = importlib.import_module(BENCHMARKS[options.name]).run(options.quick)
    line = json.dumps({"name": options.name, "machine": machine(), "rows": result["rows"]})
    if options.json:
        Path(options.json).write_text(line + "\n")
    print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
