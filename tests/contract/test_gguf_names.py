"""A language model's file is found by its path, by a name of the catalogue, or on the hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from caal_node.config.settings import EMBEDDED_MODEL
from caal_node.core.errors import ConfigError
from caal_node.weights import QWEN_CODER_05B
from caal_node.weights.gguf import MODELS, catalogued, ensure_gguf, find_gguf
from tests.stand_ins.weights_stand_ins import LoopbackHub

CONTENT = b"GGUF and some weights"
NAME = "someone/model/small.gguf"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAAL_CACHE", str(tmp_path / "cache"))


def quiet() -> Console:
    return Console(quiet=True)


def test_a_path_is_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.gguf").write_bytes(CONTENT)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_gguf(str(tmp_path / "mine.gguf")).read_bytes() == CONTENT
    assert ensure_gguf("~/mine.gguf") == tmp_path / "mine.gguf"


def test_the_catalogues_models_are_known_by_the_beginning_of_their_names() -> None:
    assert QWEN_CODER_05B.key == EMBEDDED_MODEL
    for name in (EMBEDDED_MODEL, "qwen2.5-coder-0.5b", "qwen2.5-coder:0.5b"):
        assert catalogued(name) is QWEN_CODER_05B
    assert catalogued("qwen2.5-coder") is None  # there are two
    assert all(weight.entry.endswith(".gguf") for weight in MODELS)
    with pytest.raises(ConfigError, match=f"run: python -m caal_node.weights {EMBEDDED_MODEL}"):
        find_gguf("qwen2.5-coder:0.5b")


@pytest.mark.parametrize("name", ["qwen3:8b", "none.gguf", "../a/b.gguf", "a/b/../c.gguf", "a\0b"])
def test_any_other_name_is_told_what_it_may_be(name: str) -> None:
    for find in (find_gguf, ensure_gguf):
        with pytest.raises(ConfigError, match=r"path of a GGUF file, one of .*, or owner/repo"):
            find(name)


@pytest.mark.parametrize(
    "name",
    [
        NAME,
        f"hf.co/{NAME}",
        "https://huggingface.co/someone/model/resolve/main/small.gguf?download=true",
    ],
)
def test_a_file_of_the_hub_is_fetched_once_and_then_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"run: python -m caal_node\.weights"):
        find_gguf(name)
    with LoopbackHub({"small.gguf": CONTENT}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        path = ensure_gguf(name, console=quiet())
    assert path.read_bytes() == CONTENT
    assert find_gguf(name) == ensure_gguf(name) == path  # with no hub any more


def test_other_bytes_than_the_hub_announced_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackHub({"small.gguf": CONTENT}, endless=True) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(ConfigError, match="cannot be fetched"):
            ensure_gguf(NAME, console=quiet())
    with pytest.raises(ConfigError, match="is not here"):
        find_gguf(NAME)


def test_a_hub_that_has_no_such_file_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackHub({}, status=404) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with pytest.raises(ConfigError, match=r"does not give it \(.*check the name") as caught:
            ensure_gguf(NAME, console=quiet())
    assert "\n" not in str(caught.value)
