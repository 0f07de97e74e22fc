"""Before a conversation: a model that answers, doctor's sentence, or the embedded engine."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from caal_node.cli import model_server
from caal_node.cli.model_server import EMBED, model_problem, ready_settings
from caal_node.config.settings import EMBEDDED_MODEL, Settings
from caal_node.core.errors import ConfigError
from tests.stand_ins.stand_in_model import StandInModel

NOBODY = "http://127.0.0.1:9"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of models that were made sure of; nothing is downloaded."""
    names: list[str] = []
    monkeypatch.setattr(model_server, "ensure_gguf", lambda name, console: names.append(name))
    monkeypatch.setattr(model_server, "require_engine", lambda: None)
    return names


def typed(monkeypatch: pytest.MonkeyPatch, words: str) -> Terminal:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(words))
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


async def test_a_model_that_answers_is_no_problem_and_one_fallback_is_enough() -> None:
    async with StandInModel() as server:
        here = Settings(ollama_host=server.url, model=server.model)
        assert await model_problem(here) is None
        away = Settings.model_validate(
            {"ollama_host": NOBODY, "fallbacks": f"ollama:{server.model}@{server.url}"}
        )
        assert await model_problem(away) is None
        missing = await model_problem(here.model_copy(update={"model": "other"}))
        assert missing is not None
        assert "ollama pull other" in missing.fix


def test_in_a_pipe_it_is_one_line_with_both_fixes(fetched: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        ready_settings(Settings(ollama_host=NOBODY))
    said = str(caught.value)
    assert said.startswith(f"model server: nothing answers at {NOBODY}")
    assert "ollama serve" in said
    assert said.endswith(EMBED)
    assert "\n" not in said
    assert not fetched


def test_at_a_terminal_the_embedded_engine_is_asked_for_once_and_taken(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = typed(monkeypatch, "y\n")
    asked = Settings.model_validate({"base_url": f"{NOBODY}/v1", "api": "openai", "model": "x"})
    settings = ready_settings(asked)
    assert (settings.api, settings.model, settings.base_url) == ("embedded", EMBEDDED_MODEL, None)
    assert fetched == [EMBEDDED_MODEL]
    assert "nothing answers" in screen.getvalue()
    assert screen.getvalue().count("[y/N]") == 1


def test_an_engine_that_is_not_installed_is_not_offered(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ConfigError("not installed")

    screen = typed(monkeypatch, "y\n")
    monkeypatch.setattr(model_server, "require_engine", missing)
    with pytest.raises(ConfigError, match=r"pip install 'caal-node\[embedded\]'"):
        ready_settings(Settings(ollama_host=NOBODY))
    assert "[y/N]" not in screen.getvalue()
    assert not fetched


def test_whoever_declines_reads_the_fix(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "\n")
    with pytest.raises(ConfigError, match="CAAL_API=embedded"):
        ready_settings(Settings(ollama_host=NOBODY))
    assert not fetched


AGENTS_WITH_MODELS = """
from caal_node import LLM, CaalAgent

class Own(CaalAgent):
    def __init__(self, **options):
        super().__init__(llm=LLM("mine", "openai", "http://127.0.0.1:9/v1"), **options)

class Plain(CaalAgent):
    pass
"""


def test_an_agent_with_a_model_of_its_own_leaves_the_settings_unasked(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "agents_with_models.py").write_text(AGENTS_WITH_MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "agents_with_models", raising=False)
    nobody = Settings(ollama_host=NOBODY)
    assert ready_settings(nobody, "agents_with_models:Own") is nobody
    of_settings = Settings(ollama_host=NOBODY, agent="agents_with_models:Own")
    assert ready_settings(of_settings) is of_settings
    with pytest.raises(ConfigError, match="nothing answers"):
        ready_settings(of_settings, "agents_with_models:Plain")
    assert not fetched


def test_the_engine_that_was_chosen_gets_its_model_without_a_question(
    fetched: list[str],
) -> None:
    settings = Settings(api="embedded", model="mine.gguf")
    assert ready_settings(settings) is settings
    assert fetched == ["mine.gguf"]


def test_a_missing_engine_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'caal-node\[embedded\]'"):
        ready_settings(Settings(api="embedded", model=str(tmp_path / "any.gguf")))
