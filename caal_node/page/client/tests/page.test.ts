import { describe, expect, it } from "vitest";

import { type Conversation, EMPTY, reduce } from "../src/conversation";
import { readEvent } from "../src/incoming";
import { keyInFragment } from "../src/key";
import { Server, ServerError } from "../src/server";
import {
  countdown,
  dueWords,
  objectWords,
  textsFor,
  timerWords,
  timeWords,
} from "../src/texts";
import { ticksOf, waterfallOf } from "../src/waterfall";

describe("the key", () => {
  it.each([
    ["#key=abc", "abc"],
    ["#key=a%2Bb", "a+b"],
    ["#other=1&key=abc", "abc"],
    ["", ""],
    ["#key=", ""],
    ["#key=a%0d%0ab", ""],
    [`#key=${"x".repeat(600)}`, ""],
  ])("of %s is %s", (fragment, key) => {
    expect(keyInFragment(fragment)).toBe(key);
  });
});

describe("the server", () => {
  function answering(status: number, body: string) {
    const asked: { url: string; init: RequestInit }[] = [];
    const send = (url: unknown, init?: RequestInit) => {
      asked.push({ url: String(url), init: init ?? {} });
      return Promise.resolve(new Response(body, { status }));
    };
    return { server: new Server("KEY", "one", send as typeof fetch), asked };
  }
  const failure = (promise: Promise<unknown>): Promise<ServerError> =>
    promise.then(
      () => Promise.reject(new Error("no failure")),
      (error: unknown) => error as ServerError,
    );

  it("is asked with the key and the page's own header", async () => {
    const { server, asked } = answering(
      200,
      '{"url":"ws://127.0.0.1:7880","token":"t","room":"r","identity":"i","expires_s":60}',
    );
    expect(await server.join()).toEqual({ url: "ws://127.0.0.1:7880", token: "t", identity: "i" });
    expect(asked[0]?.url).toBe("/page/join");
    expect(asked[0]?.init).toMatchObject({
      method: "POST",
      body: "{}",
      credentials: "omit",
      headers: {
        Authorization: "Bearer KEY",
        "X-Caal-Page": "one",
        "Content-Type": "application/json",
      },
    });
  });

  it("is not asked without a key", async () => {
    expect((await failure(new Server("", "one").join())).kind).toBe("no_key");
  });

  it("says what is wrong in its own words", async () => {
    const { server } = answering(409, '{"status":"error","detail":"Close the other page."}');
    const error = await failure(server.join());
    expect(error).toMatchObject({ kind: "said", status: 409, detail: "Close the other page." });
  });

  it.each([401, 403])("refuses a key with %i", async (status) => {
    expect((await failure(answering(status, "no").server.join())).kind).toBe("refused");
  });

  it("may be gone or odd", async () => {
    const gone = new Server("KEY", "one", () => Promise.reject(new TypeError("no")));
    expect((await failure(gone.tools())).kind).toBe("unreachable");
    expect((await failure(answering(200, "<html>").server.tools())).kind).toBe("odd");
    expect((await failure(answering(200, '{"tools":4}').server.tools())).kind).toBe("odd");
    const url = '{"url":"https://evil.example","token":"t"}';
    expect((await failure(answering(200, url).server.join())).kind).toBe("odd");
  });

  it("lists tools, of which malformed ones are left out", async () => {
    const body = JSON.stringify({
      tools: [null, 4, {}, { name: "set_light", verdict: "ask", effect: "write", offered: true }],
      failed: { home: "no answer" },
    });
    const { tools, failed } = await answering(200, body).server.tools();
    expect(tools).toHaveLength(1);
    expect(tools[0]).toMatchObject({ name: "set_light", verdict: "ask", description: "" });
    expect([...failed]).toEqual([["home", "no answer"]]);
  });

  it("counts what a reload has changed", async () => {
    const body = '{"tool_count":4,"added":["a","b"],"removed":[],"changed":["c"],"failed":{}}';
    expect(await answering(200, body).server.reload()).toMatchObject({
      count: 4,
      added: 2,
      removed: 0,
      changed: 1,
    });
  });

  it("reads findings and switches, of which malformed ones are left out", async () => {
    const findings = [null, { name: "x", status: "odd" }, { name: "n8n", status: "fail", found: "a\nb", fix: 4 }];
    expect(await answering(200, JSON.stringify({ findings })).server.findings()).toEqual([
      { name: "n8n", status: "fail", found: "a b", fix: "" },
    ]);
    const body = '{"cues":true,"checks":{"claims":true,"facts":"yes"}}';
    const { cues, checks } = await answering(200, body).server.switches();
    expect([cues, [...checks]]).toEqual([true, [["claims", true], ["facts", false]]]);
    expect((await failure(answering(200, "{}").server.findings())).kind).toBe("odd");
    expect((await failure(answering(200, "{}").server.switches())).kind).toBe("odd");
  });

  it("switches one thing, and reads how all are then", async () => {
    const { server, asked } = answering(200, '{"cues":false,"checks":{"claims":true}}');
    expect((await server.switch("cues", false)).cues).toBe(false);
    expect((await server.switch("claims", true)).checks.get("claims")).toBe(true);
    expect(asked.map(({ init }) => init.body)).toEqual(['{"cues":false}', '{"checks":{"claims":true}}']);
  });

  it("changes the model", async () => {
    const { server, asked } = answering(200, '{"model":"small:1b"}');
    expect(await server.changeModel("small:1b")).toBe("small:1b");
    expect(asked[0]?.init.body).toBe('{"model":"small:1b"}');
  });
});

