"""`LLM()` is made of the settings, and judges what a program gives as they are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from caal_node import LLM
from caal_node.config.settings import load_settings
from caal_node.core.errors import ConfigError
from caal_node.factories import make_llm
from caal_node.models.backends.openai import OpenAIBackend

ASKED = {"num_ctx": 16384, "think": "low", "keep_alive": "2h", "temperature": 0.9}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("CAAL_MODEL", "CAAL_API", "CAAL_BASE_URL", "CAAL_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def made(model: LLM) -> dict[str, Any]:
    """What a model was made of, as far as a server is told it."""
    return {key: vars(model.backend)[key] for key in ("_think", "_always", "_options")}


def test_without_arguments_it_is_the_model_that_the_command_line_has(
    monkeypatch: pytest.MonkeyPatch, empty_folder: Path
) -> None:
    monkeypatch.setenv("CAAL_MODEL", "qwen3:14b")
    monkeypatch.setenv("OLLAMA_HOST", "box")
    (empty_folder / "caal.toml").write_text('num_ctx = 16384\nthink = "low"\ntool_calls = "text"\n')
    own, configured = LLM(), make_llm(load_settings())
    assert (own.model, own.provider) == ("qwen3:14b", "ollama")
    assert own.backend.address == "http://box:11434"
    assert made(own) == made(configured)
    assert own.retry_policy.native is configured.retry_policy.native is False


def test_arguments_take_the_place_of_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAAL_NUM_CTX", "4096")
    given, configured = LLM("m", **ASKED), LLM("m")
    for name, value in ASKED.items():
        monkeypatch.setenv(f"CAAL_{name.upper()}", str(value))
    assert made(given) == made(LLM("m")) != made(configured)


def test_a_key_of_the_settings_goes_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAAL_API", "openai")
    monkeypatch.setenv("CAAL_BASE_URL", "http://here:8000/v1")
    monkeypatch.setenv("CAAL_API_KEY", "our-secret")

    def sent(model: LLM) -> dict[str, str]:
        assert isinstance(model.backend, OpenAIBackend)
        return vars(model.backend)["_headers"]

    ours = {"Authorization": "Bearer our-secret"}
    assert sent(LLM("other")) == sent(LLM(base_url="http://here:8000/v1")) == ours
    assert sent(LLM(base_url="http://there:8000/v1")) == {}
    assert sent(LLM(base_url="http://there:8000/v1", api_key="theirs")) == {
        "Authorization": "Bearer theirs"
    }


WRONG = [
    ("api", "nonesuch", "CAAL_API"),
    ("num_ctx", -1, "CAAL_NUM_CTX"),
    ("num_ctx", "many", "CAAL_NUM_CTX"),
    ("temperature", "warm", "CAAL_TEMPERATURE"),
    ("temperature", 3, "CAAL_TEMPERATURE"),
    ("think", "sometimes", "CAAL_THINK"),
    ("keep_alive", "a while", "CAAL_KEEP_ALIVE"),
    ("tool_calls", "yaml", "CAAL_TOOL_CALLS"),
    ("model", "", "CAAL_MODEL"),
    ("base_url", "ftp://box", "CAAL_BASE_URL"),
]


@pytest.mark.parametrize(("name", "value", "variable"), WRONG)
def test_a_wrong_value_is_refused_where_it_is_given_in_the_words_of_the_file(
    name: str, value: Any, variable: str, empty_folder: Path
) -> None:
    with pytest.raises(ConfigError) as in_python:
        LLM(**{name: value})
    assert f"LLM({name})" in str(in_python.value)
    written = f'"{value}"' if isinstance(value, str) else value
    (empty_folder / "caal.toml").write_text(f"{name} = {written}\n")
    with pytest.raises(ConfigError) as in_file:
        load_settings({})
    remedy = str(in_file.value).rpartition("; ")[2]
    assert str(in_python.value).endswith(remedy) or name == "base_url"
    if value:
        with pytest.raises(ConfigError, match=variable):
            load_settings({variable: str(value)}, Path("none"))


def test_what_only_ollama_takes_is_refused_elsewhere() -> None:
    with pytest.raises(ConfigError, match=r"LLM\(num_ctx\): only the api ollama and embedded"):
        LLM("m", "openai", num_ctx=4096)


def test_an_argument_that_nothing_takes_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        LLM("m", colour="red")


def test_update_options_judges_too_and_changes_nothing_then() -> None:
    model = LLM("m")
    with pytest.raises(ConfigError, match=r"update_options\(temperature\)"):
        model.update_options(model="other", temperature=9)
    assert model.model == "m"
    model.update_options(model="other")
    assert model.model == "other"


async def test_another_model_keeps_the_settings_of_the_first() -> None:
    model = LLM("m", **ASKED)
    before = made(model)
    model.update_options(model="other")
    assert made(model) == before
    await model.aclose()
