import { describe, expect, it } from "vitest";

import {
  type Action,
  type Call,
  CALLS_IN_GROUP,
  type Conversation,
  EMPTY,
  ENTRIES,
  openQuestion,
  reduce,
  runningCalls,
  SOURCES_DOWN,
  TURNS,
} from "../src/conversation";
import { readEvent } from "../src/incoming";
import { stageOf } from "../src/stage";

const NO_PROBLEM = { kind: "connection_lost", detail: "", retryAt: null } as const;

function after(...actions: Action[]): Conversation {
  return actions.reduce(reduce, EMPTY);
}

function event(fields: object, at = 0, own = true): Action {
  const read = readEvent(JSON.stringify(fields));
  if (!read) throw new Error("no event");
  return { type: "event", event: read, own, at };
}

const user = (text: string, at = 0) => event({ type: "user", text }, at);
const started = (id: string, at = 0, args: object | null = { room: "kitchen" }, own = true) =>
  event(
    {
      type: "tool_call_started",
      call_id: id,
      tool: "set_light",
      tier: "mcp",
      source: "home",
      arguments: args,
    },
    at,
    own,
  );
const ended = (id: string, at = 0, more: object = {}) =>
  event(
    {
      type: "tool_call_ended",
      call_id: id,
      tool: "set_light",
      tier: "mcp",
      outcome: "ok",
      duration_ms: 800,
      ...more,
    },
    at,
  );
const asked = (id: string, hash = "h1") =>
  event({
    type: "confirmation_asked",
    call_id: id,
    tool: "set_light",
    words: "Shall I?",
    arguments_hash: hash,
  });
const answered = (id: string, answer: string, by: string) =>
  event({ type: "confirmation_ended", call_id: id, tool: "set_light", answer, by });
const said = (
  speaker: "user" | "agent",
  text: string,
  segment: string,
  final = true,
  at = 0,
): Action => ({ type: "transcribed", speaker, name: "", segment, text, final, at });
const agent = (state: string, caalState = "idle"): Action => ({
  type: "agent",
  agent: { present: true, state, caalState, tool: "" },
  at: 0,
});
const connected: Action = { type: "connected", rejoined: false, at: 0 };

function theCall(state: Conversation): Call {
  const [call] = [...state.calls.values()];
  if (!call || state.calls.size !== 1) throw new Error(`${state.calls.size} calls`);
  return call;
}

const words = (state: Conversation) =>
  state.entries.flatMap((entry) => (entry.kind === "words" ? [`${entry.speaker}: ${entry.text}`] : []));

describe("calls", () => {
  it("run from their start to their end", () => {
    const running = after(user("light off"), started("a", 1_000));
    expect(theCall(running)).toMatchObject({ outcome: null, startedAt: 1_000, source: "home" });
    const over = reduce(running, ended("a", 1_900, { result: "off" }));
    expect(theCall(over)).toMatchObject({ outcome: "ok", durationMs: 800, result: "off" });
    expect(over.news.at(-1)).toMatchObject({ kind: "outcome" });
  });

  it("of one turn are in one group, in their place", () => {
    const state = after(
      user("one"),
      started("a"),
      started("b"),
      ended("a"),
      said("agent", "Done.", "s1"),
      event({ type: "turn_ended", rounds: 1, requests: 2, duration_ms: 5 }),
      user("two"),
      started("c"),
    );
    expect(state.entries.map((entry) => entry.kind)).toEqual([
      "words",
      "calls",
      "words",
      "words",
      "calls",
    ]);
    expect(state.entries[1]).toMatchObject({ keys: { length: 2 } });
  });

  it("whose start was missed have a card as well", () => {
    const state = after(ended("late", 5_000));
    expect(theCall(state)).toMatchObject({ startedAt: 4_200, endedAt: 5_000, outcome: "ok" });
  });

  it("with an id that is used again are two", () => {
    const state = after(started("call_1"), ended("call_1"), started("call_1"));
    expect(state.calls.size).toBe(2);
    expect(runningCalls(state)).toHaveLength(1);
  });

  it("show progress that only grows", () => {
    const progress = (done: number, total: number | null) =>
      event({
        type: "tool_progress",
        call_id: "a",
        tool: "set_light",
        tier: "mcp",
        source: "home",
        done,
        total,
        message: "half",
      });
    const state = after(started("a"), progress(5, 10), progress(3, 10));
    expect(theCall(state).progress).toEqual({ done: 5, total: 10, message: "half" });
    expect(theCall(reduce(state, progress(50, 10))).progress?.done).toBe(10);
    const over = reduce(state, ended("a"));
    expect(reduce(over, progress(9, 10))).toEqual(over);
  });

  it("keep ids of an object's own names apart", () => {
    const state = after(started("__proto__"), started("constructor"), ended("__proto__"));
    expect(state.calls.size).toBe(2);
    expect(runningCalls(state)[0]?.callId).toBe("constructor");
  });
});

