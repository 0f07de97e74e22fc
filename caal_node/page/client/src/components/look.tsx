/** A look at where the time went: a waterfall for each of the last turns, the newest first. */

import type { JSX } from "preact";

import type { Conversation, Turn } from "../conversation";
import { timeWords } from "../texts";
import { type Waterfall, waterfallOf } from "../waterfall";
import { callWords, outcomeWords } from "./call_card";
import { ChartAxis, ChartRow } from "./chart";
import { useNow, useTexts } from "./shared";
import { TracedTurns, type TraceReader } from "./traced_turns";

export function Look(props: { conversation: Conversation; server: TraceReader }): JSX.Element {
  const { conversation, server } = props;
  const texts = useTexts();
  const turns = [...conversation.turns].reverse();
  return (
    <div class="page">
      <h2>{texts.look}</h2>
      <p class="lead">{texts.lookLead}</p>
      {turns.length === 0 && <p class="card">{texts.lookEmpty}</p>}
      {turns.map((turn) => (
        <TurnChart key={turn.n} conversation={conversation} turn={turn} />
      ))}
      <TracedTurns server={server} />
    </div>
  );
}

function TurnChart({ conversation, turn }: { conversation: Conversation; turn: Turn }): JSX.Element {
  const texts = useTexts();
  const isOpen = turn.endedAt === null && conversation.turns.at(-1) === turn;
  const now = useNow(isOpen, 250);
  const chart = waterfallOf(conversation, turn, now);
  const title = turn.words || texts.turnUntitled;
  const facts = [
    chart.firstSpoken !== null && texts.firstSpokenAfter(timeWords(texts, chart.firstSpoken)),
    chart.firstSpoken === null &&
      chart.firstCall !== null &&
      texts.firstCallAfter(timeWords(texts, chart.firstCall)),
    turn.requests > 0 && texts.requests(turn.requests),
  ].filter((fact) => fact !== false);
  return (
    <section class="card turn" aria-label={texts.chart(title)}>
      <h3 class="turn-title">{title}</h3>
      <p class="quiet">{facts.join(" · ") || texts.nothingYet}</p>
      <div class="chart">
        {chart.firstCue !== null && (
          <ChartRow name={texts.legendCue} time={timeWords(texts, chart.firstCue)}>
            <Mark chart={chart} at={chart.firstCue} kind="cue" />
          </ChartRow>
        )}
        {chart.bars.map((bar) => (
          <ChartRow
            key={bar.call.key}
            name={callWords(texts, bar.call)}
            time={timeWords(texts, bar.to - bar.from)}
            hint={outcomeWords(texts, bar.call)}
          >
            <rect
              class={`chart-bar chart-${bar.call.outcome ?? "running"}`}
              x={share(chart, bar.from)}
              width={share(chart, Math.max(bar.to - bar.from, chart.span / 150))}
              y="4"
              height="12"
              rx="4"
            />
          </ChartRow>
        ))}
        {chart.firstSpoken !== null && (
          <ChartRow name={texts.legendSpoken} time={timeWords(texts, chart.firstSpoken)}>
            <Mark chart={chart} at={chart.firstSpoken} kind="spoken" />
          </ChartRow>
        )}
        <ChartAxis end={chart.span} share={(at) => share(chart, at)} />
      </div>
    </section>
  );
}

function Mark(props: { chart: Waterfall; at: number; kind: "cue" | "spoken" }): JSX.Element {
  return (
    <circle class={`chart-mark chart-${props.kind}`} cx={share(props.chart, props.at)} cy="10" r="5" />
  );
}

function share(chart: Waterfall, ms: number): string {
  return `${((100 * ms) / chart.span).toFixed(2)}%`;
}
