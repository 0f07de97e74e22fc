"""The model's forward pass is right, and the files that it is read from are checked."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.weights import MINILM
from mcp_bridge import EmbeddingUnavailable, MiniLM
from mcp_bridge.embedding.embedders import Bert, read_tensors
from tests.stand_ins.cached_weights import cached

WIDTH, INNER, WORDS, PLACES = 64, 96, 20, 8


def weights() -> dict[str, Any]:
    """Return a model of one layer with two heads, whose numbers mean nothing."""
    dice = np.random.default_rng(3)
    at = "encoder.layer.0"
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        f"{at}.intermediate.dense.weight": (INNER, WIDTH),
        f"{at}.intermediate.dense.bias": (INNER,),
        f"{at}.output.dense.weight": (WIDTH, INNER),
        f"{at}.output.dense.bias": (WIDTH,),
    }
    for part in ("self.query", "self.key", "self.value", "output.dense"):
        shapes[f"{at}.attention.{part}.weight"] = (WIDTH, WIDTH)
        shapes[f"{at}.attention.{part}.bias"] = (WIDTH,)
    for norm in ("embeddings.", f"{at}.attention.output.", f"{at}.output."):
        shapes[f"{norm}LayerNorm.weight"] = shapes[f"{norm}LayerNorm.bias"] = (WIDTH,)
    return {name: dice.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def write(path: Path, tensors: dict[str, Any]) -> Path:
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        kind = {"float32": "F32", "int64": "I64"}[str(tensor.dtype)]
        places = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": places}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_the_pass_is_that_of_the_paper_in_slow_arithmetic() -> None:
    """Each step is done again, number by number, in double precision and with math's own erf."""
    from math import erf, exp, sqrt

    own = {name: tensor.astype(float) for name, tensor in weights().items()}

    def line(rows: Any, at: str) -> Any:
        return [
            [
                sum(w * x for w, x in zip(out, row, strict=True)) + b
                for out, b in zip(own[f"{at}.weight"], own[f"{at}.bias"], strict=True)
            ]
            for row in rows
        ]

    def norm(rows: Any, at: str) -> Any:
        done = []
        for row in rows:
            mean = sum(row) / len(row)
            spread = sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-12)
            scaled = zip(row, own[f"{at}.weight"], own[f"{at}.bias"], strict=True)
            done.append([(x - mean) / spread * w + b for x, w, b in scaled])
        return done

    def added(one: Any, other: Any) -> Any:
        return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(one, other, strict=True)]

    pieces, at = [3, 1, 4, 1], "encoder.layer.0"
    words = [own["embeddings.word_embeddings.weight"][piece] for piece in pieces]
    state = added(words, own["embeddings.position_embeddings.weight"][: len(pieces)])
    state = [
        [x + t for x, t in zip(row, own["embeddings.token_type_embeddings.weight"][0], strict=True)]
        for row in state
    ]
    state = norm(state, "embeddings.LayerNorm")
    query, key, value = (line(state, f"{at}.attention.self.{p}") for p in ("query", "key", "value"))
    seen = [[0.0] * WIDTH for _ in pieces]
    for head in range(WIDTH // 32):
        mine = range(32 * head, 32 * head + 32)
        for i in range(len(pieces)):
            odds = [
                exp(sum(query[i][d] * key[j][d] for d in mine) / sqrt(32))
                for j in range(len(pieces))
            ]
            for d in mine:
                seen[i][d] = sum(o / sum(odds) * value[j][d] for j, o in enumerate(odds))
    state = norm(
        added(state, line(seen, f"{at}.attention.output.dense")), f"{at}.attention.output.LayerNorm"
    )
    inner = [
        [x * 0.5 * (1 + erf(x / sqrt(2))) for x in row]
        for row in line(state, f"{at}.intermediate.dense")
    ]
    state = norm(added(state, line(inner, f"{at}.output.dense")), f"{at}.output.LayerNorm")
    mean = np.mean(state, axis=0)
    np.testing.assert_allclose(
        Bert(weights()).vector(pieces), mean / np.linalg.norm(mean), atol=2e-6
    )


@pytest.mark.parametrize("pieces", [[], [WORDS], [-1], [1] * (PLACES + 1)])
def test_what_is_no_text_of_the_model_is_refused(pieces: list[int]) -> None:
    with pytest.raises(ValueError, match="word pieces"):
        Bert(weights()).vector(pieces)


@pytest.mark.parametrize("name", sorted(weights()))
def test_a_model_with_a_tensor_missing_or_of_another_shape_is_refused(name: str) -> None:
    without = weights()
    tensor = without.pop(name)
    with pytest.raises(ValueError):  # noqa: PT011 - which tensor is told first does not matter
        Bert(without)
    with pytest.raises(ValueError):  # noqa: PT011
        Bert({**without, name: tensor[..., None]})


def test_tensors_are_read_and_those_of_other_types_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "t", {"a": np.eye(3, dtype=np.float32), "ids": np.arange(4)})
    found = read_tensors(path)
    assert list(found) == ["a"]
    np.testing.assert_array_equal(found["a"], np.eye(3))


@given(st.binary(max_size=200))
def test_any_bytes_are_tensors_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "t"
    path.write_bytes(data)
    with pytest.raises(ValueError):  # noqa: PT011 - of many kinds
        read_tensors(path)


@pytest.mark.parametrize(
    "told",
    [
        {"shape": [2], "data_offsets": [0, 4]},
        {"shape": [1], "data_offsets": [0, 400]},
        {"shape": [-1, -1], "data_offsets": [0, 4]},
        {"shape": [1], "data_offsets": [-4, 0]},
        {"shape": ["a"], "data_offsets": [0, 4]},
        {"shape": [1]},
        {"data_offsets": [0, 4]},
    ],
)
def test_a_tensor_that_is_not_where_it_is_said_to_be_is_refused(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    text = json.dumps({"a": {"dtype": "F32", **told}}).encode()
    (tmp_path / "t").write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 8)
    with pytest.raises(ValueError, match="a "):
        read_tensors(tmp_path / "t")


async def test_a_folder_without_the_files_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailable, match=r"cannot be read .*; fetch it again") as caught:
        await MiniLM(tmp_path).embed(["a text"])
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_missing_library_is_told_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(EmbeddingUnavailable, match=r'pip install "caal-node\[embedding\]"'):
        await MiniLM(tmp_path).embed(["a text"])


@pytest.mark.model
async def test_the_real_model_gives_the_published_values() -> None:
    """They are the cosines of sbert.net's first example, and numbers of the model card's."""
    model = MiniLM(cached(MINILM))
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    rows = await model.embed([*texts, "This is an example sentence"])
    assert (rows.shape, rows.dtype) == ((4, 384), np.float32)
    cosines = [[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]]
    np.testing.assert_allclose(rows[:3] @ rows[:3].T, cosines, atol=1e-4)
    np.testing.assert_allclose(rows[3][:4], [0.0677, 0.0635, 0.0487, 0.0793], atol=1e-4)


@pytest.mark.model
async def test_the_real_model_takes_any_text() -> None:
    model = MiniLM(cached(MINILM))
    rows = await model.embed(["", "\ud800 \x00", "word " * 10_000, "翻译"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert (await model.embed([])).shape == (0, 384)
