/** The turns of a trace file that a person opens: what each one's time was spent on. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { toolWords } from "../incoming";
import { timeWords } from "../texts";
import { endOf, type Lane, type TracedTurn } from "../trace";
import { ChartAxis, ChartRow } from "./chart";
import { useTexts } from "./shared";
import { errorWords } from "./steer";

/** What the view asks of the server. */
export interface TraceReader {
  turns(trace: Blob): Promise<readonly TracedTurn[]>;
}

export function TracedTurns({ server }: { server: TraceReader }): JSX.Element {
  const texts = useTexts();
  const [turns, setTurns] = useState<readonly TracedTurn[]>();
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);

  async function open(input: HTMLInputElement) {
    const file = input.files?.[0];
    if (!file) return;
    setBusy(true);
    setProblem("");
    try {
      setTurns(await server.turns(await endOf(file)));
    } catch (error) {
      setTurns(undefined);
      setProblem(errorWords(texts, error));
    }
    setBusy(false);
    input.value = ""; // the same file may be chosen again
  }

  return (
    <section class="card" aria-labelledby="trace-title">
      <h3 id="trace-title">{texts.traceTitle}</h3>
      <p class="quiet">{texts.traceLead}</p>
      <label class="field">
        <span class="field-name">{texts.traceFile}</span>
        <input
          type="file"
          accept=".jsonl,.json"
          disabled={isBusy}
          onChange={(event) => void open(event.currentTarget)}
        />
      </label>
      <p role="status">
        {isBusy && texts.loading}
        {turns && !isBusy && texts.traceTurns(turns.length)}
      </p>
      {problem && (
        <p class="notice" role="alert">
          {problem}
        </p>
      )}
      {turns?.map((turn, at) => <TracedTurnChart key={at} turn={turn} />)}
    </section>
  );
}

function TracedTurnChart({ turn }: { turn: TracedTurn }): JSX.Element {
  const texts = useTexts();
  const title = texts.traceTurn(turn.number, new Date(turn.at));
  const span = (turn.end - turn.begin) * 1.04;
  const share = (at: number) => `${((100 * (at - turn.begin)) / span).toFixed(2)}%`;
  let request = 0;
  return (
    <section class="turn" aria-label={texts.chart(title)}>
      <h4 class="turn-title">{title}</h4>
      <p class="quiet">
        {turn.firstWord === null
          ? texts.nothingYet
          : texts.firstSpokenAfter(timeWords(texts, turn.firstWord))}
      </p>
      <div class="chart">
        {turn.lanes.map((lane, at) => (
          <ChartRow
            key={at}
            name={laneWords(lane, lane.kind === "request" ? ++request : 0)}
            time={timeWords(texts, lengthOf(lane))}
            hint={lane.outcome === "ok" ? "" : lane.outcome}
          >
            {lane.bars.map((bar, n) =>
              lane.kind === "cue" ? (
                <circle key={n} class="chart-mark chart-cue" cx={share(bar.from)} cy="10" r="5" />
              ) : (
                <g key={n}>
                  <rect
                    class="chart-waiting"
                    x={share(bar.from)}
                    width={`${((100 * (bar.to - bar.from)) / span).toFixed(2)}%`}
                    y="4"
                    height="12"
                    rx="4"
                  />
                  <rect
                    class={`chart-bar chart-${lane.outcome} chart-lane-${lane.kind}`}
                    x={share(bar.solid)}
                    width={`${((100 * Math.max(bar.to - bar.solid, span / 150)) / span).toFixed(2)}%`}
                    y="4"
                    height="12"
                    rx="4"
                  />
                </g>
              ),
            )}
          </ChartRow>
        ))}
        <ChartAxis end={turn.end} share={share} />
      </div>
    </section>
  );

  function laneWords(lane: Lane, number: number): string {
    return lane.kind === "call" ? toolWords(lane.name) : texts.lane[lane.kind](number);
  }
}

/** Return how long a lane took, or of cues when the first one came. */
function lengthOf(lane: Lane): number {
  const [one] = lane.bars;
  if (!one) return 0;
  if (lane.kind === "cue") return one.from;
  return lane.bars.reduce((sum, bar) => sum + bar.to - bar.from, 0);
}
