"""Stand-ins for weights: a small weight, a hub, and wheels."""

from __future__ import annotations

import hashlib
import threading
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from caal_node.weights.fetch import Weight, WeightFile

REVISION = "0123456789abcdef0123456789abcdef01234567"


def weight_file(name: str, content: bytes) -> WeightFile:
    return WeightFile(name, len(content), hashlib.sha256(content).hexdigest())


def weight(*files: WeightFile, entry: str = "") -> Weight:
    return Weight("toy", "Toy", "CC0-1.0", "someone/model", REVISION, files, entry=entry)


def wheel(folder: Path, package: str, members: Mapping[str, bytes]) -> Path:
    """Write a valid wheel of version 1.0; importing it would raise."""
    module = package.replace("-", "_")
    path = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "raise RuntimeError('this was imported')\n")
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


class LoopbackHub:
    """An HTTP server that answers as the hub does: the file's path redirects to its bytes.

    With `endless`, more bytes follow than it announced.
    """

    def __init__(
        self, files: Mapping[str, bytes], *, status: int = 200, endless: bool = False
    ) -> None:
        self.paths: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                name = self.path.rsplit("/", 1)[1]
                self.send_response(status if name else 200)
                self.send_header("X-Repo-Commit", REVISION)
                content = files.get(name, b"")
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()

            def do_GET(self) -> None:
                if self.path.startswith("/api/"):  # the client's list of its own callers
                    self.send_error(404)
                    return
                hub.paths.append(self.path)
                if status != 200:
                    self.send_error(status)
                elif self.path.startswith("/bytes/"):
                    content = files[self.path.removeprefix("/bytes/")]
                    self.send_response(200)
                    if not endless:
                        self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                    with suppress(OSError):
                        while endless:
                            self.wfile.write(bytes(100_000))
                            time.sleep(0.01)
                else:
                    self.send_response(302)
                    self.send_header("Location", f"/bytes/{self.path.rsplit('/', 1)[1]}")
                    self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing: a test's output is its own."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> LoopbackHub:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
