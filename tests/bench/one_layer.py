"""The first layer of a model's weights as a model of its own: the same tokens, in a fraction of
the time.

What an engine evaluates of a prompt is decided by its tokenizer, its chat template and its cache,
none of which looks at the layers. So where replies are scripted anyhow, one layer counts the same
as twenty-four. Its context is longer than the whole model's, which llama.cpp holds to what it was
trained on: how many tokens a prompt of five hundred schemas has is counted all the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from gguf import GGUFReader, GGUFValueType, GGUFWriter

CONTEXT_TOKENS: Final = 1 << 18
_LAYER: Final = re.compile(r"blk\.(\d+)\.")


def write_one_layer(source: Path, target: Path) -> None:
    """Copy `source`, a GGUF file, less all of its layers but the first, with a longer context."""
    reader = GGUFReader(source)
    architecture = str(reader.fields["general.architecture"].contents())
    writer = GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue  # the writer's own
        changed = {
            f"{architecture}.block_count": 1,
            f"{architecture}.context_length": CONTEXT_TOKENS,
        }
        value = changed.get(name, field.contents())
        kind, *inner = field.types
        writer.add_key_value(name, value, kind, inner[-1] if kind == GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        layer = _LAYER.match(tensor.name)
        if layer is None or layer[1] == "0":
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
