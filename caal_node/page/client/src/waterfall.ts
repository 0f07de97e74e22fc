/** Where the time of a turn went, from the end of the user's words. All times are in ms after it. */

import type { Call, Conversation, Turn } from "./conversation";

export interface Bar {
  readonly call: Call;
  readonly from: number;
  readonly to: number;
}

export interface Waterfall {
  readonly turn: Turn;
  readonly bars: readonly Bar[];
  readonly firstCall: number | null;
  readonly firstCue: number | null;
  readonly firstSpoken: number | null;
  /** The width of the chart. */
  readonly span: number;
  readonly isLive: boolean;
}

/** A turn whose end was never reported stops to grow. */
const LIVE_MS = 120_000;
const LEAST_SPAN_MS = 1_000;

export function waterfallOf(conversation: Conversation, turn: Turn, now: number): Waterfall {
  const after = (at: number | null) => (at === null ? null : Math.max(0, at - turn.startedAt));
  const isNewest = conversation.turns.at(-1) === turn;
  const isLive =
    isNewest &&
    turn.endedAt === null &&
    conversation.phase === "connected" &&
    now - turn.startedAt < LIVE_MS;
  const bars = turn.keys.flatMap((key): Bar[] => {
    const call = conversation.calls.get(key);
    if (!call) return [];
    const from = Math.max(0, call.startedAt - turn.startedAt);
    const end = call.endedAt ?? (isLive ? now : call.startedAt);
    return [{ call, from, to: Math.max(from, end - turn.startedAt) }];
  });
  const firstCue = after(turn.firstCueAt);
  const firstSpoken = after(turn.firstSpokenAt);
  const span = Math.max(
    LEAST_SPAN_MS,
    ...bars.map((bar) => bar.to),
    firstCue ?? 0,
    firstSpoken ?? 0,
    isLive && firstSpoken === null ? now - turn.startedAt : 0,
  );
  const starts = bars.map((bar) => bar.from);
  return {
    turn,
    bars,
    firstCall: starts.length > 0 ? Math.min(...starts) : null,
    firstCue,
    firstSpoken,
    span: span * 1.04,
    isLive,
  };
}

/** Return round marks of the time axis within a span. */
export function ticksOf(span: number): number[] {
  const steps = [10, 20, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000];
  const step = steps.find((each) => span / each <= 4.5) ?? 86_400_000;
  const ticks: number[] = [];
  for (let at = 0; at <= span && ticks.length < 6; at += step) ticks.push(at);
  return ticks;
}
