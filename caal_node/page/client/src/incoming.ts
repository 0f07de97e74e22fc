/**
 * Reads what the agent sends to the page. Nothing of it is trusted: texts are cut and cleaned,
 * lists are limited, and a message that is no known event is null.
 */

export type Outcome = "ok" | "error" | "timeout" | "refused" | "cancelled" | "dry_run";
export type Tier = "agent" | "n8n" | "mcp";
export type Answer = "yes" | "no" | "correction" | "unclear" | "silence" | "cancelled";
export type AnsweredBy = "words" | "button" | "";
export type QuestionEnd = "accepted" | "declined" | "dismissed" | "cancelled";
export type FilledBy = "words" | "form" | "";
export type Became = "call" | "sentence" | "nothing";
export type CueKind = "tool" | "agent" | "error" | "tick" | "done" | "ring";

export interface Decision {
  readonly by: string;
  readonly verdict: string;
  readonly line: string;
}

export interface Source {
  readonly title: string;
  /** An http or https URL; "" where the address is anything else. */
  readonly href: string;
  /** The host of the URL, or what the agent calls the place. */
  readonly site: string;
}

export type FieldKind = "text" | "number" | "integer" | "boolean" | "choice" | "choices";

/** One thing that a server asks for. */
export interface FormField {
  /** The key of its value in the answer. */
  readonly name: string;
  readonly kind: FieldKind;
  readonly title: string;
  readonly description: string;
  readonly required: boolean;
  /** What is taken where it is left out; of choices, their places. */
  readonly preset: string | number | boolean | readonly number[] | null;
  readonly choices: readonly string[];
}

export type TimerKind = "timer" | "alarm" | "reminder" | "request";

export interface SetTimer {
  readonly number: number;
  readonly kind: TimerKind;
  readonly name: string;
  /** When it rings, in ms of the agent's time. */
  readonly due: number;
  readonly ringing: boolean;
}

/** One argument of a call that fits in a short line. */
export type ArgumentPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "number"; readonly name: string; readonly value: number }
  | { readonly kind: "switch"; readonly name: string; readonly on: boolean };

export type Incoming =
  | { type: "user"; text: string }
  | {
      type: "tool_call_started";
      callId: string;
      tool: string;
      tier: Tier;
      source: string;
      argumentsText: string;
      parts: readonly ArgumentPart[];
    }
  | {
      type: "tool_progress";
      callId: string;
      tool: string;
      tier: Tier;
      source: string;
      done: number;
      total: number | null;
      message: string;
    }
  | {
      type: "confirmation_asked";
      callId: string;
      tool: string;
      words: string;
      hash: string;
      /** Whether only the PIN is a yes. */
      pin: boolean;
    }
  | { type: "confirmation_ended"; callId: string; tool: string; answer: Answer; by: AnsweredBy }
  | {
      type: "question_asked";
      callId: string;
      tool: string;
      questionId: string;
      /** "" where only somebody else may see it. */
      message: string;
      fields: readonly FormField[];
    }
  | {
      type: "question_ended";
      callId: string;
      tool: string;
      questionId: string;
      answer: QuestionEnd;
      by: FilledBy;
    }
  | {
      type: "tool_call_ended";
      callId: string;
      tool: string;
      tier: Tier;
      outcome: Outcome;
      durationMs: number;
      decisions: readonly Decision[];
      reason: string;
      result: string;
    }
  | { type: "cue"; kind: CueKind }
  | { type: "speech"; text: string }
  | { type: "speech_failed"; reason: string }
  | { type: "claim_corrected"; claim: string; became: Became }
  | { type: "sources_cited"; tool: string; sources: readonly Source[] }
  | { type: "tools_told"; by: "words" | "search"; tools: readonly string[] }
  | { type: "tool_source"; source: string; state: "down" | "ready"; reason: string }
  | {
      type: "timers_changed";
      /** The agent's time, in ms. */
      now: number;
      timers: readonly SetTimer[];
      more: number;
    }
  | { type: "fact_corrected"; clause: string; heard: string }
  | { type: "turn_ended"; rounds: number; requests: number; durationMs: number };