describe("questions", () => {
  it("wait until their end, and say who answered", () => {
    const waiting = after(connected, agent("listening"), started("a"), asked("a"));
    expect(openQuestion(waiting)?.callId).toBe("a");
    expect(stageOf(waiting)).toBe("asking");
    expect(waiting.news.at(-1)).toMatchObject({ kind: "question", text: "Shall I?" });
    const key = theCall(waiting).key;
    const sent = reduce(waiting, { type: "answering", key, at: 7 });
    expect(theCall(sent).question?.sentAt).toBe(7);
    const over = reduce(sent, answered("a", "yes", "button"));
    expect(openQuestion(over)).toBeNull();
    expect(theCall(over).question).toMatchObject({ answer: "yes", by: "button" });
  });

  it("can be answered again where sending failed", () => {
    const waiting = after(started("a"), asked("a"));
    const key = theCall(waiting).key;
    const failed = reduce(reduce(waiting, { type: "answering", key, at: 1 }), {
      type: "answer_failed",
      key,
    });
    expect(theCall(failed).question?.sentAt).toBeNull();
  });

  it("are asked anew with other arguments", () => {
    const state = after(started("a"), asked("a"), answered("a", "correction", "words"), asked("a", "h2"));
    expect(openQuestion(state)?.question).toMatchObject({ hash: "h2", answer: null });
  });

  it("are answered within their turn, by voice or by text", () => {
    const waiting = after(user("unlock it"), started("a"), asked("a"));
    const typed = reduce(waiting, { type: "typed", text: "yes", at: 5 });
    const both = [user("yes", 6), user("or no", 30_000)].reduce(reduce, typed);
    expect(both.turns).toHaveLength(1);
    expect(words(both)).toEqual(["user: unlock it", "user: yes", "user: or no"]);
    expect(reduce(reduce(both, ended("a")), user("thanks")).turns).toHaveLength(2);
  });

  it("end with their call, and of no call change nothing", () => {
    expect(openQuestion(after(started("a"), asked("a"), ended("a")))).toBeNull();
    const state = after(started("a"));
    expect(reduce(state, answered("other", "yes", "words"))).toEqual(state);
  });
});

