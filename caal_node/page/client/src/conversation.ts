/**
 * What the page knows of a conversation, as one value that only `reduce` changes. It knows neither
 * the browser nor LiveKit, and it outlives a connection: after reconnecting, it goes on.
 */

import type {
  Answer,
  AnsweredBy,
  ArgumentPart,
  Became,
  Decision,
  FilledBy,
  FormField,
  Incoming,
  Outcome,
  QuestionEnd,
  SetTimer,
  Source,
  Tier,
} from "./incoming";
import { clean, line, NAME_CHARS, WORDS_CHARS } from "./incoming";

export type Phase = "start" | "joining" | "connected" | "reconnecting" | "lost";

/** Why the page is not connected; `texts.ts` has a sentence for each. */
export type ProblemKind =
  | "key_missing"
  | "key_refused"
  | "no_server"
  | "server_said"
  | "room_unreachable"
  | "room_full"
  | "other_tab"
  | "removed"
  | "room_closed"
  | "connection_lost";

export interface Problem {
  readonly kind: ProblemKind;
  /** What the server says of it, shown as it is. */
  readonly detail: string;
  /** When the page tries again by itself; null where only the user can go on. */
  readonly retryAt: number | null;
}

export type Microphone =
  | "unknown"
  | "asking"
  | "on"
  | "muted"
  | "denied"
  | "missing"
  | "busy"
  | "insecure"
  | "failed";

export interface Agent {
  readonly present: boolean;
  readonly state: string;
  readonly caalState: string;
  readonly tool: string;
}

export interface Question {
  readonly words: string;
  readonly hash: string;
  readonly pin: boolean;
  /** When a button has sent an answer; null before. */
  readonly sentAt: number | null;
  readonly answer: Answer | null;
  readonly by: AnsweredBy;
}

/** What a server asks while its tool runs. */
export interface Form {
  readonly id: string;
  /** "" where only somebody else may see it. */
  readonly message: string;
  readonly fields: readonly FormField[];
  /** When the answer was sent; null before. */
  readonly sentAt: number | null;
  readonly failed: boolean;
  readonly end: QuestionEnd | null;
  readonly by: FilledBy;
}

export interface Timers {
  readonly set: readonly SetTimer[];
  /** How many more are set. */
  readonly more: number;
  /** How far the agent's clock is ahead of this one, in ms. */
  readonly ahead: number;
}

export interface Call {
  readonly key: string;
  readonly callId: string;
  readonly tool: string;
  readonly tier: Tier;
  readonly source: string;
  readonly argumentsText: string;
  readonly parts: readonly ArgumentPart[];
  readonly turn: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly durationMs: number;
  /** "unknown" where the connection was lost before the call's end. */
  readonly outcome: Outcome | "unknown" | null;
  readonly progress: {
    readonly done: number;
    readonly total: number | null;
    readonly message: string;
  } | null;
  readonly question: Question | null;
  readonly form: Form | null;
  readonly decisions: readonly Decision[];
  readonly reason: string;
  readonly result: string;
}

export type Speaker = "user" | "agent" | "other";

export interface WordsEntry {
  readonly kind: "words";
  readonly id: number;
  readonly speaker: Speaker;
  readonly name: string;
  readonly text: string;
  readonly final: boolean;
  readonly segment: string;
  readonly at: number;
  /** Whether an event `user` has reported these words as well. */
  readonly reported: boolean;
}

export type Entry =
  | WordsEntry
  | { readonly kind: "calls"; readonly id: number; readonly turn: number; readonly keys: readonly string[] }
  | { readonly kind: "sources"; readonly id: number; readonly sources: readonly Source[] }
  | {
      readonly kind: "tools";
      readonly id: number;
      readonly found: boolean;
      readonly tools: readonly string[];
    }
  | { readonly kind: "claim"; readonly id: number; readonly claim: string; readonly became: Became }
  | { readonly kind: "fact"; readonly id: number; readonly clause: string; readonly heard: string }
  | {
      readonly kind: "source_state";
      readonly id: number;
      readonly source: string;
      readonly down: boolean;
      readonly reason: string;
    }
  | { readonly kind: "speech_failed"; readonly id: number; readonly reason: string }
  | { readonly kind: "gap"; readonly id: number; readonly back: boolean };

