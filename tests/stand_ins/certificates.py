"""Certificates of this machine's name that nobody has signed, as PEM files."""

from __future__ import annotations

import subprocess
from pathlib import Path

MAKE_S = 20.0


def self_signed(folder: Path, name: str = "page") -> tuple[Path, Path]:
    """Write a certificate for localhost and its key; return both files."""
    certfile, keyfile = folder / f"{name}.pem", folder / f"{name}-key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(keyfile), "-out", str(certfile)),
        ],
        check=True,
        capture_output=True,
        timeout=MAKE_S,
    )
    return certfile, keyfile
