/** Fixed conversations to look at, each made of the same actions as a real one. */

import { type Action, type Conversation, EMPTY, type Problem, reduce } from "../src/conversation";
import { readEvent } from "../src/incoming";

/** When a scene is looked at. */
export const NOW = Date.UTC(2026, 5, 1, 9, 0, 0);

/** Words that differ by language. */
interface Script {
  readonly weather: string;
  readonly weatherAnswer: string;
  readonly light: string;
  readonly lightAnswer: string;
  readonly mail: string;
  readonly question: string;
  readonly claim: string;
  readonly clause: string;
  readonly heard: string;
  readonly clean: string;
  readonly cleaning: string;
  readonly asks: string;
  readonly rooms: readonly string[];
  readonly fields: readonly [string, string, string, string, string];
  readonly more: string;
  readonly again: string;
}

const EN: Script = {
  weather: "Will I need an umbrella in Hamburg this afternoon?",
  weatherAnswer:
    "Yes, take one. Rain is likely from about two o'clock, with 4 millimetres until six.",
  light: "Turn off the kitchen light and set a timer for ten minutes.",
  lightAnswer: "The kitchen light is off, and the timer runs for ten minutes.",
  mail: "Unlock the front door for the plumber.",
  question: "Shall I unlock door: front?",
  claim: "I have turned the heating down as well.",
  clause: "Rain is likely from noon",
  heard: "Rain is likely from about two o'clock",
  clean: "Vacuum the living room, please.",
  cleaning: "Sofa side done, now the carpet",
  asks: "The server home asks: How shall I clean?",
  rooms: ["Kitchen", "Living room", "Hall"],
  fields: ["Rooms", "Power", "Passes", "Wipe as well", "Note for the log"],
  more: "More passes take longer and empty the battery.",
  again: "The server home asks: The bin is full. Shall I go on?",
};

const DE: Script = {
  weather: "Brauche ich heute Nachmittag in Hamburg einen Schirm?",
  weatherAnswer:
    "Ja, nimm einen mit. Ab etwa zwei Uhr regnet es wahrscheinlich, bis sechs fallen 4 Millimeter.",
  light: "Mach das Küchenlicht aus und stell einen Timer auf zehn Minuten.",
  lightAnswer: "Das Küchenlicht ist aus, und der Timer läuft zehn Minuten.",
  mail: "Schließ für den Klempner die Haustür auf.",
  question: "Soll ich unlock door ausführen: front?",
  claim: "Die Heizung habe ich auch heruntergedreht.",
  clause: "Ab Mittag regnet es",
  heard: "Ab etwa zwei Uhr regnet es wahrscheinlich",
  clean: "Bitte saug das Wohnzimmer.",
  cleaning: "Sofaseite fertig, jetzt der Teppich",
  asks: "Der Server home fragt: Wie soll ich putzen?",
  rooms: ["Küche", "Wohnzimmer", "Flur"],
  fields: ["Räume", "Stärke", "Durchgänge", "Auch wischen", "Notiz fürs Protokoll"],
  more: "Mehr Durchgänge dauern länger und leeren den Akku.",
  again: "Der Server home fragt: Der Behälter ist voll. Soll ich weitermachen?",
};

class Stage {
  private state = EMPTY;
  private segments = 0;

  constructor(private readonly script: Script) {}

  act(action: Action): this {
    this.state = reduce(this.state, action);
    return this;
  }

  event(secondsAgo: number, fields: Record<string, unknown>): this {
    const event = readEvent(JSON.stringify(fields));
    if (!event) throw new Error(`no event: ${JSON.stringify(fields)}`);
    return this.act({ type: "event", event, own: true, at: NOW - secondsAgo * 1000 });
  }

  says(secondsAgo: number, speaker: "user" | "agent", text: string, final = true): this {
    this.segments += 1;
    const segment = `segment-${this.segments}`;
    const at = NOW - secondsAgo * 1000;
    this.act({ type: "transcribed", speaker, name: "", segment, text, final, at });
    return speaker === "user" && final ? this.event(secondsAgo - 0.05, { type: "user", text }) : this;
  }

  agent(state: string, caalState = "idle", tool = ""): this {
    return this.act({
      type: "agent",
      agent: { present: true, state, caalState, tool },
      at: NOW,
    });
  }

  connected(): this {
    this.act({ type: "joining" });
    this.act({ type: "connected", rejoined: false, at: NOW - 120_000 });
    this.act({ type: "microphone", microphone: "on" });
    return this.agent("listening");
  }

  starts(secondsAgo: number, callId: string, tool: string, source: string, args: object): this {
    const tier = source === "n8n" ? "n8n" : source === "" ? "agent" : "mcp";
    return this.event(secondsAgo, {
      type: "tool_call_started",
      call_id: callId,
      tool,
      tier,
      source: source || "HomeAgent",
      arguments: args,
    });
  }

