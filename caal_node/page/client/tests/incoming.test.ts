import { describe, expect, it } from "vitest";

import {
  argumentParts,
  BLOCK_CHARS,
  CHOICES,
  clean,
  FIELDS,
  line,
  MESSAGE_CHARS,
  NAME_CHARS,
  readEvent,
  SOURCES,
  TIMERS,
  toolWords,
  webAddress,
} from "../src/incoming";

const read = (fields: unknown) => readEvent(JSON.stringify(fields));
const STARTED = {
  type: "tool_call_started",
  call_id: "a",
  tool: "set_light",
  tier: "mcp",
  source: "home",
  arguments: { room: "kitchen", on: false },
};

describe("messages that are no events", () => {
  it.each([
    "",
    "{",
    "null",
    "[]",
    "1",
    '"text"',
    "{}",
    '{"type":"unknown"}',
    '{"type":"__proto__"}',
    '{"type":["user"],"text":"a"}',
    '{"type":"user"}',
    '{"type":"user","text":{"toString":"x"}}',
    '{"type":"tool_call_started","call_id":"a"}',
    '{"type":"tool_call_started","call_id":7,"tool":"x"}',
    '{"type":"tool_call_started","call_id":"","tool":"x"}',
    '{"type":"confirmation_asked","call_id":"a","tool":"t","words":"w"}',
    '{"type":"question_asked","call_id":"a","tool":"t","message":"m"}',
    '{"type":"question_ended","question_id":"q"}',
    '{"type":"tool_source","source":"a","state":"broken"}',
    '{"type":"sources_cited","tool":"a","sources":"b"}',
    '{"type":"sources_cited","tool":"a","sources":[null,1,[]]}',
    '{"type":"tools_told","by":"words","tools":[null,1,""]}',
  ])("are ignored: %s", (message) => {
    expect(readEvent(message)).toBeNull();
  });

  it("are ignored where they are too long", () => {
    expect(readEvent(JSON.stringify({ type: "user", text: "x".repeat(MESSAGE_CHARS) }))).toBeNull();
    expect(read({ ...STARTED, call_id: "x".repeat(1_000) })).toBeNull();
  });
});

describe("events", () => {
  it("are read with all their fields", () => {
    expect(read(STARTED)).toEqual({
      type: "tool_call_started",
      callId: "a",
      tool: "set_light",
      tier: "mcp",
      source: "home",
      argumentsText: '{\n  "room": "kitchen",\n  "on": false\n}',
      parts: [
        { kind: "text", text: "kitchen" },
        { kind: "switch", name: "on", on: false },
      ],
    });
    expect(read({ ...STARTED, arguments: null })).toMatchObject({ argumentsText: "", parts: [] });
  });

  it("of every type are known", () => {
    const call = { call_id: "a", tool: "t", tier: "agent", source: "s" };
    const all = [
      { type: "user", text: "a" },
      { type: "tool_progress", ...call, done: 1, total: null, message: "" },
      { type: "confirmation_asked", ...call, words: "w", arguments_hash: "h" },
      { type: "confirmation_ended", ...call, answer: "silence", by: "" },
      { type: "tool_call_ended", ...call, outcome: "ok", duration_ms: 1 },
      { type: "cue", kind: "tick" },
      { type: "speech", text: "a" },
      { type: "speech_failed", reason: "APIConnectionError" },
      { type: "claim_corrected", claim: "c", became: "call" },
      { type: "sources_cited", tool: "t", sources: [{ title: "a", address: "b", site: "c" }] },
      { type: "tools_told", by: "search", tools: ["t"], tokens: 9 },
      { type: "tool_source", source: "s", state: "down" },
      { type: "fact_corrected", clause: "c", heard: "" },
      { type: "turn_ended", rounds: 1, requests: 1, duration_ms: 1 },
    ];
    expect(all.map((each) => read(each)?.type)).toEqual(all.map((each) => each.type));
  });

  it("with values of a newer version never look better than they are", () => {
    expect(
      read({ type: "tool_call_ended", call_id: "a", tool: "t", outcome: "splendid" }),
    ).toMatchObject({ outcome: "error", durationMs: 0 });
    expect(
      read({ type: "confirmation_ended", call_id: "a", tool: "t", answer: "sure", by: "magic" }),
    ).toMatchObject({ answer: "cancelled", by: "" });
  });

  it("are cut to what fits", () => {
    const event = read({
      type: "tool_call_ended",
      call_id: "a",
      tool: "t".repeat(5_000),
      outcome: "error",
      duration_ms: 1e300,
      reason: "r".repeat(50_000),
      decisions: Array.from({ length: 100 }, () => ({ by: "b".repeat(900), line: 4 })),
    });
    if (event?.type !== "tool_call_ended") throw new Error("no event");
    expect(event.tool.length).toBe(NAME_CHARS);
    expect(event.reason.length).toBe(BLOCK_CHARS);
    expect(event.durationMs).toBe(86_400_000);
    expect(event.decisions.length).toBeLessThanOrEqual(16);
    expect(event.decisions[0]?.line).toBe("");
  });

  it("have no numbers but real ones", () => {
    const progress = (done: unknown, total: unknown) =>
      read({ type: "tool_progress", call_id: "a", tool: "t", done, total, message: 4 });
    expect(progress("7", -1)).toMatchObject({ done: 0, total: null, message: "" });
    expect(progress(-3, 0)).toMatchObject({ done: 0, total: null });
  });
});

