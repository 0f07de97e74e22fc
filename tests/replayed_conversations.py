"""Conversations with a real 0.5B, kept as they were heard: what no move of code may change.

`tests/data/frozen` has each reply of the model by the request that it answers, what people heard,
and which calls were made. A request whose bytes change has no reply, so the whole way from the
words to the prompt is checked too. After a change that is meant, record anew with a real Ollama:
`python -m tests.replayed_conversations --ollama URL MODEL`.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from caal_node import LLM
from caal_node.core.errors import ModelError
from caal_node.models.backends.base import BackendRequest, Capabilities, Chunk
from caal_node.models.backends.ollama import OllamaBackend
from tests.bench.conversation_household import read_rows
from tests.bench.conversations import ObservedBackend, play
from tests.bench.recorded_replies import RecordedBackend, key_of, read_chunk
from tests.bench.small_models import SLOW

FOLDER: Final = Path(__file__).parent / "data" / "frozen"
REPLIES: Final = FOLDER / "replies.jsonl.gz"
HEARD: Final = FOLDER / "heard.json"
KEPT: Final = ("say", "calls", "spoken", "requests", "corrected")
"""What is kept of a turn."""


class ReplayedBackend:
    """Answers each request as it was answered once. `unknown` counts those that never were."""

    address = "http://127.0.0.1:1"

    def __init__(self) -> None:
        rows = map(json.loads, gzip.decompress(REPLIES.read_bytes()).splitlines())
        self._replies: Final = {row["request"]: row["chunks"] for row in rows}
        kept = json.loads(HEARD.read_text(encoding="utf-8"))
        self.model: Final[str] = kept["model"]
        """Its name as it was recorded, which is part of each request."""
        self._capabilities: Final = Capabilities(**kept["capabilities"])
        self.unknown = 0

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        """The same as `Backend.ask`."""
        chunks = self._replies.get(key_of(self.model, request))
        if chunks is None:
            self.unknown += 1
            raise ModelError("this request was never recorded")
        for chunk in chunks:
            yield read_chunk(chunk)

    async def aclose(self) -> None:
        """Close nothing."""


def conversations() -> dict[str, Any]:
    """Return the script of each conversation by its name."""
    return {row["name"]: row for row in read_rows("held_out")["conversations"]}


def heard() -> dict[str, Any]:
    """Return the turns of each conversation as they were recorded, by its name."""
    return json.loads(HEARD.read_text(encoding="utf-8"))["conversations"]


async def replayed(name: str) -> tuple[list[dict[str, Any]], int]:
    """Play a conversation; return its turns, and how many requests were never recorded."""
    backend = ReplayedBackend()
    seen = ObservedBackend(backend)
    model = LLM(backend=seen)
    try:
        await model.find_strategy()
        played = await play(conversations()[name], model, seen.sent, {})
    finally:
        await model.aclose()
    return kept(played), backend.unknown


def kept(played: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is kept of a played conversation's turns."""
    turns = [{key: turn[key] for key in KEPT} for turn in played["turns"]]
    return json.loads(json.dumps(turns))  # as a file has them


async def record(url: str, name: str, folder: Path) -> None:
    """Play all conversations with a real model, and keep them."""
    ollama = OllamaBackend(name, host=url, temperature=0.0, deadlines=SLOW)
    recorded = RecordedBackend(ollama, folder)
    told: dict[str, Any] = {}
    try:
        for each, row in conversations().items():
            seen = ObservedBackend(recorded)
            model = LLM(backend=seen)
            await model.find_strategy()
            told[each] = kept(await play(row, model, seen.sent, {}))
            await model.aclose()
            print(each, flush=True)
        known = await ollama.capabilities()
    finally:
        await ollama.aclose()
    keep({"model": name, "capabilities": vars_of(known), "conversations": told}, folder, recorded)


def keep(played: Mapping[str, Any], replies: Path, recorded: RecordedBackend) -> None:
    """Write the conversations, and the replies that they used."""
    FOLDER.mkdir(exist_ok=True)
    lines = [
        json.dumps({"request": path.stem, "chunks": json.loads(path.read_text(encoding="utf-8"))})
        for path in sorted(replies.glob("*.json"))
        if path.stem in recorded.used
    ]
    REPLIES.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    HEARD.write_text(json.dumps(played, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def vars_of(known: Capabilities) -> dict[str, Any]:
    """Return the fields of a frozen dataclass."""
    return {name: getattr(known, name) for name in type(known).__dataclass_fields__}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ollama", nargs=2, metavar=("URL", "MODEL"), required=True)
    options.add_argument("--record", type=Path, help="a folder with replies of an earlier run")
    given = options.parse_args()
    with TemporaryDirectory() as folder:
        asyncio.run(record(*given.ollama, given.record or Path(folder)))


if __name__ == "__main__":
    main()
