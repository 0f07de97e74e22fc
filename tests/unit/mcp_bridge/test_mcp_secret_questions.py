"""A server's question that asks for a password, a code or a key is refused; others are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge import Field, Question
from mcp_bridge.core.elicitation import Kind
from mcp_bridge.protocol.elicitation_handler import asks_for_a_secret


def field(kind: Kind = "text", name: str = "answer", title: str = "", about: str = "") -> Field:
    return Field(name, kind, title, about, required=True)


def question(message: str, *fields: Field) -> Question:
    return Question("files", "read", message, fields)


@pytest.mark.parametrize(
    "message",
    [
        "What is your password?",
        "Please enter your PIN.",
        "p a s s w o r d, please",
        "Your pа$$w0rd?",
        "What is the verification code from the SMS?",
        "Say your one-time code.",
        "Wie ist dein Passwort?",
        "¿Cuál es tu contraseña?",
        "Your API-key, please.",
        "What is your card number?",
    ],
)
def test_a_question_for_a_secret_is_seen(message: str) -> None:
    assert asks_for_a_secret(question(message, field()))


@pytest.mark.parametrize("name", ["password", "api_key", "accessToken", "user-pin", "otp", "CVV"])
def test_a_field_for_a_secret_is_seen_by_its_name(name: str) -> None:
    assert asks_for_a_secret(question("One more thing.", field(name=name)))
    assert asks_for_a_secret(question("One more thing.", field(title=name)))
    assert asks_for_a_secret(question("One more thing.", field(about=f"Your {name}")))


def test_one_that_wants_it_said_although_no_field_takes_it_is_seen() -> None:
    assert asks_for_a_secret(question("Please say your password."))


@pytest.mark.parametrize(
    "message",
    [
        "Which room?",
        "Where shall I pin the note?",
        "How many tokens shall I buy?",
        "What is the secretary's name?",
        "What time shall I spin it?",
        "In which city?",
    ],
)
def test_ordinary_questions_are_asked(message: str) -> None:
    assert not asks_for_a_secret(question(message, field()))


@pytest.mark.parametrize("kind", ["boolean", "choice", "choices"])
def test_yes_no_and_choices_may_be_about_one(kind: Kind) -> None:
    assert not asks_for_a_secret(question("Delete the password file?", field(kind)))
    assert not asks_for_a_secret(question("Delete the password file?"))


@given(st.text(), st.text(), st.text())
def test_no_words_break_it(message: str, name: str, title: str) -> None:
    asks_for_a_secret(question(message, field(name=name, title=title)))
