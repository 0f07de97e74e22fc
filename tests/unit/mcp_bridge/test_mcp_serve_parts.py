"""The bridge's decisions: what it is started with, who is let in, what a message is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.datastructures import Headers

from mcp_bridge import ConfigError
from mcp_bridge.protocol.inbound_filter import find_request_id
from mcp_bridge.protocol.messages import read_lines
from mcp_bridge.serve import ServeLimits, ServeOptions, TlsFiles
from mcp_bridge.serve.bridge import AccessControl, ConnectionQuota, QuotaExceeded
from mcp_bridge.serve.cli import main, systemd_unit
from mcp_bridge.serve.options import Token, find_token
from mcp_bridge.serve.relay import (
    MessageKind,
    PendingCalls,
    TooManyCalls,
    parse_kind,
    scan_kind,
)

TOKEN = "a-token-" + "0123456789abcdef"
TLS = TlsFiles(Path("cert.pem"))
IDS = st.one_of(st.integers(), st.text(max_size=20))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def complaint(**options: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        ServeOptions(("server",), **options).check()
    return str(refused.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.4", "bridge.example.com"])  # noqa: S104
def test_other_machines_are_served_with_token_and_tls_only(host: str) -> None:
    token = Token(TOKEN)
    assert "needs a token (--token-file) and TLS (--tls-cert)" in complaint(host=host)
    assert "needs TLS (--tls-cert); or say --insecure" in complaint(host=host, token=token)
    assert "needs a token (--token-file);" in complaint(host=host, tls=TLS)
    ServeOptions(("server",), host=host, token=token, tls=TLS).check()
    ServeOptions(("server",), host=host, insecure=True).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_this_machine_is_served_without(host: str) -> None:
    ServeOptions(("server",), host=host).check()


def test_slips_of_the_pen_are_told() -> None:
    with pytest.raises(ConfigError, match="no command; write it behind --"):
        ServeOptions(()).check()
    for origin in ("example.com", "https://example.com/"):
        assert "write scheme and host" in complaint(allow_origins=frozenset({origin}))
    for host in ("example.com:80", "https://example.com"):
        assert "write the name alone" in complaint(allow_hosts=frozenset({host}))


def test_a_stall_is_told_before_the_ping_that_it_delays_is_missed() -> None:
    assert ServeLimits().stall_s < ServeLimits().ping_timeout_s


@given(st.text(max_size=80))
def test_a_token_fits_itself_alone(given_token: str) -> None:
    assert Token(TOKEN).matches(given_token) == (given_token == TOKEN)
    assert Token(given_token).matches(given_token)


def test_the_token_comes_from_its_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    found = find_token(file, {"MCP_BRIDGE_TOKEN": "another-" + TOKEN})
    assert found is not None
    assert found.matches(TOKEN)
    assert TOKEN not in repr(found)
    assert find_token(None, {}) is None
    from_variable = find_token(None, {"MCP_BRIDGE_TOKEN": TOKEN})
    assert from_variable is not None
    assert from_variable.matches(TOKEN)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    with pytest.raises(ConfigError, match=r"every user of this machine can open it; run: chmod o="):
        find_token(file, {})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", "shorter than 16 characters; make one with: openssl rand -hex 32"),
        (b"sh0rt", "shorter than 16"),
        (b"two words in one token", "one word of plain characters"),
        ("Grüße-Grüße-Grüße".encode(), "one word"),
        (b"\xff" * 20, "is no text"),
        (None, "No such file or directory; fix its path"),
    ],
)
def test_a_bad_token_is_told_without_showing_it(
    tmp_path: Path, written: bytes | None, said: str
) -> None:
    file = tmp_path / "token"
    if written is not None:
        file.write_bytes(written)
        file.chmod(0o600)
    with pytest.raises(ConfigError) as refused:
        find_token(file, {})
    assert said in str(refused.value)
    assert written != "short" or "short" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "arrived_at", "status"),
    [
        ("127.0.0.1:80", "127.0.0.1", None),
        ("localhost", "127.0.0.1", None),
        ("a.localhost:9", "::1", None),
        ("[::1]:80", "::1", None),
        ("10.0.0.5", "10.0.0.5", None),
        ("10.0.0.5:8890", "::ffff:10.0.0.5", None),
        ("[fe80::1]", "fe80::1%eth0", None),
        ("Tools.example.com:8890", "10.0.0.5", None),
        ("evil.example.com", "127.0.0.1", 421),
        ("tools.example.com.evil.com", "127.0.0.1", 421),
        ("localhost", "10.0.0.5", 421),
        ("10.0.0.6", "10.0.0.5", 421),
        ("", "127.0.0.1", 421),
        ("[", "127.0.0.1", 421),
    ],
)
def test_a_host_is_a_known_name_or_the_address_itself(
    host: str, arrived_at: str, status: int | None
) -> None:
    options = ServeOptions(("server",), allow_hosts=frozenset({"tools.example.com"}))
    refused = AccessControl(options).host(Headers({"Host": host}), arrived_at)
    assert (refused.status if refused else None) == status


def test_none_or_two_of_a_header_are_refused() -> None:
    admission = AccessControl(ServeOptions(("server",), token=Token(TOKEN)))
    twice = Headers([("Host", "localhost"), ("Host", "localhost")])
    for headers in (Headers(), twice):
        assert (refused := admission.host(headers, "127.0.0.1")) is not None
        assert refused.status == 400
    bearer = ("Authorization", f"Bearer {TOKEN}")
    assert admission.client(Headers([bearer])) is None
    assert admission.client(Headers([bearer, bearer])) is not None


@given(
    st.fixed_dictionaries(
        {}, optional={"id": IDS, "method": st.text(), "params": JSON, "result": JSON, "x": JSON}
    )
)
def test_both_ways_of_reading_a_message_agree(message: dict[str, Any]) -> None:
    text = json.dumps(message).encode()
    assert scan_kind(b" \n" + text) == parse_kind(text)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_what_is_no_message_raises_value_error_alone(text: bytes) -> None:
    for reading in (parse_kind, scan_kind):
        with contextlib.suppress(ValueError):
            assert isinstance(reading(text), MessageKind)


def test_what_a_message_is() -> None:
    def seen(**message: Any) -> MessageKind:
        return parse_kind(json.dumps(message).encode())

    assert seen(id=1, method="tools/call") == MessageKind(asks=1)
    assert seen(id="a", result={}) == MessageKind(answers="a")
    assert seen(id=2, error={}) == MessageKind(answers=2)
    assert seen(method="notifications/progress") == MessageKind()
    assert seen(method="notifications/cancelled", params={"requestId": 4}) == MessageKind(cancels=4)
    assert seen(method="notifications/cancelled", params=[1]) == MessageKind()
    # It stays open for as long as somebody listens: no drain waits for it.
    assert seen(id=3, method="subscriptions/listen") == MessageKind()
    for bad in (b"[]", b"null", b"", b'{"id": "' + b"x" * 200 + b'"}'):
        with pytest.raises(ValueError, match=r"."):
            parse_kind(bad)


@given(st.lists(st.tuples(st.sampled_from(["asks", "answers", "cancels"]), st.integers(0, 5))))
def test_calls_are_under_way_until_they_are_answered_or_given_up(
    steps: list[tuple[str, int]],
) -> None:
    calls, under_way = PendingCalls(3), set[int]()
    for kind, call in steps:
        if kind == "answers":
            calls.received(MessageKind(answers=call))
            under_way.discard(call)
        elif kind == "cancels":
            calls.sent(MessageKind(cancels=call))
            under_way.discard(call)
        elif len(under_way) == 3:
            with pytest.raises(TooManyCalls):
                calls.sent(MessageKind(asks=call))
        else:
            calls.sent(MessageKind(asks=call))
            under_way.add(call)
        assert len(calls) == len(under_way)
        assert calls.none.is_set() == (not under_way)


def test_connections_are_given_back_whatever_happens() -> None:
    quota = ConnectionQuota(2, 1)
    with quota.reserve("a"):
        with (
            pytest.raises(QuotaExceeded, match="1 connections of yours are open"),
            quota.reserve("a"),
        ):
            pass
        with pytest.raises(RuntimeError), quota.reserve("b"):
            raise RuntimeError
        with (
            quota.reserve("b"),
            pytest.raises(QuotaExceeded, match="all 2 connections are in use"),
            quota.reserve("c"),
        ):
            pass
    assert len(quota) == 0


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
async def test_lines_are_the_same_however_they_arrive_and_long_ones_are_counted(
    chunks: list[bytes], cap: int
) -> None:
    stream = asyncio.StreamReader()
    for chunk in chunks:
        stream.feed_data(chunk)
    stream.feed_eof()
    expected = b"".join(chunks).split(b"\n")[:-1]
    found = [line async for line in read_lines(stream, cap)]
    assert [line.size for line in found] == [len(line) for line in expected]
    assert [line.too_long for line in found] == [len(line) > cap for line in expected]
    assert all(
        line.content() == text
        for line, text in zip(found, expected, strict=True)
        if len(text) <= cap
    )


async def test_the_id_of_a_line_that_is_too_long_is_found_at_either_end() -> None:
    body = b'"result": {"x": "' + b"x" * 10_000 + b'"}'
    for line, expected in (
        (b'{"jsonrpc": "2.0", "id": 7, ' + body + b"}", b"7"),
        (b'{"id":"a-7",' + body + b"}", b'"a-7"'),
        (b'{"jsonrpc": "2.0", ' + body + b', "id": 8}', b"8"),
        (b'{"jsonrpc": "2.0", ' + body + b"}", None),
    ):
        stream = asyncio.StreamReader()
        stream.feed_data(line + b"\n")
        stream.feed_eof()
        assert [find_request_id(*read.ends()) async for read in read_lines(stream, 100)] == [
            expected
        ]


def test_the_unit_starts_this_program() -> None:
    text = systemd_unit("/opt/my tools/bin/mcp-bridge")
    assert 'ExecStart="/opt/my tools/bin/mcp-bridge" serve --token-file %d/token' in text
    for line in ("DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict"):
        assert line in text.splitlines()
    text = systemd_unit("/opt/bin/caal-node", ["mcp"])
    assert "ExecStart=/opt/bin/caal-node mcp serve --token-file %d/token" in text
    assert "#   caal-node mcp unit | sudo tee" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--host", "0.0.0.0", "--", "x"], "needs a token (--token-file) and TLS"),  # noqa: S104
        (["serve", "--tls-key", "k.pem", "x"], "--tls-key goes with --tls-cert; give both"),
        (["serve", "--tls-cert", "none.pem", "x"], "No such file or directory; fix their paths"),
        (["serve", "--token-file", "none", "x"], "--token-file none: No such file or directory"),
        (["serve", "--env", "NOT_SET_ANYWHERE", "x"], "write NOT_SET_ANYWHERE=VALUE"),
        (["serve", "--allow-host", "http://x", "x"], "write the name alone"),
    ],
)
def test_what_the_command_line_refuses_is_one_line(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mcp-bridge", *words])
    monkeypatch.delenv("MCP_BRIDGE_TOKEN", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert told.startswith("mcp-bridge: ")
    assert said in told
    assert told.count("\n") == 1


def test_the_unit_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mcp-bridge", "unit"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "\nExecStart=/" in capsys.readouterr().out
