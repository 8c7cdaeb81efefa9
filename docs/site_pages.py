"""Adds to the site the pages that do not live in docs/: files of the repository's root, and the API reference.

Links are written so that they work in the repository; here they are turned into links of the site.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the root, and what the site calls them."""

PACKAGES = ("topology", "operators", "indexes", "spark_bridge")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=_in_docs((ROOT / name).read_text())))
    files.append(File.generated(config, "reference/interlace.md", content=_front()))
    for package in PACKAGES:
        files.append(File.generated(config, f"reference/{package}.md", content=_reference(package)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Pages in docs/ link to pages of the root as `../CHANGELOG.md`."""
    for name, page in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    return markdown


def _in_docs(markdown: str) -> str:
    """A page of the root, as if it were in docs/."""
    markdown = re.sub(r"\]\(docs/", "](", markdown)
    for name, page in PAGES.items():
        markdown = markdown.replace(f"]({name}", f"]({page}")
    return markdown


def _front() -> str:
    """A page with a link to every name that `interlace` exports, and what it defines itself."""
    rows, own = [], []
    for name, origin in _names("interlace"):
        if origin == "interlace":  # a room of its own, such as il.testing
            continue
        package, _, module = origin.partition(".")
        rows.append(f"| [`il.{name}`][{origin}.{name}] | `{package}` | {_summary(package, name, module)} |")
        own += [f"\n::: {origin}.{name}"] if module else []
    table = ["| name | package | |", "|---|---|---|", *rows]
    return "\n".join(["# interlace", "", _opening("interlace"), "", *table, *own])


def _summary(package: str, name: str, module: str) -> str:
    """The first line of a class's or function's docstring; without a module, the package's stub says which."""
    module = (module or dict(_names(package))[name]).replace(".", "/")
    for node in ast.parse((ROOT / package / f"{module}.py").read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            first_line, *_ = (ast.get_docstring(node) or "").split("\n")
            return first_line.replace("|", "\\|")
    return ""


def _reference(package: str) -> str:
    """A page with every public name of a package."""
    return "\n\n".join([f"# {package}", _opening(package), *(f"::: {package}.{name}" for name, _ in _names(package))])


def _opening(package: str) -> str:
    return ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""


def _names(package: str) -> list[tuple[str, str]]:
    """The public names of a package and the modules they come from, read from the stub of its interface."""
    stub = ast.parse((ROOT / package / "__init__.pyi").read_text())
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    names = [(alias.name, statement.module or "") for statement in imports for alias in statement.names]
    return sorted(names, key=lambda name: name[0].lower())
