/** Every text that the page shows, in English and German. The compiler checks that both are whole. */

import type {
  Answer,
  AnsweredBy,
  ArgumentPart,
  Became,
  FilledBy,
  Outcome,
  QuestionEnd,
  SetTimer,
  TimerKind,
} from "./incoming";
import type { Microphone, ProblemKind } from "./conversation";
import type { FindingStatus } from "./server";
import type { Stage } from "./stage";

/** Return the words for a value, or the value itself where it is a newer one. */
function known(words: Readonly<Record<string, string>>, value: string): string {
  return Object.hasOwn(words, value) ? (words[value] ?? value) : value;
}

/** Return how many digits of a time in seconds say something. */
function digits(ms: number): number {
  if (ms < 995) return 2;
  return ms < 9_950 ? 1 : 0;
}

const en = {
  lang: "en" as string,
  title: "caal",
  skip: "Skip to the conversation",
  views: "Views",
  state: "State",
  talk: "Talk",
  steer: "Steer",
  look: "Look",
  waitsForYou: "waits for your answer",

  start: "Start talking",
  startLead: "Talk to your agent",
  startBody:
    "Ask for something, and watch what it does: each tool it uses appears as a card, and it asks you before it does what cannot be undone.",
  startHint: "Your browser will ask for the microphone. Without one, you can type.",

  stage: {
    start: "Ready",
    connecting: "Connecting",
    waiting: "Waiting for the agent",
    warming: "Warming up",
    listening: "Listening",
    thinking: "Thinking",
    working: "Working",
    asking: "Your answer?",
    speaking: "Speaking",
    muted: "Muted",
    silent: "Ready",
    reconnecting: "Reconnecting",
    lost: "Disconnected",
  } satisfies Record<Stage, string> as Record<Stage, string>,
  stageHint: {
    start: "",
    connecting: "One moment.",
    waiting: "It joins in a few seconds.",
    warming: "You can speak already.",
    listening: "Go ahead.",
    thinking: "",
    working: "",
    asking: "Say yes or no, or use the buttons.",
    speaking: "You can interrupt at any time.",
    muted: "The microphone is off.",
    silent: "Type what you want.",
    reconnecting: "What you see stays here.",
    lost: "",
  } satisfies Record<Stage, string> as Record<Stage, string>,
  noAgent:
    "No agent has joined yet. Look at the window in which caal-node up runs: it says what the agent waits for.",
  holdHint: "Hold Space or the button while you speak.",
  agentMicOff: "The microphone is off as well.",

  mute: "Mute",
  unmute: "Unmute",
  muteLong: "Mute the microphone",
  unmuteLong: "Switch the microphone on",
  hold: "Hold to talk",
  holding: "Release to send",
  microphone: "Microphone",
  loudspeaker: "Loudspeaker",
  sound: "Sound settings",
  standard: "Default of the system",
  device: (n: number) => `Device ${n}`,
  pushToTalk: "Push to talk",
  pushToTalkHint: "The microphone is on only while you hold Space or the button.",
  speakerFixed: "This browser plays through the loudspeaker of the system.",
  deviceFailed: "This device could not be used. Choose another one.",
  soundBlocked: "The browser has blocked the sound.",
  soundOn: "Turn the sound on",
  end: "End the conversation",
  askAgain: "Try the microphone again",

  microphoneProblem: {
    unknown: "",
    asking: "Allow the microphone in the browser's question.",
    on: "",
    muted: "",
    denied:
      "The browser may not use the microphone. Allow it in the address bar, then try again. Until then, type below: answers are still spoken.",
    missing:
      "No microphone was found. Plug one in, then try again. Until then, type below: answers are still spoken.",
    busy: "Another program uses the microphone. Close it, then try again. Until then, type below: answers are still spoken.",
    insecure:
      "The browser gives no microphone to this page. Open it by https or on localhost, or use a newer browser. Until then, type below: answers are still spoken.",
    failed:
      "The microphone could not be opened. Choose another one in the sound settings, or try again. Until then, type below: answers are still spoken.",
  } satisfies Record<Microphone, string> as Record<Microphone, string>,

  problem: {
    key_missing: "This page needs its key. Open the link that caal-node up printed.",
    key_refused: "The key was refused. Open the link that caal-node up printed last.",
    no_server: "The server does not answer. Check that caal-node up still runs.",
    server_said: "The server could not open a room.",
    room_unreachable:
      "The voice connection could not be opened. Check that caal-node up still runs and that no firewall is in the way.",
    room_full: "The room is full. Close this page in other browsers, then try again.",
    other_tab: "The conversation goes on in another tab. Use that one, or continue here.",
    removed: "You were removed from the room. Try again to join a new one.",
    room_closed: "The room was closed. Try again to open a new one.",
    connection_lost: "The connection was lost.",
  } satisfies Record<ProblemKind, string> as Record<ProblemKind, string>,
  tryAgain: "Try again",
  continueHere: "Continue here",
  retryIn: (seconds: number) =>
    seconds <= 0 ? "Trying again now." : `Trying again in ${seconds} s.`,

  conversation: "Conversation",
  empty: "Your conversation appears here.",
  emptyHint: "Say something, or type below.",
  you: "You",
  agent: "Agent",
  other: "Someone else",
  newest: "Newest",
  write: "Type a message",
  send: "Send",
  notSent: "The message was not sent. Check the connection, then send it again.",
  writeOffline: "Not connected. You can send when the connection is back.",
  lostGap: "Connection lost",
  backGap: "Connected again",

  callsOfTurn: (n: number) => (n === 1 ? "1 tool call" : `${n} tool calls`),
  builtIn: "built in",
  n8n: "n8n workflow",
  server: (name: string) => (name ? `${name} server` : "server"),
  overApi: "asked for over the API",
  running: "running",
  unknownOutcome: "end unknown",
  unknownHint: "The connection was lost before this call ended, so it may have run. Ask the agent before you repeat it.",
  outcome: {
    ok: "done",
    error: "failed",
    timeout: "timed out",
    refused: "refused",
    cancelled: "cancelled",
    dry_run: "dry run",
  } satisfies Record<Outcome, string> as Record<Outcome, string>,
  dryRunHint: "Nothing was done: caal-node runs dry.",
  outcomeNews: (call: string, outcome: string) => `${call}: ${outcome}`,
  progress: (tool: string) => `Progress of ${tool}`,
  details: "Details",
  argumentsTitle: "Arguments",
  resultTitle: "Result",
  rulesTitle: "Rules",
  toolTitle: "Tool",
  questionTitle: "May this run?",
  yes: "Yes",
  pin: "PIN",
  sendPin: "Send the PIN",
  pinHint: "Say the PIN, or type it below.",
  no: "No",
  yesLong: (words: string) => `Yes: ${words}`,
  noLong: (words: string) => `No: ${words}`,
  answerSent: "Sent. Waiting for the agent.",
  answerNotSent: "The answer was not sent. Try again, or say it.",
  answered: (answer: Answer, by: AnsweredBy): string => {
    const how = by === "button" ? " with the button" : by === "words" ? " by voice or text" : "";
    switch (answer) {
      case "yes":
        return `You said yes${how}.`;
      case "no":
        return `You said no${how}.`;
      case "correction":
        return `You asked for something else${how}.`;
      case "unclear":
        return "The answer was not clear, so it did not run.";
      case "silence":
        return "Nobody answered, so it did not run.";
      case "cancelled":
        return "The question ended without an answer.";
    }
  },
  formHint: "Answer aloud, or in the form.",
  asksHidden: "Its server asks something that only the page of the person who is asked shows.",
  optional: "(optional)",
  choose: "Choose…",
  chooseOne: "Choose at least one.",
  sendForm: "Send answer",
  refuseForm: "Do not answer",
  answerLate: "The agent has not taken this answer. Check it and send it again, or say it.",
  formEnded: (end: QuestionEnd, by: FilledBy): string => {
    const how = by === "form" ? " in the form" : by === "words" ? " by voice or text" : "";
    switch (end) {
      case "accepted":
        return `You answered${how}.`;
      case "declined":
        return `You refused to answer${how}.`;
      case "dismissed":
        return "You left the question without an answer.";
      case "cancelled":
        return "The question ended without an answer.";
    }
  },

  timers: "Timers and alarms",
  timerKind: {
    timer: "Timer",
    alarm: "Alarm",
    reminder: "Reminder",
    request: "Request",
  } satisfies Record<TimerKind, string> as Record<TimerKind, string>,
  moreTimers: (n: number) => (n === 1 ? "and 1 more" : `and ${n} more`),
  rings: "rings now",
  ringsNow: (timer: string) => `${timer} rings now.`,
  stopRinging: "Stop",
  stopRingingWords: "Stop the ringing.",
  sayStop: "Or say “stop”.",
  switchWords: (part: Extract<ArgumentPart, { kind: "switch" }>): string => {
    if (part.name === "on" || part.name === "off") {
      return part.on === (part.name === "on") ? "on" : "off";
    }
    return `${part.name}: ${part.on ? "yes" : "no"}`;
  },

  sources: "Sources",
  toolsShown: "Tools that the model was shown:",
  toolsFound: "Tools that the model's search found:",
  corrected: "Corrected",
  claimBecame: (became: Became): string => {
    switch (became) {
      case "call":
        return "The agent was about to say this without having done it. It made the call instead.";
      case "sentence":
        return "The agent was about to say this without having done it. You heard that it was not done.";
      case "nothing":
        return "The agent was about to say this without having done it. You did not hear it.";
    }
  },
  factHeard: (heard: string) => heard || "Left out, as the results say otherwise.",
  factHint: "The tool's result says otherwise.",
  speechFailed: "The agent's voice failed, so this was not heard, or not all of it.",
  speechFailedHint: (reason: string) => `${reason}; see the agent's log.`,
  sourceDown: (source: string) => `${source} cannot be used now.`,
  sourceDownHint: "Its tools are missing until it is back.",
  sourceBack: (source: string) => `${source} can be used again.`,

  steerLead: "What the agent may do, and the model that decides.",
  model: "Model",
  modelNow: "In use",
  modelApi: (api: string) => `by ${api}`,
  modelField: "Change to",
  modelChange: "Change",
  modelChanged: (model: string) => `The agent now uses ${model}.`,
  tools: "Tools",
  search: "Search tools",
  toolCount: (shown: number, all: number) =>
    shown === all ? (all === 1 ? "1 tool" : `${all} tools`) : `${shown} of ${all} tools`,
  noTools: "The agent has no tools yet. Add some with caal-node tools add, then reload.",
  noMatch: "No tool matches. Try another word.",
  reload: "Reload tools",
  reloading: "Reloading…",
  reloaded: (count: number, added: number, removed: number, changed: number) => {
    const parts = [
      added ? `${added} added` : "",
      removed ? `${removed} removed` : "",
      changed ? `${changed} changed` : "",
    ].filter(Boolean);
    return `${count === 1 ? "1 tool" : `${count} tools`}: ${parts.join(", ") || "nothing changed"}.`;
  },
  loading: "Loading…",
  verdict: (verdict: string): string =>
    known({ allow: "runs", ask: "asks first", deny: "not allowed" }, verdict),
  effect: (effect: string): string =>
    known({ read: "only reads", write: "changes things", destructive: "cannot be undone" }, effect),
  notOffered: "not shown to the model",
  serverProblem: "The server does not answer. Check that caal-node up still runs, then try again.",
  serverOdd: "The server gave an answer that this page cannot read. Reload the page.",

  servers: "Servers",
  serverReady: "ready",
  serverDown: "down",
  serverFix: "Fix that, then reload the tools. “Check now” below looks at every part.",
  switches: "Sounds and checks of answers",
  switchOn: "on",
  switchOff: "off",
  switchesFix: "These hold for this conversation. For all, write in .env, for example:",
  switchName: (name: string): string =>
    known(
      {
        cues: "Sounds of tools",
        claims: "Claims",
        facts: "Facts",
        hedges: "Searches",
        needless_calls: "Unnecessary calls",
        references: "References",
      },
      name,
    ),
  switchHint: (name: string): string =>
    known(
      {
        cues: "A short sound when a tool starts, and when one fails.",
        claims: "An answer that claims what no tool has done is corrected.",
        facts: "An answer is checked against the results of its tools.",
        hedges: "The agent searches once instead of saying that it cannot know.",
        needless_calls: "A tool call without a reason in your words is dropped.",
        references: "The model reads what “the second one” or “there” means.",
      },
      name,
    ),
  findings: "What to fix",
  findingsHint: "Looks at the model, LiveKit, every server, speech and settings, as caal-node doctor does.",
  checkNow: "Check now",
  checking: "Checking. This can take a minute.",
  findingStatus: (status: FindingStatus): string =>
    ({ ok: "in order", warn: "look at it", fail: "fix it" })[status],
  findingCount: (status: FindingStatus, n: number): string =>
    n ? `${n} ${{ ok: "in order", warn: "to look at", fail: "to fix" }[status]}` : "",

  lookLead: "Where the time of the last turns went, from the end of your words.",
  lookEmpty: "The next turn appears here as soon as you have spoken.",
  turnUntitled: "Without words of yours",
  legendCall: "tool call",
  legendCue: "first cue",
  legendSpoken: "first spoken word",
  seconds: (ms: number) => `${(ms / 1000).toFixed(digits(ms))} s`,
  minutes: (ms: number) => {
    const seconds = Math.round(ms / 1000);
    return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  },
  firstSpokenAfter: (time: string) => `first spoken word after ${time}`,
  firstCallAfter: (time: string) => `first call after ${time}`,
  nothingYet: "nothing yet",
  requests: (n: number) => (n === 1 ? "1 request to the model" : `${n} requests to the model`),
  chart: (words: string) => `Times of the turn “${words}”`,
  traceTitle: "A recorded conversation",
  traceLead: "Opens a file that CAAL_TRACE wrote. It stays between your browser and caal-node.",
  traceFile: "Trace file",
  traceTurns: (n: number) => (n === 1 ? "1 turn" : `The last ${n} turns`),
  traceTurn: (n: number, at: Date) => `Turn ${n}, ${at.toLocaleTimeString("en-GB")}`,
  lane: {
    listening: (_: number) => "listening",
    request: (n: number) => `request ${n}`,
    cue: (_: number) => "first cue",
    voice: (_: number) => "voice",
  },
};

