"""Webhook credentials as people configure them."""

from __future__ import annotations

import jwt
import pytest

from n8n import BasicAuth, HeaderAuth, JwtAuth, JwtSecretAuth, N8nError, read_credentials

SECRET = "a passphrase " * 6


def test_each_kind_is_read_and_variables_are_filled_in() -> None:
    read = read_credentials(
        {
            "/lights/": {"header": "X-Key", "value": "${LIGHTS}-1"},
            "ledger": {"user": "u", "password": "p"},
            "doors": {"token": "t"},
            "vault": {"jwt_secret": SECRET, "algorithm": "HS512"},
        },
        {"LIGHTS": "abc"},
    )
    assert read == {
        "lights": HeaderAuth("X-Key", "abc-1"),
        "ledger": BasicAuth("u", "p"),
        "doors": JwtAuth("t"),
        "vault": JwtSecretAuth(SECRET, "HS512"),
    }


def test_a_signed_token_is_good_for_a_minute_and_shows_no_secret() -> None:
    auth = JwtSecretAuth(SECRET)
    scheme, _, token = auth.headers()["Authorization"].partition(" ")
    claims = jwt.decode(token, SECRET, ["HS256"])
    assert (scheme, claims["exp"] - claims["iat"]) == ("Bearer", 60)
    assert SECRET not in repr(auth)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"headr": "X", "value": "s3cret"}, "write {header, value}"),
        ({"header": "X Key", "value": "s3cret"}, "no name of an HTTP header"),
        ({"header": "X", "value": "s3cret\n"}, "line break"),
        ({"token": "${NOT_THERE}"}, "the variable NOT_THERE is not set"),
        ({"jwt_secret": "s3cret", "algorithm": "none"}, "write an algorithm of HS256"),
        ({}, "write {header, value}"),
    ],
)
def test_a_wrong_entry_is_named_and_its_secret_is_not(told: dict[str, str], words: str) -> None:
    with pytest.raises(N8nError, match="n8n_auth, lights: ") as caught:
        read_credentials({"lights": told}, {})
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)