describe("words", () => {
  it("of a segment are replaced by later ones", () => {
    const state = after(
      said("user", "turn", "s1", false),
      said("user", "turn off", "s1", false),
      said("user", "Turn off the light.", "s1"),
      said("user", "turn off", "s1", false),
    );
    expect(words(state)).toEqual(["user: Turn off the light."]);
  });

  it("that come as transcription and as event are shown once, in either order", () => {
    const first = after(said("user", "Turn it off.", "s1"), user("Turn it off."));
    const second = after(user("Turn it off."), said("user", "turn it off", "s1"));
    expect(words(first)).toHaveLength(1);
    expect(words(second)).toHaveLength(1);
    const early = after(
      said("user", "turn it", "s1", false),
      user("Turn it off."),
      said("user", "Turn it off.", "s1"),
    );
    expect(words(early)).toEqual(["user: Turn it off."]);
  });

  it("that were typed here are shown once", () => {
    const state = after({ type: "typed", text: "Hello", at: 0 }, user("Hello", 300));
    expect(words(state)).toEqual(["user: Hello"]);
    expect(state.turns).toHaveLength(1);
    expect(state.turns[0]?.startedAt).toBe(0);
  });

  it("known by the event alone are shown, and twice where they were said twice", () => {
    expect(words(after(user("Hello"), user("Hello", 60_000)))).toHaveLength(2);
  });

  it("of the agent are announced once they are whole", () => {
    const growing = after(said("agent", "The li", "s1", false));
    expect(growing.news).toHaveLength(0);
    const whole = reduce(growing, said("agent", "The light is off.", "s1"));
    expect(whole.news).toMatchObject([{ kind: "answer", text: "The light is off." }]);
    expect(reduce(whole, said("agent", "The light is off.", "s1")).news).toHaveLength(1);
  });
});

describe("the topics", () => {
  it("of everyone are ignored once one of this page has come", () => {
    const state = after(started("a", 0, null, false), started("a", 0, { room: "hall" }));
    expect(theCall(state).parts).toEqual([{ kind: "text", text: "hall" }]);
    const same = reduce(state, event({ type: "cue", kind: "tool" }, 0, false));
    expect(same).toBe(state);
  });

  it("show that the agent's voice has failed", () => {
    const state = after(event({ type: "speech_failed", reason: "APIConnectionError" }));
    expect(state.entries).toMatchObject([{ kind: "speech_failed", reason: "APIConnectionError" }]);
  });

  it("show which tools the model was shown, and what its search found", () => {
    const told = { type: "tools_told", by: "words", tools: ["set_light"] };
    const state = after(event(told), event({ ...told, by: "search" }));
    expect(state.entries).toMatchObject([
      { kind: "tools", found: false, tools: ["set_light"] },
      { kind: "tools", found: true, tools: ["set_light"] },
    ]);
  });

  it("do not show the same words twice where both began", () => {
    const claim = { type: "claim_corrected", claim: "It is off.", became: "call" };
    const state = after(event(claim, 0, false), event(claim, 0, true));
    expect(state.entries).toHaveLength(1);
    expect(reduce(state, event(claim)).entries).toHaveLength(2);
  });
});

describe("the connection", () => {
  it("may be lost and come back, and the cards stay", () => {
    const lost = after(connected, user("a"), started("a"), asked("a"), {
      type: "lost",
      problem: NO_PROBLEM,
    });
    expect(theCall(lost)).toMatchObject({ outcome: "unknown", question: { answer: "cancelled" } });
    expect(lost.phase).toBe("lost");
    const back = [{ type: "joining" }, { type: "connected", rejoined: true, at: 9 }] as Action[];
    const again = back.reduce(reduce, lost);
    expect(again.entries.map((entry) => entry.kind)).toEqual(["words", "calls", "gap", "gap"]);
    // The end of the call may still be told.
    expect(theCall(reduce(again, ended("a"))).outcome).toBe("ok");
  });

  it("that LiveKit resumes keeps the calls running", () => {
    const state = after(connected, started("a"), { type: "reconnecting" }, { type: "reconnected" });
    expect(theCall(state).outcome).toBeNull();
    expect(state.phase).toBe("connected");
  });

  it("that fails again and again leaves one mark", () => {
    const lost: Action = { type: "lost", problem: NO_PROBLEM };
    const state = after(connected, lost, { type: "joining" }, lost, { type: "joining" }, lost);
    expect(state.entries).toHaveLength(1);
  });

  it("outlives an agent, whose calls end with it", () => {
    const state = after(connected, agent("listening"), started("a"), {
      type: "agent",
      agent: { present: false, state: "", caalState: "", tool: "" },
      at: 50,
    });
    expect(theCall(state).outcome).toBe("unknown");
    expect(stageOf(state)).toBe("waiting");
    expect(state.agentAwaitedAt).toBe(50);
  });
});

