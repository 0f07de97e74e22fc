"""Whose file it is, where a server may be, and what was accepted."""

from __future__ import annotations

import dataclasses
import os
import stat
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.config.settings import load_settings
from caal_node.core.errors import ConfigError as SettingsError
from mcp_bridge import ConfigError, Pins, ServerConfig, load_servers
from mcp_bridge.core.tools import ToolDefinition
from mcp_bridge.security import ownership
from mcp_bridge.security.addresses import is_loopback, plain_text, same_origin
from mcp_bridge.security.ownership import fault, writers

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows keeps no owner and mode like these")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp servers.json"
    path.write_text('{"a": {"command": "x"}}')
    path.chmod(0o600)
    return path


@POSIX
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o664, 0o777])
def test_a_file_that_others_may_write_is_refused_with_its_mend(
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
    assert "read it, then accept it (tools --accept files__read)" in found.held["read"]
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


def test_new_tools_are_trusted_and_old_pins_outlive_their_tools(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    other = ToolDefinition("write", "Writes.", {})
    assert pinned(tmp_path, other).vet(CONFIG, [other]).offered == (other,)
    assert pinned(tmp_path).vet(CONFIG, [changed(description="back again")]).held


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


def test_a_damaged_file_holds_everything_and_is_not_written_over(tmp_path: Path) -> None:
    pinned(tmp_path, READ)
    (file,) = tmp_path.glob("*.json")
    file.write_text('{"version": 1')
    pins = pinned(tmp_path, READ)
    assert f"remove {file}" in pins.vet(CONFIG, [READ]).held["read"]
    assert file.read_text() == '{"version": 1'


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
    assert f"move {tmp_path / 'state'} away" in said
    assert "remove" not in said


def test_a_folder_that_cannot_be_written_costs_the_memory_alone(tmp_path: Path) -> None:
    (tmp_path / "pins").write_text("no folder")
    pins = Pins(tmp_path / "pins")
    pins.read([CONFIG])
    assert pins.vet(CONFIG, [READ]).held, "nobody can say what was accepted there"
    pins.write()
