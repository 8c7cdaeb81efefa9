"""Bugs that the simulation must catch: each is one change of the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Bug:
    """Replaces a text, which occurs once in its file, by another."""

    name: str
    file: str
    right: str
    wrong: str = ""

    def plant(self, root: Path) -> None:
        """Change the copy of the source below a directory."""
        path = root / self.file
        text = path.read_text()
        assert text.count(self.right) == 1, f"{self.name}: {self.file} has changed; adapt the bug"
        path.write_text(text.replace(self.right, self.wrong))


JOURNAL, HANDLE, ENTRY, INTAKE = "topology/journal", "topology/handle", "topology/entry", "operators/intake"
DURABLE = "topology/durable"

BUGS = [
    Bug(
        "a step leaves before its decision is durable",
        f"{JOURNAL}/recording.py",
        "            Decided(seen, self._task.decision if decides else None), then=partial(self._release, emits)\n"
        "        )",
        "            Decided(seen, self._task.decision if decides else None)\n        )\n"
        "        for emit in emits:\n            self._send(emit)\n        self._waiting -= 1\n        self._sent()",
    ),
    Bug(
        "what was taken is not recorded",
        f"{JOURNAL}/recording.py",
        "seen, self._seen = self._seen, {}",
        "seen, self._seen = {}, {}",
    ),
    Bug("decisions are not recorded", f"{JOURNAL}/recording.py", "self._task.decision if decides else None", "None"),
    Bug(
        "a segment starts before the decision is recorded",
        f"{JOURNAL}/recording.py",
        "            self._record(decides=True)\n            if self._rounds is None:\n"
        "                if self._journal.is_start_due(self._task.state_bytes):\n"
        "                    self._journal.start_segment(self._task.state())\n",
        "            if self._rounds is None:\n"
        "                if self._journal.is_start_due(self._task.state_bytes):\n"
        "                    self._journal.start_segment(self._task.state())\n"
        "            self._record(decides=True)\n            if self._rounds is None:\n                pass\n",
    ),
    Bug(
        "rows beside steps are never sent",
        f"{JOURNAL}/recording.py",
        "if self._open or self._unrecorded",
        "if self._unrecorded",
    ),
    Bug(
        "a source that is announced again was never taken",
        f"{JOURNAL}/image.py",
        "known.seen = max(end, known.seen or 0)",
        "known.seen = end",
    ),
    Bug(
        "replay takes one batch too many",
        f"{JOURNAL}/replay.py",
        "while queue and queue.first < end:",
        "while queue and queue.first <= end:",
    ),
    Bug(
        "replay forgets rows at the border",
        f"{JOURNAL}/replay.py",
        "or event.end <= self._seen",
        "or event.first <= self._seen",
    ),
    Bug(
        "replay reads from the start only",
        f"{JOURNAL}/replay.py",
        "min(self._start.segment, self._start.inputs)",
        "self._start.segment",
    ),
    Bug(
        "replay repeats before its start",
        f"{JOURNAL}/replay.py",
        "isinstance(event, Decided) and position > begin",
        "isinstance(event, Decided)",
    ),
    Bug(
        "replay starts at the last start",
        f"{JOURNAL}/image.py",
        "return starts[min(chosen, default=0)]",
        "return starts[-1]",
    ),
    Bug(
        "trimming forgets rows that nobody took",
        f"{JOURNAL}/journal.py",
        "before = min(start.segment, start.inputs)",
        "before = start.segment",
    ),
    Bug(
        "a start does not know what was acknowledged",
        f"{JOURNAL}/image.py",
        "self.sinks = {name: SinkImage(*sink)",
        "self.sinks = {name: SinkImage()",
    ),
    Bug(
        "a start does not know what was taken",
        f"{JOURNAL}/image.py",
        '            each["seen"],\n',
        "            None,\n",
    ),
    Bug("a start forgets how much was sent", f"{JOURNAL}/image.py", '            each["count"],\n', "            0,\n"),
    Bug(
        "an end is not remembered",
        f"{JOURNAL}/image.py",
        "source.announced = source.ended = True",
        "source.announced = True",
    ),
    Bug(
        "half a window is kept",
        f"{INTAKE}/retention.py",
        "position - window.size, at.get",
        "position - window.size // 2, at.get",
    ),
    Bug(
        "slides are not kept",
        f"{INTAKE}/retention.py",
        "begin = time - size - (slide or 0)",
        "begin = time - size // 2",
    ),
    Bug(
        "what live rows have met is forgotten",
        f"{INTAKE}/retention.py",
        "if self.remember else found",
        "if False else found",
    ),
    Bug("positions are not restored", f"{INTAKE}/gate_task.py", '        self._positions.update(facts["positions"])\n'),
    Bug(
        "the border is not restored",
        f"{INTAKE}/gate_state.py",
        'frontier=time_from_json(fact["frontier"]),',
        "frontier=None,",
    ),
    Bug(
        "the greatest time is not restored",
        f"{INTAKE}/gate_state.py",
        'Promise(bound, time_from_json(fact["latest"]))',
        "Promise(bound)",
    ),
    Bug(
        "the last place is not restored",
        f"{INTAKE}/scale_gate.py",
        "self._seq, self._passed = state.seq, state.passed",
        "self._seq = state.seq",
    ),
    Bug(
        "waiting rows are not restored",
        f"{INTAKE}/scale_gate.py",
        "                    source.append(part, memory_share(len(state.sources)))\n",
        "                    pass\n",
    ),
    Bug(
        "a repeated step takes rows in the order of runs",
        f"{INTAKE}/waiting_source.py",
        'first = np.argsort(np.concatenate(times), kind="stable")[:count]',
        "first = np.arange(count)",
    ),
    Bug(
        "windows forget the rows before a start",
        "operators/routing/liveness.py",
        "(size - before - self._missing) // slide) * slide - self._missing",
        "(size - before) // slide) * slide",
    ),
    Bug(
        "positions count from the beginning of the stream",
        "operators/routing/router.py",
        "replace(batch, first=batch.first - missing)",
        "batch",
    ),
    Bug(
        "a sink skips one step too many",
        f"{HANDLE}/results_queue.py",
        "self._skipping = seq < self._skipped_until",
        "self._skipping = seq <= self._skipped_until",
    ),
    Bug(
        "a sink skips nothing",
        f"{HANDLE}/results_queue.py",
        "self._resumed = True\n                self._skipping = message.place >= 0",
        "self._resumed = True\n                self._skipping = False",
    ),
    Bug(
        "numbers begin anew",
        f"{HANDLE}/results_queue.py",
        "self._kept.resume(message.number, message.acknowledged)",
        "self._kept.resume(0, -1)",
    ),
    Bug(
        "progress runs ahead of acknowledgements",
        f"{HANDLE}/results_queue.py",
        "while self._ends and self._ends[0][0] <= number + 1:",
        "while self._ends:",
    ),
    Bug(
        "a reader behind what comes again gets it twice",
        f"{HANDLE}/kept_results.py",
        "            batch += 1  # a reader",
        "            break  # a reader",
    ),
    Bug(
        "a reader behind what was acknowledged never ends",
        f"{HANDLE}/results_queue.py",
        "reached = max(self._place.number, self._kept.acknowledged + 1)",
        "reached = self._place.number",
    ),
    Bug(
        "sources are announced after rows of others",
        f"{ENTRY}/ingest.py",
        "            for source in target.ledger.sources:\n                self._watch.heard_of(stream, source)\n"
        "                target.put(Watermark(None, DEFAULT_STREAM, source, target.feeds.delay(source)))\n",
        "            pass\n",
    ),
    Bug(
        "rows that nobody took are lost",
        f"{ENTRY}/ingest.py",
        "                        yield stream, batch\n                        target.put(batch)\n",
        "                        yield stream, batch\n",
    ),
    Bug("a finished stream is open again", f"{ENTRY}/ingest.py", "            self._record.finished(stream)\n"),
    Bug(
        "ends are not announced again",
        f"{ENTRY}/ingest.py",
        "                    if known.ended:\n                        self._announce_end(stream, source)\n",
    ),
    Bug(
        "offsets begin anew",
        f"{ENTRY}/source_ledger.py",
        "_Source(known.count, known.latest,",
        "_Source(0, known.latest,",
    ),
    Bug(
        "rows are sent on before they are recorded",
        f"{ENTRY}/ingest.py",
        "            self._record.sent(target.name, batch)\n",
        "",
    ),
    Bug("no fsync", f"{DURABLE}/disk_store.py", "        self._disk.sync(segment)\n"),
    Bug("a zombie is not fenced", f"{DURABLE}/log.py", "        if higher > self.epoch:", "        if False:"),
    Bug(
        "a zombie's rows behind the end count",
        f"{DURABLE}/kept.py",
        "scan(str(segment.name), content, segment.end)",
        "scan(str(segment.name), content)",
    ),
]