describe("sources of tools", () => {
  const source = (name: string, state: string) =>
    event({ type: "tool_source", source: name, state, reason: "no answer" });

  it("are down until they are back, and each change is told once", () => {
    const down = after(source("home", "down"), source("home", "down"));
    expect([...down.sourcesDown]).toEqual([["home", "no answer"]]);
    expect(down.entries).toHaveLength(1);
    const back = reduce(down, source("home", "ready"));
    expect(back.sourcesDown.size).toBe(0);
    expect(back.entries).toHaveLength(2);
    expect(reduce(back, source("home", "ready")).entries).toHaveLength(2);
  });

  it("are limited", () => {
    const actions = Array.from({ length: 100 }, (_, i) => source(`s${i}`, "down"));
    expect(after(...actions).sourcesDown.size).toBe(SOURCES_DOWN);
  });
});

describe("what is kept", () => {
  it("is limited however much comes", () => {
    const many: Action[] = [];
    for (let i = 0; i < 1_000; i += 1) {
      many.push(user(`words ${i}`, i * 20_000), started(`c${i}`, i * 20_000), ended(`c${i}`));
      many.push(said("agent", `answer ${i}`, `s${i}`));
    }
    const state = after(...many);
    expect(state.entries).toHaveLength(ENTRIES);
    expect(state.calls.size).toBeLessThanOrEqual(ENTRIES);
    expect(state.keyOfCall.size).toBe(state.calls.size);
    expect(state.turns).toHaveLength(TURNS);
    expect(state.news.length).toBeLessThan(20);
    expect(state.shared).toHaveLength(0);
  });

  it("is limited in one turn as well", () => {
    const state = after(...Array.from({ length: 10 * CALLS_IN_GROUP }, (_, i) => started(`c${i}`)));
    expect(state.turns[0]?.keys).toHaveLength(CALLS_IN_GROUP);
    for (const entry of state.entries) {
      if (entry.kind === "calls") expect(entry.keys.length).toBeLessThanOrEqual(CALLS_IN_GROUP);
    }
  });

  it("cuts long transcriptions", () => {
    const state = after(said("agent", "x".repeat(500_000), "s".repeat(5_000)));
    expect(words(state)[0]?.length).toBeLessThan(21_000);
  });
});

const FIELD = {
  name: "room",
  kind: "choice",
  title: "Room",
  description: "",
  required: true,
  default: null,
  choices: ["kitchen", "bath"],
};
const asks = (id: string, questionId: string, message = "Which room?", own = true) =>
  event(
    {
      type: "question_asked",
      call_id: id,
      tool: "set_light",
      question_id: questionId,
      message,
      fields: message ? [FIELD] : [],
    },
    0,
    own,
  );
const askingEnded = (id: string, questionId: string, answer: string, by = "") =>
  event({
    type: "question_ended",
    call_id: id,
    tool: "set_light",
    question_id: questionId,
    answer,
    by,
  });

