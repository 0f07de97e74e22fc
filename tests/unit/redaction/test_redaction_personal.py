"""Personal data and folders: what is found, what is left alone, and which patterns are refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caal_node.config.settings import load_settings
from caal_node.core.errors import ConfigError
from caal_node.redaction.outgoing import OutgoingRedaction, find_paths, personal_finders
from caal_node.redaction.settings import MAX_TRIES, RedactionSettings, owner_pattern

ALL = RedactionSettings(personal=("email", "phone", "iban", "card"))


def told(text: str, settings: RedactionSettings = ALL) -> str:
    return OutgoingRedaction(settings).text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mail ann.b+x@mail.example.co.uk.", "Mail [email]."),
        ("<ann@example.org>, bob@example.org", "<[email]>, [email]"),
        ("Call +47 22 33 44 55 or 0170/1234567!", "Call [phone] or [phone]!"),
        ("(030) 123456-7, 555-123-4567", "[phone], [phone]"),
        ("To DE89 3704 0044 0532 0130 00 IN EUR", "To [iban] IN EUR"),
        ("GB82WEST12345698765432", "[iban]"),
        ("4111 1111 1111 1111 or 5500-0000-0000-0004", "[card] or [card]"),
    ],
)
def test_personal_data_is_found(text: str, expected: str) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "On 01.02.2026 at 12:30 it was 0.1234567 by 192.168.100.200:8080.",
        "2026-11-23T12:26:32 took 1764000000 ms, order 12345678.",
        "4111 1111 1111 1112 and DE89 3704 0044 are no such numbers.",
        "Write @ann or a@b, and 3 x 5 @ 7.",
    ],
)
def test_other_numbers_and_signs_stay(text: str) -> None:
    assert told(text, RedactionSettings(personal=("email", "iban", "card", "phone"))) == text


def test_only_the_kinds_that_are_switched_on_are_found() -> None:
    text = "ann@example.org, +47 22 33 44 55"
    assert told(text, RedactionSettings()) == text
    assert told(text, RedactionSettings(personal=("email",))) == "[email], +47 22 33 44 55"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/notes/a.txt", "~/notes/a.txt"),
        ("/Users/ann", "~"),
        ("open /srv/x/report.pdf, please. /srv/y/b.", "open report.pdf, please. b."),
        ("file:/root/.ssh/id_rsa", "file:~/.ssh/id_rsa"),
        (r"C:\Users\ann\a.txt", r"~\a.txt"),
        ("C:\\\\data\\\\b.txt", "b.txt"),
        ("https://host/home/x/y", "https://host/home/x/y"),
        ("POST /api/tools/call and /etc", "POST /api/tools/call and /etc"),
    ],
)
def test_of_a_path_its_own_part_is_shown(text: str, shown: str) -> None:
    assert told(text, RedactionSettings(paths=True)) == shown
    assert told(text, RedactionSettings()) == text


def test_an_owners_pattern_finds_whole_words_the_longest_first() -> None:
    settings = RedactionSettings(patterns={"customer": r"KD-\d{3,6}", "sister": "Anna|Anna Lee"})
    text = "KD-123456, KD-1 and XKD-1234 of Anna Lee; Annabel"
    assert told(text, settings) == "[customer], KD-1 and XKD-1234 of [sister]; Annabel"


@given(st.text(alphabet="ab1 -", max_size=80))
def test_a_pattern_finds_nothing_that_it_does_not_match(text: str) -> None:
    pattern = owner_pattern(r"a{1,3}-\d")
    for start, end in pattern.find(text):
        assert pattern.is_all(text[start:end])


@given(st.text(max_size=200))
def test_finds_come_in_order_and_lie_within_the_text(text: str) -> None:
    for _, find in personal_finders(ALL):
        spans = list(find(text))
        assert spans == sorted(spans)
        assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(0 <= start < end <= len(text) for start, end, _ in find_paths(text))


def test_a_text_made_against_a_pattern_costs_no_more_than_its_bound() -> None:
    pattern = owner_pattern(r"(a| )+b")
    began = time.thread_time()
    spans = list(pattern.find("a " * 20_000 + "b"))
    assert time.thread_time() - began < 0.5
    assert spans[-1][1] == 40_001, "what is not looked through counts as found"
    assert len(spans) < MAX_TRIES


@pytest.mark.parametrize("kind", ["a@", "1 ", "AA00 ", "C:\\", "/etc/a", "@a.", "+1", "(0"])
def test_a_text_made_to_take_long_takes_the_time_of_its_length(kind: str) -> None:
    settings = RedactionSettings(personal=ALL.personal, paths=True)

    def took(chars: int) -> float:
        times: list[float] = []
        for _ in range(3):
            began = time.thread_time()
            told((kind * chars)[:chars], settings)
            times.append(time.thread_time() - began)
        return min(times)

    assert took(32_000) < 30 * took(4_000) + 0.02


WRONG = (
    ('personal = ["emial"]', "line 2, redaction, personal.0", "write 'email', 'phone'"),
    ('personl = ["email"]', "line 2, redaction, personl", "the keys are personal, patterns, paths"),
    ('paths = "perhaps"', "line 2, redaction, paths", "write on or off"),
    ('patterns = {a = "(?=x)"}', "line 2, redaction, patterns.a", "bounded time"),
    ('patterns = {a = "x*"}', "line 2, redaction, patterns.a", "at least one character"),
    ('patterns = {a = "(x"}', "line 2, redaction, patterns.a", "bounded time"),
    ('patterns = {"A b" = "x"}', "line 2, redaction, patterns", "small letters"),
    ('patterns = {email = "x"}', "line 2, redaction, patterns", "none of card"),
)


@pytest.mark.parametrize(("line", "place", "fix"), WRONG)
def test_a_wrong_line_is_told_with_its_place_and_fix(
    line: str, place: str, fix: str, tmp_path: Path
) -> None:
    path = tmp_path / "caal.toml"
    path.write_text(f"[redaction]\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_settings({}, path)
    assert f"{path}, {place}" in str(raised.value)
    assert fix in str(raised.value)


def test_a_pattern_in_a_table_of_its_own_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "caal.toml"
    path.write_text("[redaction.patterns]\nfine = 'x'\nbad = '(?!x)'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"line 3, redaction, patterns\.bad: this is no pattern"):
        load_settings({}, path)


def test_the_environment_takes_the_table_as_json() -> None:
    given_json = '{"personal": ["email"], "paths": true}'
    settings = load_settings({"CAAL_REDACTION": given_json}, Path("no-such-caal.toml"))
    assert settings.redaction == RedactionSettings(personal=("email",), paths=True)
    with pytest.raises(ConfigError, match=r"CAAL_REDACTION.* write a JSON object"):
        load_settings({"CAAL_REDACTION": "email"}, Path("no-such-caal.toml"))