  ends(
    secondsAgo: number,
    callId: string,
    tool: string,
    source: string,
    ms: number,
    more: Record<string, unknown> = {},
  ): this {
    const tier = source === "n8n" ? "n8n" : source === "" ? "agent" : "mcp";
    return this.event(secondsAgo, {
      type: "tool_call_ended",
      call_id: callId,
      tool,
      tier,
      outcome: "ok",
      duration_ms: ms,
      decisions: [],
      reason: "",
      result: "",
      ...more,
    });
  }

  /** Two turns that are over. */
  earlier(): this {
    const { script } = this;
    this.says(95, "user", script.weather)
      .event(94.4, { type: "cue", kind: "tool" })
      .starts(94.3, "c1", "weather_forecast", "", { place: "Hamburg", hours: 8 })
      .ends(92.7, "c1", "weather_forecast", "", 1600, {
        result: '{"rain_mm": 4, "from": "14:00", "until": "18:00"}',
      })
      .event(92.6, {
        type: "sources_cited",
        tool: "weather_forecast",
        sources: [
          { title: "Hamburg, hour by hour", address: "https://weather.example/hamburg", site: "x" },
        ],
      })
      .event(92.2, { type: "fact_corrected", clause: script.clause, heard: script.heard })
      .event(92, { type: "speech", text: script.weatherAnswer })
      .says(91.9, "agent", script.weatherAnswer)
      .event(90, { type: "turn_ended", rounds: 1, requests: 2, duration_ms: 5000 });
    return this.says(52, "user", script.light)
      .event(51.3, { type: "cue", kind: "tool" })
      .starts(51.2, "c2", "home__set_light", "home", { room: "kitchen", on: false })
      .starts(51.1, "c3", "start_timer", "", { minutes: 10 })
      .ends(50.9, "c3", "start_timer", "", 200)
      .ends(50.4, "c2", "home__set_light", "home", 800, { result: '{"state": "off"}' })
      .event(49.9, { type: "speech", text: script.lightAnswer })
      .says(49.8, "agent", script.lightAnswer)
      .event(48.5, { type: "turn_ended", rounds: 1, requests: 2, duration_ms: 3500 });
  }

  /** A server asks something during a call. */
  asks(secondsAgo: number, callId: string, message: string, fields: readonly object[]): this {
    return this.event(secondsAgo, {
      type: "question_asked",
      call_id: callId,
      tool: "home__clean_room",
      question_id: `${callId}-question`,
      message,
      fields,
    }).agent("listening", "tool", "home__clean_room");
  }

  filledIn(callId: string): this {
    const key = this.state.keyOfCall.get(callId) ?? "";
    return this.act({ type: "filled_in", key, at: NOW - 1_000 });
  }

  lost(problem: Problem): this {
    return this.act({ type: "lost", problem });
  }

  get conversation(): Conversation {
    return this.state;
  }
}

