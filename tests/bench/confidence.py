"""How far a call's confidence can be taken at its word: fits its weights, and draws its curve.

Run: `python -m tests.bench.confidence --ollama URL MODEL [MODEL ...] [--fit] [--draw FILE.svg]`.
Each request of `spoken_requests` is asked once, with every call believed, and each call counts as
right where the request wants exactly it. `--fit` writes `prompts/call_confidence.toml` by the calls
of the tuning requests, those of `needless_calls` too; the table and the curve are always of the
measured and held-out ones. Replies are kept in `--folder`, so that what reads them can be changed
without asking again; without `--ollama` nothing is asked at all.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from caal_node.context.prompt_tools import PromptTools
from caal_node.core.errors import ModelError, ModelUnreachable
from caal_node.core.items import SystemItem, UserItem
from caal_node.core.prompt_files import read
from caal_node.grounding.confidence import CallSignals, confidence_of, features_of, sigmoid
from caal_node.models.backends.base import Backend, BackendRequest, Capabilities, Chunk, ReplyDone
from caal_node.models.backends.http_transport import TransportDeadlines
from caal_node.models.backends.ollama import OllamaBackend
from caal_node.models.call_confidence import CallConfidence
from caal_node.models.question import Question
from caal_node.models.strategies import JsonReplyStrategy
from caal_node.models.strategies.base import ReplyReader
from caal_node.models.strategies.evidence import Evidence
from caal_node.reply_parser import ToolCallEnd
from tests.bench.needless_calls import part
from tests.bench.recorded_replies import RecordedBackend
from tests.bench.spoken_requests import Requests, Spoken, is_right, load
from tests.bench.table import print_table

TABLE: Final = Path(__file__).parents[2] / "prompts" / "call_confidence.toml"
PATIENT: Final = TransportDeadlines(first=3_600.0, between=300.0, whole=3_600.0)
REPLY_TOKENS: Final = 200
RIDGE: Final = 0.5
"""Weight of the squared weights in the fit: with some sixty calls it keeps them small."""
BINS: Final = 5
STEPS: Final = 200
"""Steps of the fit, each of which halves what is left of the error or more."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that a real model made, and whether it was right."""

    request: Spoken
    call: ToolCallEnd
    signals: CallSignals
    right: bool


class NoServer:
    """Stands for a model of which only the replies are there that are kept."""

    address = "nowhere"

    def __init__(self, model: str) -> None:
        self.model = model

    async def capabilities(self) -> Capabilities:
        return Capabilities()

    async def ask(self, request: BackendRequest) -> AsyncGenerator[Chunk]:
        raise ModelUnreachable("no reply to this request is kept")
        yield

    async def aclose(self) -> None: ...


def server(url: str | None, model: str) -> Backend:
    if url is None:
        return NoServer(model)
    return OllamaBackend(model, host=url, temperature=0.0, deadlines=PATIENT)


async def made_calls(
    backend: Backend, requests: Requests, at_once: int, *, all_calls: bool = False
) -> list[MadeCall]:
    """Ask every request, some at once, so that the server reads what they share but once.

    `all_calls` takes also those which the node leaves out as needless.
    """
    tools = PromptTools(requests.tools, requests.examples)
    head = SystemItem(read("system.md"))
    room = asyncio.Semaphore(at_once)

    async def made(request: Spoken) -> list[MadeCall]:
        question = Question(
            (head, UserItem(request.say)), tools, stream=False, max_tokens=REPLY_TOKENS
        )
        async with room:
            try:
                found = await _calls_of(backend, question, all_calls=all_calls)
            except ModelError:
                return []
        return [
            MadeCall(request, call, signals, is_right(request, (call.name, call.arguments)))
            for call, signals in found
        ]

    found = await asyncio.gather(*map(made, requests.requests))
    return [each for calls in found for each in calls]


async def _calls_of(
    backend: Backend, question: Question, *, all_calls: bool
) -> list[tuple[ToolCallEnd, CallSignals]]:
    strategy = JsonReplyStrategy()
    reader, judge = strategy.reader(question), CallConfidence(question)
    if all_calls:
        reader = ReplyReader(question, in_thinking=False)
    found: list[tuple[ToolCallEnd, CallSignals]] = []
    async with aclosing(backend.ask(strategy.request(question))) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, ReplyDone):
                continue
            judge.see(chunk)
            for event in reader.feed(chunk):
                if not isinstance(event, ToolCallEnd):
                    continue
                call = _as_said(question, event) if all_calls else event
                if call is not None:
                    found.append((call, judge.signals(call)))
    return found


