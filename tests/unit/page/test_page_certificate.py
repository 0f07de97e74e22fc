"""A certificate for the page is checked before anything starts, and says what is wrong with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from caal_node.core.errors import ConfigError
from caal_node.page.certificate import Certificate
from tests.stand_ins.certificates import MAKE_S, self_signed


def test_a_certificate_and_its_key_fit_in_two_files_and_in_one(tmp_path: Path) -> None:
    certfile, keyfile = self_signed(tmp_path)
    Certificate(certfile, keyfile).require()
    both = tmp_path / "both.pem"
    both.write_bytes(certfile.read_bytes() + keyfile.read_bytes())
    Certificate(both).require()


def test_what_is_wrong_names_the_file_and_the_fix(tmp_path: Path) -> None:
    certfile, keyfile = self_signed(tmp_path)
    _, other_key = self_signed(tmp_path, "other")
    missing = tmp_path / "missing.pem"
    text = tmp_path / "text.pem"
    text.write_text("no certificate", "utf-8")
    broken = tmp_path / "broken.pem"
    broken.write_text(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", encoding="utf-8"
    )
    for given, says in (
        (Certificate(missing, keyfile), f"{missing}: no such file or directory; give --ssl-certf"),
        (Certificate(certfile, missing), f"{missing}: no such file or directory; give --ssl-keyf"),
        (Certificate(tmp_path, keyfile), f"{tmp_path}: is a directory; give --ssl-certfile"),
        (Certificate(text, keyfile), f"{text}: no certificate; give --ssl-certfile a PEM file"),
        (Certificate(certfile), f"{certfile}: no private key; give --ssl-keyfile a PEM file"),
        (Certificate(certfile, other_key), f"{other_key}: not the key of {certfile}; give both"),
        (Certificate(broken, keyfile), f"{broken}, {keyfile}: cannot be used"),
    ):
        with pytest.raises(ConfigError) as refused:
            given.require()
        assert str(refused.value).startswith(says)


def test_a_key_with_a_passphrase_asks_nobody_for_it(tmp_path: Path) -> None:
    certfile, keyfile = self_signed(tmp_path)
    locked = tmp_path / "locked.pem"
    subprocess.run(
        [
            *("openssl", "pkey", "-in", str(keyfile), "-out", str(locked)),
            *("-aes256", "-passout", "pass:secret"),
        ],
        check=True,
        capture_output=True,
        timeout=MAKE_S,
    )
    with pytest.raises(ConfigError, match="passphrase; write one without it: openssl pkey -in"):
        Certificate(certfile, locked).require()
