"""Where the readers of running text stand while they sleep, and how they catch up."""

from __future__ import annotations

from caal_node.reply_parser.cursor import Cursor
from caal_node.reply_parser.event_buffer import EventBuffer
from caal_node.reply_parser.resting import MAX_HELD_CHARS, Automaton, Mode, Resting, Standing
from caal_node.reply_parser.states import EVERYTHING, Flowing, State
from caal_node.reply_parser.unmarked.text_position import TextPosition


class Standstill:
    """Tells the parser in which state it may go on alone, and the readers what it did."""

    def __init__(
        self,
        source: Cursor,
        voice: EventBuffer,
        place: TextPosition,
        mode: Mode,
        automaton: Automaton,
    ) -> None:
        self._source = source
        self._voice = voice
        self._place = place
        self._mode = mode
        self._automaton = automaton
        self._retried = 0
        self.resting = False
        """Whether nothing is being read for a call."""

    def state(self) -> State:
        """What is to be done with the next characters while the readers sleep."""
        if not self.resting:
            return self._source.waiting
        held = self._source.text[self._source.at :]
        if len(held) > MAX_HELD_CHARS:
            return EVERYTHING
        mode = self._mode
        return self._automaton.state(
            Standing(
                held,
                mode.thinking,
                mode.prompted,
                mode.literal,
                self._voice.standing(),
                self._place.standing(),
            )
        )

    def catch_up(self, state: State, kept: str) -> str:
        """Be as `state` says, in which the parser stands now. kept: what its steps kept.

        Returns:
            What of it the reader that waits has not seen.
        """
        if isinstance(state, Resting):
            standing = state.standing
            self._source.text, self._source.at = standing.held, 0
            self._mode.thinking, self._mode.literal = standing.thinking, standing.literal
            self._voice.stand(standing.voice, kept)
            self._place.stand(standing.place, kept)
            return ""
        if isinstance(state, Flowing):
            self._place.passed(kept)
            self._voice.went_out(kept)
            return ""
        return kept

    def begin(self) -> None:
        """A step begins, of which `certain` and `passed` shall tell."""
        self._place.consulted = False
        self._place.went_by.clear()
        self._retried = self._source.retried

    def certain(self) -> bool:
        """Whether what has happened since `begin` happens always, where all stands as it did."""
        return not self._place.consulted and self._source.retried == self._retried

    def passed(self) -> str:
        """The text that has gone by since `begin`."""
        return "".join(self._place.went_by)
