"""Addresses in the values of a call: whether the person said them, and what they take along."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import Final
from urllib.parse import unquote_plus

from caal_node.policy.heard_words import COMMON, plain, stem, stems, words
from caal_node.policy.word_sources import Heard

ADDRESSES_MAX: Final = 8
"""Addresses that are traced: of one value of a call that writes, of all values of one that reads. A
call with more is asked about."""
ADDRESS_CHARS: Final = 1_024
"""Characters of one value in which addresses are looked for. A reader's longer one, if it has a
scheme, is asked about."""
TOLD_WORDS: Final = 32
"""Words of one URL that are looked for in the tools' words."""
WORD_CHARS_MIN: Final = 3
"""Shorter words stand in any text."""

_HOST: Final = r"(?<![\w.-])[\w-]+(?:\.[\w-]+)+"
"""It begins where a word does, as otherwise a long word would be read once from each letter."""
_URL: Final = re.compile(
    rf"\b(?:[a-z][a-z0-9+.-]{{1,9}}://(?P<host>[^\s/?#]+)(?P<rest>\S*)"
    rf"|(?P<bare>{_HOST})(?::\d{{1,5}})?(?P<path>[/?#]\S*))"
)
"""With a scheme, or a host with something behind it, as fetchers take it too."""
_HOSTS: Final = re.compile(_HOST)
_ADDRESS: Final = re.compile(
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*|\+?\d[\d ()/-]{6,40}\d|[a-z]{2}\d{13,32}"
)
"""A mail address, a phone number, an account. Times and dates have no eight digits in a row of
these forms but `2026-03-05`, which are taken out before."""
_MAY_BE_ADDRESS: Final = re.compile(r"[@\d]|://")


def address_unsaid(text: str, heard: Heard) -> str:
    """Say why an address in a value needs a yes: a tool wrote it, or nobody said any of it."""
    if not _MAY_BE_ADDRESS.search(text):
        return ""
    found = chain(_URL.finditer(text), _ADDRESS.finditer(text))
    for number, match in enumerate(found):
        address = match.group()
        if number >= ADDRESSES_MAX:
            return f"has more than {ADDRESSES_MAX} addresses."
        if address in heard.person_text:
            continue
        if heard.is_outside(address):
            return "has an address that stands in a tool's words, and not in the person's."
        if stems(address).isdisjoint(heard.person - COMMON):
            return "has an address that the person did not say."
    return ""


def takes_words_along(values: Iterable[str], heard: Heard) -> bool:
    """Say whether a reader's values hold a URL that tells somebody more than the person said."""
    said, seen = frozenset[str](), 0
    for value in values:
        if len(value) > ADDRESS_CHARS and "://" in value:
            return True
        if "." not in value:
            continue
        for match in _URL.finditer(plain(value[:ADDRESS_CHARS])):
            said = said or frozenset(_HOSTS.findall(heard.person_text))
            seen += 1
            if seen > ADDRESSES_MAX or _tells_more(match, said, heard):
                return True
    return False


def _tells_more(match: re.Match[str], said: frozenset[str], heard: Heard) -> bool:
    """Say whether a URL has words of a tool in it, or leads where only a tool has pointed.

    One that stands in a result as it is tells nobody anything: it is a link that is followed.
    """
    url = match.group()
    user, _, host = (match["host"] or match["bare"]).rpartition("@")
    host = host.partition(":")[0]
    if (host in said and not user) or any(url in each for each in heard.results):
        return False
    # What is in front of the host reaches whoever answers for the name, as the path does.
    whole = unquote_plus(f"{user} {host} {match['rest'] or match['path']}")
    told = [
        word
        for word in map(stem, words(whole))
        if len(word) >= WORD_CHARS_MIN and word not in heard.person and word not in COMMON
    ]
    return heard.is_outside(host) or bool(told and heard.mostly_outside(told[:TOLD_WORDS]))
