"""The catalogue's entries are complete and consistent."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from caal_node.weights import CATALOGUE, Weight
from caal_node.weights.fetch import WeightFile

FILES = [file for weight in CATALOGUE for file in weight.files]


def name(thing: Weight | WeightFile) -> str:
    return thing.key if isinstance(thing, Weight) else thing.name


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_file_has_a_digest_and_a_plain_name(file: WeightFile) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
    assert PurePosixPath(file.name).name == file.name
    assert file.size > 0


@pytest.mark.parametrize("weight", CATALOGUE, ids=name)
def test_a_weight_on_the_hub_is_pinned_to_a_commit(weight: Weight) -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", weight.hub_revision)
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", weight.hub_repo)


@pytest.mark.parametrize("weight", CATALOGUE, ids=name)
def test_the_entry_is_one_of_the_files(weight: Weight) -> None:
    assert weight.entry == "" or weight.entry in {file.name for file in weight.files}


def test_keys_are_unique_folder_names() -> None:
    keys = [weight.key for weight in CATALOGUE]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[\w.-]+", key) for key in keys)
