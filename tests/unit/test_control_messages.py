"""A control request is taken only with a signature for its body and its room."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from livekit import api

from caal_node.control.reports import (
    ControlRequest,
    ModelReport,
    ModelRequest,
    ReloadReport,
    ReloadRequest,
)
from caal_node.control.rpc import (
    CallDone,
    CallFailed,
    CallRunning,
    NotGenuine,
    read_answer,
    seal,
    unseal,
    write_answer,
)

KEY, SECRET = "key", "a secret of more than thirty-two bytes"
VERIFIER = api.TokenVerifier(KEY, SECRET)
REQUEST = ReloadRequest("1", "get_weather", "There is a new tool.")


def sealed(secret: str = SECRET, room: str = "kitchen") -> dict[str, Any]:
    return json.loads(seal(REQUEST, room=room, api_key=KEY, api_secret=secret))


def opened(envelope: dict[str, Any]) -> ControlRequest:
    return unseal(json.dumps(envelope), room="kitchen", verifier=VERIFIER)


def test_a_sealed_request_is_read_back() -> None:
    assert opened(sealed()) == REQUEST


@pytest.mark.parametrize(
    "request_",
    [ModelRequest("1", "m"), ModelRequest("1", "m", "openai", "http://127.0.0.1:8080/v1")],
)
def test_a_request_for_another_model_is_read_back(request_: ModelRequest) -> None:
    text = seal(request_, room="kitchen", api_key=KEY, api_secret=SECRET)
    assert unseal(text, room="kitchen", verifier=VERIFIER) == request_


def test_the_answer_about_a_model_and_a_reason_are_read_back() -> None:
    for answer in (CallDone(ModelReport("m", "ollama")), CallFailed("error", "it is not there")):
        assert read_answer(write_answer(answer)) == answer


def test_a_changed_body_is_refused() -> None:
    envelope = sealed()
    envelope["body"] = envelope["body"].replace("new tool", "bad tool")
    with pytest.raises(NotGenuine, match="another body"):
        opened(envelope)


def test_a_request_for_another_room_is_refused() -> None:
    with pytest.raises(NotGenuine, match="another room"):
        opened(sealed(room="cellar"))


def test_another_secret_is_refused() -> None:
    with pytest.raises(NotGenuine):
        opened(sealed("another secret of thirty-two bytes"))


def test_a_participants_own_token_signs_nothing() -> None:
    grants = api.VideoGrants(room_join=True, room="kitchen")
    token = api.AccessToken(KEY, SECRET).with_identity("mallory").with_grants(grants).to_jwt()
    with pytest.raises(NotGenuine):
        opened(sealed() | {"token": token})


def test_a_room_admins_token_that_holds_no_digest_signs_nothing() -> None:
    grants = api.VideoGrants(room_admin=True, room="kitchen")
    token = api.AccessToken(KEY, SECRET).with_grants(grants).to_jwt()
    with pytest.raises(NotGenuine, match="another body"):
        opened(sealed() | {"token": token})


def test_an_old_signature_is_refused() -> None:
    envelope = sealed()
    claims = jwt.decode(envelope["token"], options={"verify_signature": False})
    claims["exp"] = int(time.time()) - 3600
    with pytest.raises(NotGenuine, match="Expired"):
        opened(envelope | {"token": jwt.encode(claims, SECRET, "HS256")})


def test_an_oversized_request_is_refused_before_it_is_read() -> None:
    with pytest.raises(NotGenuine, match="too long"):
        unseal("x" * 16_000, room="kitchen", verifier=VERIFIER)


def test_without_a_secret_every_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIVEKIT_API_KEY", raising=False)
    monkeypatch.delenv("LIVEKIT_API_SECRET", raising=False)
    with pytest.raises(NotGenuine):
        unseal(json.dumps(sealed()), room="kitchen", verifier=api.TokenVerifier())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)


@given(st.text(max_size=200) | json_values.map(json.dumps))
def test_any_other_text_is_refused(payload: str) -> None:
    with pytest.raises(NotGenuine):
        unseal(payload, room="kitchen", verifier=VERIFIER)


@given(json_values, json_values)
def test_any_other_envelope_is_refused(token: object, body: object) -> None:
    with pytest.raises(NotGenuine):
        unseal(json.dumps({"token": token, "body": body})[:8000], room="kitchen", verifier=VERIFIER)


@pytest.mark.parametrize(
    "answer",
    [
        CallRunning(),
        CallDone(ReloadReport(2, added=("a",))),
        CallFailed("timeout"),
        CallFailed("busy"),
    ],
)
def test_an_answer_is_read_back(answer: CallRunning | CallDone | CallFailed) -> None:
    assert read_answer(write_answer(answer)) == answer


@given(st.text(max_size=100) | json_values.map(json.dumps))
def test_any_other_answer_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- json's own message, or ours
        read_answer(text)