export type Texts = typeof en;

const de: Texts = {
  lang: "de",
  title: "caal",
  skip: "Zum Gespräch springen",
  views: "Ansichten",
  state: "Zustand",
  talk: "Sprechen",
  steer: "Steuern",
  look: "Verlauf",
  waitsForYou: "wartet auf deine Antwort",

  start: "Gespräch beginnen",
  startLead: "Sprich mit deinem Agenten",
  startBody:
    "Bitte ihn um etwas und sieh, was er tut: Jedes Werkzeug erscheint als Karte, und bevor er etwas tut, das sich nicht rückgängig machen lässt, fragt er dich.",
  startHint: "Der Browser fragt gleich nach dem Mikrofon. Ohne Mikrofon kannst du tippen.",

  stage: {
    start: "Bereit",
    connecting: "Verbinden",
    waiting: "Warten auf den Agenten",
    warming: "Aufwärmen",
    listening: "Ich höre zu",
    thinking: "Nachdenken",
    working: "Arbeiten",
    asking: "Deine Antwort?",
    speaking: "Sprechen",
    muted: "Stumm",
    silent: "Bereit",
    reconnecting: "Neu verbinden",
    lost: "Getrennt",
  },
  stageHint: {
    start: "",
    connecting: "Einen Moment.",
    waiting: "Er kommt in wenigen Sekunden.",
    warming: "Du kannst schon sprechen.",
    listening: "Sprich einfach.",
    thinking: "",
    working: "",
    asking: "Sag Ja oder Nein, oder nimm die Knöpfe.",
    speaking: "Du kannst jederzeit unterbrechen.",
    muted: "Das Mikrofon ist aus.",
    silent: "Tippe, was du möchtest.",
    reconnecting: "Was du siehst, bleibt stehen.",
    lost: "",
  },
  noAgent:
    "Noch ist kein Agent da. Sieh in das Fenster, in dem caal-node up läuft: Dort steht, worauf er wartet.",
  holdHint: "Halte die Leertaste oder den Knopf, während du sprichst.",
  agentMicOff: "Das Mikrofon ist auch aus.",

  mute: "Stumm",
  unmute: "Mikrofon an",
  muteLong: "Mikrofon stummschalten",
  unmuteLong: "Mikrofon einschalten",
  hold: "Zum Sprechen halten",
  holding: "Loslassen zum Senden",
  microphone: "Mikrofon",
  loudspeaker: "Lautsprecher",
  sound: "Toneinstellungen",
  standard: "Standard des Systems",
  device: (n) => `Gerät ${n}`,
  pushToTalk: "Zum Sprechen halten",
  pushToTalkHint: "Das Mikrofon ist nur an, solange du die Leertaste oder den Knopf hältst.",
  speakerFixed: "Dieser Browser nutzt den Lautsprecher des Systems.",
  deviceFailed: "Dieses Gerät ließ sich nicht benutzen. Wähle ein anderes.",
  soundBlocked: "Der Browser hat den Ton gesperrt.",
  soundOn: "Ton einschalten",
  end: "Gespräch beenden",
  askAgain: "Mikrofon erneut versuchen",

  microphoneProblem: {
    unknown: "",
    asking: "Erlaube das Mikrofon in der Frage des Browsers.",
    on: "",
    muted: "",
    denied:
      "Der Browser darf das Mikrofon nicht benutzen. Erlaube es in der Adressleiste und versuche es erneut. Bis dahin kannst du unten tippen; die Antworten hörst du trotzdem.",
    missing:
      "Es wurde kein Mikrofon gefunden. Schließe eines an und versuche es erneut. Bis dahin kannst du unten tippen; die Antworten hörst du trotzdem.",
    busy: "Ein anderes Programm benutzt das Mikrofon. Schließe es und versuche es erneut. Bis dahin kannst du unten tippen; die Antworten hörst du trotzdem.",
    insecure:
      "Der Browser gibt dieser Seite kein Mikrofon. Öffne sie über https oder auf localhost, oder nimm einen neueren Browser. Bis dahin kannst du unten tippen; die Antworten hörst du trotzdem.",
    failed:
      "Das Mikrofon ließ sich nicht öffnen. Wähle in den Toneinstellungen ein anderes oder versuche es erneut. Bis dahin kannst du unten tippen; die Antworten hörst du trotzdem.",
  },

  problem: {
    key_missing:
      "Dieser Seite fehlt ihr Schlüssel. Öffne den Link, den caal-node up ausgegeben hat.",
    key_refused:
      "Der Schlüssel wurde abgelehnt. Öffne den Link, den caal-node up zuletzt ausgegeben hat.",
    no_server: "Der Server antwortet nicht. Prüfe, ob caal-node up noch läuft.",
    server_said: "Der Server konnte keinen Raum öffnen.",
    room_unreachable:
      "Die Sprachverbindung kam nicht zustande. Prüfe, ob caal-node up noch läuft und keine Firewall sie sperrt.",
    room_full:
      "Der Raum ist voll. Schließe diese Seite in anderen Browsern und versuche es erneut.",
    other_tab:
      "Das Gespräch läuft in einem anderen Tab weiter. Nimm jenen, oder mach hier weiter.",
    removed: "Du wurdest aus dem Raum entfernt. Versuche es erneut, um einen neuen zu betreten.",
    room_closed: "Der Raum wurde geschlossen. Versuche es erneut, um einen neuen zu öffnen.",
    connection_lost: "Die Verbindung ist abgerissen.",
  },
  tryAgain: "Erneut versuchen",
  continueHere: "Hier weitermachen",
  retryIn: (seconds) =>
    seconds <= 0 ? "Neuer Versuch läuft." : `Neuer Versuch in ${seconds} s.`,

  conversation: "Gespräch",
  empty: "Hier erscheint dein Gespräch.",
  emptyHint: "Sag etwas oder tippe unten.",
  you: "Du",
  agent: "Agent",
  other: "Jemand anderes",
  newest: "Neuestes",
  write: "Nachricht tippen",
  send: "Senden",
  notSent: "Die Nachricht wurde nicht gesendet. Prüfe die Verbindung und sende sie erneut.",
  writeOffline: "Nicht verbunden. Senden geht wieder, sobald die Verbindung da ist.",
  lostGap: "Verbindung abgerissen",
  backGap: "Wieder verbunden",

  callsOfTurn: (n) => (n === 1 ? "1 Aufruf" : `${n} Aufrufe`),
  builtIn: "eingebaut",
  n8n: "n8n-Workflow",
  server: (name) => (name ? `Server ${name}` : "Server"),
  overApi: "über die API verlangt",
  running: "läuft",
  unknownOutcome: "Ende unbekannt",
  unknownHint:
    "Die Verbindung riss ab, bevor dieser Aufruf endete; er kann also gelaufen sein. Frage den Agenten, bevor du ihn wiederholst.",
  outcome: {
    ok: "erledigt",
    error: "fehlgeschlagen",
    timeout: "zu lange gedauert",
    refused: "abgelehnt",
    cancelled: "abgebrochen",
    dry_run: "Probelauf",
  },
  dryRunHint: "Es wurde nichts getan: caal-node läuft zur Probe.",
  outcomeNews: (call, outcome) => `${call}: ${outcome}`,
  progress: (tool) => `Fortschritt von ${tool}`,
  details: "Einzelheiten",
  argumentsTitle: "Argumente",
  resultTitle: "Ergebnis",
  rulesTitle: "Regeln",
  toolTitle: "Werkzeug",
  questionTitle: "Darf das laufen?",
  yes: "Ja",
  pin: "PIN",
  sendPin: "PIN senden",
  pinHint: "Sag die PIN oder tippe sie ein.",
  no: "Nein",
  yesLong: (words) => `Ja: ${words}`,
  noLong: (words) => `Nein: ${words}`,
  answerSent: "Gesendet. Der Agent ist dran.",
  answerNotSent: "Die Antwort wurde nicht gesendet. Versuche es erneut oder sag sie.",
  answered: (answer, by) => {
    const how =
      by === "button" ? " (mit dem Knopf)" : by === "words" ? " (gesagt oder getippt)" : "";
    switch (answer) {
      case "yes":
        return `Deine Antwort: Ja${how}.`;
      case "no":
        return `Deine Antwort: Nein${how}.`;
      case "correction":
        return `Du wolltest etwas anderes${how}.`;
      case "unclear":
        return "Die Antwort war nicht klar, darum lief es nicht.";
      case "silence":
        return "Niemand hat geantwortet, darum lief es nicht.";
      case "cancelled":
        return "Die Frage endete ohne Antwort.";
    }
  },
  formHint: "Antworte laut oder im Formular.",
  asksHidden: "Sein Server fragt etwas, das nur die Seite der gefragten Person zeigt.",
  optional: "(freiwillig)",
  choose: "Bitte wählen…",
  chooseOne: "Wähle mindestens eines.",
  sendForm: "Antwort senden",
  refuseForm: "Nicht antworten",
  answerLate:
    "Der Agent hat diese Antwort nicht angenommen. Prüfe sie und sende sie noch einmal, oder sag sie.",
  formEnded: (end, by) => {
    const how = by === "form" ? " (im Formular)" : by === "words" ? " (gesagt oder getippt)" : "";
    switch (end) {
      case "accepted":
        return `Du hast geantwortet${how}.`;
      case "declined":
        return `Du wolltest nicht antworten${how}.`;
      case "dismissed":
        return "Du hast die Frage ohne Antwort gelassen.";
      case "cancelled":
        return "Die Frage endete ohne Antwort.";
    }
  },

  timers: "Timer und Wecker",
  timerKind: {
    timer: "Timer",
    alarm: "Wecker",
    reminder: "Erinnerung",
    request: "Auftrag",
  },
  moreTimers: (n) => `und ${n} weitere`,
  rings: "klingelt",
  ringsNow: (timer) => `${timer} klingelt.`,
  stopRinging: "Ausschalten",
  stopRingingWords: "Stopp, mach das Klingeln aus.",
  sayStop: "Oder sag „Stopp“.",
  switchWords: (part) => {
    if (part.name === "on" || part.name === "off") {
      return part.on === (part.name === "on") ? "an" : "aus";
    }
    return `${part.name}: ${part.on ? "ja" : "nein"}`;
  },

  sources: "Quellen",
  toolsShown: "Werkzeuge, die das Modell gezeigt bekam:",
  toolsFound: "Werkzeuge, die die Suche des Modells fand:",
  corrected: "Korrigiert",
  claimBecame: (became) => {
    switch (became) {
      case "call":
        return "Der Agent wollte das sagen, ohne es getan zu haben. Stattdessen hat er es getan.";
      case "sentence":
        return "Der Agent wollte das sagen, ohne es getan zu haben. Du hast gehört, dass es nicht getan ist.";
      case "nothing":
        return "Der Agent wollte das sagen, ohne es getan zu haben. Du hast es nicht gehört.";
    }
  },
  factHeard: (heard) => heard || "Weggelassen, denn die Ergebnisse sagen etwas anderes.",
  factHint: "Das Ergebnis des Werkzeugs sagt etwas anderes.",
  speechFailed: "Die Stimme des Agenten ist ausgefallen; das war nicht oder nicht ganz zu hören.",
  speechFailedHint: (reason) => `${reason}; mehr steht im Protokoll des Agenten.`,
  sourceDown: (source) => `${source} ist gerade nicht benutzbar.`,
  sourceDownHint: "Die Werkzeuge fehlen, bis die Quelle wieder da ist.",
  sourceBack: (source) => `${source} ist wieder benutzbar.`,

  steerLead: "Was der Agent tun darf, und das Modell, das entscheidet.",
  model: "Modell",
  modelNow: "In Benutzung",
  modelApi: (api) => `über ${api}`,
  modelField: "Wechseln zu",
  modelChange: "Wechseln",
  modelChanged: (model) => `Der Agent benutzt jetzt ${model}.`,
  tools: "Werkzeuge",
  search: "Werkzeuge suchen",
  toolCount: (shown, all) =>
    shown === all
      ? all === 1
        ? "1 Werkzeug"
        : `${all} Werkzeuge`
      : `${shown} von ${all} Werkzeugen`,
  noTools:
    "Der Agent hat noch keine Werkzeuge. Füge mit caal-node tools add welche hinzu und lade neu.",
  noMatch: "Kein Werkzeug passt. Versuche ein anderes Wort.",
  reload: "Werkzeuge neu laden",
  reloading: "Wird geladen…",
  reloaded: (count, added, removed, changed) => {
    const parts = [
      added ? `${added} neu` : "",
      removed ? `${removed} entfernt` : "",
      changed ? `${changed} geändert` : "",
    ].filter(Boolean);
    const all = count === 1 ? "1 Werkzeug" : `${count} Werkzeuge`;
    return `${all}: ${parts.join(", ") || "nichts geändert"}.`;
  },
  loading: "Wird geladen…",
  verdict: (verdict) =>
    known({ allow: "läuft", ask: "fragt vorher", deny: "nicht erlaubt" }, verdict),
  effect: (effect) =>
    known({ read: "liest nur", write: "ändert etwas", destructive: "nicht umkehrbar" }, effect),
  notOffered: "dem Modell nicht gezeigt",
  serverProblem:
    "Der Server antwortet nicht. Prüfe, ob caal-node up noch läuft, und versuche es erneut.",
  serverOdd: "Der Server hat etwas geantwortet, das diese Seite nicht lesen kann. Lade sie neu.",

  servers: "Server",
  serverReady: "bereit",
  serverDown: "nicht da",
  serverFix: "Behebe das und lade die Werkzeuge neu. „Jetzt prüfen“ weiter unten sieht alles durch.",
  switches: "Töne und Prüfungen der Antworten",
  switchOn: "an",
  switchOff: "aus",
  switchesFix: "Das gilt für dieses Gespräch. Für alle steht es in .env, zum Beispiel so:",
  switchName: (name) =>
    known(
      {
        cues: "Töne der Werkzeuge",
        claims: "Behauptungen",
        facts: "Tatsachen",
        hedges: "Suchen",
        needless_calls: "Unnötige Aufrufe",
        references: "Bezüge",
      },
      name,
    ),
  switchHint: (name) =>
    known(
      {
        cues: "Ein kurzer Ton, wenn ein Werkzeug beginnt und wenn eines scheitert.",
        claims: "Behauptet eine Antwort, was kein Werkzeug getan hat, wird sie berichtigt.",
        facts: "Eine Antwort wird mit den Ergebnissen ihrer Werkzeuge verglichen.",
        hedges: "Statt zu sagen, dass er es nicht wissen kann, sucht der Agent einmal.",
        needless_calls: "Ein Aufruf, zu dem nichts Gesagtes passt, entfällt.",
        references: "Das Modell liest, was „das zweite“ oder „dort“ bedeutet.",
      },
      name,
    ),
  findings: "Was zu beheben ist",
  findingsHint:
    "Sieht Modell, LiveKit, alle Server, Sprache und Einstellungen durch, wie caal-node doctor. Die Befunde sind englisch.",
  checkNow: "Jetzt prüfen",
  checking: "Wird geprüft. Das kann eine Minute dauern.",
  findingStatus: (status) =>
    ({ ok: "in Ordnung", warn: "ansehen", fail: "beheben" })[status],
  findingCount: (status, n) =>
    n ? `${n} ${{ ok: "in Ordnung", warn: "anzusehen", fail: "zu beheben" }[status]}` : "",

  lookLead: "Wohin die Zeit der letzten Runden ging, vom Ende deiner Worte an.",
  lookEmpty: "Die nächste Runde erscheint hier, sobald du gesprochen hast.",
  turnUntitled: "Ohne Worte von dir",
  legendCall: "Aufruf",
  legendCue: "erstes Signal",
  legendSpoken: "erstes Wort",
  seconds: (ms) => `${(ms / 1000).toFixed(digits(ms)).replace(".", ",")} s`,
  minutes: (ms) => {
    const seconds = Math.round(ms / 1000);
    return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  },
  firstSpokenAfter: (time) => `erstes Wort nach ${time}`,
  firstCallAfter: (time) => `erster Aufruf nach ${time}`,
  nothingYet: "noch nichts",
  requests: (n) => (n === 1 ? "1 Anfrage ans Modell" : `${n} Anfragen ans Modell`),
  chart: (words) => `Zeiten der Runde „${words}“`,
  traceTitle: "Ein aufgezeichnetes Gespräch",
  traceLead: "Öffnet eine Datei von CAAL_TRACE. Sie bleibt zwischen deinem Browser und caal-node.",
  traceFile: "Trace-Datei",
  traceTurns: (n) => (n === 1 ? "1 Runde" : `Die letzten ${n} Runden`),
  traceTurn: (n, at) => `Runde ${n}, ${at.toLocaleTimeString("de-DE")}`,
  lane: {
    listening: () => "zuhören",
    request: (n) => `Anfrage ${n}`,
    cue: () => "erstes Signal",
    voice: () => "Stimme",
  },
};

