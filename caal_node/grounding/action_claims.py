"""Which clauses of an answer claim that the agent did, does, or will do something.

Questions, offers, conditions, negations, quotes, instructions, reports about others and about an
earlier time claim nothing. "The door is locked" is a claim where the person has asked for it to be
locked, and a report everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from caal_node.grounding.action_words import ANYTHING, LOOK_UP, REQUESTED, ActionWords
from caal_node.grounding.clause_scan import BREAK, ClauseScan
from caal_node.policy.heard_words import COMMON, stem, stems

ClaimKind: TypeAlias = Literal["done", "under_way", "promised"]
READ_CHARS: Final = 400
"""Characters of a clause that are judged, as many as one has at most."""
REQUEST_CHARS: Final = 1_000
"""Characters of a request whose words are looked at: a minute of speech."""
_QUOTED: Final = re.compile(r"\"[^\"]*(?:\"|$)|“[^”]*(?:”|$)|«[^»]*(?:»|$)|„[^“”]*(?:[“”]|$)")
_MARKS: Final = str.maketrans({"’": "'", "‘": "'", "*": None, "`": None, "_": " "})
_ANSWER_WORDS: Final = 5
"""Words of an answer to "which one?". What is longer asks for something itself."""
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_SPACES: Final = re.compile(r"\s+")
_ASKS_AGENT: Final = re.compile(r"^\w+(?:n't)? you\b")
_HESITATES: Final = re.compile(r"^(?:(?:u+h+|u+m+|e+r+|hey)\b[,. ]*)+")
_PART_END: Final = re.compile(r"[,;.!?]")
_FILLERS: Final = re.compile(
    r"\b(?:u+h+|u+m+|e+r+|just|please|then|and|so|well|okay|ok|actually)\b"
)
_OBJECT: Final = re.compile(r" (?:it|them|that|this|those|these|the|my|our|all|both|everything)\b")
_JOINT_CHARS: Final = 80
"""Characters before a verb in which a joint stands, with what people put behind it."""


@dataclass(frozen=True, slots=True)
class ActionClaim:
    """One claim of a clause."""

    action: str
    """The name of the action in the file of words."""
    kind: ClaimKind
    text: str
    """The part of the clause that it stands in, in lower case."""
    by_agent: bool = True
    """False: it says how things are now ("it is off"), or what was done, and not by whom."""


@dataclass(frozen=True, slots=True)
class RequestKind:
    """What a person's words ask for, as far as a claim's meaning depends on it."""

    actions: frozenset[str]
    is_question: bool
    """It asks how things are, and for nothing to be changed."""
    assents: bool
    """It agrees to what was said before, or goes on from it."""
    wants_text: bool
    """It asks for a text: a poem, a story, a translation."""
    stems: frozenset[str] = frozenset()
    """Stems of its words, which may be verbs that no list has."""

    def commands(self, action: str, words: ActionWords) -> bool:
        """Say whether it asks for `action`, or for one that people use the same words for."""
        if self.is_question:
            return False
        if action in (ANYTHING, REQUESTED):
            return not self.wants_text
        return self.assents or bool(self.actions & words.related[action])


def plain(clause: str) -> str:
    """Return a clause in lower case, on one line, without marks and quotes."""
    text = clause[:READ_CHARS].translate(_MARKS)
    return _SPACES.sub(" ", _QUOTED.sub(" ", text)).strip().lower()


@lru_cache(64)
def request_kind(request: str, words: ActionWords) -> RequestKind:
    """Read a person's words."""
    frames, verbs = words.frames, words.verbs
    text = _HESITATES.sub("", plain(request[:REQUEST_CHARS]))
    actions = {m.lastgroup or "" for p in (verbs.base, verbs.asks) for m in p.finditer(text)}
    is_question = bool(frames["questions"].match(text)) and not frames["asks_politely"].match(text)
    is_question = is_question and not _orders_behind(text, words)
    return RequestKind(
        frozenset(actions),
        is_question,
        bool(frames["assents"].match(text)) or _answers(text, is_question, actions, words),
        bool(frames["texts"].search(text)) and not actions - {"add", "open"},
        frozenset(word for word in stems(text) - COMMON if len(word) > 2 and not word.isdecimal()),
    )


def _orders_behind(text: str, words: ActionWords) -> bool:
    """Say whether a question ends in an order: "did I leave it open, um, just lock it".

    What is asked of the agent itself may go on with more of it: "did you lock the door, turn off
    the lights".
    """
    if _ASKS_AGENT.match(text) is not None:
        return False
    for match in words.verbs.base.finditer(text):
        part = _PART_END.split(text[: match.start()])
        if len(part) == 1 or _FILLERS.sub("", part[-1]).strip():
            continue
        if " " in match[0] or _OBJECT.match(text, match.end()):
            return True
    return False


def _answers(text: str, is_question: bool, actions: set[str], words: ActionWords) -> bool:
    """Say whether a request is a short answer, such as "the one in the kitchen"."""
    if is_question or actions or not text or words.frames["small_talk"].search(text):
        return False
    return text.count(" ") < _ANSWER_WORDS and not text.endswith("?")


