"""The weights that can be fetched: their files on the model hub, their digests and licences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file of a weight. `size` is in bytes, and `sha256` in lower-case hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Weight:
    """A model's files at a pinned revision of the hub."""

    key: str
    """The name of its folder in the cache."""
    title: str
    licence: str
    """An SPDX identifier."""
    hub_repo: str
    hub_revision: str
    """A commit."""
    files: tuple[WeightFile, ...]
    hub_folder: str = ""
    entry: str = ""
    """The file that a loader is given; empty where it is given the folder."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


def _qwen_coder(billions: str, revision: str, size: int, sha256: str) -> Weight:
    """Return a Qwen2.5-Coder of so many billion parameters, with the digest as the hub has it."""
    key = f"qwen2.5-coder-{billions}b-instruct-q4_k_m"
    return Weight(
        key=key,
        title=f"Qwen2.5-Coder {billions}B Instruct, Q4_K_M",
        licence="Apache-2.0",
        hub_repo=f"Qwen/Qwen2.5-Coder-{billions}B-Instruct-GGUF",
        hub_revision=revision,
        files=(WeightFile(f"{key}.gguf", size, sha256),),
        entry=f"{key}.gguf",
    )


QWEN_CODER_05B = _qwen_coder(
    "0.5",
    revision="ebb2015119c907b064c512bf053e945850b5875f",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
)

# It takes four times the work of the 0.5B, and is fetched only when asked for.
QWEN_CODER_15B = _qwen_coder(
    "1.5",
    revision="38f6bab61d341b23a6c00226f32c0d6148bf9f43",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
)

WHISPER_TINY_EN = Weight(
    key="faster-whisper-tiny.en",
    title="Whisper tiny.en for CTranslate2",
    licence="MIT",
    hub_repo="Systran/faster-whisper-tiny.en",
    hub_revision="0d3d19a32d3338f10357c0889762bd8d64bbdeba",
    files=(
        WeightFile(
            "model.bin",
            75_537_502,
            "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        ),
        WeightFile(
            "config.json",
            2_317,
            "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        ),
        WeightFile(
            "tokenizer.json",
            2_128_466,
            "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        ),
        WeightFile(
            "vocabulary.txt",
            422_309,
            "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
        ),
    ),
)

# The voice's model card gives CC0 for the recordings it was trained on.
PIPER_JOE = Weight(
    key="piper-en_US-joe-medium",
    title="Piper voice en_US joe, medium",
    licence="CC0-1.0",
    entry="en_US-joe-medium.onnx",
    hub_repo="rhasspy/piper-voices",
    hub_revision="c10ece1aade47bb51c153c893d14e5bf8e5b7117",
    hub_folder="en/en_US/joe/medium/",
    files=(
        WeightFile(
            "en_US-joe-medium.onnx",
            63_201_294,
            "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        ),
        WeightFile(
            "en_US-joe-medium.onnx.json",
            4_794,
            "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        ),
    ),
)

# Digests as the hub publishes them.
MINILM = Weight(
    key="all-minilm-l6-v2",
    title="all-MiniLM-L6-v2, sentence embedding",
    licence="Apache-2.0",
    hub_repo="sentence-transformers/all-MiniLM-L6-v2",
    hub_revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    files=(
        WeightFile(
            "model.safetensors",
            90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        WeightFile(
            "tokenizer.json",
            466_247,
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    ),
)

CATALOGUE = (QWEN_CODER_05B, QWEN_CODER_15B, WHISPER_TINY_EN, PIPER_JOE, MINILM)
