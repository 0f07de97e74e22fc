"""What the documents name exists: files, modules, links, and the lines of code that they quote."""

from __future__ import annotations

import dataclasses
import re
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from caal_node.cli.chat import HELP
from caal_node.core.events import Event

ROOT = Path(__file__).parents[3]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_ROOTS = "caal_node|mcp_bridge|n8n|tests|prompts|docs"
_PATH = re.compile(rf"(?<![\w/.:-])((?:{_ROOTS})/[\w./*-]*[\w*/])")
_MODULE = re.compile(r"(?:`|-m |from |import )((?:caal_node|mcp_bridge|tests)(?:\.\w+)+)")
_FILE = re.compile(r"`(\w+\.py)`")
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)]+)\)")
_QUOTE = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@each_document
def test_every_path_that_it_names_exists(document: Path) -> None:
    missing = [path for path in _PATH.findall(_text(document)) if not any(ROOT.glob(path))]
    assert missing == []


@each_document
def test_every_module_that_it_names_exists(document: Path) -> None:
    missing = [name for name in _MODULE.findall(_text(document)) if not _is_there(name)]
    assert missing == []


@each_document
def test_every_file_name_is_that_of_a_file(document: Path) -> None:
    known = {path.name for folder in _ROOTS.split("|") for path in (ROOT / folder).rglob("*.py")}
    assert set(_FILE.findall(_text(document))) - known == set()


@each_document
def test_every_link_leads_somewhere(document: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", _text(document), flags=re.DOTALL)
    for target in _LINK.findall(prose):
        file, _, heading = target.partition("#")
        linked = document.parent / file if file else document
        assert linked.exists(), target
        assert not heading or heading in _headings(linked), target


@each_document
def test_every_line_of_code_that_it_quotes_is_in_the_file(document: Path) -> None:
    for name, block in _QUOTE.findall(_text(document)):
        lines = {line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()}
        assert [line for line in block.splitlines() if line.strip() not in lines] == [], name


def _text(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def _is_there(name: str) -> bool:
    """Whether `name` is a module, or something in one."""
    try:
        if find_spec(name) is not None:
            return True
    except ModuleNotFoundError:
        pass
    module, _, attribute = name.rpartition(".")
    return "." in name and hasattr(__import__(module, fromlist=[attribute]), attribute)


def _headings(document: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    titles = re.findall(r"^#+ (.+)$", _text(document), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_the_page_of_the_chat_has_every_command_and_every_event() -> None:
    text = _text(ROOT / "docs" / "chat.md")
    for command, words in HELP.items():
        argument = re.match(r"\[\w+\]", words)
        assert f"| `{command}{f' {argument[0]}' if argument else ''}` |" in text
    for event in get_args(Event):
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{event.type}` |")]
        for field in dataclasses.fields(event):
            assert f"`{field.name}`" in row
