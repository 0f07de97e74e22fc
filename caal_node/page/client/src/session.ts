/** Keeps the conversation connected: joins, tries again, and turns what happens into its state. */

import {
  type Action,
  type Conversation,
  EMPTY,
  type ProblemKind,
  reduce,
} from "./conversation";
import { readEvent } from "./incoming";
import { type CallAnswer, type FormContent, JoinError, type Levels, type RoomListener, VoiceRoom } from "./room";
import { Server, ServerError } from "./server";
import { loadSettings, saveSettings, type Settings } from "./settings";

const RETRY_MS = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/** A connection that lasted so long has not failed at once, so the waits begin anew. */
const STEADY_MS = 20_000;
/** These need the user: trying again by itself would change nothing, or fight with another tab. */
const FINAL: readonly ProblemKind[] = [
  "key_missing",
  "key_refused",
  "room_full",
  "other_tab",
  "removed",
  "room_closed",
];
const SILENT: Levels = { microphone: 0, agent: 0 };
/** The last sound of a word is not cut off. */
const RELEASE_MS = 250;

export interface Devices {
  readonly microphones: readonly MediaDeviceInfo[];
  readonly loudspeakers: readonly MediaDeviceInfo[];
}

/** What components are given to act; the scenes give one that does nothing. */
export interface Actions {
  start(): void;
  retry(): void;
  end(): void;
  toggleMicrophone(): void;
  retryMicrophone(): void;
  hold(held: boolean): void;
  startSound(): void;
  setSettings(settings: Settings): void;
  send(text: string): Promise<boolean>;
  answer(key: string, answer: CallAnswer): void;
  /** Answer what a server asks; null refuses. */
  fillIn(key: string, content: FormContent | null): void;
  readonly levels: () => Levels;
}

export interface View {
  readonly conversation: Conversation;
  readonly settings: Settings;
  readonly devices: Devices;
  readonly held: boolean;
  readonly deviceFailed: boolean;
}

export class Session implements Actions {
  view: View;
  private room: VoiceRoom | null = null;
  private listeners = new Set<() => void>();
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private releaseTimer: ReturnType<typeof setTimeout> | undefined;
  private attempts = 0;
  private connectedAt = 0;
  private everConnected = false;
  /** Whether the user has muted the microphone, which a new connection keeps. */
  private muted = false;
  private attempt = 0;