def _as_said(question: Question, call: ToolCallEnd) -> ToolCallEnd | None:
    """Return the call with what was said of it, as the node makes it; None if too little was."""
    schema = next(t for t in question.tools.schemas if t["function"]["name"] == call.name)
    examples = question.tools.examples.get(call.name, ())
    judged = Evidence(question.items).judge(schema, call.arguments, examples)
    return None if judged.unsaid else replace(call, arguments=judged.arguments)


def tuning_sets() -> tuple[Requests, ...]:
    return load("tuning"), part("tuning").requests


def measured_sets() -> tuple[Requests, ...]:
    return load("measured"), part("held_out").requests


def without_odds(signals: CallSignals) -> CallSignals:
    return replace(signals, odds=None, name=None, value=None)


def fit(calls: Sequence[MadeCall], made: Sequence[MadeCall]) -> dict[str, dict[str, float]]:
    """Return both tables. No signal weighs less than nothing, as each speaks for a call.

    The signals' weights are of all `calls`, also of those that the node leaves out as needless. The
    bias is of those that it has `made`, as they are the ones that are told of.
    """
    tables: dict[str, dict[str, float]] = {}
    for name, seen in (("with_odds", _as_it_is), ("without_odds", without_odds)):
        rows = [features_of(seen(each.signals)) for each in calls]
        names = list(rows[0])
        matrix = np.array([[row[one] for one in names] for row in rows])
        right = np.array([float(each.right) for each in calls])
        weights = np.zeros(len(names))
        ridge = np.full(len(names), RIDGE)
        ridge[names.index("bias")] = 0.01
        for _ in range(STEPS):
            likely = 1 / (1 + np.exp(-matrix @ weights))
            slope = matrix.T @ (likely - right) + ridge * weights
            spread = matrix.T @ (matrix * (likely * (1 - likely))[:, None]) + np.diag(ridge)
            weights = weights - 0.5 * np.linalg.solve(spread, slope)
            signed = [0.0 if one != "bias" else -math.inf for one in names]
            weights = np.maximum(weights, signed)
        table = dict(zip(names, map(float, weights), strict=True))
        tables[name] = {**table, "bias": _bias(table, [(seen(e.signals), e.right) for e in made])}
    return tables


def _bias(table: Mapping[str, float], calls: Sequence[tuple[CallSignals, bool]]) -> float:
    """Return the bias at which the mean confidence of `calls` is the share of right ones."""
    rows = [features_of(signals) for signals, _ in calls]
    rest = [sum(table[one] * row[one] for one in row if one != "bias") for row in rows]
    share = sum(right for _, right in calls)
    low, high = -20.0, 20.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if sum(sigmoid(middle + x) for x in rest) < share else (low, middle)
        )
    return low


def _as_it_is(signals: CallSignals) -> CallSignals:
    return signals


_HEAD: Final = """\
# How much each signal says of a call being right, as weights of a logistic model
# (caal_node/grounding/confidence.py), fitted by `python -m tests.bench.confidence --fit` on {calls}
# calls. `with_odds` holds where the server tells the odds of its tokens, `without_odds` not."""


def write(tables: Mapping[str, Mapping[str, float]], calls: int) -> None:
    lines = [_HEAD.format(calls=calls)]
    for name, weights in tables.items():
        lines += ["", f"[{name}]", *(f"{one} = {value:.2f}" for one, value in weights.items())]
    TABLE.write_text("\n".join(lines) + "\n", "utf-8")


@dataclass(frozen=True, slots=True)
class Curve:
    """How often calls of a confidence were right, and what it is worth as a whole."""

    name: str
    points: tuple[tuple[float, float, int], ...]
    """The mean confidence of each part of the calls, the share that was right, and their number."""
    brier: float
    """Mean squared difference of probability and truth; 0.25 is a coin's."""
    error: float
    """Mean difference of confidence and share, weighted by the calls (ECE)."""
    area: float
    """How often a right call has the higher confidence of a right and a wrong one (AUC)."""


def curve_of(name: str, judged: Sequence[tuple[float, bool]]) -> Curve:
    ranked = sorted(judged)
    parts: list[list[tuple[float, bool]]] = [[]]
    for each in ranked:
        # Calls of one confidence stay together: which of them is in which part would be chance.
        if len(parts[-1]) >= len(ranked) / BINS and parts[-1][-1][0] < each[0]:
            parts.append([])
        parts[-1].append(each)
    points = tuple(
        (fmean(p for p, _ in part), fmean(r for _, r in part), len(part)) for part in parts
    )
    error = sum(abs(x - y) * count for x, y, count in points) / max(1, len(ranked))
    brier = sum((p - right) ** 2 for p, right in ranked) / max(1, len(ranked))
    good = [p for p, right in ranked if right]
    bad = [p for p, right in ranked if not right]
    pairs = [1.0 if g > b else 0.5 if g == b else 0.0 for g in good for b in bad]
    return Curve(name, points, brier, error, sum(pairs) / len(pairs) if pairs else math.nan)