export interface Turn {
  readonly n: number;
  readonly words: string;
  /** When the user's words were all there. */
  readonly startedAt: number;
  readonly firstCueAt: number | null;
  readonly firstSpokenAt: number | null;
  readonly endedAt: number | null;
  readonly rounds: number;
  readonly requests: number;
  /** Whether an event `user` has opened it, and not only what was typed here. */
  readonly reported: boolean;
  readonly keys: readonly string[];
}

/** What a screen reader is to say. */
export type News =
  | { readonly id: number; readonly kind: "answer"; readonly text: string }
  | { readonly id: number; readonly kind: "outcome"; readonly key: string }
  | { readonly id: number; readonly kind: "question"; readonly text: string };

export interface Conversation {
  readonly phase: Phase;
  readonly problem: Problem | null;
  readonly agent: Agent;
  /** When the page began to wait for an agent; null while one is there. */
  readonly agentAwaitedAt: number | null;
  readonly microphone: Microphone;
  readonly soundBlocked: boolean;
  readonly entries: readonly Entry[];
  readonly calls: ReadonlyMap<string, Call>;
  readonly turns: readonly Turn[];
  readonly sourcesDown: ReadonlyMap<string, string>;
  readonly timers: Timers;
  readonly news: readonly News[];
  /** The newest call of each id: a model may count its ids anew. */
  readonly keyOfCall: ReadonlyMap<string, string>;
  /** Whether a message to this page alone has come, so that those to everyone are ignored. */
  readonly ownEvents: boolean;
  /** Marks of what came to everyone before the first message to this page. */
  readonly shared: readonly string[];
  readonly nextId: number;
}

export type Action =
  | { type: "event"; event: Incoming; own: boolean; at: number }
  | {
      type: "transcribed";
      speaker: Speaker;
      name: string;
      segment: string;
      text: string;
      final: boolean;
      at: number;
    }
  | { type: "typed"; text: string; at: number }
  | { type: "joining" }
  | { type: "connected"; rejoined: boolean; at: number }
  | { type: "reconnecting" }
  | { type: "reconnected" }
  | { type: "lost"; problem: Problem }
  | { type: "agent"; agent: Agent; at: number }
  | { type: "microphone"; microphone: Microphone }
  | { type: "sound_blocked"; blocked: boolean }
  | { type: "answering"; key: string; at: number }
  | { type: "answer_failed"; key: string }
  | { type: "filled_in"; key: string; at: number }
  | { type: "form_failed"; key: string };

/** Entries kept; the oldest go first. */
export const ENTRIES = 300;
export const CALLS_IN_GROUP = 40;
export const TURNS = 10;
export const SOURCES_DOWN = 20;
const NEWS = 12;
const SHARED = 40;
const TRANSCRIPT_CHARS = 20_000;
const ID_CHARS = 200;
/** Words of the user that come as an event and as a transcription within it are the same. */
const SAME_WORDS_MS = 15_000;
const NO_AGENT: Agent = { present: false, state: "", caalState: "", tool: "" };

const NO_TIMERS: Timers = { set: [], more: 0, ahead: 0 };

export const EMPTY: Conversation = {
  phase: "start",
  problem: null,
  agent: NO_AGENT,
  agentAwaitedAt: null,
  microphone: "unknown",
  soundBlocked: false,
  entries: [],
  calls: new Map(),
  turns: [],
  sourcesDown: new Map(),
  timers: NO_TIMERS,
  news: [],
  keyOfCall: new Map(),
  ownEvents: false,
  shared: [],
  nextId: 1,
};

