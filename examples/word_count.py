"""Word count: the smallest topology with state spread over several tasks.

    python -m examples.word_count                       # in this process, on a short text of its own
    python -m examples.word_count --ray                 # the same topology on a Ray cluster
    python -m examples.word_count --tasks 4 a.txt b.txt # your files, each a physical source of its own

    lines --shuffle--> split --fields(word)--> count --global--> results

Lines are split by any task. All occurrences of one word go to the same counting task, because `fields_grouping` sends
rows by a hash of the word. So each task counts its own words independently. `examples/killed_word_count.py` kills it in
the middle.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import interlace as il

LINES = pa.schema([("line", pa.string())])
WORDS = pa.schema([("word", pa.string())])
COUNTS = pa.schema([("word", pa.string()), ("count", pa.int64())])

TEXT = """\
A stream is a table that never ends, and a join of two streams is a question that is never quite answered.
Each row waits in a window for the rows of the other stream; each row leaves the window when its time is over.
The rows that meet in the window are the answer so far, and the answer so far is all that a stream can give.
"""

LINES_PER_BATCH = 10_000


def split_words(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Turn lines into lower-case words, one per row; the whole batch at once, by Arrow."""
    pieces = pc.split_pattern_regex(pc.utf8_lower(rows.column("line")), r"[^\p{L}\p{N}']+")
    words = pc.list_flatten(pieces)
    return pa.record_batch([words.filter(pc.not_equal(words, ""))], schema=WORDS)


@dataclass(frozen=True)
class CountWords(il.Bolt):
    """The description: frozen and picklable, so that it can be sent to another process."""

    snapshots = True  # its tasks have snapshot() and restore()

    @property
    def outputs(self) -> dict[str, pa.Schema | None]:
        """With a declared schema the builder can check the groupings of subscribers."""
        return {il.DEFAULT_STREAM: COUNTS}

    def build(self, context: il.TaskContext) -> il.Task:
        """Make the stateful part; called once in each task."""
        return CountWordsTask()


class CountWordsTask(il.Task):
    """The state of one task: the counts of the words that the grouping sends here."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def on_batch(self, batch: il.Batch, origin: il.Origin) -> Iterable[il.Emit]:
        """Add a batch; `value_counts` leaves one addition per distinct word to Python."""
        for entry in batch.rows.column("word").value_counts().to_pylist():
            self._counts[entry["values"]] += entry["counts"]
        return ()

    def on_end(self) -> Iterable[il.Emit]:
        """Emit the totals when all lines have been counted."""
        if self._counts:
            columns = [pa.array(self._counts.keys(), pa.string()), pa.array(self._counts.values(), pa.int64())]
            yield il.Emit(il.Batch(il.DEFAULT_STREAM, pa.record_batch(columns, schema=COUNTS)))

    def snapshot(self) -> bytes:
        """All of the state; with `state=`, taken now and then, so that a new process goes on from there."""
        return json.dumps(self._counts).encode()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot, in a new process."""
        self._counts = Counter(json.loads(snapshot))

    def metrics(self) -> dict[str, float]:
        """Shown by the handle's `metrics()` beside what the runtime counts."""
        return {"distinct words": len(self._counts)}


def word_count(tasks: int = 2) -> il.Topology:
    """Describe the topology; nothing runs yet."""
    builder = il.TopologyBuilder("word count")
    builder.input("lines", il.Input(LINES))
    builder.bolt("split", il.MapBatches(split_words, WORDS), parallelism=tasks).shuffle_grouping("lines")
    builder.bolt("count", CountWords(), parallelism=tasks).fields_grouping("split", "word")
    builder.sink().global_grouping("count")
    return builder.build()


def count(topology: il.Topology, texts: dict[str, str], runtime: il.Runtime) -> Counter[str]:
    """Run the topology on some texts, by name, and return the count of every word."""
    with runtime.launch(topology) as running:
        for source, text in texts.items():
            for rows in line_batches(text):
                running.send("lines", rows, source=source)
        running.finish()
        totals: Counter[str] = Counter()
        for rows in running.results():
            for row in rows.to_pylist():
                totals[row["word"]] += row["count"]
        print(running.metrics(), end="\n\n")
    return totals


def line_batches(text: str) -> Iterator[pa.RecordBatch]:
    """Cut a text into batches of lines."""
    lines = text.splitlines()
    for start in range(0, len(lines), LINES_PER_BATCH):
        yield pa.record_batch([pa.array(lines[start : start + LINES_PER_BATCH], pa.string())], schema=LINES)


def main() -> None:
    """Read the command line, print the plan, run, print the most frequent words."""
    parser = argparse.ArgumentParser(description="Count words with a topology.")
    parser.add_argument("files", nargs="*", type=Path, help="text files (default: a short text of its own)")
    parser.add_argument("--ray", action="store_true", help="run on Ray instead of in this process")
    parser.add_argument("--tasks", type=int, default=2, help="tasks that split, and tasks that count (default: 2)")
    parser.add_argument("--top", type=int, default=10, help="how many words to print (default: 10)")
    arguments = parser.parse_args()

    runtime: il.Runtime = il.LocalRuntime()
    if arguments.ray:
        runtime = il.RayRuntime()
    texts = {str(path): path.read_text(encoding="utf-8") for path in arguments.files} or {"built-in text": TEXT}
    topology = word_count(arguments.tasks)
    print(topology.plan(), end="\n\n")
    totals = count(topology, texts, runtime)
    for word, times in sorted(totals.items(), key=lambda item: (-item[1], item[0]))[: arguments.top]:
        print(f"{times:>8,}  {word}")


if __name__ == "__main__":
    main()
