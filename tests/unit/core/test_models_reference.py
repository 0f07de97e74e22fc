"""A model named in one word, and the settings for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from caal_node.config.setting_tables import Fallbacks
from caal_node.config.settings import Settings, load_settings
from caal_node.core.addresses import APIS, ModelReference, parse_reference
from caal_node.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("qwen3:8b", ModelReference("qwen3:8b")),
        ("hf.co/a/b:Q4_K_M", ModelReference("hf.co/a/b:Q4_K_M")),
        ("ollama:qwen3:8b", ModelReference("qwen3:8b", "ollama")),
        ("openai:local@http://h:8080/v1", ModelReference("local", "openai", "http://h:8080/v1")),
        (" m@https://h/v1/ ", ModelReference("m", None, "https://h/v1")),
        ("m@gpu:8080/v1", ModelReference("m", None, "http://gpu:8080/v1")),
        ("team@work", ModelReference("team@work")),
        ("m@sha256:1f0c", ModelReference("m@sha256:1f0c")),
        ("livekit:models:make", ModelReference("models:make", "livekit")),
    ],
)
def test_a_reference_is_api_model_and_address(text: str, reference: ModelReference) -> None:
    assert parse_reference(text) == reference


@pytest.mark.parametrize("text", ["", "ollama:", "@http://h", "a b", "m@ftp://h", "m@http://u:p@h"])
def test_what_is_no_reference_is_refused_in_plain_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|begin with|leave user name"):
        parse_reference(text)


NAMES = st.from_regex(r"[a-z0-9][a-z0-9./_-]{0,20}(:[a-z0-9._-]{1,8})?", fullmatch=True)


@given(NAMES.filter(lambda n: n.partition(":")[0] not in APIS), st.sampled_from([None, *APIS]))
def test_a_reference_is_read_as_it_was_written(model: str, api: str | None) -> None:
    for address in (None, "http://127.0.0.1:8080/v1"):
        reference = ModelReference(model, api, address)  # type: ignore[arg-type]
        assert parse_reference(str(reference)) == reference


def test_fallbacks_are_named_in_the_environment_and_in_the_file(tmp_path: Path) -> None:
    wanted = (ModelReference("a"), ModelReference("b:1b", "openai", "http://h/v1"))
    path = tmp_path / "caal.toml"
    by_env = load_settings({"CAAL_FALLBACKS": "a, openai:b:1b@http://h/v1"}, path)
    path.write_text('fallbacks = ["a", "openai:b:1b@http://h/v1"]\n', encoding="utf-8")
    assert by_env.fallbacks == load_settings({}, path).fallbacks == Fallbacks(models=wanted)
    with pytest.raises(ConfigError, match=r"CAAL_FALLBACKS.*begin with http"):
        load_settings({"CAAL_FALLBACKS": "a@ftp://h"}, path)


def test_the_settings_of_another_model_keep_the_server_unless_one_is_named() -> None:
    settings = Settings(ollama_host="box", api_key=SecretStr("k"))
    same = settings.with_model(ModelReference("other"))
    assert (same.model, same.model_address) == ("other", "http://box:11434")
    assert same.api_key == settings.api_key
    by_v1 = settings.with_model(ModelReference("other", "openai"))
    assert by_v1.model_address == "http://box:11434/v1"
    named = settings.with_model(ModelReference("m", "openai", "http://h:1/v1"))
    assert (named.api, named.model_address) == ("openai", "http://h:1/v1")


def test_the_key_goes_to_no_other_server() -> None:
    settings = Settings(api="openai", base_url="http://a:1/v1", api_key=SecretStr("k"))
    assert settings.with_model(ModelReference("m")).api_key is not None
    assert settings.with_model(ModelReference("m", None, "http://b:1/v1")).api_key is None
    assert settings.with_model(ModelReference("m", "ollama")).api_key is None
