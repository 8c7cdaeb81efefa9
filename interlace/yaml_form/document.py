"""A YAML document whose every value knows its line and its key, so that messages can name both."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from typing import Any

import yaml

from interlace.files.errors import FileError, did_you_mean

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class Entry:
    """A value of a document. Its methods check what it is, and raise a `FileError` that names line and key."""

    def __init__(
        self,
        file: str,
        node: yaml.Node,
        path: tuple[str, ...],
        environment: Mapping[str, str],
        line: int | None = None,
    ) -> None:
        self._file = file
        self._node = node
        self._line = node.start_mark.line if line is None else line  # of the key, where there is one
        self._path = path
        self._environment = environment

    @property
    def place(self) -> str:
        """Where it stands: file, line and key."""
        key = f", {'.'.join(self._path)}" if self._path else ""
        return f"{self._file}, line {self._line + 1}{key}"

    def error(self, message: str) -> FileError:
        """The error for `message` at this place."""
        return FileError(f"{self.place}: {message}")

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self._node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self._node, yaml.SequenceNode)

    @property
    def is_null(self) -> bool:
        """Whether there is nothing behind the key."""
        return self._node.tag == "tag:yaml.org,2002:null"

    def entries(self) -> dict[str, Entry]:
        """The values by their keys, of which each stands once."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error("write keys and values here")
        found: dict[str, Entry] = {}
        for key, value in self._node.value:
            name = str(key.value)
            entry = Entry(self._file, value, (*self._path, name), self._environment, key.start_mark.line)
            if name in found:
                raise entry.error("this key stands twice")
            found[name] = entry
        return found

    def keys(self, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Entry]:
        """The values by their keys, all of which must be known."""
        found = self.entries()
        for name, entry in found.items():
            if name not in allowed:
                known = ", ".join(allowed)
                raise entry.error(f"'{name}' is not a key here{did_you_mean(name, allowed)}; keys: {known}")
        missing = next((name for name in required if name not in found), None)
        if missing is not None:
            raise self.error(f"the key '{missing}' is missing")
        return found

    def items(self) -> list[Entry]:
        """The values of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.error("write a list here, each line with a dash")
        return [
            Entry(self._file, node, (*self._path, str(number)), self._environment)
            for number, node in enumerate(self._node.value)
        ]

    def text(self) -> str:
        """A text that is not empty."""
        value = self._scalar()
        if not isinstance(value, str) or not value:
            raise self.error(f"write a text here, not {value!r}")
        return value

    def texts(self) -> tuple[str, ...]:
        """A list of texts, or one text."""
        return tuple(item.text() for item in self.items()) if self.is_list else (self.text(),)

    def count(self) -> int:
        """A whole number of 1 or more."""
        value = self._scalar()
        if type(value) is not int or value < 1:
            raise self.error(f"write a whole number of 1 or more, not {value!r}")
        return value

    def flag(self) -> bool:
        """True or false."""
        value = self._scalar()
        if not isinstance(value, bool):
            raise self.error(f"write true or false, not {value!r}")
        return value

    def plain(self) -> Any:
        """Whatever it is, as Python has it."""
        if self.is_mapping:
            return {name: entry.plain() for name, entry in self.entries().items()}
        if self.is_list:
            return [item.plain() for item in self.items()]
        return self._scalar()

    def _scalar(self) -> Any:
        """A single value, with the environment's variables in it replaced."""
        if not isinstance(self._node, yaml.ScalarNode):
            raise self.error("write a single value here")
        node = self._node
        text = _VARIABLE.sub(self._variable, node.value)
        if text != node.value and (node.style is None or _VARIABLE.fullmatch(node.value)):  # "${N}" may be a number
            node = yaml.ScalarNode(yaml.resolver.Resolver().resolve(yaml.ScalarNode, text, (True, False)), text)
        elif text != node.value:
            node = yaml.ScalarNode(node.tag, text)
        try:
            return yaml.constructor.SafeConstructor().construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise self.error(str(error).splitlines()[0]) from None

    def _variable(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = self._environment.get(name, default)
        if value is None:
            raise self.error(f"the environment has no variable {name}: export it, or write ${{{name}:-a default}}")
        return value


def read_document(file: str, environment: Mapping[str, str] | None = None) -> Entry:
    """The document in a file; `environment` has the values of ${NAME}, by default those of this process."""
    with open(file, encoding="utf-8") as stream:
        try:
            node = yaml.compose(stream, yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
            raise FileError(f"{file}{line}: this is not YAML: {error.problem or error}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise FileError(f"{file}: this is not YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        raise FileError(f"{file} is empty: describe a topology or a join")
    return Entry(file, node, (), os.environ if environment is None else environment)