describe("texts", () => {
  it("are of the first language that is known", () => {
    expect(textsFor(["fr", "de-AT", "en"]).lang).toBe("de");
    expect(textsFor(["en-GB", "de"]).lang).toBe("en");
    expect(textsFor(["fr"]).lang).toBe("en");
    expect(textsFor([]).lang).toBe("en");
  });

  it("say times and objects as people do", () => {
    const en = textsFor(["en"]);
    const de = textsFor(["de"]);
    expect(timeWords(en, 1_240)).toBe("1.2 s");
    expect(timeWords(de, 1_240)).toBe("1,2 s");
    expect(timeWords(en, 12_400)).toBe("12 s");
    expect(timeWords(en, 125_000)).toBe("2 min 5 s");
    expect(timeWords(en, -5)).toBe("0.00 s");
    expect(
      objectWords(en, [
        { kind: "text", text: "kitchen" },
        { kind: "switch", name: "on", on: false },
        { kind: "number", name: "minutes", value: 10 },
        { kind: "number", name: "brightness", value: 40 },
        { kind: "switch", name: "urgent", on: true },
      ]),
    ).toBe("kitchen, off, 10 minutes, brightness 40, urgent: yes");
  });

  it("show a verdict that they do not know as it is", () => {
    const en = textsFor(["en"]);
    expect(en.verdict("ask")).toBe("asks first");
    expect(en.verdict("constructor")).toBe("constructor");
    expect(en.effect("write")).toBe("changes things");
  });
});

describe("the waterfall", () => {
  const events: [object, number][] = [
    [{ type: "user", text: "light off" }, 10_000],
    [{ type: "cue", kind: "tool" }, 10_600],
    [{ type: "tool_call_started", call_id: "a", tool: "t", tier: "mcp", source: "s" }, 10_700],
    [{ type: "tool_call_ended", call_id: "a", tool: "t", tier: "mcp", outcome: "ok", duration_ms: 800 }, 11_500],
    [{ type: "speech", text: "Done." }, 12_000],
    [{ type: "turn_ended", rounds: 1, requests: 2, duration_ms: 2_000 }, 12_500],
  ];
  const upTo = (count: number) =>
    events.slice(0, count).reduce<Conversation>(
      (state, [fields, at]) => {
        const event = readEvent(JSON.stringify(fields));
        return event ? reduce(state, { type: "event", event, own: true, at }) : state;
      },
      { ...EMPTY, phase: "connected" as const },
    );

  it("counts from the end of the user's words", () => {
    const state = upTo(6);
    const chart = waterfallOf(state, state.turns[0]!, 99_000);
    expect(chart).toMatchObject({
      firstCue: 600,
      firstCall: 700,
      firstSpoken: 2_000,
      isLive: false,
      bars: [{ from: 700, to: 1_500 }],
    });
  });

  it("grows while a call runs, and not for ever", () => {
    const state = upTo(3);
    expect(waterfallOf(state, state.turns[0]!, 14_000)).toMatchObject({
      isLive: true,
      bars: [{ from: 700, to: 4_000 }],
    });
    expect(waterfallOf(state, state.turns[0]!, 999_000).isLive).toBe(false);
  });

  it("has a few round marks", () => {
    expect(ticksOf(2_100)).toEqual([0, 500, 1_000, 1_500, 2_000]);
    expect(ticksOf(1e12).length).toBeLessThanOrEqual(6);
  });
});

describe("the words for timers", () => {
  it.each([
    [-5, "0:00"],
    [999, "0:01"],
    [59_001, "1:00"],
    [545_000, "9:05"],
    [3_600_000, "1:00:00"],
    [36_245_000, "10:04:05"],
  ])("count %i ms down as %s", (ms, words) => {
    expect(countdown(ms)).toBe(words);
  });

  it("name the day of an alarm where it is another one", () => {
    const now = new Date(2026, 5, 1, 9, 0).getTime();
    const de = textsFor(["de"]);
    expect(dueWords(de, new Date(2026, 5, 1, 18, 30).getTime(), now)).toBe("18:30");
    expect(dueWords(de, new Date(2026, 5, 2, 7, 0).getTime(), now)).toMatch(/^Di.*7:00$/);
    expect(dueWords(de, new Date(2026, 7, 24, 7, 0).getTime(), now)).toMatch(/^24\. Aug.*7:00$/);
  });

  it("name a timer", () => {
    const timer = { number: 1, kind: "alarm", name: "", due: 0, ringing: false } as const;
    expect(timerWords(textsFor(["de"]), timer)).toBe("Wecker");
    expect(timerWords(textsFor(["en"]), { ...timer, name: "work" })).toBe("Alarm · work");
  });
});
