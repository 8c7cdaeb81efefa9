"""Bugs of durable logs that the tests must catch: each is one change of the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOM = "topology/durable"


@dataclass(frozen=True)
class Bug:
    """Replaces a text, which occurs once in its file, by another."""

    name: str
    file: str
    right: str
    wrong: str

    def plant(self, root: Path) -> None:
        """Change the copy of the source below a directory."""
        path = root / ROOM / self.file
        text = path.read_text()
        assert text.count(self.right) == 1, f"{self.name}: {self.file} has changed; adapt the bug"
        path.write_text(text.replace(self.right, self.wrong))


BUGS = [
    Bug("no fsync", "disk_store.py", "        self._disk.sync(segment)\n", ""),
    Bug(
        "acknowledge before fsync",
        "log.py",
        "                self._store.sync(str(name))\n",
        "                self._acknowledge(name, End(0, group.first_record + group.records, 0))\n"
        "                self._store.sync(str(name))\n",
    ),
    Bug(
        "look before fsync",
        "log.py",
        "                self._store.sync(str(name))\n                self._waiting.popleft()",
        "                self._look()\n                yield\n                self._store.sync(str(name))\n"
        "                self._look = lambda: None\n                self._waiting.popleft()",
    ),
    Bug("no look for a higher epoch", "log.py", "        if higher > self.epoch:", "        if False:"),
    Bug("tokens of epochs ignored", "log.py", "if higher > self.epoch:", "if higher.number > self.epoch.number:"),
    Bug("checksum of rows not checked", "scan.py", "zlib.crc32(body) != header.body_sum", "False"),
    Bug("checksum of headers not checked", "scan.py", "if own != header_sum(segment, content):", "if False:"),
    Bug("checksum without the segment's name", "group.py", "zlib.crc32(segment.encode())", "0"),
    Bug(
        "trims one segment too many",
        "log.py",
        "if segment.name.number < before]\n        if not gone",
        "if segment.name.number <= before]\n        if not gone",
    ),
    Bug(
        "directory not synced after a new segment", "disk_store.py", "if segment not in self._with_entry:", "if False:"
    ),
    Bug(
        "directory not synced after a mark",
        "disk_store.py",
        "            pass\n        self._disk.sync_directory()\n",
        "            pass\n",
    ),
    Bug("trims without a mark", "log.py", "            self._store.mark(str(mark))\n", ""),
    Bug(
        "trims without a look", "log.py", "            self._look()\n            for segment", "            for segment"
    ),
    Bug("marks of zombies count", "take_over.py", " if mark.epoch == writer", ""),
    Bug(
        "reads before it claims",
        "take_over.py",
        "        store.mark(epoch.name)\n        yield\n        marks = store.marks()\n        yield\n"
        "        names = store.segments()\n",
        "        names = store.segments()\n        yield\n        store.mark(epoch.name)\n        yield\n"
        "        marks = store.marks()\n",
    ),
    Bug("does not sync what it has read", "take_over.py", "                store.sync(str(name))\n", ""),
    Bug(
        "reads what a zombie wrote behind the end",
        "kept.py",
        "scan(str(segment.name), content, segment.end)",
        "scan(str(segment.name), content)",
    ),
    Bug(
        "forgets a group whose sync failed",
        "log.py",
        "                self._store.sync(str(name))\n                self._waiting.popleft()\n",
        "                self._waiting.popleft()\n                self._store.sync(str(name))\n",
    ),
    Bug("a torn tail is an error", "scan.py", "header is not None and header.number > end.groups", "True"),
    Bug(
        "damage passes for a torn tail",
        "scan.py",
        "                    _check_torn(segment, [buffer.slice(at), *content[index + 1 :]], end)\n",
        "",
    ),
    Bug("a full disk counts as success", "log.py", "            self.disk_full = True", "            pass"),
    Bug("a retry goes behind what is there", "disk_store.py", "(segment, at, pieces)", "(segment, at + 8, pieces)"),
]
