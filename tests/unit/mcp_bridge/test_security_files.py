"""Whose file it is, where a server may be, and what was accepted."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import inspect
import json
import os
import re
import shutil
import sqlite3
import stat
import struct
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanContext

from caal_node.config.settings import load_settings
from caal_node.core import private_database
from caal_node.core.errors import ConfigError as SettingsError
from caal_node.core.errors import ToolBroke
from caal_node.core.private_database import open_database
from caal_node.evaluation.store import EvaluationStore
from caal_node.redaction.outgoing import OutgoingRedaction
from caal_node.redaction.settings import RedactionSettings
from caal_node.telemetry.trace_file import TraceFile
from caal_node.toolsets.documents.passage_index import IndexedDocument, PassageIndex
from caal_node.toolsets.local_files.file_text import Passage
from caal_node.toolsets.memory import FactFiles
from caal_node.toolsets.timers.entry import Entry
from caal_node.toolsets.timers.store import TimerStore
from mcp_bridge import ConfigError, NewTools, Pins, ServerConfig, load_servers
from mcp_bridge.core.files import replace_file
from mcp_bridge.core.server_config import is_loopback
from mcp_bridge.core.tools import ToolDefinition
from mcp_bridge.security import ownership
from mcp_bridge.security.ownership import fault, writers
from mcp_bridge.security.pins import MAX_FILE_BYTES, MAX_TOOLS, VettedTools
from mcp_bridge.security.policy import plain_text, same_origin

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows keeps no owner and mode like these")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp servers.json"
    path.write_text('{"a": {"command": "x"}}')
    path.chmod(0o600)
    return path


@POSIX
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o664, 0o777])
def test_a_file_that_others_may_write_is_refused_with_its_fix(
    file: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "is_own_group", lambda _group, _user: False)
    file.chmod(mode)
    with pytest.raises(ConfigError, match="may be written by") as caught:
        load_servers(file)
    assert f"run: chmod go-w '{file}'" in str(caught.value)
    file.chmod(mode & ~0o022)
    assert load_servers(file)


@POSIX
def test_a_file_that_others_may_read_is_taken(file: Path) -> None:
    file.chmod(0o644)
    assert load_servers(file)


@POSIX
def test_a_link_is_judged_by_what_it_leads_to(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    assert load_servers(link)
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="chmod"):
        load_servers(link)


def status(uid: int, mode: int = 0o644, gid: int = 0) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))


@POSIX
@pytest.mark.parametrize(
    ("group", "members", "others", "taken"),
    [
        ("ann", [], [], True),
        ("ann", ["ann"], [], True),
        ("ann", ["ann", "bob"], [], False),
        ("ann", [], ["bob"], False),
        ("users", [], [], False),
    ],
    ids=["own", "named", "shared", "another's first group", "common"],
)
def test_the_group_of_the_user_alone_may_write(
    group: str,
    members: list[str],
    others: list[str],
    taken: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import grp
    import pwd

    people = [SimpleNamespace(pw_name=name, pw_gid=1000) for name in ["ann", *others]]
    entry = SimpleNamespace(gr_name=group, gr_mem=members)
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: people[0])
    monkeypatch.setattr(pwd, "getpwall", lambda: people)
    monkeypatch.setattr(grp, "getgrgid", lambda _gid: entry)
    assert (not list(writers(status(1000, 0o664, 1000), b"", 1000))) is taken
    assert list(writers(status(1000, 0o666, 1000), b"", 1000))


OWN_USER, STRANGER = 1000, 1001


@dataclasses.dataclass(frozen=True)
class AclEntry:
    tag: int
    may: int
    number: int = 0xFFFFFFFF


def packed(*entries: AclEntry) -> bytes:
    """A list as Linux keeps it (acl(5)): version 2, then tag, permissions and number of each."""
    rows = [struct.pack("<HHI", one.tag, one.may, one.number) for one in entries]
    return struct.pack("<I", 2) + b"".join(rows)


@POSIX
@pytest.mark.parametrize(
    ("entry", "mode", "who"),
    [
        (AclEntry(0x02, 6, STRANGER), 0o660, "the user 1001 (by its access-control list)"),
        (AclEntry(0x08, 6, STRANGER), 0o660, "the group 1001 (by its access-control list)"),
        (AclEntry(0x04, 6), 0o660, "its group"),
        (AclEntry(0x02, 4, STRANGER), 0o660, None),
        (AclEntry(0x02, 6, OWN_USER), 0o660, None),
        (AclEntry(0x02, 6, 0), 0o660, None),
        (AclEntry(0x02, 6, STRANGER), 0o640, None),
    ],
    ids=["a user", "a group", "the file's", "reads", "the user", "root", "masked, by chmod g-w"],
)
def test_who_may_write_by_an_access_control_list(
    entry: AclEntry, mode: int, who: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "is_own_group", lambda _group, _user: False)
    acl = packed(AclEntry(0x01, 6), entry, AclEntry(0x10, mode >> 3 & 7), AclEntry(0x20, 0))
    assert next(writers(status(OWN_USER, mode), acl, OWN_USER), None) == who


@given(st.binary(max_size=64), st.integers(0, 0o777))
def test_any_list_is_read_and_a_mode_that_lets_nobody_write_is_believed(
    acl: bytes, mode: int
) -> None:
    found = list(writers(status(OWN_USER, mode), acl, OWN_USER))
    assert mode & 0o022 or not found


@POSIX
def test_an_access_control_list_of_a_real_file_is_seen(file: Path) -> None:
    acl = packed(
        AclEntry(0x01, 6),
        AclEntry(0x02, 6, 54321),
        AclEntry(0x04, 4),
        AclEntry(0x10, 6),
        AclEntry(0x20, 0),
    )
    try:
        os.setxattr(file, "system.posix_acl_access", acl)
    except (AttributeError, OSError):
        pytest.skip("this disk keeps no access-control lists")
    with pytest.raises(ConfigError, match="the user 54321") as caught:
        load_servers(file)
    assert "run: chmod go-w" in str(caught.value)
    file.chmod(file.stat().st_mode & ~0o022)
    assert load_servers(file)


@POSIX
@pytest.mark.parametrize(("mode", "taken"), [(0o777, False), (0o1777, True), (0o755, True)])
def test_the_folder_of_the_file_and_of_a_link_to_it_are_its_users(
    file: Path, tmp_path: Path, mode: int, *, taken: bool
) -> None:
    (elsewhere := tmp_path / "links").mkdir()
    (link := elsewhere / "l.json").symlink_to(file)
    elsewhere.chmod(mode)
    if taken:
        assert load_servers(link)
    else:
        with pytest.raises(ConfigError, match="lies in a folder that may be written by everybody"):
            load_servers(link)
    assert load_servers(file)


@POSIX
def test_a_file_belongs_to_the_user_or_to_root(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with file.open("rb") as opened:
        said = fault(opened.fileno(), file)
    if owner != 0:
        assert said is not None
        assert f"run: chown {owner + 1} " in said
    else:
        assert said is None or "in a folder" in said


@POSIX
def test_the_settings_file_is_judged_as_well(tmp_path: Path) -> None:
    """It names code to be run (`agent`, `stt`), and where the model is."""
    path = tmp_path / "caal.toml"
    path.write_text('model = "x"\n', encoding="utf-8")
    path.chmod(0o666)
    with pytest.raises(SettingsError, match=r"may be written by everybody.*run: chmod go-w"):
        load_settings({}, path)
    path.chmod(0o644)
    assert load_settings({}, path).model == "x"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1/x",
        "http://127.0.0.1/x",
        "http://127.9.9.9/x",
        "http://[::1]:1/x",
        "ws://localhost/x",
        "http://a.localhost/",
        "https://example.com/",
        "wss://example.com",
    ],
)
def test_addresses_that_are_encrypted_or_here_pass(url: str) -> None:
    assert plain_text(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ws://example.com/",
        "http://192.168.0.2/",
        "http://10.0.0.1/",
        "http://localhost.example.com/",
        "http://127.0.0.1.example.com/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "http://localhost@example.com/",
        "http://[::ffff:8.8.8.8]/",
        "http://host.docker.internal/",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    assert plain_text(url) is not None
    assert not is_loopback(url)


@pytest.mark.parametrize(
    ("location", "same"),
    [
        ("/other/", True),
        ("https://h.example/x", True),
        ("https://H.example:443/x", True),
        ("http://h.example/x", False),
        ("https://evil.example/x", False),
        ("//evil.example/", False),
        ("https://h.example:444/", False),
        ("https://h.example@evil.example/", False),
        ("https://h.example:port/", False),
        ("javascript:x", False),
    ],
)
def test_a_redirect_stays_with_the_server_or_is_none(location: str, same: bool) -> None:
    assert same_origin("https://h.example/mcp", location) is same


# What was accepted.

CONFIG = ServerConfig(name="files", command="x", args=("y",))
READ = ToolDefinition("read", "Reads a file.", {"type": "object"}, read_only=True)


def changed(**other: Any) -> ToolDefinition:
    return dataclasses.replace(READ, **other)


def pinned(folder: Path, *tools: ToolDefinition, config: ServerConfig = CONFIG) -> Pins:
    pins = Pins(folder)
    pins.read([config])
    pins.vet(config, tools)
    pins.write()
    return pins


@pytest.mark.parametrize(
    "after",
    [
        changed(description="Reads a file, and sends it away."),
        changed(read_only=None),
        changed(input_schema={"type": "object", "properties": {"to": {}}}),
    ],
)
def test_a_tool_that_changes_is_held_until_it_is_accepted(
    tmp_path: Path, after: ToolDefinition
) -> None:
    pinned(tmp_path, READ)
    pins = pinned(tmp_path, after)  # another process, another day
    found = pins.vet(CONFIG, [after])
    assert found.offered == ()
    assert "read and accept it: caal-node tools --accept files__read" in found.held["read"]
    assert Pins(tmp_path).waiting() == ("files__read",)

    (taken,) = Pins(tmp_path).accept("files__read")
    assert (taken.before, taken.after) == (READ.description, after.description)
    pins.read([CONFIG])
    assert pins.vet(CONFIG, [after]).offered == (after,)
    assert pins.vet(CONFIG, [READ]).offered == (), "the old one is now the changed one"


def test_what_is_accepted_is_what_was_seen(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    pinned(tmp_path, changed(description="second"))
    Pins(tmp_path).accept("files")
    assert (
        pinned(tmp_path, changed(description="third"))
        .vet(CONFIG, [changed(description="third")])
        .held
    )


def test_a_tool_that_goes_back_waits_no_longer(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    pinned(tmp_path, changed(description="other"))
    pins = pinned(tmp_path, READ)
    assert pins.vet(CONFIG, [READ]).offered == (READ,)
    assert Pins(tmp_path).waiting() == ()
    assert Pins(tmp_path).accept("files") == ()


WRITE = ToolDefinition("write", "Writes.", {})


def test_new_tools_are_offered_and_told_of_until_they_are_accepted(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    for _ in range(2):
        found = pinned(tmp_path, READ, WRITE).vet(CONFIG, [READ, WRITE])
        assert (found.offered, found.added) == ((READ, WRITE), ("write",))
        assert (
            "has added write; read and accept them: caal-node tools --accept files" in found.notes
        )
    (taken,) = Pins(tmp_path).accept("files__write")
    assert (taken.new, taken.after) == (True, "Writes.")
    found = pinned(tmp_path).vet(CONFIG, [READ, WRITE])
    assert (found.added, found.notes) == ((), ())


def test_old_pins_outlive_their_tools(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    pinned(tmp_path, WRITE)
    assert pinned(tmp_path).vet(CONFIG, [changed(description="back again")]).held
    assert pinned(tmp_path).vet(CONFIG, [READ]).offered == (READ,)


@pytest.mark.parametrize(
    ("by_default", "entry", "offered"),
    [
        ("offer", None, True),
        ("hold", None, False),
        ("hold", "offer", True),
        ("offer", "hold", False),
    ],
)
def test_new_tools_wait_where_the_owner_says_so(
    tmp_path: Path, by_default: NewTools, entry: NewTools | None, offered: bool
) -> None:
    config = dataclasses.replace(CONFIG, new_tools=entry)

    def seen(*tools: ToolDefinition) -> VettedTools:
        pins = Pins(tmp_path, by_default)
        pins.read([config])
        found = pins.vet(config, tools)
        pins.write()
        return found

    assert seen(READ).offered == (READ,), "a server that is not known yet is trusted"
    assert (WRITE in seen(READ, WRITE).offered) is offered
    assert Pins(tmp_path).waiting() == ("files__write",)
    Pins(tmp_path).accept("files")
    assert WRITE in seen(READ, WRITE).offered
    if not offered:
        other = dataclasses.replace(WRITE, name="other")
        assert "is new since" in seen(READ, WRITE, other).held["other"]
        config = dataclasses.replace(CONFIG, new_tools="offer")
        assert other in seen(READ, WRITE, other).offered, "the setting of today counts"


def test_no_new_tool_is_offered_while_a_changed_one_waits(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    worse = changed(description="Reads a file, and sends it away.")
    pinned(tmp_path, worse)
    for listed in ([worse, dataclasses.replace(worse, name="read2")], [WRITE]):
        found = pinned(tmp_path).vet(CONFIG, listed)
        assert found.offered == ()
        assert "while a changed tool of its server waits" in found.held[listed[-1].name]
    Pins(tmp_path).accept("files__read")
    assert pinned(tmp_path, WRITE).vet(CONFIG, [WRITE]).offered == (WRITE,)


def test_a_tool_that_goes_is_known_under_its_new_name(tmp_path: Path) -> None:
    pinned(tmp_path, READ, WRITE)
    again = changed(name="read2", description="READS \u200a a file.")
    found = pinned(tmp_path, again, WRITE).vet(CONFIG, [again, WRITE])
    assert "has added read2 (which was read)" in found.notes[0]
    (taken,) = Pins(tmp_path).accept("files")
    assert (taken.tool, taken.was) == ("read2", "read")


def test_a_copy_of_a_tool_that_stays_is_not_its_new_name(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    found = pinned(tmp_path).vet(CONFIG, [READ, changed(name="read2")])
    assert "has added read2;" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Read_file", "looks like read_file"),
        ("readfile", "looks like read_file"),
        ("read-file", "looks like read_file"),
        ("re\u0430d_file", "is not plain ASCII"),
        ("read_file\u200b", "is not plain ASCII"),
        ("read_file\n", "is not plain ASCII"),
        ("\u8bfb", "is not plain ASCII"),
    ],
)
def test_a_name_that_looks_like_a_known_one_waits_whatever_the_setting(
    tmp_path: Path, name: str, why: str
) -> None:
    known = changed(name="read_file")
    pinned(tmp_path, known)
    new = changed(name=name, description="Sends it away.")
    found = pinned(tmp_path, known, new).vet(CONFIG, [known, new])
    assert found.offered == (known,)
    assert why in found.held[name]
    (full,) = Pins(tmp_path).waiting()
    assert full.isascii()
    assert full.isprintable()
    (taken,) = Pins(tmp_path).accept(full)
    assert taken.after == "Sends it away."


def test_names_that_are_seen_at_first_may_be_of_any_script(tmp_path: Path) -> None:
    tools = changed(name="\u8bfb"), changed(name="Read"), READ
    assert pinned(tmp_path, *tools).vet(CONFIG, tools).offered == tools


def test_a_name_of_two_servers_is_not_guessed(tmp_path: Path) -> None:
    for server, tool in (("a", "b__c"), ("a__b", "c")):
        config = dataclasses.replace(CONFIG, name=server)
        pinned(tmp_path, READ, config=config)
        pinned(tmp_path, READ, dataclasses.replace(WRITE, name=tool), config=config)
    with pytest.raises(ValueError, match="'a__b__c' could be of a or a__b"):
        Pins(tmp_path).accept("a__b__c")
    (taken,) = Pins(tmp_path).accept("a")
    assert (taken.server, taken.tool) == ("a", "b__c")


def test_pins_that_are_gone_are_not_begun_anew(tmp_path: Path) -> None:
    folder = tmp_path / "pins"
    pinned(folder, READ)
    shutil.rmtree(folder)
    worse = changed(description="Sends it away.")
    for _ in range(2):
        found = pinned(folder, worse).vet(CONFIG, [worse])
        assert found.offered == ()
        assert re.search(r"is gone, though it was seen on \d{4}-\d\d-\d\d", found.held["read"])
    Pins(folder).accept("files")
    assert pinned(folder, worse).vet(CONFIG, [worse]).offered == (worse,)
    assert pinned(folder, worse, WRITE).vet(CONFIG, [worse, WRITE]).added == ("write",)


def test_a_room_that_is_live_writes_again_what_is_taken_from_under_it(tmp_path: Path) -> None:
    folder = tmp_path / "pins"
    pins = pinned(folder, READ)
    shutil.rmtree(folder)
    pins.read([CONFIG])
    worse = changed(description="Sends it away.")
    assert pins.vet(CONFIG, [worse]).held
    pins.write()
    found = pinned(folder).vet(CONFIG, [worse])
    assert "not the one that was accepted" in found.held["read"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 7}', '{"version": 1, "servers": 1}']
)
def test_a_witness_that_is_gone_or_damaged_is_made_anew(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "pins"
    pinned(folder, READ)
    witness = tmp_path / "pins-seen.json"
    witness.write_text(content)
    assert pinned(folder, READ).vet(CONFIG, [READ]).offered == (READ,)
    shutil.rmtree(folder)
    assert pinned(folder, READ).vet(CONFIG, [READ]).held


def test_pins_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    pinned(tmp_path / "pins", READ)
    (file,) = (tmp_path / "pins").glob("*.json")
    file.write_text('{"version": 3}')
    found = pinned(tmp_path / "pins", READ).vet(CONFIG, [READ])
    assert f"{file} was written by a newer version" in found.held["read"]
    assert file.read_text() == '{"version": 3}'


def test_pins_of_the_first_version_are_read(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    (file,) = tmp_path.glob("*.json")
    body = json.loads(file.read_text())
    rows = {tool: row[:4] for tool, row in body["tools"].items()}
    file.write_text(json.dumps({"version": 1, "server": "files", "tools": rows}))
    pins = pinned(tmp_path, READ)
    assert pins.vet(CONFIG, [READ]).offered == (READ,)
    assert pins.vet(CONFIG, [changed(description="x")]).held
    assert "says what read said" in pins.vet(CONFIG, [changed(name="read2")]).held["read2"]


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    found = pinned(tmp_path / "state" / "pins", READ).vet(CONFIG, [READ])
    assert f"{tmp_path / 'state'} is a file where a folder should be; move it" in found.held["read"]


def test_a_full_disk_loses_nothing_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    pins = pinned(tmp_path, READ)
    with monkeypatch.context() as disk:
        disk.setattr("mcp_bridge.security.pins.replace_file", full)
        pins.vet(CONFIG, [READ, WRITE])
        pins.write()
        found = pins.vet(CONFIG, [READ, WRITE])
        assert "what was seen of it is not kept (No space left on device)" in found.notes
    pins.write()
    assert Pins(tmp_path).waiting() == ("files__write",)
    assert pinned(tmp_path).vet(CONFIG, [READ]).offered == (READ,)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text(max_size=200), st.text(max_size=3_000)), max_size=20))
def test_whatever_tools_are_called_they_are_kept_or_held(rows: list[tuple[str, str]]) -> None:
    tools = [ToolDefinition(name, words, {}) for name, words in dict(rows).items()]
    with tempfile.TemporaryDirectory() as folder:
        first = pinned(Path(folder), *tools).vet(CONFIG, tools)
        later = pinned(Path(folder), *tools).vet(CONFIG, tools)
    assert len(first.offered) + len(first.held) == len(tools)
    assert later == first


def test_the_most_tools_with_the_longest_names_fit_the_file(tmp_path: Path) -> None:
    def listed(words: str) -> list[ToolDefinition]:
        names = [f"{number:04}".rjust(64, '"') for number in range(MAX_TOOLS)]
        return [ToolDefinition(name, words * 1_000, {}) for name in names]

    before, after = listed("\U0001f600"), listed("\U0001f601")
    pinned(tmp_path, *before)
    pins = pinned(tmp_path, *after)
    assert len(pins.vet(CONFIG, after).held) == MAX_TOOLS
    (file,) = tmp_path.glob("*.json")
    assert file.stat().st_size <= MAX_FILE_BYTES
    assert len(Pins(tmp_path).waiting()) == MAX_TOOLS
    assert "cannot be kept" in pins.vet(CONFIG, [READ]).held["read"]


def test_a_key_and_a_path_may_change_and_a_command_makes_another_server(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    after = [changed(description="other")]
    for same in (
        dataclasses.replace(CONFIG, env={"TOKEN": "new-token"}),
        dataclasses.replace(CONFIG, args=("y", "/room"), given_path="/room"),
    ):
        assert pinned(tmp_path, config=same).vet(same, after).held
    different = dataclasses.replace(CONFIG, args=("y@2",))
    assert not pinned(tmp_path, config=different).vet(different, after).held


def test_a_damaged_file_holds_everything_until_it_is_accepted_and_is_kept(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    (file,) = tmp_path.glob("*.json")
    file.write_text('{"version": 1')
    pins = pinned(tmp_path, READ)
    assert f"{file} is damaged" in pins.vet(CONFIG, [READ]).held["read"]
    assert file.with_suffix(".damaged").read_text() == '{"version": 1'
    assert pinned(tmp_path, READ).vet(CONFIG, [READ]).held
    Pins(tmp_path).accept("files")
    assert pinned(tmp_path, READ).vet(CONFIG, [READ]).offered == (READ,)


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    one, two = Pins(tmp_path), Pins(tmp_path)
    for pins in (one, two):
        pins.read([CONFIG])
    other = ToolDefinition("write", "Writes.", {})
    one.vet(CONFIG, [READ])
    two.vet(CONFIG, [other])
    one.write()
    two.write()
    late = pinned(tmp_path)
    assert (
        late.vet(
            CONFIG, [changed(description="x"), dataclasses.replace(other, description="y")]
        ).offered
        == ()
    )


def test_what_stands_where_the_folder_should_be_is_what_is_to_be_moved(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    pins = Pins(tmp_path / "state" / "pins")
    pins.read([CONFIG])
    said = pins.vet(CONFIG, [READ]).held["read"]
    assert f"{tmp_path / 'state'} is a file where a folder should be; move it away" in said


def test_who_sees_a_server_second_trusts_what_the_first_one_saw(tmp_path: Path) -> None:
    one, two = Pins(tmp_path), Pins(tmp_path)
    for pins in (one, two):
        pins.read([CONFIG])
    worse = changed(description="Sends it away.")
    assert one.vet(CONFIG, [READ]).offered == (READ,)
    assert not one.write()
    assert two.vet(CONFIG, [worse, WRITE]).offered == (worse, WRITE), "it knows of nothing yet"
    assert two.write()
    assert set(two.vet(CONFIG, [worse, WRITE]).held) == {"read"}
    assert not two.write()


def test_a_folder_that_cannot_be_written_costs_the_memory_alone(tmp_path: Path) -> None:
    (tmp_path / "pins").write_text("no folder")
    pins = Pins(tmp_path / "pins")
    pins.read([CONFIG])
    assert pins.vet(CONFIG, [READ]).held, "nobody can say what was accepted there"
    pins.write()


# What is kept between sessions


@POSIX
@pytest.mark.parametrize("umask", [0o022, 0])
def test_every_store_is_for_its_user_alone(tmp_path: Path, umask: int) -> None:
    """Each as the first one, so that it makes the folder too."""

    async def timers(folder: Path) -> None:
        store = TimerStore(folder)
        await store.add(Entry("reminder", "see the doctor", 1.0))
        with pytest.raises(ToolBroke):  # while its journal is there
            await store._run(changed_and_looked_at)  # pyright: ignore[reportPrivateUsage]
        await store.aclose()

    store_folder = tmp_path / "timers" / "state"

    def changed_and_looked_at(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM entries")
        journal = store_folder / "timers.sqlite3-journal"
        assert stat.S_IMODE(journal.stat().st_mode) == 0o600
        raise OSError("the change is taken back")

    def trace(folder: Path) -> None:
        file = TraceFile(folder / "trace.jsonl", redaction=OutgoingRedaction(RedactionSettings()))
        context = SpanContext(1, 2, is_remote=False)
        assert file.export([ReadableSpan("one", context)]) is SpanExportResult.SUCCESS
        file.shutdown()

    document = IndexedDocument("/a", "a", "a", 1, 1)
    stores: dict[str, Callable[[Path], Any]] = {
        "timers": timers,
        "documents": lambda folder: PassageIndex(folder / "i.db").put(document, [Passage("", "a")]),
        "validations": lambda folder: EvaluationStore(folder / "validations.db").check(),
        "pins": lambda folder: pinned(folder / "pins", READ).vet(CONFIG, [READ]),
        "trace": trace,
        "memory": lambda folder: FactFiles(folder).change(
            "anna", lambda page: (page.added("I like tea", date(2026, 1, 2)), None)
        ),
        "typed": lambda folder: replace_file(folder / "typed", b"x"),
    }
    before = os.umask(umask)
    try:
        for name, write in stores.items():
            made = write(tmp_path / name / "state")
            if inspect.isawaitable(made):
                asyncio.run(made)
    finally:
        os.umask(before)
    modes = {
        str(each.relative_to(tmp_path)): stat.S_IMODE(each.stat().st_mode)
        for each in tmp_path.rglob("*")
    }
    assert modes
    wrong = {
        name: oct(mode)
        for name, mode in modes.items()
        if mode != (0o700 if (tmp_path / name).is_dir() else 0o600)
    }
    assert not wrong
    assert {name.split("/")[0] for name in modes} == set(stores)


def test_a_database_that_an_earlier_version_made_for_all_is_closed_to_them(tmp_path: Path) -> None:
    open_database(tmp_path / "a.db").close()
    (tmp_path / "a.db").chmod(0o644)
    open_database(tmp_path / "a.db").close()
    assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("create", [True, False])
def test_a_database_that_has_lost_all_its_bytes_is_damaged(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "state" / "a.db"
    open_database(path).close()
    open_database(path).close()  # one that nothing was written into is a new one, and none lost
    path.write_bytes(b"")
    with pytest.raises(sqlite3.DatabaseError, match="it is empty"):
        open_database(path, create=create)
    assert [each.name for each in path.parent.iterdir()] == ["a.db"]
    assert path.read_bytes() == b""


def test_a_database_is_never_seen_empty_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sizes = tmp_path / "a.db", list[int]()
    move = private_database.move_to_nothing

    def watched(scratch: Path, place: Path) -> bool:
        sizes.append(scratch.stat().st_size)
        assert not path.exists()
        with closing(open_other(path)) as other:  # it is made by another process just now
            other.execute("CREATE TABLE mine (at INTEGER)")
        return move(scratch, place)

    def open_other(place: Path) -> sqlite3.Connection:
        monkeypatch.setattr(private_database, "move_to_nothing", move)
        return open_database(place)

    monkeypatch.setattr(private_database, "move_to_nothing", watched)
    with closing(open_database(path)) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    assert min(sizes) > 0


def test_nothing_else_opens_a_database() -> None:
    root = Path(__file__).parents[3]
    files = (
        path for name in ("caal_node", "mcp_bridge", "n8n") for path in (root / name).rglob("*.py")
    )
    opening = [path.name for path in files if "sqlite3.connect" in path.read_text(encoding="utf-8")]
    assert opening == ["private_database.py"]
