import { describe, expect, it } from "vitest";

import { Server } from "../src/server";
import { endOf, readTurns, TRACE_BYTES } from "../src/trace";

const TURN = {
  number: 3,
  at: "2026-11-28T12:00:00.000+00:00",
  words_s: 1,
  requests: [
    { begin_s: -0.1, first_s: 0.3, end_s: 1.8, outcome: "ok" },
    { begin_s: 2.3, first_s: null, end_s: 3, outcome: "closed" },
  ],
  calls: [{ tool: "get_weather", begin_s: 1.8, end_s: 2.3, outcome: "timeout" }],
  cues: [{ kind: "tool", at_s: 1.8 }],
  voices: [{ given_s: 2.8, begin_s: 3.1, end_s: 5 }],
  first_word_s: 3.1,
  end_s: 5,
};

describe("a turn of a trace", () => {
  it("has a lane for each thing, in the order in which they began", () => {
    const [turn] = readTurns([TURN]);
    expect(turn?.lanes.map((lane) => [lane.kind, lane.name, lane.outcome])).toEqual([
      ["listening", "", "ok"],
      ["request", "", "ok"],
      ["call", "get_weather", "timeout"],
      ["request", "", "closed"],
      ["cue", "", "ok"],
      ["voice", "", "ok"],
    ]);
    expect(turn?.lanes[1]?.bars).toEqual([{ from: -100, solid: 300, to: 1_800 }]);
    expect(turn?.lanes[3]?.bars).toEqual([{ from: 2_300, solid: 3_000, to: 3_000 }]);
    expect(turn).toMatchObject({ begin: -100, end: 5_000, firstWord: 3_100 });
  });

  it("is one of the last, the newest first", () => {
    const numbers = readTurns([TURN, { ...TURN, number: 4 }]).map((turn) => turn.number);
    expect(numbers).toEqual([4, 3]);
  });

  it.each([null, 4, "x", [null], [{}], [{ requests: "many", calls: [4], end_s: Number.NaN }]])(
    "of %j does no harm",
    (value) => {
      for (const turn of readTurns(value)) {
        expect(turn.end).toBeGreaterThan(turn.begin);
        expect(turn.lanes).toEqual([]);
      }
    },
  );
});

describe("a trace file", () => {
  it("goes to the server as it is", async () => {
    const sent: RequestInit[] = [];
    const send = (_: unknown, init?: RequestInit) => {
      sent.push(init ?? {});
      return Promise.resolve(new Response(JSON.stringify({ turns: [TURN] })));
    };
    const file = new Blob(["a line\n"]);
    const turns = await new Server("KEY", "one", send as typeof fetch).turns(await endOf(file));
    expect(turns).toHaveLength(1);
    expect(sent[0]?.body).toBe(file);
  });

  it("that is too long is sent from a line of its end on", async () => {
    const line = `${"x".repeat(1_000)}\n`;
    const end = await endOf(new Blob([line.repeat(TRACE_BYTES / 1_000)]));
    expect(end.size).toBeLessThanOrEqual(TRACE_BYTES);
    expect(end.size % line.length).toBe(0);
  });
});
