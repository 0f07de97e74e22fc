"""How many questions the toolset `documents` finds the answers of, by words and by meaning.

Run: `python -m tests.bench.documents`. The questions are those of tests/data/documents: `found` are
those whose answer is in the passages, `nothing` those about something else that found passages.
Meaning needs the weights of MiniLM (`python -m caal_node.weights all-minilm-l6-v2`).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from caal_node import weights
from caal_node.toolsets.base import ToolsetServices
from caal_node.toolsets.documents import Documents, DocumentsOptions, passage_index
from mcp_bridge import Embedder, MiniLM
from tests.bench.table import print_table

DATA: Final = Path(__file__).parents[1] / "data" / "documents"
FILES: Final = ("questions.json", "questions_held_out.json")
COLUMNS: Final = ("by", "questions", "found", "nothing")


async def rows_of(embedder: Embedder | None) -> list[tuple[object, ...]]:
    with TemporaryDirectory() as folder:
        services = ToolsetServices(state=Path(folder), embedder=embedder)
        folders = (DATA / "manuals", DATA / "notes")
        documents = Documents(DocumentsOptions(folders=folders), services)
        await documents.setup()
        try:
            if embedder is not None:
                await documents.check()
                await documents._upkeep.embed_all(embedder)
            return [
                ("meaning" if embedder else "words", file, *await _counts(documents, file))
                for file in FILES
            ]
        finally:
            await documents.aclose()


async def _counts(documents: Documents, file: str) -> tuple[str, str]:
    found = about = wrong = others = 0
    for row in json.loads((DATA / file).read_text("utf-8")):
        answer = await documents.ask_documents(question=row["ask"])
        texts = " ".join(" ".join(each["text"].split()) for each in answer["answer_from"])
        if row["in"] is None:
            others += 1
            wrong += bool(texts)
        else:
            about += 1
            found += row["says"] in texts
    return f"{found}/{about}", f"{wrong}/{others}"


async def main() -> None:
    passage_index.EMBED_S = 60.0  # type: ignore[misc]  # so that a busy machine counts for nothing
    rows = await rows_of(None)
    if (folder := weights.present(weights.MINILM)) is not None:
        rows += await rows_of(MiniLM(folder))
    print_table("Questions over eight documents", COLUMNS, rows)


if __name__ == "__main__":
    asyncio.run(main())
