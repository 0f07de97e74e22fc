/** A look at where the time went: a waterfall for each of the last turns, the newest first. */

import type { JSX } from "preact";

import type { Conversation, Turn } from "../conversation";
import { timeWords } from "../texts";
import { ticksOf, type Waterfall, waterfallOf } from "../waterfall";
import { callWords, outcomeWords } from "./call_card";
import { useNow, useTexts } from "./shared";

export function Look({ conversation }: { conversation: Conversation }): JSX.Element {
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
          <Row name={texts.legendCue} time={timeWords(texts, chart.firstCue)}>
            <Mark chart={chart} at={chart.firstCue} kind="cue" />
          </Row>
        )}
        {chart.bars.map((bar) => (
          <Row
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
          </Row>
        ))}
        {chart.firstSpoken !== null && (
          <Row name={texts.legendSpoken} time={timeWords(texts, chart.firstSpoken)}>
            <Mark chart={chart} at={chart.firstSpoken} kind="spoken" />
          </Row>
        )}
        <div class="chart-row" aria-hidden="true">
          <span />
          <svg class="chart-axis" focusable="false">
            {ticksOf(chart.span).map((at) => (
              <text key={at} x={share(chart, at)} y="13" text-anchor={at === 0 ? "start" : "middle"}>
                {at === 0 ? "0" : timeWords(texts, at)}
              </text>
            ))}
          </svg>
          <span />
        </div>
      </div>
    </section>
  );
}

function Row(props: {
  name: string;
  time: string;
  hint?: string;
  children: preact.ComponentChildren;
}): JSX.Element {
  return (
    <div class="chart-row">
      <span class="chart-name">{props.name}</span>
      <svg class="chart-track" aria-hidden="true" focusable="false">
        <rect class="chart-ground" x="0" y="9" width="100%" height="2" rx="1" />
        {props.children}
      </svg>
      <span class="chart-time">
        {props.time}
        {props.hint && <span class="hidden-text"> {props.hint}</span>}
      </span>
    </div>
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