describe("what a server asks", () => {
  it("is a form until it is answered", () => {
    const asking = after(connected, agent("listening"), started("a"), asks("a", "q1"));
    expect(theCall(asking).form).toMatchObject({ message: "Which room?", end: null });
    expect(openQuestion(asking)).toBe(theCall(asking));
    expect(stageOf(asking)).toBe("asking");
    const { key } = theCall(asking);
    const sent = reduce(asking, { type: "filled_in", key, at: 9 });
    expect(theCall(sent).form).toMatchObject({ sentAt: 9, end: null });
    const over = reduce(sent, askingEnded("a", "q1", "accepted", "form"));
    expect(theCall(over).form).toMatchObject({ end: "accepted", by: "form" });
    expect(openQuestion(over)).toBeNull();
  });

  it("is closed by an answer in words, and a late answer of the form changes nothing", () => {
    const over = after(started("a"), asks("a", "q1"), askingEnded("a", "q1", "declined", "words"));
    const late = reduce(over, { type: "filled_in", key: theCall(over).key, at: 9 });
    expect(theCall(late).form).toMatchObject({ end: "declined", by: "words", sentAt: null });
  });

  it("may be several things, one after the other", () => {
    const state = after(
      started("a"),
      asks("a", "q1"),
      askingEnded("a", "q1", "accepted", "form"),
      asks("a", "q2", "And then?"),
      askingEnded("a", "q1", "cancelled"),
    );
    expect(theCall(state).form).toMatchObject({ id: "q2", message: "And then?", end: null });
  });

  it("is shown whole where the page's own event comes behind the one for everyone", () => {
    const state = after(started("a"), asks("a", "q1", "", false), asks("a", "q1"));
    expect(theCall(state).form).toMatchObject({ message: "Which room?", fields: [{ name: "room" }] });
    expect(theCall(reduce(state, asks("a", "q1", ""))).form?.message).toBe("Which room?");
  });

  it("can be sent again where sending failed", () => {
    const asking = after(started("a"), asks("a", "q1"));
    const { key } = theCall(asking);
    const failed = [
      { type: "filled_in", key, at: 9 } as const,
      { type: "form_failed", key } as const,
    ].reduce(reduce, asking);
    expect(theCall(failed).form).toMatchObject({ sentAt: null, failed: true, end: null });
  });

  it("ends with its call, and with the connection", () => {
    const asking = after(connected, started("a"), asks("a", "q1"));
    expect(theCall(reduce(asking, ended("a"))).form?.end).toBe("cancelled");
    const lost = reduce(asking, { type: "lost", problem: NO_PROBLEM });
    expect(theCall(lost).form?.end).toBe("cancelled");
  });

  it("takes typed words for an answer and begins no turn", () => {
    const state = after(user("clean"), started("a"), asks("a", "q1"), {
      type: "typed",
      text: "the bath",
      at: 5,
    });
    expect(state.turns).toHaveLength(1);
  });
});

describe("timers", () => {
  const timers = (more: object = {}) =>
    event(
      {
        type: "timers_changed",
        now: 1_000,
        timers: [{ number: 1, kind: "timer", name: "pasta", due: 1_060, ringing: false }],
        more: 0,
        ...more,
      },
      990_000,
    );

  it("are what the last event says, on the agent's clock", () => {
    const state = after(connected, timers());
    expect(state.timers).toMatchObject({ ahead: 10_000, set: [{ name: "pasta", due: 1_060_000 }] });
    expect(reduce(state, timers({ timers: [] })).timers.set).toEqual([]);
  });

  it("are unknown without a connection, and told anew", () => {
    const lost = after(connected, timers(), { type: "lost", problem: NO_PROBLEM });
    expect(lost.timers.set).toEqual([]);
    expect(after(connected, timers(), connected).timers.set).toEqual([]);
  });
});

describe("the stage", () => {
  const stage = (...actions: Action[]) => stageOf(after(connected, ...actions));
  const microphone = (value: "on" | "muted" | "denied"): Action => ({
    type: "microphone",
    microphone: value,
  });

  it("names what happens now", () => {
    expect(stageOf(EMPTY)).toBe("start");
    expect(stageOf(after({ type: "joining" }))).toBe("connecting");
    expect(stage()).toBe("waiting");
    expect(stage(agent("initializing", "warming"))).toBe("warming");
    expect(stage(agent("thinking"), microphone("on"))).toBe("thinking");
    expect(stage(agent("thinking", "tool"))).toBe("working");
    expect(stage(agent("speaking", "tool"))).toBe("speaking");
    expect(stage(agent("listening"), microphone("on"))).toBe("listening");
    expect(stage(agent("listening"), microphone("muted"))).toBe("muted");
    expect(stage(agent("listening"), microphone("denied"))).toBe("silent");
    expect(stage(agent("listening"), { type: "reconnecting" })).toBe("reconnecting");
    expect(stage({ type: "lost", problem: NO_PROBLEM })).toBe("lost");
  });
});
