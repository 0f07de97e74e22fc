/** What the page shows in its largest letters: what the agent does now. */

import type { Conversation } from "./conversation";
import { openQuestion, runningCalls } from "./conversation";

export type Stage =
  | "start"
  | "connecting"
  | "waiting"
  | "warming"
  | "listening"
  | "thinking"
  | "working"
  | "asking"
  | "speaking"
  | "muted"
  | "silent"
  | "reconnecting"
  | "lost";

/** Whether the microphone can be switched on and off. */
export function microphoneWorks(state: Conversation): boolean {
  return state.microphone === "on" || state.microphone === "muted";
}

export function stageOf(state: Conversation): Stage {
  switch (state.phase) {
    case "start":
      return "start";
    case "joining":
      return "connecting";
    case "reconnecting":
      return "reconnecting";
    case "lost":
      return "lost";
    case "connected":
      break;
  }
  if (!state.agent.present) return "waiting";
  if (openQuestion(state)) return "asking";
  if (state.agent.state === "speaking") return "speaking";
  if (state.agent.caalState === "tool" || runningCalls(state).length > 0) return "working";
  if (state.agent.state === "thinking") return "thinking";
  if (state.agent.caalState === "warming" || state.agent.state === "initializing") return "warming";
  if (state.microphone === "on") return "listening";
  return state.microphone === "muted" ? "muted" : "silent";
}