export function reduce(state: Conversation, action: Action): Conversation {
  switch (action.type) {
    case "event":
      return heard(state, action.event, action.own, action.at);
    case "transcribed":
      return transcribed(state, action);
    case "typed":
      return typed(state, clean(action.text, WORDS_CHARS), action.at);
    case "joining":
      return { ...state, phase: "joining", problem: null };
    case "connected": {
      const joined: Conversation = {
        ...state,
        phase: "connected",
        problem: null,
        agent: NO_AGENT,
        agentAwaitedAt: action.at,
        timers: NO_TIMERS,
        ownEvents: false,
        shared: [],
      };
      return action.rejoined ? withEntry(joined, { kind: "gap", back: true }) : joined;
    }
    case "reconnecting":
      return state.phase === "connected" ? { ...state, phase: "reconnecting" } : state;
    case "reconnected":
      return state.phase === "reconnecting" ? { ...state, phase: "connected" } : state;
    case "lost": {
      const lost = forgetRunning({
        ...state,
        phase: "lost",
        problem: action.problem,
        agent: NO_AGENT,
        agentAwaitedAt: null,
        soundBlocked: false,
        timers: NO_TIMERS,
      });
      const wasThere = state.phase === "connected" || state.phase === "reconnecting";
      return wasThere ? withEntry(lost, { kind: "gap", back: false }) : lost;
    }
    case "agent":
      return agentChanged(state, action.agent, action.at);
    case "microphone":
      return { ...state, microphone: action.microphone };
    case "sound_blocked":
      return { ...state, soundBlocked: action.blocked };
    case "answering":
      return withQuestion(state, action.key, (question) =>
        question.answer === null
          ? { ...question, sentAt: action.at }
          : question,
      );
    case "answer_failed":
      return withQuestion(state, action.key, (question) => ({ ...question, sentAt: null }));
    case "filled_in":
      return withForm(state, action.key, (form) => ({ ...form, sentAt: action.at, failed: false }));
    case "form_failed":
      return withForm(state, action.key, (form) => ({ ...form, sentAt: null, failed: true }));
  }
}

/** Return the calls that run now, the oldest first. */
export function runningCalls(state: Conversation): Call[] {
  return [...state.calls.values()].filter((call) => call.outcome === null);
}

/** Return the newest call that waits for the user's answer. */
export function openQuestion(state: Conversation): Call | null {
  return runningCalls(state).filter(isAsking).at(-1) ?? null;
}

/** Whether a call waits for a yes or no, or for what its server asks. */
export function isAsking(call: Call): boolean {
  return call.question?.answer === null || call.form?.end === null;
}

function withEntry(state: Conversation, entry: NewEntry): Conversation {
  const entries = [...state.entries, { ...entry, id: state.nextId } as Entry];
  const kept = { ...state, entries, nextId: state.nextId + 1 };
  return entries.length > ENTRIES ? withoutOldest(kept) : kept;
}

type Without<T> = T extends unknown ? Omit<T, "id"> : never;
type NewEntry = Without<Entry>;

function withoutOldest(state: Conversation): Conversation {
  const entries = state.entries.slice(-ENTRIES);
  const shown = new Set(entries.flatMap((entry) => (entry.kind === "calls" ? entry.keys : [])));
  if (shown.size === state.calls.size) return { ...state, entries };
  return {
    ...state,
    entries,
    calls: new Map([...state.calls].filter(([key]) => shown.has(key))),
    keyOfCall: new Map([...state.keyOfCall].filter(([, key]) => shown.has(key))),
  };
}

function withNews(state: Conversation, news: Without<News>): Conversation {
  const all = [...state.news, { ...news, id: state.nextId } as News];
  return { ...state, news: all.slice(-NEWS), nextId: state.nextId + 1 };
}

function withCall(state: Conversation, call: Call): Conversation {
  return { ...state, calls: new Map(state.calls).set(call.key, call) };
}

function withQuestion(
  state: Conversation,
  key: string,
  change: (question: Question) => Question,
): Conversation {
  const call = state.calls.get(key);
  if (!call?.question) return state;
  return withCall(state, { ...call, question: change(call.question) });
}

function withForm(state: Conversation, key: string, change: (form: Form) => Form): Conversation {
  const call = state.calls.get(key);
  if (!call?.form || call.form.end !== null) return state;
  return withCall(state, { ...call, form: change(call.form) });
}

/** Return a call whose questions are over, as nobody answers them any more. */
function withoutQuestions(call: Call): Call {
  const { question, form } = call;
  return {
    ...call,
    question: question?.answer === null ? { ...question, answer: "cancelled", by: "" } : question,
    form: form?.end === null ? { ...form, end: "cancelled", by: "" } : form,
  };
}

function withTurn(state: Conversation, change: (turn: Turn) => Turn): Conversation {
  const turn = state.turns.at(-1);
  if (!turn || turn.endedAt !== null) return state;
  return { ...state, turns: [...state.turns.slice(0, -1), change(turn)] };
}