/** Characters of one message; a longer one is dropped unread. */
export const MESSAGE_CHARS = 200_000;
export const NAME_CHARS = 120;
export const LINE_CHARS = 300;
export const WORDS_CHARS = 2_000;
export const BLOCK_CHARS = 8_000;
export const SOURCES = 12;
export const TOOLS = 16;
export const DECISIONS = 16;
export const PARTS = 4;
export const FIELDS = 16;
export const CHOICES = 100;
export const TIMERS = 50;
const PART_CHARS = 48;
const ID_CHARS = 200;
const ADDRESS_CHARS = 2_000;
const DAY_MS = 86_400_000;
/** The last moment that a date of JavaScript's has. */
const LAST_MS = 8.64e15;

// Control characters, and those that turn the direction of text, could make a line read otherwise
// than it is.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** Return the beginning of a text without control characters; "" for anything else. */
export function clean(value: unknown, chars: number): string {
  if (typeof value !== "string") return "";
  const text = value.slice(0, chars * 2).replace(CONTROLS, "").trim();
  if (text.length <= chars && value.length <= chars * 2) return text;
  // No half of a surrogate pair is left at the end.
  return text.slice(0, chars - 1).replace(/[\ud800-\udbff]$/, "") + "…";
}

/** Return the text as one line. */
export function line(value: unknown, chars: number): string {
  return clean(value, chars).replace(/\s+/g, " ");
}

function oneOf<T extends string>(value: unknown, known: readonly T[], otherwise: T): T {
  return known.includes(value as T) ? (value as T) : otherwise;
}

function count(value: unknown, most: number): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0
    ? Math.min(value, most)
    : 0;
}

/** An id is compared, so one that is too long is none at all. */
function id(value: unknown): string {
  return typeof value === "string" && value.length <= ID_CHARS ? value : "";
}

const TIERS = ["agent", "n8n", "mcp"] as const;
const OUTCOMES = ["ok", "error", "timeout", "refused", "cancelled", "dry_run"] as const;
const ANSWERS = ["yes", "no", "correction", "unclear", "silence", "cancelled"] as const;
const QUESTION_ENDS = ["accepted", "declined", "dismissed", "cancelled"] as const;
const FIELD_KINDS = ["text", "number", "integer", "boolean", "choice", "choices"] as const;
const TIMER_KINDS = ["timer", "alarm", "reminder", "request"] as const;
const CUES = ["tool", "agent", "error", "tick", "done", "ring"] as const;
const BECAME = ["call", "sentence", "nothing"] as const;

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Read one message of the topics `caal.page` and `caal.tools`. */
export function readEvent(message: string): Incoming | null {
  if (message.length > MESSAGE_CHARS) return null;
  let fields: unknown;
  try {
    fields = JSON.parse(message);
  } catch {
    return null;
  }
  return isFields(fields) ? readFields(fields) : null;
}

