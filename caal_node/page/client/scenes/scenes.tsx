/** Shows one scene: `?scene=question&lang=de`; without a scene, a list of them. */

import { render } from "preact";

import { App, type ViewName } from "../src/components/app";
import { ClockContext, TextsContext } from "../src/components/shared";
import type { SteeringServer } from "../src/components/steer";
import type { TraceReader } from "../src/components/traced_turns";
import type { Actions, View } from "../src/session";
import "../src/style.css";
import { textsFor } from "../src/texts";
import { conversationOf, NOW, SCENE_NAMES } from "./conversations";

const given = new URLSearchParams(location.search);
const scene = given.get("scene") ?? "";
const language = given.get("lang") ?? "en";
const texts = textsFor([language]);
document.documentElement.lang = texts.lang;

const actions: Actions = {
  start: () => undefined,
  retry: () => undefined,
  end: () => undefined,
  toggleMicrophone: () => undefined,
  retryMicrophone: () => undefined,
  hold: () => undefined,
  startSound: () => undefined,
  setSettings: () => undefined,
  send: () => Promise.resolve(true),
  answer: () => undefined,
  fillIn: () => undefined,
  levels: () => ({ microphone: 0.55, agent: 0.8 }),
};

const switches = {
  cues: true,
  checks: new Map([
    ["claims", true],
    ["facts", true],
    ["hedges", false],
    ["needless_calls", true],
    ["references", true],
  ]),
};

const server: SteeringServer & TraceReader = {
  turns: () => Promise.resolve([]),
  switches: () => Promise.resolve(switches),
  switch: () => Promise.resolve(switches),
  findings: () =>
    Promise.resolve([
      { name: "model server", status: "ok", found: "http://127.0.0.1:11434 has qwen3:4b", fix: "" },
      {
        name: "mcp calendar",
        status: "fail",
        found: "down, over http: http://192.168.1.20:8000/mcp does not answer",
        fix: "Start it, or set \"enabled\": false for it in mcp_servers.json.",
      },
      {
        name: "embedding",
        status: "warn",
        found: "the MiniLM weights are not in the cache: tools are searched for by words alone",
        fix: "Run: caal-node download-files",
      },
      { name: "livekit", status: "ok", found: "ws://127.0.0.1:7880, 1 room", fix: "" },
    ]),
  model: () => Promise.resolve({ model: "qwen3:4b", api: "ollama" }),
  changeModel: (model) => Promise.resolve(model),
  reload: () =>
    Promise.resolve({ count: 6, added: 1, removed: 0, changed: 2, failed: new Map() }),
  tools: () =>
    Promise.resolve({
      failed: new Map([["calendar", "It did not answer. Start it, then reload."]]),
      tools: [
        tool("home__set_light", "mcp", "home", "Turns a light on or off.", "allow", "write"),
        tool("home__clean_room", "mcp", "home", "Vacuums a room.", "allow", "write"),
        tool("unlock_door", "mcp", "home", "Unlocks a door until it is closed.", "ask", "destructive"),
        tool("weather_forecast", "agent", "", "The weather of the next hours.", "allow", "read"),
        tool("send_message", "n8n", "n8n", "Sends a message to a contact.", "ask", "write"),
        tool("delete_backup", "n8n", "n8n", "Deletes a backup for good.", "deny", "destructive"),
      ],
    }),
};

function tool(
  name: string,
  tier: string,
  from: string,
  description: string,
  verdict: string,
  effect: string,
) {
  return { name, tier, server: from, description, offered: verdict !== "deny", verdict, effect };
}

const view: View = {
  conversation: conversationOf(scene, language),
  settings: { pushToTalk: scene === "hold" || scene === "sound", microphone: "", loudspeaker: "" },
  devices: { microphones: [], loudspeakers: [] },
  held: false,
  deviceFailed: false,
};

/** Milliseconds until a scene has rendered what it asked for. */
const SHOWN_MS = 100;
const clock = () => NOW;
const VIEWS: Readonly<Record<string, ViewName>> = { steer: "steer", findings: "steer", look: "look" };
const first: ViewName = VIEWS[scene] ?? "talk";
const root = document.getElementById("page");
if (root) {
  render(
    scene ? (
      <TextsContext.Provider value={texts}>
        <ClockContext.Provider value={clock}>
          <App view={view} actions={actions} server={server} first={first} />
        </ClockContext.Provider>
      </TextsContext.Provider>
    ) : (
      <ul>
        {SCENE_NAMES.map((name) => (
          <li key={name}>
            <a href={`?scene=${name}`}>{name}</a>
          </li>
        ))}
      </ul>
    ),
    root,
  );
  const opened = { sound: ".sound", details: ".call-details" }[scene];
  if (scene === "findings") {
    const part = document.querySelector("[aria-labelledby=findings-title]");
    part?.querySelector("button")?.click();
    setTimeout(() => part?.scrollIntoView(), SHOWN_MS);
  }
  if (opened) {
    for (const each of document.querySelectorAll<HTMLDetailsElement>(opened)) each.open = true;
  }
}
