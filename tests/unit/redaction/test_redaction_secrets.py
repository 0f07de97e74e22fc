"""Secrets that nobody here knows by value, found by their shape; ordinary text stays as it is."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from caal_node.redaction.secret_shapes import (
    PEM_CHARS,
    StreamRedaction,
    called_secret,
    without_keys,
    without_secrets,
)
from mcp_bridge.core import sanitize

# Made of parts, so that no scanner takes this file for a leak.
DIGITS = "a1B2c3D4e5F6g7H8i9J0"
JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0In0", "s5Wq-x_9" * 4))
PEM = "\n".join(("-----BEGIN RSA PRIVATE KEY-----", "MIIEow" * 9, "-----END RSA PRIVATE KEY-----"))
KEYS = (
    "AKIA" + "IOSFODNN7EXAMPLE",
    *(prefix + DIGITS * 2 for prefix in ("ghp_", "ghs_", "github_pat_", "glpat-", "xoxb-")),
    *(prefix + DIGITS * 2 for prefix in ("sk-", "sk-ant-api03-", "sk-proj-", "npm_", "hf_")),
    "sk_live_" + DIGITS,
    "AIza" + DIGITS + DIGITS[:15],
    "ya29." + DIGITS * 2,
    "SG." + DIGITS + "." + DIGITS * 2,
    JWT,
    PEM,
)
ORDINARY = (
    "The Basic plan costs 12 euros, and a bearer of bad news is 12 years old.",
    "Ask for the password: it is forgotten, the token: Tuesday, the secret: none.",
    "password=*** api_key=${KEY} token=null secret: required",
    "See https://user@host/path, http://host:8080/a@b and mailto:ann@example.org.",
    "task-sk-4 ghp_short eyJ.a.b AKIA SG.1.2 risk-averse-and-quite-long-words-here",
    '{"nextPageToken": "CAUQAA1234567", "max_tokens": 4096, "id": "ord_8f14e45fceea167a"}',
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("form", ["{}", "key={};", "<{}>", '{{"key": "{}"}}', "({}, and more)"])
def test_a_key_is_found_wherever_it_stands(key: str, form: str) -> None:
    told = without_keys(form.format(key))
    assert key not in told
    assert told.startswith(form.partition("{}")[0].replace("{{", "{"))


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_found_in_json_within_json(key: str) -> None:
    inner = json.dumps({"said": key})
    told = without_keys(json.dumps({"body": inner}))
    assert not any(part in told for part in key.split("\n"))


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("postgres://app:hunter2@db/main", "postgres://app:***@db/main"),
        (f"Authorization: Bearer {DIGITS}", "Authorization: Bearer ***"),
        (f"'authorization': 'Basic {DIGITS}'", "'authorization': 'Basic ***'"),
        (f"Authorization: {DIGITS}", "Authorization: ***"),
        (f"sent Bearer {DIGITS}, refused", "sent Bearer ***, refused"),
        (
            "https://hooks.slack.com/services/T0001/B0001/".replace("0001", "00000001") + DIGITS,
            "https://hooks.slack.com/services/***",
        ),
    ],
)
def test_only_the_secret_part_is_taken_out(text: str, told: str) -> None:
    assert without_keys(text) == told


def test_a_private_key_goes_as_a_whole_and_what_follows_it_stays() -> None:
    assert without_keys(f"before\n{PEM}\nafter\n{PEM}") == "before\n***\nafter\n***"
    cut = without_keys(f"before {PEM[:80]}")
    assert cut == "before ***"
    endless = f"-----BEGIN PRIVATE KEY-----{'A' * (2 * PEM_CHARS)}"
    assert len(without_keys(endless)) < PEM_CHARS + 10


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("password=hunter", "password=***"),
        ('"wifi_password": "hunter"', '"wifi_password": "***"'),
        ("PASSWORD: hunter2", "PASSWORD: ***"),
        (r"{\"api_key\": \"abcd1234\"}", r"{\"api_key\": \"***\"}"),
        ("--access-token abcd1234", "--access-token abcd1234"),
        ("?access_token=abcd1234&page=2", "?access_token=***&page=2"),
    ],
)
def test_what_somebody_calls_a_secret_is_taken_out_of_logs(text: str, told: str) -> None:
    assert without_secrets(text) == told
    assert without_keys(text) == text


def test_a_value_under_a_name_is_judged_as_in_text() -> None:
    assert called_secret("wifiPassword", "hunter")
    assert called_secret("X-Api-Key", "abcd1234")
    assert not called_secret("nextPageToken", "abcd1234")
    assert not called_secret("tokens", "abcd1234")
    assert not called_secret("token", "none")


@given(st.text(max_size=300), st.sampled_from(KEYS), st.text(max_size=300))
@example("İ" * 40, "Bearer " + DIGITS, "")  # the one letter whose small form is two
def test_no_surroundings_hide_a_key(before: str, key: str, after: str) -> None:
    assert key not in without_keys(f"{before} {key} {after}")


@given(st.text(alphabet=st.sampled_from('sk-gheyJ_AKIA.:/@="\\ \nbB1a'), max_size=400))
def test_what_was_redacted_stays_as_it_is(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once


@pytest.mark.parametrize(
    "part",
    ["sk-", "sk-a1", "ghp_", "eyJaaaaaaaaaa.", "://a:", "Bearer ", "authorization: ", "password: ",
     "-----BEGIN ", "SG.aaaaaaaaaaaaaaaa", "xoxb-", "AIza", "token=", "İBearer "],
)  # fmt: skip
def test_a_text_made_to_take_long_takes_the_time_of_its_length(part: str) -> None:
    def took(chars: int) -> float:
        text = (part * chars)[:chars]
        times: list[float] = []
        for _ in range(3):
            began = time.thread_time()
            without_secrets(text)
            times.append(time.thread_time() - began)
        return min(times)

    # Eight times the text: 64 times the time, were it quadratic.
    assert took(48_000) < 30 * took(6_000) + 0.01


@given(
    st.lists(st.integers(1, 40), min_size=1),
    st.lists(st.sampled_from((*KEYS, "and", "12", "of\nit", "(that", "is)")), max_size=12),
)
@example([2, 5, 2, 5], ["key:", PEM])
@example([3], [PEM, PEM, "12", "13"])
def test_a_stream_is_redacted_however_it_is_cut(cuts: list[int], words: list[str]) -> None:
    text = " ".join(["This", *words, "was all."])
    redaction, told, at = StreamRedaction(without_keys), "", 0
    for size in itertools.cycle(cuts):
        told += redaction.feed(text[at : at + size])
        at += size
        if at >= len(text):
            break
    assert told + redaction.finish() == without_keys(text)


def test_a_stream_keeps_back_no_more_than_a_word() -> None:
    redaction = StreamRedaction(without_keys)
    assert redaction.feed("It is sun") == "It is "
    assert redaction.feed("ny in Oslo.") == "sunny in "
    assert redaction.finish() == "Oslo."


def test_a_number_in_groups_is_redacted_as_one() -> None:
    redaction = StreamRedaction(lambda text: text.replace("+47 22 33 44", "[phone]"))
    said = [redaction.feed(piece) for piece in ("Call +47", " 22 33", " 44 now", " or ", "never")]
    assert said == ["Call ", "", "", "[phone] now or ", ""]
    assert redaction.finish() == "never"


def test_the_mark_is_the_one_that_the_bridge_uses() -> None:
    assert without_keys(KEYS[0]) == sanitize.REDACTED