/** Nobody reports the end of a call to a page that is not connected. */
function forgetRunning(state: Conversation): Conversation {
  const running = runningCalls(state);
  if (running.length === 0) return state;
  const calls = new Map(state.calls);
  for (const call of running) {
    calls.set(call.key, {
      ...withoutQuestions(call),
      outcome: "unknown",
      endedAt: call.startedAt,
    });
  }
  return { ...state, calls };
}

function agentChanged(state: Conversation, agent: Agent, at: number): Conversation {
  const read: Agent = {
    present: agent.present,
    state: line(agent.state, NAME_CHARS),
    caalState: line(agent.caalState, NAME_CHARS),
    tool: line(agent.tool, NAME_CHARS),
  };
  const awaited = read.present ? null : (state.agentAwaitedAt ?? at);
  const changed = { ...state, agent: read, agentAwaitedAt: awaited };
  const left = state.agent.present && !read.present;
  const now = left ? forgetRunning(changed) : changed;
  return read.state === "speaking" && state.agent.state !== "speaking"
    ? withTurn(now, (turn) => ({ ...turn, firstSpokenAt: turn.firstSpokenAt ?? at }))
    : now;
}

function heard(state: Conversation, event: Incoming, own: boolean, at: number): Conversation {
  if (!own) {
    if (state.ownEvents) return state;
    const shared = [...state.shared, mark(event)].slice(-SHARED);
    return happened({ ...state, shared }, event, at);
  }
  const seen = state.shared.indexOf(mark(event));
  const read = { ...state, ownEvents: true, shared: state.shared.filter((_, i) => i !== seen) };
  // A call's events may be read twice, and those of this page hold more.
  return seen >= 0 && !("callId" in event) ? read : happened(read, event, at);
}

function mark(event: Incoming): string {
  return JSON.stringify(event).slice(0, WORDS_CHARS);
}

function happened(state: Conversation, event: Incoming, at: number): Conversation {
  switch (event.type) {
    case "user":
      return userSaid(state, event.text, at);
    case "tool_call_started":
      return started(state, event, at);
    case "tool_progress": {
      const [known, call] = callOf(state, event, at);
      if (call.outcome !== null) return state;
      const done = Math.max(event.done, call.progress?.done ?? 0);
      const { total, message } = event;
      return withCall(known, {
        ...call,
        source: call.source || event.source,
        progress: { done: total === null ? done : Math.min(done, total), total, message },
      });
    }
    case "confirmation_asked": {
      const [known, call] = callOf(state, event, at);
      const { words, hash, pin } = event;
      if (call.outcome !== null || call.question?.hash === hash) return state;
      const question: Question = { words, hash, pin, sentAt: null, answer: null, by: "" };
      return withNews(withCall(known, { ...call, question }), { kind: "question", text: words });
    }
    case "confirmation_ended": {
      const key = state.keyOfCall.get(event.callId);
      if (key === undefined) return state;
      return withQuestion(state, key, (question) => ({
        ...question,
        answer: event.answer,
        by: event.by,
      }));
    }
    case "question_asked": {
      const [known, call] = callOf(state, event, at);
      if (call.outcome !== null) return state;
      const { questionId, message, fields } = event;
      if (call.form?.id === questionId && (call.form.message || !message)) return state;
      const form: Form = {
        id: questionId,
        message,
        fields,
        sentAt: null,
        failed: false,
        end: null,
        by: "",
      };
      return withNews(withCall(known, { ...call, form }), { kind: "question", text: message });
    }
    case "question_ended": {
      const key = state.keyOfCall.get(event.callId) ?? "";
      const { questionId, answer, by } = event;
      return withForm(state, key, (form) =>
        form.id === questionId ? { ...form, end: answer, by } : form,
      );
    }
    case "tool_call_ended": {
      const [known, call] = callOf(state, event, at - event.durationMs);
      if (call.outcome !== null && call.outcome !== "unknown" && !event.reason && !event.result) {
        return state;
      }
      const ended = withCall(known, {
        ...withoutQuestions(call),
        tier: event.tier,
        outcome: event.outcome,
        durationMs: event.durationMs,
        endedAt: Math.max(at, call.startedAt),
        decisions: event.decisions,
        reason: event.reason,
        result: event.result,
      });
      return withNews(ended, { kind: "outcome", key: call.key });
    }
    case "cue":
      return withTurn(state, (turn) => ({ ...turn, firstCueAt: turn.firstCueAt ?? at }));
    case "speech":
      return withTurn(state, (turn) => ({ ...turn, firstSpokenAt: turn.firstSpokenAt ?? at }));
    case "speech_failed":
      return withEntry(state, { kind: "speech_failed", reason: event.reason });
    case "claim_corrected":
      return withEntry(state, { kind: "claim", claim: event.claim, became: event.became });
    case "fact_corrected":
      return withEntry(state, { kind: "fact", clause: event.clause, heard: event.heard });
    case "sources_cited":
      return withEntry(state, { kind: "sources", sources: event.sources });
    case "tools_told":
      return withEntry(state, { kind: "tools", found: event.by === "search", tools: event.tools });
    case "tool_source":
      return sourceChanged(state, event.source, event.state === "down", event.reason);
    case "timers_changed": {
      const { now, timers, more } = event;
      return { ...state, timers: { set: timers, more, ahead: now > 0 ? now - at : 0 } };
    }
    case "turn_ended":
      return withTurn(state, (turn) => ({
        ...turn,
        endedAt: at,
        rounds: event.rounds,
        requests: event.requests,
      }));
  }
}

