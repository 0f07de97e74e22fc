"""Files from the model hub, at their pinned revisions."""

from __future__ import annotations

import os
import threading
from functools import cache

import httpx2

from caal_node.weights.catalogue import WeightFile
from caal_node.weights.sources import CHUNK_BYTES, Sink, SourceFailed

# A machine without a way to the hub should not wait for it; a hub that is there answers in one.
REACH_DEADLINE_S = 5.0
# A stalled transfer is given up after this long without a byte.
STALL_DEADLINE_S = 30.0


class Hub:
    """The hub at `HF_ENDPOINT`, the variable that its own clients read, or the public one."""

    name = "the model hub"

    def __init__(
        self, endpoint: str | None = None, *, reach_deadline_s: float = REACH_DEADLINE_S
    ) -> None:
        chosen = endpoint or os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
        self._endpoint = chosen.rstrip("/")
        self._reach_deadline_s = reach_deadline_s
        self._client = httpx2.Client(
            follow_redirects=True,
            headers={"Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(STALL_DEADLINE_S, connect=reach_deadline_s),
        )

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def carries(self, file: WeightFile) -> bool:
        return file.hub is not None

    def fetch(self, file: WeightFile, sink: Sink) -> None:
        assert file.hub is not None
        url = f"{self._endpoint}/{file.hub.repo}/resolve/{file.hub.revision}/{file.hub.path}"
        if not _answers(self._endpoint, self._reach_deadline_s):
            raise SourceFailed(f"no answer from {self._endpoint}")
        try:
            with self._client.stream("GET", url) as reply:
                if reply.status_code != 200:
                    raise SourceFailed(f"{self._endpoint} answered {reply.status_code}")
                for chunk in reply.iter_raw(CHUNK_BYTES):
                    sink.write(chunk)
        except httpx2.HTTPError as error:
            raise SourceFailed(f"{self._endpoint} failed: {type(error).__name__}") from error


@cache
def _answers(endpoint: str, deadline_s: float) -> bool:
    """Whether anything answers within the deadline, name lookup included. Asked once a process.

    A lookup cannot be given a deadline, so it runs in a thread that is left behind when it is
    late; as a daemon it does not hold up the end of the process.
    """
    answered = threading.Event()
    over = threading.Event()

    def ask() -> None:
        try:
            httpx2.head(endpoint, timeout=deadline_s)
            answered.set()
        except (httpx2.HTTPError, httpx2.InvalidURL):
            pass
        finally:
            over.set()

    threading.Thread(target=ask, name="hub-probe", daemon=True).start()
    over.wait(deadline_s)
    return answered.is_set()