describe("sources", () => {
  const sources = (...addresses: string[]) => {
    const event = read({
      type: "sources_cited",
      tool: "t",
      sources: addresses.map((address) => ({ title: "Bank", address, site: "bank.example" })),
    });
    return event?.type === "sources_cited" ? event.sources : [];
  };

  it("are links only where they are of the web", () => {
    const [first] = sources("https://weather.example/a?b=c");
    expect(first).toEqual({
      title: "Bank",
      href: "https://weather.example/a?b=c",
      site: "weather.example",
    });
    for (const address of [
      "javascript:alert(1)",
      " javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      "data:text/html,x",
      "file:///etc/passwd",
      "//evil.example",
      "https://bank.example@evil.example/",
      "https://",
      "/home/me/notes.md",
    ]) {
      expect(sources(address)[0]?.href, address).toBe("");
    }
  });

  it("are limited", () => {
    expect(sources(...Array.from({ length: 99 }, (_, i) => `https://a.example/${i}`))).toHaveLength(
      SOURCES,
    );
    expect(webAddress(`https://a.example/${"x".repeat(9_000)}`)).toBe("");
    expect(webAddress(7)).toBe("");
  });
});

describe("texts", () => {
  it("lose what could make them read otherwise", () => {
    expect(clean("a\u202Eb\u0000c\u2066d\n e ", 50)).toBe("abcd\n e");
    expect(line("a\n\n b\tc", 50)).toBe("a b c");
    expect(clean({ a: 1 }, 50)).toBe("");
  });

  it("keep markup as the letters that it is", () => {
    expect(clean("<img src=x onerror=alert(1)>", 50)).toBe("<img src=x onerror=alert(1)>");
  });

  it("are cut between letters", () => {
    expect(clean("abcdef", 4)).toBe("abc…");
    expect(clean("ab😀def", 4)).toBe("ab…");
    expect(clean(" ".repeat(40) + "x", 4)).toBe("…");
  });
});

describe("a tool's name", () => {
  it.each([
    ["set_light", "Set light"],
    ["home__set_light", "Set light"],
    ["HassTurnOn", "Hass turn on"],
    ["list-files.v2", "List files v2"],
    ["getURL", "Get URL"],
    ["x__", "X"],
    ["___", "___"],
  ])("%s is %s", (name, words) => {
    expect(toolWords(name)).toBe(words);
  });
});