function sourceChanged(
  state: Conversation,
  source: string,
  down: boolean,
  reason: string,
): Conversation {
  const sourcesDown = new Map(state.sourcesDown);
  const wasDown = sourcesDown.delete(source);
  if (down) {
    if (sourcesDown.size >= SOURCES_DOWN) return state;
    sourcesDown.set(source, reason);
  }
  const changed = { ...state, sourcesDown };
  return down === wasDown
    ? changed
    : withEntry(changed, { kind: "source_state", source, down, reason });
}

function started(
  state: Conversation,
  event: Extract<Incoming, { type: "tool_call_started" }>,
  at: number,
): Conversation {
  const known = state.calls.get(state.keyOfCall.get(event.callId) ?? "");
  const { tool, tier, source, argumentsText, parts } = event;
  if (known && known.outcome === null) {
    return withCall(state, {
      ...known,
      tool,
      tier,
      source,
      argumentsText: argumentsText || known.argumentsText,
      parts: parts.length > 0 ? parts : known.parts,
    });
  }
  return withNewCall(state, { callId: event.callId, tool, tier, source, argumentsText, parts }, at)[0];
}

type NewCall = Pick<Call, "callId" | "tool" | "tier" | "source" | "argumentsText" | "parts">;

function withNewCall(state: Conversation, call: NewCall, at: number): [Conversation, Call] {
  const key = `call-${state.nextId}`;
  const turned = openTurn(state, at);
  const turn = turned.turns.at(-1)?.n ?? 0;
  const made: Call = {
    ...call,
    key,
    turn,
    startedAt: at,
    endedAt: null,
    durationMs: 0,
    outcome: null,
    progress: null,
    question: null,
    form: null,
    decisions: [],
    reason: "",
    result: "",
  };
  const counted = withTurn({ ...turned, nextId: turned.nextId + 1 }, (newest) =>
    newest.keys.length < CALLS_IN_GROUP ? { ...newest, keys: [...newest.keys, key] } : newest,
  );
  const keyed = {
    ...withCall(counted, made),
    keyOfCall: new Map(counted.keyOfCall).set(call.callId, key),
  };
  const last = keyed.entries.at(-1);
  if (last?.kind === "calls" && last.turn === turn && last.keys.length < CALLS_IN_GROUP) {
    const grown: Entry = { ...last, keys: [...last.keys, key] };
    return [{ ...keyed, entries: [...keyed.entries.slice(0, -1), grown] }, made];
  }
  return [withEntry(keyed, { kind: "calls", turn, keys: [key] }), made];
}

/** Return the call of an event, which is a new one where the page has missed its start. */
function callOf(
  state: Conversation,
  event: { callId: string; tool: string; tier?: Tier; source?: string },
  at: number,
): [Conversation, Call] {
  const known = state.calls.get(state.keyOfCall.get(event.callId) ?? "");
  if (known) return [state, known];
  const { callId, tool, tier = "agent", source = "" } = event;
  return withNewCall(state, { callId, tool, tier, source, argumentsText: "", parts: [] }, at);
}

function newTurn(state: Conversation, words: string, at: number, reported: boolean): Conversation {
  const before = state.turns.at(-1);
  const turn: Turn = {
    n: (before?.n ?? 0) + 1,
    words,
    startedAt: at,
    firstCueAt: null,
    firstSpokenAt: null,
    endedAt: null,
    rounds: 0,
    requests: 0,
    reported,
    keys: [],
  };
  return { ...state, turns: [...state.turns, turn].slice(-TURNS) };
}

