"""Toolsets are found by their entry points, and made as caal.toml says."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import tzlocal.unix
from pydantic import Field, SecretStr

from caal_node.config.settings import Settings, load_settings
from caal_node.core.errors import ConfigError, InvalidArguments
from caal_node.tools.sources.methods import spec_of
from caal_node.toolsets import registry
from caal_node.toolsets.base import TEXT_CHARS, ConfiguredToolset, OptionPath, ToolsetOptions, tool
from caal_node.toolsets.installed import GROUP


class ShelfOptions(ToolsetOptions):
    file: OptionPath = Field(description="The file with your books")
    token: SecretStr | None = None


class Shelf(ConfiguredToolset):
    NAME = "shelf"
    SUMMARY = "Says which books you have."
    Options = ShelfOptions

    @tool("read", timeout_s=30, remembered=False)
    async def find_book(self, title: str) -> str:
        """Find a book.

        Example: do I have Dune -> {"title": "Dune"}

        Args:
            title: The book's title.
        """
        return title


class Attic(ConfiguredToolset):
    NAME = "attic"
    SUMMARY = "The same tool once more."

    @tool("read")
    async def find_book(self, title: str) -> str:
        """Find a book upstairs."""
        return title


NOT_A_TOOLSET = 3


class Broken(Attic):
    NAME = "broken"

    def __init__(self, *_: object) -> None:
        raise KeyError("boom")


class Nameless(ConfiguredToolset):
    SUMMARY = "It has no NAME."


def __getattr__(name: str) -> object:
    """Raise what a module may raise as it is imported."""
    if name == "Raises":
        raise ZeroDivisionError("boom")
    if name == "Exits":
        raise SystemExit(3)
    raise AttributeError(name)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        name: EntryPoint(name, f"{__name__}:{value}", GROUP)
        for name, value in {
            "shelf": "Shelf",
            "attic": "Attic",
            "gone": "Nothing",
            "number": "NOT_A_TOOLSET",
            "raises": "Raises",
            "exits": "Exits",
            "broken": "Broken",
            "nameless": "Nameless",
            "renamed": "Attic",
        }.items()
    }
    monkeypatch.setattr(registry, "installed", lambda: found)


def settings_of(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "caal.toml").write_text(text)
    return load_settings({}, tmp_path / "caal.toml")


def test_a_table_turns_a_toolset_on(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, '[toolsets.shelf]\nfile = "books.txt"\n')
    (shelf,) = registry.configured_toolsets(settings)
    assert shelf.options.file == tmp_path / "books.txt"
    assert shelf.services.state.name == "shelf"


def test_nothing_is_on_where_no_table_says_so(tmp_path: Path) -> None:
    text = '[toolsets.shelf]\nenabled = false\nfile = "books.txt"\n'
    assert registry.configured_toolsets(settings_of(tmp_path, text)) == []
    assert registry.configured_toolsets(Settings()) == []


def test_settings_made_in_code_turn_toolsets_on_too() -> None:
    settings = Settings.model_validate({"toolsets": {"shelf": {"file": "books.txt"}}})
    assert len(registry.configured_toolsets(settings)) == 1


def set_zone(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setattr(tzlocal.unix, "_cache_tz", None)  # it is read once in a process


def test_the_home_s_time_zone_is_the_one_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_zone(monkeypatch, "Europe/Oslo")
    (attic,) = registry.configured_toolsets(settings_of(tmp_path, "[toolsets.attic]\n"))
    assert str(attic.services.timezone) == "Europe/Oslo"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "CET-1CEST", "../../etc/passwd", "a" * 999])
def test_a_time_zone_that_there_is_not_is_named(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_zone(monkeypatch, zone)
    with pytest.raises(ConfigError, match=r"TZ: .* is no time zone; write one such as Europe/Oslo"):
        registry.configured_toolsets(settings_of(tmp_path, "[toolsets.attic]\n"))


def test_a_secret_can_be_a_variable_and_is_known_to_the_redaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELF_TOKEN", "hushhush")
    text = '[toolsets.shelf]\nfile = "b"\ntoken = "${SHELF_TOKEN}"\n'
    (shelf,) = registry.configured_toolsets(settings_of(tmp_path, text))
    assert shelf.secrets == ("hushhush",)


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("toolsets = 3\n", "line 1, toolsets", "write a table"),
        ("[toolsets]\nshelf = 3\n", "line 1, toolsets", "write shelf as a table"),
        ("[toolsets.shelf]\nenabled = 3\n", "line 1, toolsets", "write true or false"),
        ("\n[toolsets.self]\n", "line 2, toolsets.self", "did you mean shelf"),
        ("[toolsets.x]\n", "line 1, toolsets.x", "there are shelf, attic"),
        ("[toolsets.shelf]\n", "toolsets.shelf.file", "caal-node tools add shelf"),
        ("[toolsets.shelf]\nfile = 'b'\nfiel = 1\n", "line 3, toolsets.shelf.fiel", "file, token"),
        ("[toolsets.shelf]\nfile = 3\n", "line 2, toolsets.shelf.file", "path"),
        (
            "[toolsets.shelf]\nfile = 'b'\ntoken = '${SHELF_TOKEN}'\n",
            "line 3, toolsets.shelf.token",
            "SHELF_TOKEN is not set",
        ),
        ("[toolsets.gone]\n", "line 1, toolsets.gone", "cannot be imported"),
        ("[toolsets.raises]\n", "line 1, toolsets.raises", "(ZeroDivisionError: boom); fix it"),
        ("[toolsets.exits]\n", "line 1, toolsets.exits", "(SystemExit: 3); fix it"),
        ("[toolsets.broken]\n", "line 1, toolsets.broken", "(KeyError: 'boom'); tell its author"),
        ("[toolsets.nameless]\n", "line 1, toolsets.nameless", "has no NAME"),
        ("[toolsets.renamed]\n", "line 1, toolsets.renamed", "make them the same"),
        ("[toolsets.number]\n", "line 1, toolsets.number", "is not a ConfiguredToolset"),
        ("[toolsets.shelf]\nfile = 'b'\n[toolsets.attic]\n", "shelf and attic", "find_book"),
    ],
)
def test_what_is_wrong_names_place_and_fix(
    tmp_path: Path, text: str, place: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        registry.configured_toolsets(settings_of(tmp_path, text))
    assert place in str(caught.value)
    assert remedy in str(caught.value)


def test_no_error_shows_a_secret(tmp_path: Path) -> None:
    text = '[toolsets.shelf]\nfile = "b"\ntoken = 81818181\n'
    with pytest.raises(ConfigError) as caught:
        registry.configured_toolsets(settings_of(tmp_path, text))
    assert "8181" not in str(caught.value)


def test_a_tool_is_listed_by_its_toolset_with_its_author_s_terms() -> None:
    shelf = Shelf(ShelfOptions(file=Path("b")))
    spec = spec_of(shelf.tools[0], "KitchenAgent")  # type: ignore[arg-type]
    assert (spec.source, spec.effect, spec.timeout_s, spec.remembered) == (
        "shelf",
        "read",
        30,
        False,
    )
    assert spec.description == "Find a book."
    assert spec.examples[0].arguments == {"title": "Dune"}


async def test_a_text_that_is_too_long_is_refused_before_anything_is_done_with_it() -> None:
    shelf = Shelf(ShelfOptions(file=Path("b")))
    assert len(await shelf.find_book("D" * TEXT_CHARS)) == TEXT_CHARS
    for call in (shelf.find_book("D" * (TEXT_CHARS + 1)), shelf.find_book(title="D" * 1_000_000)):
        with pytest.raises(InvalidArguments, match="title: at most 4000 characters; shorten it"):
            await call


async def test_a_toolset_works_without_anything_of_this_package() -> None:
    shelf = Shelf(ShelfOptions(file=Path("b")))
    assert await shelf.tools[0](title="Dune") == "Dune"  # type: ignore[operator]
    assert await shelf.check() == "nothing to check"
    assert await shelf.services.announcer.announce("Hello.") is False


async def test_whatever_a_check_raises_is_told_in_a_line() -> None:
    class Checked(Attic):
        async def check(self) -> str:
            raise FileNotFoundError(2, "No such file", "books.txt")

    with pytest.raises(ConfigError, match=r"its check fails \(FileNotFoundError.*books.txt"):
        await registry.checked(Checked(), 1.0)
