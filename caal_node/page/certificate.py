"""The certificate with which the page is served over https."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from caal_node.core.errors import ConfigError

CERTFILE: Final = "--ssl-certfile"
KEYFILE: Final = "--ssl-keyfile"
MAX_BYTES: Final = 1 << 20
"""Bytes of a PEM file; a chain of certificates has ten thousand."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files: the certificate with its chain, and its key where that is in another file."""

    certfile: Path
    keyfile: Path | None = None

    def require(self) -> None:
        """Raises: ConfigError: the files cannot be read, or do not fit."""
        keyfile = self.keyfile or self.certfile
        if b"-----BEGIN CERTIFICATE-----" not in _read(self.certfile, CERTFILE):
            raise ConfigError(f"{self.certfile}: no certificate; give {CERTFILE} a PEM file")
        if b"PRIVATE KEY-----" not in _read(keyfile, KEYFILE):
            raise ConfigError(f"{keyfile}: no private key; give {KEYFILE} a PEM file")

        def refuse() -> NoReturn:
            raise ConfigError(
                f"{keyfile}: the key has a passphrase; write one without it: "
                f"openssl pkey -in {keyfile} -out key.pem"
            )

        try:
            # As uvicorn does, which would ask for a passphrase at the terminal.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certfile, keyfile, password=refuse)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise ConfigError(
                    f"{keyfile}: not the key of {self.certfile}; give both files of one certificate"
                ) from error
            raise ConfigError(
                f"{self.certfile}, {keyfile}: cannot be used ({error.reason or error}); "
                "make them again"
            ) from error


def _read(path: Path, option: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES)
    except OSError as error:
        why = str(error.strerror or error).lower()
        raise ConfigError(f"{path}: {why}; give {option} a file that you may read") from error