function openTurn(state: Conversation, at: number): Conversation {
  const turn = state.turns.at(-1);
  return turn && turn.endedAt === null ? state : newTurn(state, "", at, true);
}

/** Whether words now answer a question of a call, which goes on, and so does its turn. */
function answersQuestion(state: Conversation): boolean {
  const turn = state.turns.at(-1);
  if (!turn || turn.endedAt !== null) return false;
  return runningCalls(state).some((call) => call.turn === turn.n && (call.question !== null || call.form !== null),
  );
}

/** Begin a turn; one in which nothing has happened yet goes on with the newer words. */
function turnOf(state: Conversation, words: string, at: number): Conversation {
  if (answersQuestion(state)) return state;
  const turn = state.turns.at(-1);
  const idle =
    turn &&
    turn.endedAt === null &&
    turn.keys.length === 0 &&
    turn.firstCueAt === null &&
    turn.firstSpokenAt === null;
  if (!idle) return newTurn(state, words, at, true);
  const startedAt = turn.reported || !sameWords(turn.words, words) ? at : turn.startedAt;
  return withTurn(state, () => ({ ...turn, words, startedAt, reported: true }));
}

function bare(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
}

function sameWords(one: string, other: string): boolean {
  return bare(one) === bare(other);
}

function beginsWith(whole: string, beginning: string): boolean {
  return bare(whole).startsWith(bare(beginning));
}

function typed(state: Conversation, text: string, at: number): Conversation {
  if (!text) return state;
  const entry = {
    kind: "words" as const,
    speaker: "user" as const,
    name: "",
    text,
    final: true,
    segment: "",
    at,
    reported: false,
  };
  const shown = withEntry(state, entry);
  return answersQuestion(state) ? shown : newTurn(shown, text, at, false);
}

function userSaid(state: Conversation, text: string, at: number): Conversation {
  const turned = turnOf(state, text, at);
  // The words are shown where a transcription or the text field has brought them already.
  const isThese = (entry: Entry): boolean =>
    entry.kind === "words" &&
    entry.speaker === "user" &&
    !entry.reported &&
    at - entry.at < SAME_WORDS_MS &&
    (entry.final || beginsWith(text, entry.text));
  if (turned.entries.some(isThese)) {
    const entries = turned.entries.map((entry) =>
      isThese(entry) ? ({ ...entry, reported: true } as WordsEntry) : entry,
    );
    return { ...turned, entries };
  }
  return withEntry(turned, {
    kind: "words",
    speaker: "user",
    name: "",
    text,
    final: true,
    segment: "",
    at,
    reported: true,
  });
}

function transcribed(
  state: Conversation,
  said: Extract<Action, { type: "transcribed" }>,
): Conversation {
  const text = clean(said.text, TRANSCRIPT_CHARS);
  const segment = said.segment.slice(0, ID_CHARS);
  const name = line(said.name, NAME_CHARS);
  const { speaker, final, at } = said;
  const index = state.entries.findLastIndex(
    (entry) =>
      entry.kind === "words" &&
      entry.speaker === speaker &&
      (segment !== "" && entry.segment === segment
        ? true
        : speaker === "user" &&
          entry.segment === "" &&
          entry.reported &&
          at - entry.at < SAME_WORDS_MS &&
          sameWords(entry.text, text)),
  );
  const known = state.entries[index];
  if (known?.kind === "words") {
    // A late interim text does not take the place of a final one.
    if ((known.final && !final) || !text) return state;
    const entry: Entry = { ...known, text, final, segment: segment || known.segment, at };
    const entries = [...state.entries.slice(0, index), entry, ...state.entries.slice(index + 1)];
    return announced({ ...state, entries }, speaker, text, final && !known.final);
  }
  if (!text) return state;
  const entry = { kind: "words" as const, speaker, name, text, final, segment, at, reported: false };
  return announced(withEntry(state, entry), speaker, text, final);
}

function announced(
  state: Conversation,
  speaker: Speaker,
  text: string,
  isNew: boolean,
): Conversation {
  return speaker === "agent" && isNew ? withNews(state, { kind: "answer", text }) : state;
}
