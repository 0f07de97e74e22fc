/** Turns out of a trace file, as the server reads them. Times are in ms from the end of speech. */

import { line, NAME_CHARS } from "./incoming";

/** What a lane shows. */
export type LaneKind = "listening" | "request" | "call" | "cue" | "voice";

/** From `from` to `solid` it waits, from there to `to` it is the thing itself. */
export interface LaneBar {
  readonly from: number;
  readonly solid: number;
  readonly to: number;
}

export interface Lane {
  readonly kind: LaneKind;
  /** The tool of a call, the kind of a cue. */
  readonly name: string;
  /** How a call or a request ended; "ok" for the others. */
  readonly outcome: string;
  readonly bars: readonly LaneBar[];
}

export interface TracedTurn {
  readonly number: number;
  /** When the person had finished, in ms since 1970. */
  readonly at: number;
  readonly lanes: readonly Lane[];
  readonly firstWord: number | null;
  /** The chart's ends; the first is at most 0, as a request may begin early. */
  readonly begin: number;
  readonly end: number;
}

/** The bytes of a file's end that are sent: what the server reads at once. */
export const TRACE_BYTES = 8 * 1024 * 1024;
const TURNS = 50;
const LANES = 24;
const BARS = 50;
const LONGEST_S = 1e6;

type Fields = Readonly<Record<string, unknown>>;

/** Return the end of a trace file, from the beginning of a line on. */
export async function endOf(file: Blob): Promise<Blob> {
  if (file.size <= TRACE_BYTES) return file;
  const bytes = new Uint8Array(await file.slice(-TRACE_BYTES).arrayBuffer());
  return new Blob([bytes.subarray(bytes.indexOf(10) + 1)]);
}

/** Return the turns of the server's answer, the last one first. */
export function readTurns(value: unknown): TracedTurn[] {
  return objects(value, TURNS).map(readTurn).reverse();
}

function readTurn(turn: Fields): TracedTurn {
  const words = ms(turn.words_s) ?? 0;
  const bar = (begin: unknown, solid: unknown, end: unknown): LaneBar => {
    const from = ms(begin) ?? 0;
    const middle = Math.max(from, ms(solid) ?? from);
    return { from, solid: middle, to: Math.max(middle, ms(end) ?? middle) };
  };
  const lane = (kind: LaneKind, name: unknown, outcome: unknown, bars: LaneBar[]): Lane => ({
    kind,
    name: line(name, NAME_CHARS),
    outcome: line(outcome, NAME_CHARS),
    bars,
  });
  const asked = objects(turn.requests, LANES).map((each) =>
    lane("request", "", each.outcome, [bar(each.begin_s, each.first_s ?? each.end_s, each.end_s)]),
  );
  const called = objects(turn.calls, LANES).map((each) =>
    lane("call", each.tool, each.outcome, [bar(each.begin_s, each.begin_s, each.end_s)]),
  );
  const cues = objects(turn.cues, BARS).map((each) => bar(each.at_s, each.at_s, each.at_s));
  const voices = objects(turn.voices, BARS).map((each) =>
    bar(each.given_s ?? each.begin_s, each.begin_s, each.end_s),
  );
  const lanes = [
    ...(words > 0 ? [lane("listening", "", "ok", [{ from: 0, solid: 0, to: words }])] : []),
    ...[...asked, ...called].sort((one, other) => first(one) - first(other)),
    ...(cues.length > 0 ? [lane("cue", "", "ok", cues)] : []),
    ...(voices.length > 0 ? [lane("voice", "", "ok", voices)] : []),
  ].slice(0, LANES);
  const bars = lanes.flatMap((each) => each.bars);
  return {
    number: typeof turn.number === "number" ? turn.number : 0,
    at: Date.parse(line(turn.at, NAME_CHARS)) || 0,
    lanes,
    firstWord: ms(turn.first_word_s),
    begin: Math.min(0, ...bars.map((each) => each.from)),
    end: Math.max(1, ms(turn.end_s) ?? 0, ...bars.map((each) => each.to)),
  };
}

function first(lane: Lane): number {
  return lane.bars[0]?.from ?? 0;
}

function objects(value: unknown, most: number): Fields[] {
  if (!Array.isArray(value)) return [];
  return (value as unknown[])
    .slice(0, most)
    .filter((each): each is Fields => typeof each === "object" && each !== null);
}

function ms(value: unknown): number | null {
  if (typeof value !== "number" || !(Math.abs(value) <= LONGEST_S)) return null;
  return value * 1_000;
}