function readFields(fields: Fields): Incoming | null {
  const callId = id(fields.call_id);
  const tool = line(fields.tool, NAME_CHARS);
  const tier = oneOf(fields.tier, TIERS, "agent");
  switch (fields.type) {
    case "user": {
      const text = clean(fields.text, WORDS_CHARS);
      return text ? { type: "user", text } : null;
    }
    case "tool_call_started":
      if (!callId || !tool) return null;
      return {
        type: "tool_call_started",
        callId,
        tool,
        tier,
        source: line(fields.source, NAME_CHARS),
        argumentsText: argumentsText(fields.arguments),
        parts: argumentParts(fields.arguments),
      };
    case "tool_progress": {
      if (!callId || !tool) return null;
      const total = count(fields.total, Number.MAX_SAFE_INTEGER);
      return {
        type: "tool_progress",
        callId,
        tool,
        tier,
        source: line(fields.source, NAME_CHARS),
        done: count(fields.done, Number.MAX_SAFE_INTEGER),
        total: total > 0 ? total : null,
        message: line(fields.message, LINE_CHARS),
      };
    }
    case "confirmation_asked": {
      const hash = id(fields.arguments_hash);
      const words = line(fields.words, WORDS_CHARS);
      if (!callId || !tool || !hash || !words) return null;
      return { type: "confirmation_asked", callId, tool, words, hash, pin: fields.pin === true };
    }
    case "confirmation_ended":
      if (!callId) return null;
      return {
        type: "confirmation_ended",
        callId,
        tool,
        answer: oneOf(fields.answer, ANSWERS, "cancelled"),
        by: oneOf(fields.by, ["words", "button", ""] as const, ""),
      };
    case "question_asked": {
      const questionId = id(fields.question_id);
      if (!callId || !tool || !questionId) return null;
      const form = formFields(fields.fields);
      return {
        type: "question_asked",
        callId,
        tool,
        questionId,
        // A form that cannot be shown as a whole is not shown: the question is spoken as well.
        message: form ? line(fields.message, WORDS_CHARS) : "",
        fields: form ?? [],
      };
    }
    case "question_ended":
      if (!callId) return null;
      return {
        type: "question_ended",
        callId,
        tool,
        questionId: id(fields.question_id),
        answer: oneOf(fields.answer, QUESTION_ENDS, "cancelled"),
        by: oneOf(fields.by, ["words", "form", ""] as const, ""),
      };
    case "tool_call_ended":
      if (!callId || !tool) return null;
      return {
        type: "tool_call_ended",
        callId,
        tool,
        tier,
        // A newer kind of outcome must not look like a success.
        outcome: oneOf(fields.outcome, OUTCOMES, "error"),
        durationMs: count(fields.duration_ms, DAY_MS),
        decisions: decisions(fields.decisions),
        reason: clean(fields.reason, BLOCK_CHARS),
        result: clean(fields.result, BLOCK_CHARS),
      };
    case "cue":
      return { type: "cue", kind: oneOf(fields.kind, CUES, "tool") };
    case "speech": {
      const text = clean(fields.text, WORDS_CHARS);
      return text ? { type: "speech", text } : null;
    }
    case "speech_failed":
      return { type: "speech_failed", reason: line(fields.reason, NAME_CHARS) };
    case "claim_corrected": {
      const claim = line(fields.claim, WORDS_CHARS);
      return claim
        ? { type: "claim_corrected", claim, became: oneOf(fields.became, BECAME, "nothing") }
        : null;
    }
    case "sources_cited": {
      const sources = readSources(fields.sources);
      return sources.length > 0 ? { type: "sources_cited", tool, sources } : null;
    }
    case "tools_told": {
      const given: readonly unknown[] = Array.isArray(fields.tools) ? fields.tools : [];
      const tools = given.slice(0, TOOLS).map((each) => line(each, NAME_CHARS)).filter(Boolean);
      const by = oneOf(fields.by, ["words", "search"] as const, "words");
      return tools.length > 0 ? { type: "tools_told", by, tools } : null;
    }
    case "tool_source": {
      const source = line(fields.source, NAME_CHARS);
      if (!source || (fields.state !== "down" && fields.state !== "ready")) return null;
      return {
        type: "tool_source",
        source,
        state: fields.state,
        reason: line(fields.reason, WORDS_CHARS),
      };
    }
    case "timers_changed":
      return {
        type: "timers_changed",
        now: count(fields.now, LAST_MS / 1000) * 1000,
        timers: setTimers(fields.timers),
        more: Math.round(count(fields.more, 10_000)),
      };
    case "fact_corrected": {
      const clause = line(fields.clause, WORDS_CHARS);
      return clause
        ? { type: "fact_corrected", clause, heard: line(fields.heard, WORDS_CHARS) }
        : null;
    }
    case "turn_ended":
      return {
        type: "turn_ended",
        rounds: Math.round(count(fields.rounds, 10_000)),
        requests: Math.round(count(fields.requests, 10_000)),
        durationMs: count(fields.duration_ms, DAY_MS),
      };
    default:
      return null;
  }
}

function decisions(value: unknown): Decision[] {
  if (!Array.isArray(value)) return [];
  return value
    .slice(0, DECISIONS)
    .filter(isFields)
    .map((each) => ({
      by: line(each.by, NAME_CHARS),
      verdict: line(each.verdict, NAME_CHARS),
      line: line(each.line, LINE_CHARS),
    }));
}

/** Return the fields of a form; null where one of them is not known. */
function formFields(value: unknown): FormField[] | null {
  if (!Array.isArray(value) || value.length > FIELDS) return null;
  const fields: FormField[] = [];
  for (const each of value) {
    if (!isFields(each) || typeof each.name !== "string" || each.name.length > WORDS_CHARS) {
      return null;
    }
    const kind = FIELD_KINDS.find((known) => known === each.kind);
    const given: readonly unknown[] = Array.isArray(each.choices) ? each.choices : [];
    const chooses = kind === "choice" || kind === "choices";
    if (!kind || given.length > CHOICES || (chooses && given.length === 0)) return null;
    fields.push({
      name: each.name,
      kind,
      title: line(each.title, LINE_CHARS) || line(each.name, LINE_CHARS),
      description: line(each.description, WORDS_CHARS),
      required: each.required === true,
      preset: preset(kind, each.default, given.length),
      choices: given.map((choice, place) => line(choice, LINE_CHARS) || String(place + 1)),
    });
  }
  return fields;
}

