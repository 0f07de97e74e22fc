"""A toolset's table is written into caal.toml however its owner wrote the file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from caal_node.cli.toolsets import (
    refuse_unwritable,
    replace_text,
    with_toolset,
    without_toolset,
)
from caal_node.core.errors import ConfigError


@pytest.mark.parametrize(
    "text",
    [
        "",
        '# mine\nmodel = "x" # why',
        "toolsets = {}\n",
        "toolsets = { lists = { enabled = false } }\n",
        "[toolsets]\nshelf = { enabled = false } # mine\n",
        "toolsets.shelf.enabled = false # mine\n",
        "[toolsets.a]\n[policy]\n[toolsets.b]\nx = 1\n",
        "[toolsets.shelf]\r\nenabled = false\r\nfile = 3 # mine\r\n",
    ],
)
def test_the_table_is_there_and_everything_else_stays(text: str) -> None:
    changed = with_toolset(text, "shelf", {"file": "Bücher 📚.txt"})
    before, after = tomllib.loads(text), tomllib.loads(changed)
    assert after.pop("toolsets") == {
        **before.pop("toolsets", {}),
        "shelf": {"file": "Bücher 📚.txt"},
    }
    assert before == after
    assert [line.partition("#")[2] for line in text.split("\n") if "#" in line] == [
        line.partition("#")[2] for line in changed.split("\n") if "#" in line
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# mine\n[toolsets.shelf]\nfile = 3\n\n[toolsets.b] # other\nx = 1\n",
        "toolsets = { shelf = { enabled = false } }\n# end\n",
        'model = "x" # why\n[toolsets]\nshelf = { file = 3 }\nb = { x = 1 } # other\n',
        "toolsets.shelf.file = 3\ntoolsets.b.x = 1 # other\n",
        "[toolsets.shelf]\nfile = 3\n# of b\n[toolsets.b]\nx = 1\n",
    ],
)
def test_a_table_that_is_removed_takes_nothing_else_with_it(text: str) -> None:
    changed = without_toolset(text, "shelf")
    before, after = tomllib.loads(text), tomllib.loads(changed)
    assert before["toolsets"].pop("shelf")
    assert {"toolsets": {}, **after} == before
    assert [line.partition("#")[2] for line in text.split("\n") if "#" in line] == [
        line.partition("#")[2] for line in changed.split("\n") if "#" in line
    ]


def test_what_cannot_be_changed_gets_the_lines_to_write() -> None:
    with pytest.raises(ConfigError, match=r"(?s)Nothing was written.*\[toolsets.shelf\]"):
        with_toolset("toolsets = 3\n", "shelf", {"file": "b"})


def test_a_link_stays_a_link_and_the_rights_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "caal.toml"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    replace_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "caal.toml"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(ConfigError, match=r"chmod u\+w"):
        refuse_unwritable(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="Nothing was written"):
        replace_text(path, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["caal.toml"]
