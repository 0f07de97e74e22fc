"""`caal-node tools add` and `tools new`, as a person with a shell uses them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

COMMAND = str(Path(sys.executable).with_name("caal-node"))
DEADLINE_S = 120


def caal_node(
    *arguments: str, cwd: Path, site: Path, typed: str = "", fails: bool = False
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "CAAL_STATE": str(cwd / "state")},
        input=typed,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done


def run(command: Sequence[str], cwd: Path, path: str) -> str:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toolset that `tools new` writes, and its installed form beside it."""
    folder = tmp_path_factory.mktemp("author")
    caal_node("tools", "new", "book_shelf", cwd=folder, site=folder / "site")
    module = folder / "book_shelf" / "book_shelf.py"
    option = "    token: SecretStr | None = Field(default=None, description='The key')\n"
    text = module.read_text().replace("import Field\n", "import Field, SecretStr\n")
    module.write_text(text.replace('of your things")\n', f'of your things")\n{option}'))
    build = ["--no-deps", "--no-build-isolation", "--target", str(folder / "site"), "./book_shelf"]
    run([sys.executable, "-m", "uv", "pip", "install", "-q", *build], folder, "")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "caal.toml").write_text('# mine\nmodel = "x" # why\n')
    (tmp_path / "things.txt").write_text("drill: in the attic\n")
    return tmp_path


def test_the_test_of_a_new_toolset_passes(author: Path) -> None:
    path = os.pathsep.join((str(author / "book_shelf"), os.environ.get("PYTHONPATH", "")))
    told = run([sys.executable, "-m", "pytest", "-q", "book_shelf"], author, path)
    assert "4 passed" in told


def test_a_new_toolset_never_overwrites(author: Path) -> None:
    told = caal_node("tools", "new", "book_shelf", cwd=author, site=author, fails=True)
    assert "exists already" in told.stderr


def test_a_name_that_no_module_can_have_is_refused(author: Path) -> None:
    told = caal_node("tools", "new", "Book-Shelf", cwd=author, site=author, fails=True)
    assert "write small letters" in told.stderr


def test_an_answered_question_turns_the_tools_on_and_comments_stay(
    author: Path, home: Path
) -> None:
    site = author / "site"
    typed = "things.txt\nhush-hush-hush\n"
    told = caal_node("tools", "add", "book_shelf", cwd=home, site=site, typed=typed)
    assert "things.txt: 1" in told.stdout
    assert "book_shelf is on: find_thing" in told.stdout
    text = (home / "caal.toml").read_text()
    assert text.startswith('# mine\nmodel = "x" # why\n')
    assert 'token = "${BOOK_SHELF_TOKEN}"' in text
    assert "hush" not in text + told.stdout + told.stderr
    assert "hush-hush-hush" in (home / ".env").read_text()
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600
    listed = caal_node("tools", "--json", cwd=home, site=site).stdout
    assert '"find_thing"' in listed
    assert '"source": "book_shelf"' in listed
    assert '"on": true' in caal_node("tools", "add", "--json", cwd=home, site=site).stdout


def test_what_was_set_in_advance_is_not_asked_for(author: Path, home: Path) -> None:
    given = ("--set", "file=things.txt", "--set", "token=hush")
    told = caal_node("tools", "add", "book_shelf", *given, cwd=home, site=author / "site", typed="")
    assert "book_shelf is on" in told.stdout
    assert 'file = "things.txt"' in (home / "caal.toml").read_text()


def test_what_does_not_work_is_not_written(author: Path, home: Path) -> None:
    (home / "things.txt").unlink()
    before = (home / "caal.toml").read_text()
    told = caal_node(
        "tools", "add", "book_shelf", "--yes", cwd=home, site=author / "site", fails=True
    )
    assert "Nothing was written" in told.stderr
    assert (home / "caal.toml").read_text() == before
    caal_node("tools", "add", "book_shelf", "--yes", "--unchecked", cwd=home, site=author / "site")
    assert "[toolsets.book_shelf]" in (home / "caal.toml").read_text()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["shelf_book", "--yes"], "no toolset 'shelf_book' is installed"),
        (["book_shelf", "--yes", "--set", "fiel=x"], "there are file, token"),
        (["book_shelf", "--json"], "--json lists the toolsets"),
        (["--yes"], "name the toolset"),
        (["book_shelf"], "there is no answer to this question. Nothing was written"),
        (["book_shelf", "--yes", "--set", "file"], "write name=value"),
        (["book_shelf", "--yes", "--set", "file=[1"], "nothing was written"),
    ],
)
def test_a_wrong_option_is_named(author: Path, home: Path, given: list[str], told: str) -> None:
    done = caal_node("tools", "add", *given, cwd=home, site=author / "site", fails=True)
    assert told.casefold() in done.stderr.casefold()
    assert "Traceback" not in done.stderr


def test_several_are_added_at_once_and_one_is_removed_again(home: Path) -> None:
    caal_node("tools", "add", "calculator", "lists", "--yes", cwd=home, site=home)
    assert set(tomllib.loads((home / "caal.toml").read_text())["toolsets"]) == {
        "calculator",
        "lists",
    }
    caal_node("tools", "remove", "lists", cwd=home, site=home)
    text = (home / "caal.toml").read_text()
    assert list(tomllib.loads(text)["toolsets"]) == ["calculator"]
    assert text.startswith('# mine\nmodel = "x" # why\n')
    told = caal_node("tools", "remove", "lists", cwd=home, site=home, fails=True)
    assert "there is no toolset lists; there are calculator" in told.stderr
