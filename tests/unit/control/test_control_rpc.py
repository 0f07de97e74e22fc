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

from caal_node.control.rpc import (
    RPC_ANSWER,
    AnswerChunk,
    FetchChunk,
    NotGenuine,
    RequestFailed,
    RpcAnswer,
    RpcRequest,
    SendChunk,
    StillRunning,
    sign_request,
    verify_request,
)

KEY, SECRET = "key", "a secret of more than thirty-two bytes"
VERIFIER = api.TokenVerifier(KEY, SECRET)
REQUEST = SendChunk(id="1", number=0, of=1, data="a new tool")


def signed(secret: str = SECRET, room: str = "kitchen") -> dict[str, Any]:
    return json.loads(sign_request(REQUEST, room=room, api_key=KEY, api_secret=secret))


def verified(envelope: dict[str, Any]) -> RpcRequest:
    return verify_request(json.dumps(envelope), room="kitchen", verifier=VERIFIER)


def test_a_signed_request_is_read_back() -> None:
    assert verified(signed()) == REQUEST
    fetch = FetchChunk(id="1", number=3)
    text = sign_request(fetch, room="kitchen", api_key=KEY, api_secret=SECRET)
    assert verify_request(text, room="kitchen", verifier=VERIFIER) == fetch


def test_a_request_of_another_version_is_refused() -> None:
    class OtherVersion(FetchChunk):
        more: str = "x"

    request = OtherVersion(id="1", number=0)
    text = sign_request(request, room="kitchen", api_key=KEY, api_secret=SECRET)
    with pytest.raises(NotGenuine, match="another version"):
        verify_request(text, room="kitchen", verifier=VERIFIER)


def test_a_changed_body_is_refused() -> None:
    envelope = signed()
    envelope["body"] = envelope["body"].replace("new tool", "bad tool")
    with pytest.raises(NotGenuine, match="another body"):
        verified(envelope)


def test_a_request_for_another_room_is_refused() -> None:
    with pytest.raises(NotGenuine, match="another room"):
        verified(signed(room="cellar"))


def test_another_secret_is_refused() -> None:
    with pytest.raises(NotGenuine):
        verified(signed("another secret of thirty-two bytes"))


def test_a_participants_own_token_signs_nothing() -> None:
    grants = api.VideoGrants(room_join=True, room="kitchen")
    token = api.AccessToken(KEY, SECRET).with_identity("mallory").with_grants(grants).to_jwt()
    with pytest.raises(NotGenuine):
        verified(signed() | {"token": token})


def test_a_room_admins_token_that_holds_no_digest_signs_nothing() -> None:
    grants = api.VideoGrants(room_admin=True, room="kitchen")
    token = api.AccessToken(KEY, SECRET).with_grants(grants).to_jwt()
    with pytest.raises(NotGenuine, match="another body"):
        verified(signed() | {"token": token})


def test_an_old_signature_is_refused() -> None:
    envelope = signed()
    claims = jwt.decode(envelope["token"], options={"verify_signature": False})
    claims["exp"] = int(time.time()) - 3600
    with pytest.raises(NotGenuine, match="Expired"):
        verified(envelope | {"token": jwt.encode(claims, SECRET, "HS256")})


def test_an_oversized_request_is_refused_before_it_is_read() -> None:
    with pytest.raises(NotGenuine, match="too long"):
        verify_request("x" * 16_000, room="kitchen", verifier=VERIFIER)


def test_without_a_secret_every_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIVEKIT_API_KEY", raising=False)
    monkeypatch.delenv("LIVEKIT_API_SECRET", raising=False)
    with pytest.raises(NotGenuine):
        verify_request(json.dumps(signed()), room="kitchen", verifier=api.TokenVerifier())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)


@given(st.text(max_size=200) | json_values.map(json.dumps))
def test_any_other_text_is_refused(payload: str) -> None:
    with pytest.raises(NotGenuine):
        verify_request(payload, room="kitchen", verifier=VERIFIER)


@given(json_values, json_values)
def test_any_other_envelope_is_refused(token: object, body: object) -> None:
    with pytest.raises(NotGenuine):
        verify_request(
            json.dumps({"token": token, "body": body})[:8000], room="kitchen", verifier=VERIFIER
        )


@pytest.mark.parametrize(
    "answer",
    [
        StillRunning(),
        AnswerChunk(number=1, of=2, data="x"),
        RequestFailed(reason="timeout"),
        RequestFailed(reason="error", detail="it is not there"),
    ],
)
def test_an_answer_is_read_back(answer: RpcAnswer) -> None:
    assert RPC_ANSWER.validate_json(answer.model_dump_json()) == answer


@given(st.text(max_size=100) | json_values.map(json.dumps))
def test_any_other_answer_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- json's own message, or ours
        RPC_ANSWER.validate_json(text)