/** Return the texts of the first of these languages that the page has. */
export function textsFor(languages: readonly string[]): Texts {
  for (const language of languages) {
    if (/^de\b/i.test(language)) return de;
    if (/^en\b/i.test(language)) return en;
  }
  return en;
}

/** Return a span of time as people say it. */
export function timeWords(texts: Texts, ms: number): string {
  return ms < 60_000 ? texts.seconds(Math.max(0, ms)) : texts.minutes(ms);
}

/** Return the short arguments of a call as words: "kitchen, off". */
export function objectWords(texts: Texts, parts: readonly ArgumentPart[]): string {
  return parts
    .map((part) => {
      if (part.kind === "text") return part.text;
      return part.kind === "number" ? numberWords(part) : texts.switchWords(part);
    })
    .join(", ");
}

/** A name in the plural counts something: "10 minutes", but "brightness 40". */
function numberWords(part: Extract<ArgumentPart, { kind: "number" }>): string {
  const counts = /^[a-z]*[a-rt-z]s$/i.test(part.name) || part.name === "percent";
  return counts ? `${part.value} ${part.name}` : `${part.name} ${part.value}`;
}

/** Return what a timer is called: "Timer · pasta". */
export function timerWords(texts: Texts, timer: SetTimer): string {
  const kind = texts.timerKind[timer.kind];
  return timer.name ? `${kind} · ${timer.name}` : kind;
}

/** Return the time that is left as a clock shows it: "9:05", "1:00:00". */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const two = (part: number) => String(part).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const clock = `${hours > 0 ? two(minutes) : minutes}:${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${clock}` : clock;
}

/** Return a moment as people say it: the time, with the day where it is another one. */
export function dueWords(texts: Texts, due: number, now: number): string {
  const at = new Date(due);
  const time: Intl.DateTimeFormatOptions = { hour: "numeric", minute: "2-digit" };
  const isToday = at.toDateString() === new Date(now).toDateString();
  const isNear = due - now < 6 * 86_400_000;
  const day: Intl.DateTimeFormatOptions = isToday
    ? {}
    : isNear
      ? { weekday: "short" }
      : { day: "numeric", month: "short" };
  return new Intl.DateTimeFormat(texts.lang, { ...day, ...time }).format(at);
}