def claims_in(
    clause: str, request: RequestKind, words: ActionWords, before: ClaimKind | None = None
) -> list[ActionClaim]:
    """Return the claims of one clause in their order; `before` is the kind of the clause in front
    of it in the same sentence, whose subject may be this one's, too."""
    text = plain(clause)
    if text.endswith("?"):
        head, _, tag = text[:-1].rpartition(",")
        if not (head and words.frames["tags"].search(tag)):
            return []
        text = head
    found = sorted(_Reader(text, request, words, before).claims(), key=lambda pair: pair[0])
    return _with_their_parts(text, found)


def is_conditional(clause: str, words: ActionWords) -> bool:
    """Say whether a clause begins a sentence whose rest depends on it."""
    match = words.frames["conditions"].search(plain(clause))
    return match is not None and match.start() < 24


class _Reader:
    """Finds the verbs of one clause, and judges each by what stands around it."""

    def __init__(
        self, text: str, request: RequestKind, words: ActionWords, before: ClaimKind | None
    ) -> None:
        self._text, self._request, self._words = text, request, words
        self._frames = words.frames
        self._before = before
        self._scan = ClauseScan(text, words)

    def claims(self) -> Iterator[tuple[tuple[int, int], ActionClaim]]:
        """Give the claims with where their words stand."""
        text, verbs, frames = self._text, self._words.verbs, self._frames
        for match in frames["done"].finditer(text):
            if not self._is_open(match.start(), "done") and not self._request.wants_text:
                yield match.span(), ActionClaim(ANYTHING, "done", "")
        for match in frames["promised"].finditer(text):
            if not self._is_open(match.end(), "promised"):
                yield match.span(), ActionClaim(ANYTHING, "promised", "")
        for match in self._actions(self._scan.past_verbs):
            yield from self._past(match, match.lastgroup or "")
        for match in self._actions(self._scan.ing_verbs):
            yield from self._ing(match, match.lastgroup or "")
        for match in self._actions(self._scan.base_verbs):
            yield from self._base(match, match.lastgroup or "")
        yield from self._own_verbs()
        for match in verbs.states.finditer(text):
            yield from self._state(match, match.lastgroup or "")
        for action, phrase in verbs.phrases.items():
            for match in phrase.finditer(text):
                yield from self._state(match, action, is_phrase=True)

    def _actions(self, verbs: Iterable[re.Match[str]]) -> Iterator[re.Match[str]]:
        for match in verbs:
            if not self._frames["no_actions"].match(self._text, match.start()):
                yield match

    def _own_verbs(self) -> Iterator[tuple[tuple[int, int], ActionClaim]]:
        """Give the claims whose verb no list has, and the person has used."""
        if not self._request.stems or not self._request.commands(REQUESTED, self._words):
            return
        irregular = self._words.irregular
        used = [
            match
            for match in _WORD.finditer(self._text)
            if stem(irregular.get(match[0], match[0])) in self._request.stems
        ]
        if not used:
            return
        verbs = (*self._scan.past_verbs, *self._scan.ing_verbs, *self._scan.base_verbs)
        known = [match.span() for match in verbs]
        for match in used:
            if any(begin <= match.start() < end for begin, end in known):
                continue
            is_cut = stem(match[0]) != match[0]
            if match[0] in irregular or (is_cut and match[0].endswith("ed")):
                yield from self._past(match, REQUESTED)
            elif is_cut and match[0].endswith("ing"):
                yield from self._ing(match, REQUESTED)
            else:
                yield from self._base(match, REQUESTED)

    def _past(
        self, match: re.Match[str], action: str
    ) -> Iterator[tuple[tuple[int, int], ActionClaim]]:
        left = self._text[: match.start()]
        right = self._text[match.end() :]
        if frame := self._frames["i_have"].search(left):
            if self._reports_now(frame.start(), "done") and not self._is_text(action):
                yield match.span(), ActionClaim(action, "done", "")
        elif self._frames["is_been"].search(left) or (
            action in ("start", "stop", "open") and self._frames["started"].search(left)
        ):
            if self._commanded(action) and self._is_fact(left, right):
                yield match.span(), ActionClaim(action, "done", "", by_agent=False)
        elif frame := self._frames["got_it_done"].search(left):
            if self._commanded(action) and self._reports_now(frame.start(), "done"):
                yield match.span(), ActionClaim(action, "done", "")
        elif self._is_joined(left) and left and self._goes_on("done", left):
            yield match.span(), ActionClaim(action, "done", "")
        elif self._frames["lead"].search(left) or (
            self._frames["noun"].search(left)
            and self._frames["follows"].search(right)
            and not self._frames["not_participles"].match(match[0])
        ):
            said = action != LOOK_UP and self._commanded(action)
            if said and self._is_fact(left, right):
                yield match.span(), ActionClaim(action, "done", "", by_agent=False)

    def _ing(
        self, match: re.Match[str], action: str
    ) -> Iterator[tuple[tuple[int, int], ActionClaim]]:
        left = self._text[: match.start()]
        right = self._text[match.end() :]
        if frame := self._frames["i_am"].search(left):
            if self._reports_now(frame.start(), "under_way"):
                yield match.span(), ActionClaim(action, "under_way", "")
        elif self._frames["is"].search(left):
            if self._commanded(action) and self._is_fact(left, right):
                yield match.span(), ActionClaim(action, "under_way", "", by_agent=False)
        elif self._frames["lead"].search(left) or self._is_joined(left):
            asked = action == LOOK_UP or self._commanded(action)
            if (
                asked
                and not self._is_open(len(left), "under_way")
                and not (self._frames["finite"].search(right))
            ):
                yield match.span(), ActionClaim(action, "under_way", "")

    def _base(
        self, match: re.Match[str], action: str
    ) -> Iterator[tuple[tuple[int, int], ActionClaim]]:
        left = self._text[: match.start()]
        if frame := self._frames["i_will"].search(left):
            if not self._is_open(frame.start(), "promised", action) and not self._is_text(action):
                yield match.span(), ActionClaim(action, "promised", "")
        elif frame := self._frames["i_managed"].search(left):
            if self._reports_now(frame.start(), "done"):
                yield match.span(), ActionClaim(action, "done", "")
        elif left and self._is_joined(left):
            goes_on = self._goes_on("promised", left)
            if goes_on and not self._is_open(len(left), "promised", action):
                yield match.span(), ActionClaim(action, "promised", "")

    def _state(
        self, match: re.Match[str], action: str, *, is_phrase: bool = False
    ) -> Iterator[tuple[tuple[int, int], ActionClaim]]:
        left, right = self._text[: match.start()], self._text[match.end() :]
        framed = is_phrase or self._frames["is"].search(left)
        if not framed and self._frames["noun"].search(left):
            framed = self._frames["follows_state"].search(right) is not None
        if framed and self._commanded(action) and self._is_fact(left, right):
            yield match.span(), ActionClaim(action, "done", "", by_agent=False)

    def _is_joined(self, left: str) -> bool:
        """Say whether what stands before a verb joins it to an earlier one."""
        return self._frames["joined"].search(left, max(0, len(left) - _JOINT_CHARS)) is not None

    def _commanded(self, action: str) -> bool:
        """Say whether the person has asked for `action`, or for the opposite of it."""
        names = {action, *self._words.opposites.get(action, ())}
        return any(self._request.commands(name, self._words) for name in names)

    def _is_text(self, action: str) -> bool:
        """Say whether the verb may tell of the text that was asked for."""
        return self._request.wants_text and action not in self._request.actions

    def _goes_on(self, kind: Literal["done", "promised"], left: str) -> bool:
        """Say whether an earlier verb of the sentence has the agent as its subject."""
        if self._before == kind and self._frames["lead"].search(left):
            return True
        if kind == "promised":
            subject = self._frames["i_will_at_all"].search(left.rstrip())
            return subject is not None and not self._is_open(subject.start(), kind)
        subjects = (
            self._frames["i_have"].search(left[: verb.start()])
            for verb in self._scan.past_verbs
            if verb.start() < len(left)
        )
        return any(found and self._reports_now(found.start(), kind) for found in subjects)

    def _reports_now(self, subject: int, kind: ClaimKind) -> bool:
        """Say whether a clause whose "I" stands at `subject` tells of this turn."""
        left = self._text[:subject].rstrip()
        if self._frames["relatives"].search(left) and not self._frames["reports"].search(left):
            return False
        if kind == "done" and self._scan.is_past:
            return False
        return not self._is_open(subject, kind)

    def _is_open(self, at: int, kind: ClaimKind, action: str = "") -> bool:
        """Say whether what stands before `at` denies the clause, or makes it depend on something;
        for a promise, what comes after it as well."""
        left = self._text[:at]
        if self._scan.condition_ends <= at:
            return True
        may_depend = kind == "promised" and action != "notify"
        if may_depend and self._frames["depends"].search(self._text[at:]):
            return True
        return bool(self._frames["negatives"].search(left[self._scan.part_begins(at) :]))

    def _is_fact(self, left: str, right: str) -> bool:
        """Say whether a clause without "I" tells that something is so now, and by nobody else."""
        nearest = self._scan.part_begins(len(left))
        return not (
            self._scan.condition_ends <= len(left)
            or self._frames["instructions"].search(left)
            or self._frames["negatives"].search(left[nearest:])
            or self._frames["by_others"].search(right)
            or self._scan.is_past
        )


def _with_their_parts(
    text: str, found: list[tuple[tuple[int, int], ActionClaim]]
) -> list[ActionClaim]:
    """Give each claim the part of the clause that is its own: up to the joint with the next one."""
    claims: list[ActionClaim] = []
    begin = 0
    for number, ((_, end), claim) in enumerate(found):
        until = len(text)
        if number + 1 < len(found):
            following = found[number + 1][0][0]
            if following < end:  # two readings of the same words
                until = max(end, following)
            else:
                joints = [m.start() for m in BREAK.finditer(text, end, following)]
                until = joints[-1] if joints else following
        claims.append(ActionClaim(claim.action, claim.kind, text[begin:until], claim.by_agent))
        begin = begin if number + 1 < len(found) and found[number + 1][0][0] < end else until
    return claims