  constructor(private readonly server: Server) {
    this.view = {
      conversation: EMPTY,
      settings: loadSettings(),
      devices: { microphones: [], loudspeakers: [] },
      held: false,
      deviceFailed: false,
    };
    addEventListener("online", () => {
      if (this.view.conversation.problem?.retryAt) this.retry();
    });
    navigator.mediaDevices?.addEventListener?.("devicechange", () => void this.findDevices());
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  start(): void {
    this.attempts = 0;
    void this.join();
  }

  retry(): void {
    this.attempts = 0;
    void this.join();
  }

  end(): void {
    clearTimeout(this.retryTimer);
    this.attempt += 1;
    void this.room?.leave();
    this.room = null;
    this.muted = false;
    this.everConnected = false;
    this.change({ conversation: { ...EMPTY }, held: false });
  }

  toggleMicrophone(): void {
    if (this.view.settings.pushToTalk) return;
    const { microphone } = this.view.conversation;
    if (microphone !== "on" && microphone !== "muted") return;
    this.muted = microphone === "on";
    void this.room?.setMicrophone(!this.muted);
  }

  retryMicrophone(): void {
    this.muted = false;
    void this.room?.setMicrophone(true).then(() => {
      void this.findDevices();
      if (this.view.settings.pushToTalk && !this.view.held) void this.room?.setMicrophone(false);
    });
  }

  hold(held: boolean): void {
    if (!this.view.settings.pushToTalk || held === this.view.held) return;
    const { microphone } = this.view.conversation;
    if (microphone !== "on" && microphone !== "muted") return;
    this.change({ held });
    clearTimeout(this.releaseTimer);
    if (held) void this.room?.setMicrophone(true);
    else {
      this.releaseTimer = setTimeout(() => void this.room?.setMicrophone(false), RELEASE_MS);
    }
  }

  startSound(): void {
    void this.room?.startSound();
  }

  setSettings(settings: Settings): void {
    const before = this.view.settings;
    saveSettings(settings);
    this.change({ settings, deviceFailed: false });
    const { room } = this;
    if (!room) return;
    if (settings.microphone !== before.microphone) {
      void this.use(room, "audioinput", settings.microphone);
    }
    if (settings.loudspeaker !== before.loudspeaker) {
      void this.use(room, "audiooutput", settings.loudspeaker);
    }
    const { microphone } = this.view.conversation;
    if (
      settings.pushToTalk !== before.pushToTalk &&
      (microphone === "on" || microphone === "muted")
    ) {
      this.muted = false;
      void room.setMicrophone(!settings.pushToTalk);
    }
  }

  async send(text: string): Promise<boolean> {
    const { room } = this;
    if (!room || this.view.conversation.phase !== "connected") return false;
    try {
      await room.sendWords(text);
    } catch {
      return false;
    }
    this.act({ type: "typed", text, at: Date.now() });
    return true;
  }

  answer(key: string, answer: CallAnswer): void {
    const call = this.view.conversation.calls.get(key);
    const { room } = this;
    if (!room || !call?.question) return;
    this.act({ type: "answering", key, at: Date.now() });
    room.answer(call.callId, call.question.hash, answer).catch(() => {
      this.act({ type: "answer_failed", key });
    });
  }

  fillIn(key: string, content: FormContent | null): void {
    const call = this.view.conversation.calls.get(key);
    const { room } = this;
    if (!room || !call?.form) return;
    this.act({ type: "filled_in", key, at: Date.now() });
    room.fillIn(call.callId, call.form.id, content).catch(() => {
      this.act({ type: "form_failed", key });
    });
  }

  readonly levels = (): Levels => this.room?.levels() ?? SILENT;

  private async join(): Promise<void> {
    clearTimeout(this.retryTimer);
    this.attempt += 1;
    const attempt = this.attempt;
    const isOld = () => attempt !== this.attempt;
    void this.room?.leave();
    this.act({ type: "joining" });
    const room = new VoiceRoom(this.listenerOf(() => !isOld()), this.view.settings);
    this.room = room;
    // This is still in the click, which is when browsers let a page begin to sound.
    const sound = this.everConnected ? null : room.startSound();
    try {
      // A token is asked for each time, as one that was refused or has expired is of no more use.
      const { url, token } = await this.server.join();
      if (isOld()) return;
      await room.connect(url, token);
    } catch (error) {
      if (!isOld()) this.lost(...problemOf(error));
      return;
    }
    if (isOld()) {
      void room.leave();
      return;
    }
    this.connectedAt = Date.now();
    this.act({ type: "connected", rejoined: this.everConnected, at: this.connectedAt });
    this.everConnected = true;
    room.announceAgent();
    await sound;
    if (this.muted || this.view.settings.pushToTalk) await room.askForMicrophone();
    else await room.setMicrophone(true);
    void this.findDevices();
  }

  private lost(kind: ProblemKind, detail: string): void {
    this.attempt += 1;
    if (this.connectedAt && Date.now() - this.connectedAt > STEADY_MS) this.attempts = 0;
    this.connectedAt = 0;
    clearTimeout(this.retryTimer);
    this.change({ held: false });
    let retryAt: number | null = null;
    if (!FINAL.includes(kind)) {
      const wait = RETRY_MS[Math.min(this.attempts, RETRY_MS.length - 1)] ?? 30_000;
      this.attempts += 1;
      retryAt = Date.now() + wait;
      this.retryTimer = setTimeout(() => void this.join(), wait);
    }
    this.act({ type: "lost", problem: { kind, detail, retryAt } });
  }

  private async use(
    room: VoiceRoom,
    kind: "audioinput" | "audiooutput",
    id: string,
  ): Promise<void> {
    if (!(await room.useDevice(kind, id))) this.change({ deviceFailed: true });
  }

  private async findDevices(): Promise<void> {
    try {
      const all = await navigator.mediaDevices.enumerateDevices();
      const of = (kind: MediaDeviceKind) =>
        all.filter((each) => each.kind === kind && each.deviceId && each.deviceId !== "default");
      this.change({
        devices: { microphones: of("audioinput"), loudspeakers: of("audiooutput") },
      });
    } catch {
      // Without a list, the default of the system is used.
    }
  }

  /** A room that was left may still report things; they are of no interest. */
  private listenerOf(room: () => boolean): RoomListener {
    const act = (action: Action) => {
      if (room()) this.act(action);
    };
    return {
      message: (text, own) => {
        const event = readEvent(text);
        if (event) act({ type: "event", event, own, at: Date.now() });
      },
      transcribed: (words) => act({ type: "transcribed", ...words, at: Date.now() }),
      agentChanged: (agent) => act({ type: "agent", agent, at: Date.now() }),
      microphoneChanged: (microphone) => act({ type: "microphone", microphone }),
      soundBlocked: (blocked) => act({ type: "sound_blocked", blocked }),
      devicesChanged: () => void this.findDevices(),
      reconnecting: () => act({ type: "reconnecting" }),
      reconnected: () => act({ type: "reconnected" }),
      disconnected: (problem) => {
        if (room() && this.view.conversation.phase !== "joining") this.lost(problem, "");
      },
    };
  }

  private act(action: Action): void {
    const conversation = reduce(this.view.conversation, action);
    if (conversation !== this.view.conversation) this.change({ conversation });
  }

  private change(part: Partial<View>): void {
    this.view = { ...this.view, ...part };
    for (const listener of this.listeners) listener();
  }
}

function problemOf(error: unknown): [ProblemKind, string] {
  if (error instanceof JoinError) return [error.kind, ""];
  if (error instanceof ServerError) {
    switch (error.kind) {
      case "no_key":
        return ["key_missing", ""];
      case "refused":
        return ["key_refused", error.detail];
      case "unreachable":
        return ["no_server", ""];
      case "said":
      case "odd":
        return ["server_said", error.detail];
    }
  }
  return ["room_unreachable", ""];
}