_SIDE: Final = 320
_EDGE: Final = 50
_COLOURS: Final = ("#1f77b4", "#d95f02", "#2a9d5c", "#7a4fb5")


def drawing(curves: Sequence[Curve], title: str) -> str:
    """Return the curves as an SVG picture with a white ground, so that it reads in dark pages."""

    def at(x: float, y: float) -> tuple[float, float]:
        return _EDGE + x * _SIDE, _EDGE + (1 - y) * _SIDE

    width, height = _SIDE + 2 * _EDGE, _SIDE + 2 * _EDGE + 20 * len(curves)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{_EDGE}" y="24" font-size="14" fill="#222">{title}</text>',
    ]
    for step in range(6):
        share = step / 5
        (left, y), (x, bottom) = at(0, share), at(share, 0)
        out += [
            f'<path d="M{left:.0f} {y:.0f}h{_SIDE}M{x:.0f} {bottom:.0f}v-{_SIDE}" '
            'stroke="#ddd" fill="none"/>',
            f'<text x="{left - 8:.0f}" y="{y + 4:.0f}" text-anchor="end" fill="#444">'
            f"{share:.1f}</text>",
            f'<text x="{x:.0f}" y="{bottom + 16:.0f}" text-anchor="middle" fill="#444">'
            f"{share:.1f}</text>",
        ]
    (x0, y0), (x1, y1) = at(0, 0), at(1, 1)
    out.append(
        f'<path d="M{x0:.0f} {y0:.0f}L{x1:.0f} {y1:.0f}" stroke="#888" stroke-dasharray="4 4"/>'
    )
    for number, (curve, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        places = [at(x, y) for x, y, _ in curve.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        out.append(f'<path d="M{path}" stroke="{colour}" fill="none" stroke-width="2"/>')
        for (x, y), (_, _, count) in zip(places, curve.points, strict=True):
            out.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{1.2 * math.sqrt(count) + 1:.1f}" '
                f'fill="{colour}" fill-opacity="0.6"/>'
            )
        y = _SIDE + 2 * _EDGE - 6 + 20 * number
        total = sum(count for _, _, count in curve.points)
        out.append(
            f'<rect x="{_EDGE}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{_EDGE + 16}" y="{y}" fill="#222">{curve.name}: {total} calls, Brier '
            f"{curve.brier:.2f}, AUC {curve.area:.2f}</text>"
        )
    middle = _EDGE + _SIDE / 2
    out += [
        f'<text x="{middle:.0f}" y="{_EDGE + _SIDE + 32}" text-anchor="middle" fill="#222">'
        "confidence told</text>",
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle" '
        'fill="#222">share that was right</text>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ollama", metavar="URL", help="without it, only what is kept is read")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--at-once", type=int, default=60)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--draw", type=Path)
    return parser.parse_args()


async def run(given: argparse.Namespace) -> None:
    fitted, made, curves = list[MadeCall](), list[MadeCall](), list[Curve]()
    rows: list[tuple[object, ...]] = []
    measured: dict[str, list[MadeCall]] = {}
    for model in given.models:
        backend = RecordedBackend(server(given.ollama, model), given.folder)
        try:
            for requests in tuning_sets():
                asked = requests.first(given.limit)
                fitted += await made_calls(backend, asked, given.at_once, all_calls=True)
                made += await made_calls(backend, asked, given.at_once)
            for requests in measured_sets():
                calls = await made_calls(backend, requests.first(given.limit), given.at_once)
                measured.setdefault(model, []).extend(calls)
        finally:
            await backend.aclose()
    tables: dict[str, Any] = {}
    if given.fit:
        tables = {"tables": fit(fitted, made)}
        write(tables["tables"], len(fitted))
    for model, calls in measured.items():
        for way, seen in (("with odds", _as_it_is), ("without odds", without_odds)):
            judged = [(confidence_of(seen(e.signals), **tables), e.right) for e in calls]
            if not judged:
                continue
            curve = curve_of(f"{model}, {way}", judged)
            curves.append(curve)
            right = sum(right for _, right in judged)
            worth = (f"{each:.2f}" for each in (curve.brier, curve.error, curve.area))
            rows.append((model, way, len(judged), right, *worth))
    columns = ("model", "way", "calls", "right", "Brier", "ECE", "AUC")
    print_table(f"measured calls; weights of {len(fitted)} tuning calls", columns, rows)
    for curve in curves:
        print(curve.name, [(round(x, 2), round(y, 2), count) for x, y, count in curve.points])
    if given.draw:
        given.draw.write_text(drawing(curves, "Confidence of calls against truth"), "utf-8")


if __name__ == "__main__":
    asyncio.run(run(options()))