describe("arguments in a line", () => {
  it("are the first short ones", () => {
    const parts = argumentParts({
      to: ["Anna", "Ben", 4],
      deep: { a: 1 },
      nothing: null,
      level: 4,
      urgent: true,
      text: "x".repeat(500),
      one: "1",
      more: "2",
    });
    expect(parts).toHaveLength(4);
    expect(parts[0]).toEqual({ kind: "text", text: "Anna, Ben" });
    expect(parts[1]).toEqual({ kind: "number", name: "level", value: 4 });
    expect(parts[3]).toMatchObject({ text: expect.stringMatching(/^x{47}…$/) });
  });

  it("are none of anything else", () => {
    expect(argumentParts([1, 2])).toEqual([]);
    expect(argumentParts("text")).toEqual([]);
    expect(argumentParts({ __proto__: null, a: Number.NaN })).toEqual([]);
  });
});

describe("what a server asks", () => {
  const field = { name: "a", kind: "text", title: "A", description: "", required: true };
  const asked = (fields: unknown) =>
    read({
      type: "question_asked",
      call_id: "a",
      tool: "t",
      question_id: "q",
      message: "Which?",
      fields,
    });

  it("is read with its fields", () => {
    const choice = { ...field, kind: "choices", title: "", choices: ["x", 7], default: [0] };
    expect(asked([field, choice])).toMatchObject({
      message: "Which?",
      fields: [
        { name: "a", kind: "text", title: "A", required: true, preset: null, choices: [] },
        { kind: "choices", title: "a", preset: [0], choices: ["x", "2"] },
      ],
    });
  });

  it.each([
    [Array.from({ length: FIELDS + 1 }, () => field)],
    [[{ ...field, kind: "file" }]],
    [[{ ...field, kind: "choice", choices: [] }]],
    [[{ ...field, kind: "choice", choices: Array(CHOICES + 1).fill("x") }]],
    [[{ ...field, name: 7 }]],
    [[null]],
    ["fields"],
  ])("is shown without a form where that cannot be a whole one: %#", (fields) => {
    expect(asked(fields)).toMatchObject({ message: "", fields: [] });
  });

  it.each([
    ["text", 7, null],
    ["text", "two\nlines", "two lines"],
    ["number", "7", null],
    ["number", 7, 7],
    ["boolean", 1, null],
    ["boolean", true, true],
    ["choice", 2, null],
    ["choice", 1, 1],
    ["choices", [0, 2], null],
    ["choices", 1, null],
  ])("has a default of its kind or none: %s %j", (kind, value, preset) => {
    const choices = kind.startsWith("choice") ? ["x", "y"] : [];
    expect(asked([{ ...field, kind, choices, default: value }])).toMatchObject({
      fields: [{ preset }],
    });
  });
});

describe("timers", () => {
  const timer = { number: 1, kind: "timer", name: "pasta", due: 100, ringing: true };
  const timers = (list: unknown) => read({ type: "timers_changed", now: 90, timers: list, more: 3 });

  it("are read", () => {
    expect(timers([timer])).toEqual({
      type: "timers_changed",
      now: 90_000,
      timers: [{ number: 1, kind: "timer", name: "pasta", due: 100_000, ringing: true }],
      more: 3,
    });
  });

  it("are limited, and odd ones are left out", () => {
    const odd = [null, { ...timer, due: "soon" }, { ...timer, due: 1e400 }];
    expect(timers([...odd, ...Array<unknown>(100).fill(timer)])).toMatchObject({
      timers: { length: TIMERS - odd.length },
    });
    expect(timers("none")).toMatchObject({ timers: [] });
    const far = { ...timer, due: 1e300, kind: "bomb" };
    const event = timers([far]);
    const [one] = event?.type === "timers_changed" ? event.timers : [];
    expect(one?.kind).toBe("timer");
    expect(new Date(one?.due ?? NaN).getTime()).not.toBeNaN();
  });
});
