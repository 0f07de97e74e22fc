"""The line behind a person's words that says them again, with what they mean in its place.

Small models follow a whole sentence: "book a table at Il Forno" is called rightly where a line that
explains "the second one" is passed over. The names in it are a tool's words, so it is one JSON
text, of limited length, in which they are no sentence of their own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from caal_node.core.prompt_files import fill
from caal_node.grounding.reference_words import REQUEST_CHARS, ReferenceWords, languages, tokens
from caal_node.grounding.references import Reference

NAMES_MAX: Final = 12
"""Names that one reference is replaced by. A longer list is read in the result itself."""


def reference_hint(request: str, references: Sequence[Reference]) -> str:
    """Return the line that says `request` again; "" where nothing of it can be said otherwise."""
    said, at = "", 0
    for reference in references:
        begin = request.find(reference.words, max(at, reference.begin))
        if begin < 0 or not 0 < len(reference.names) <= NAMES_MAX:
            continue
        behind = begin + len(reference.words)
        said += request[at:begin] + _in_place(reference, request[:begin], request[behind:])
        at = behind
    if not said:
        return ""
    whole = said + request[at : max(at, REQUEST_CHARS)]
    return fill("reference_hint.md", request=json.dumps(whole, ensure_ascii=False))


def _in_place(reference: Reference, before: str, behind: str) -> str:
    """Return the names in the form of the words that they stand for: "their" is "Sevilla's"."""
    words = languages()[0]
    *first, last = reference.names
    names = f"{', '.join(first)} {words.form('and')} {last}" if first else last
    said = reference.words.casefold()
    if said in words("there"):
        return words.form("to" if _last_word(before) in words("going") else "in", names)
    if _is_owner(said, behind, words):
        return words.form("of", names)
    return names


def _is_owner(said: str, behind: str, words: ReferenceWords) -> bool:
    """Whether a pronoun stands in front of what belongs to somebody: "her number"."""
    following = tokens(behind)[:1]
    if said in words("owners"):
        return True
    is_noun = bool(following) and not following[0].is_mark
    return said in words("her") and is_noun and following[0].word not in words("no_noun_after_her")


def _last_word(text: str) -> str:
    return next((token.word for token in reversed(tokens(text))), "")
