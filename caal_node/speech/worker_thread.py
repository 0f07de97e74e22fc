"""A thread for each speech model: its calls run in turn, and never on the event loop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any, Generic, TypeVar

from caal_node.core.errors import ConfigError

T = TypeVar("T")
Model = TypeVar("Model")
logger = logging.getLogger("caal_node.speech")

# Speech models gain little past this, and the language model needs cores at the same moment.
MAX_THREADS = 4


def speech_threads() -> int:
    """Return how many cores a speech model may use at once."""
    return min(MAX_THREADS, os.cpu_count() or 1)


def keep_silent() -> None:
    """Have ONNX Runtime, on which local speech runs, tell its maker nothing.

    It tells of its use once it is imported. Speech that stays on this machine is why people take
    it; who wants to tell sets the variable to 0.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def import_library(module: str, package: str) -> Any:
    """Import a library of local speech. None has type information, so tests check what is used.

    Raises:
        ConfigError: The extra is not installed.
    """
    keep_silent()
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{package} is not installed; pip install 'caal-node[local-speech]'"
        ) from error


class ModelThread(Generic[Model]):
    """Loads a model once, in a thread of its own, and runs every use of it there."""

    def __init__(self, name: str, load: Callable[[], Model]) -> None:
        self._name = name
        self._load = load
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._model: Model | None = None

    def warm_up(self, use: Callable[[Model], object]) -> Future[None]:
        """Load and use the model once, in the background.

        A failure is logged; the first real use meets it again, and raises it.
        """

        def run() -> None:
            try:
                use(self._get_model())
            except Exception as error:
                logger.warning("%s cannot be warmed up: %s", self._name, error)

        return self._pool.submit(run)

    async def run(self, use: Callable[[Model], T]) -> T:
        """Run `use(model)` in the thread.

        Cancelling returns at once; a use that has begun goes on until it sees its own stop event.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: use(self._get_model()))

    async def aclose(self) -> None:
        """Wait for the use under way, drop those that wait, and end the thread."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)
        self._model = None

    def _get_model(self) -> Model:
        if self._model is None:
            self._model = self._load()
        return self._model
