"""What a server says when it refuses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.core.errors import (
    ModelContextFull,
    ModelError,
    ModelLacksTools,
    ModelMissing,
    ModelReplyError,
)
from caal_node.models.backends.http_transport import TEXT_MAX_CHARS, failure, server_words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error":"model \'nope\' not found"}', "model 'nope' not found"),
        (b'{"error":{"code":400,"message":"too long","type":"x"}}', "too long"),
        (b'{"object":"error","message":"no such thing","code":404}', "no such thing"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b"404 page not found", "404 page not found"),
        (b"two\r\n  lines\x07", "two lines"),
        (b'{"error":{"code":1}}', ""),
        (b"[" * 5000, "[" * (TEXT_MAX_CHARS - 1) + "…"),
        (b"", ""),
    ],
)
def test_words_are_found_wherever_servers_put_them(body: bytes, words: str) -> None:
    assert server_words(body) == words


@given(st.binary(max_size=400))
def test_any_body_gives_one_short_line(body: bytes) -> None:
    words = server_words(body)
    assert len(words) <= TEXT_MAX_CHARS
    assert words.isprintable()


@given(st.integers(300, 599), st.binary(max_size=60))
def test_every_refusal_is_a_model_error(status: int, body: bytes) -> None:
    assert isinstance(failure(status, body, model="m", url="http://h/v1", fix="x"), ModelError)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("registry.ollama.ai/library/m:latest does not support tools", ModelLacksTools),
        ('"auto" tool choice requires --enable-auto-tool-choice and so on', ModelLacksTools),
        ("model 'm' not found", ModelMissing),
        ("The model `m` does not exist.", ModelMissing),
        ("the input length exceeds the context length", ModelContextFull),
        ("Model not found", ModelMissing),
        ("this model is fine but a file was not found", ModelReplyError),
    ],
)
def test_the_words_decide(words: str, kind: type[ModelError]) -> None:
    body = json.dumps({"error": words}).encode()
    assert type(failure(400, body, model="m", url="u", fix="x")) is kind