const SCENES: Record<string, (stage: Stage, script: Script) => Stage> = {
  start: (stage) => stage,
  connecting: (stage) => stage.act({ type: "joining" }),
  warming: (stage) => stage.connected().agent("initializing", "warming"),
  empty: (stage) => stage.connected(),
  listening: (stage, script) =>
    stage.connected().earlier().says(0.3, "user", script.mail.slice(0, 22), false),
  thinking: (stage, script) =>
    stage.connected().earlier().says(1, "user", script.mail).agent("thinking"),
  speaking: (stage) => stage.connected().earlier().agent("speaking"),
  muted: (stage) =>
    stage.connected().earlier().act({ type: "microphone", microphone: "muted" }),
  running: (stage, script) =>
    stage
      .connected()
      .earlier()
      .says(14, "user", script.clean)
      .event(13.4, { type: "cue", kind: "tool" })
      .starts(13.3, "c4", "home__clean_room", "home", { room: "living room", passes: 2 })
      .event(1, {
        type: "tool_progress",
        call_id: "c4",
        tool: "home__clean_room",
        tier: "mcp",
        source: "home",
        done: 13,
        total: 20,
        message: script.cleaning,
      })
      .agent("thinking", "tool", "home__clean_room"),
  question: (stage, script) =>
    stage
      .connected()
      .earlier()
      .says(4, "user", script.mail)
      .starts(3, "c5", "unlock_door", "home", { door: "front" })
      .event(2.9, {
        type: "confirmation_asked",
        call_id: "c5",
        tool: "unlock_door",
        words: script.question,
        arguments_hash: "4846fc54141069d96e2dbf94b792f925",
      })
      .says(2.5, "agent", script.question)
      .agent("listening", "tool", "unlock_door"),
  pin: (stage, script) =>
    stage
      .connected()
      .says(4, "user", script.mail)
      .starts(3, "c5", "unlock_door", "home", { door: "front" })
      .event(2.9, {
        type: "confirmation_asked",
        call_id: "c5",
        tool: "unlock_door",
        words: script.question,
        arguments_hash: "4846fc54141069d96e2dbf94b792f925",
        pin: true,
      })
      .agent("listening", "tool", "unlock_door"),
  form: (stage, script) => {
    const { rooms, fields } = script;
    const field = (place: number, kind: string, more: object = {}) => ({
      name: `f${place}`,
      kind,
      title: fields[place],
      description: "",
      required: false,
      default: null,
      choices: [],
      ...more,
    });
    return stage
      .connected()
      .says(6, "user", script.clean)
      .starts(5, "c10", "home__clean_room", "home", { room: "living room" })
      .asks(4, "c10", script.asks, [
        field(0, "choices", { required: true, choices: rooms, default: [1] }),
        field(1, "choice", { required: true, choices: ["1", "2", "3"] }),
        field(2, "integer", { description: script.more, default: 2 }),
        field(3, "boolean", { default: true }),
        field(4, "text"),
      ]);
  },
  form_without_fields: (stage, script) =>
    stage
      .connected()
      .earlier()
      .says(16, "user", script.clean)
      .starts(15, "c11", "home__clean_room", "home", { room: "hall" })
      .asks(14, "c11", script.asks, [])
      .event(9, {
        type: "question_ended",
        call_id: "c11",
        tool: "home__clean_room",
        question_id: "c11-question",
        answer: "declined",
        by: "form",
      })
      .ends(8, "c11", "home__clean_room", "home", 7000, { outcome: "refused" })
      .starts(5, "c12", "home__clean_room", "home", { room: "kitchen" })
      .asks(4, "c12", script.again, [])
      .filledIn("c12"),
  timers: (stage) =>
    stage
      .connected()
      .earlier()
      .event(1, {
        type: "timers_changed",
        now: NOW / 1000 - 1,
        timers: [
          { number: 1, kind: "timer", name: "pasta", due: NOW / 1000 - 8, ringing: true },
          { number: 2, kind: "timer", name: "", due: NOW / 1000 + 545, ringing: false },
          { number: 3, kind: "alarm", name: "", due: NOW / 1000 + 79_200, ringing: false },
          {
            number: 4,
            kind: "reminder",
            name: "call the plumber about the tap in the small bathroom",
            due: NOW / 1000 + 9_000,
            ringing: false,
          },
        ],
        more: 2,
      }),
  failed: (stage, script) =>
    stage
      .connected()
      .says(20, "user", script.clean)
      .starts(19, "c6", "home__clean_room", "home", { room: "living room" })
      .ends(14, "c6", "home__clean_room", "home", 5000, {
        outcome: "timeout",
        reason: "home did not answer within 5 s. Check that the vacuum cleaner is switched on.",
        decisions: [
          { by: "policy", verdict: "allowed", line: "caal.toml, line 12", took_ms: 0.1 },
        ],
      })
      .starts(13.5, "c7", "send_message", "n8n", { to: "***", text: "The vacuum is stuck" })
      .ends(13, "c7", "send_message", "n8n", 480, {
        outcome: "error",
        reason: "The workflow answered 502.",
      })
      .event(12.8, { type: "claim_corrected", claim: script.claim, became: "sentence" })
      .starts(12.5, "c8", "unlock_door", "home", { door: "front" })
      .event(12.4, {
        type: "confirmation_asked",
        call_id: "c8",
        tool: "unlock_door",
        words: script.question,
        arguments_hash: "aa",
      })
      .event(9, {
        type: "confirmation_ended",
        call_id: "c8",
        tool: "unlock_door",
        answer: "no",
        by: "button",
      })
      .ends(8.9, "c8", "unlock_door", "home", 3600, { outcome: "refused" })
      .event(5, { type: "tool_source", source: "calendar", state: "down", reason: "" })
      .agent("listening"),
  disconnected: (stage) =>
    stage
      .connected()
      .earlier()
      .starts(9, "c9", "home__clean_room", "home", { room: "hall" })
      .lost({ kind: "no_server", detail: "", retryAt: NOW + 4_000 }),
  reconnecting: (stage) => stage.connected().earlier().act({ type: "reconnecting" }),
  key_missing: (stage) => stage.lost({ kind: "key_missing", detail: "", retryAt: null }),
  denied: (stage) =>
    stage.connected().earlier().act({ type: "microphone", microphone: "denied" }),
  sound: (stage) => stage.connected().earlier(),
  details: (stage) => stage.connected().earlier(),
  hold: (stage) =>
    stage.connected().earlier().act({ type: "microphone", microphone: "muted" }),
  steer: (stage) => stage.connected().earlier(),
  findings: (stage) => stage.connected().earlier(),
  look: (stage, script) =>
    stage
      .connected()
      .earlier()
      .says(7, "user", script.clean)
      .event(6.2, { type: "cue", kind: "tool" })
      .starts(6.1, "c4", "home__clean_room", "home", { room: "living room", passes: 2 })
      .agent("thinking", "tool", "home__clean_room"),
};

export const SCENE_NAMES = Object.keys(SCENES);

export function conversationOf(scene: string, language: string): Conversation {
  const script = language === "de" ? DE : EN;
  const make = SCENES[scene] ?? SCENES.start!;
  return make(new Stage(script), script).conversation;
}
