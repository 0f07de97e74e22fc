"""Hides PortAudio, PulseAudio and Ollama, so that the tests run as on a machine without them.

Run: PYTHONPATH=tests/bare make test. Every Python process whose path begins with this folder
imports it first, those that a test starts among them.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
from typing import Any

PROGRAMS = ("ollama", "pulseaudio", "pactl", "pacat", "parec")
LIBRARIES = ("portaudio", "libportaudio.dylib")

_which, _find_library = shutil.which, ctypes.util.find_library


def which(command: Any, *arguments: Any, **options: Any) -> Any:
    return None if command in PROGRAMS else _which(command, *arguments, **options)


def find_library(name: str) -> str | None:
    return None if name in LIBRARIES else _find_library(name)


shutil.which, ctypes.util.find_library = which, find_library
os.environ["TESTS_WITHOUT_OLLAMA"] = "1"