function preset(kind: FieldKind, value: unknown, choices: number): FormField["preset"] {
  const isPlace = (place: unknown): place is number =>
    Number.isInteger(place) && (place as number) >= 0 && (place as number) < choices;
  switch (kind) {
    case "text":
      return line(value, WORDS_CHARS) || null;
    case "number":
    case "integer":
      return typeof value === "number" && Number.isFinite(value) ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "choice":
      return isPlace(value) ? value : null;
    case "choices":
      return Array.isArray(value) && value.length > 0 && value.every(isPlace)
        ? value.slice(0, CHOICES)
        : null;
  }
}

function setTimers(value: unknown): SetTimer[] {
  if (!Array.isArray(value)) return [];
  const timers: SetTimer[] = [];
  for (const each of value.slice(0, TIMERS)) {
    if (!isFields(each)) continue;
    const due = count(each.due, LAST_MS / 1000) * 1000;
    if (due === 0) continue;
    timers.push({
      number: count(each.number, Number.MAX_SAFE_INTEGER),
      kind: oneOf(each.kind, TIMER_KINDS, "timer"),
      name: line(each.name, LINE_CHARS),
      due,
      ringing: each.ringing === true,
    });
  }
  return timers;
}

function readSources(value: unknown): Source[] {
  if (!Array.isArray(value)) return [];
  const sources: Source[] = [];
  for (const each of value.slice(0, SOURCES)) {
    if (!isFields(each)) continue;
    const href = webAddress(each.address);
    // The host is read from the link itself: what a source calls itself may be a lie.
    const site = href ? new URL(href).host : line(each.site, NAME_CHARS);
    const title = line(each.title, LINE_CHARS) || site || line(each.address, LINE_CHARS);
    if (title) sources.push({ title, href, site: site === title ? "" : site });
  }
  return sources;
}

/** Return the URL where it is one of http or https, else "". */
export function webAddress(value: unknown): string {
  if (typeof value !== "string" || value.length > ADDRESS_CHARS) return "";
  if (!/^https?:\/\//i.test(value)) return "";
  try {
    const url = new URL(value);
    // With a name in front, the host can look like another one.
    return url.username || url.password ? "" : url.href;
  } catch {
    return "";
  }
}

function argumentsText(value: unknown): string {
  if (!isFields(value) || Object.keys(value).length === 0) return "";
  try {
    return clean(JSON.stringify(value, null, 2), BLOCK_CHARS);
  } catch {
    return "";
  }
}

/** Return the arguments that fit in a line, in their order. */
export function argumentParts(value: unknown): ArgumentPart[] {
  if (!isFields(value)) return [];
  const parts: ArgumentPart[] = [];
  for (const [key, argument] of Object.entries(value)) {
    if (parts.length === PARTS) break;
    const name = line(key, PART_CHARS).replace(/[_-]+/g, " ");
    if (typeof argument === "string") {
      const text = line(argument, PART_CHARS);
      if (text) parts.push({ kind: "text", text });
    } else if (typeof argument === "number" && Number.isFinite(argument)) {
      parts.push({ kind: "number", name, value: argument });
    } else if (typeof argument === "boolean") {
      parts.push({ kind: "switch", name, on: argument });
    } else if (Array.isArray(argument)) {
      const texts = argument.filter((each) => typeof each === "string").slice(0, 3);
      const text = line(texts.join(", "), PART_CHARS);
      if (text) parts.push({ kind: "text", text });
    }
  }
  return parts;
}

/** Return the name of a tool as words: `home__set_light` gives "Set light". */
export function toolWords(tool: string): string {
  const name = tool.includes("__") ? tool.slice(tool.lastIndexOf("__") + 2) || tool : tool;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[_.\-/]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  if (!words) return tool;
  // "HassTurnOn" reads as "Hass turn on", and "GET" stays as it is.
  const lowered = words.replace(/\b([A-Z])([a-z]+)/g, (_, first: string, rest: string) =>
    first.toLowerCase() + rest,
  );
  return lowered.charAt(0).toUpperCase() + lowered.slice(1);
}
