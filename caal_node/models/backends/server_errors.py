"""What a model server's refusal means. The servers' own words decide, as statuses differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from caal_node.core.errors import (
    ModelContextFull,
    ModelError,
    ModelLacksTools,
    ModelMissing,
    ModelReplyError,
    ModelTimeout,
    ModelUnreachable,
)

TEXT_MAX_CHARS: Final = 160
"""Characters of a server's words in our messages: llama.cpp may append a model's whole output."""

SAID_MAX_CHARS: Final = 4_000
"""Characters of a refusal that are searched for what is refused."""
_ECHOES: Final = frozenset({"input", "ctx", "url", "@type"})
"""Keys of an error under which a server repeats the request, or names a page."""

_NO_TOOLS: Final = re.compile(
    r"does not support tools"  # Ollama
    r"|tools param requires --jinja"  # llama.cpp started without its templates
    r"|requires --enable-auto-tool-choice",  # vLLM started without a tool parser
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(
    r"\bmodel\s+([`'\"]?[^\s`'\"]+[`'\"]?\s+)?(not found|does not exist|is not loaded)",
    re.IGNORECASE,
)
_TOO_LONG: Final = re.compile(
    r"context (size|length|window)"  # llama.cpp, Ollama; "maximum context length": vLLM, OpenAI
    r"|prompt is too long",
    re.IGNORECASE,
)
_PEG: Final = re.compile(r"does not match the expected [\w-]+ format", re.IGNORECASE)


def server_words(body: bytes) -> str:
    """Return the message in an error's body, on one line and short; empty if there is none.

    Ollama writes `{"error": "words"}`; OpenAI's way is `{"error": {"message": "words"}}`, which
    Google puts into a list; vLLM and FastAPI servers have `message` or `detail` at the top, the
    latter as a list of what is wrong; a wrong address answers with plain text.
    """
    value = _first(_parsed(body))
    for key in ("error", "message", "detail"):
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            value = _first(inner.get(key, inner))
    if isinstance(value, dict) and "msg" in value:
        value = ": ".join(_texts(cast("object", value)))
    text = value if isinstance(value, str) else ""
    text = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    if match := _PEG.search(text):
        text = text[: match.end()]
    return text if len(text) <= TEXT_MAX_CHARS else f"{text[: TEXT_MAX_CHARS - 1]}…"


def refusal_words(body: bytes) -> str:
    """Return every text in an error's body but those that repeat the request."""
    return "\n".join(_texts(_parsed(body)))[:SAID_MAX_CHARS]


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")


def _first(value: object) -> object:
    return (
        cast("list[object]", value)[0]
        if isinstance(value, list) and value
        else cast("object", value)
    )


def _texts(value: object) -> Iterator[str]:
    """Yield the texts within `value`; the path in `loc` is one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, each in cast("dict[str, object]", value).items():
            if key == "loc" and isinstance(each, list):
                yield ".".join(map(str, cast("list[object]", each)))
            elif key not in _ECHOES:
                yield from _texts(each)


def failure(status: int, body: bytes, *, model: str, url: str, mend: str) -> ModelError:
    """Return the error that an HTTP answer other than 200 stands for.

    `mend` says how a missing model is brought, `url` is what was asked.
    """
    words = server_words(body)
    said = f": {words}" if words else ""
    if _NO_TOOLS.search(words):
        return ModelLacksTools(f"{model} takes no tools{said}")
    if _NO_MODEL.search(words):
        return ModelMissing(f"the model {model} is not there; {mend}")
    if status in (400, 413) and _TOO_LONG.search(words):
        return ModelContextFull(f"{url}: the prompt is too long{said}", status=status)
    if status in (401, 403):
        return ModelReplyError(
            f"{url} refuses the key (HTTP {status}); set CAAL_API_KEY", status=status
        )
    if status == 404:
        return ModelReplyError(
            f"{url} does not exist there (HTTP 404); check the address and CAAL_API", status=status
        )
    if status in (408, 504):
        return ModelTimeout(f"{url} gave up (HTTP {status}){said}")
    if status in (429, 502, 503, 529):  # 529 is Anthropic's.
        # There are too many requests, or the model is still being loaded: it is worth a retry.
        return ModelUnreachable(f"{url} is busy (HTTP {status}){said}")
    return ModelReplyError(
        f"{url} answered HTTP {status}{said}", status=status, said=refusal_words(body)
    )
