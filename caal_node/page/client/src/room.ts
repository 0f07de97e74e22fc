/** The room: what LiveKit reports becomes calls of a listener, and what the page wants is sent. */

import {
  ConnectionError,
  ConnectionErrorReason,
  createAudioAnalyser,
  DisconnectReason,
  LocalAudioTrack,
  MediaDeviceFailure,
  type Participant,
  RemoteAudioTrack,
  type RemoteParticipant,
  type RemoteTrack,
  Room,
  RoomEvent,
  type TextStreamReader,
  Track,
} from "livekit-client";

import type { Agent, Microphone, ProblemKind, Speaker } from "./conversation";
import { MESSAGE_CHARS } from "./incoming";

export interface RoomListener {
  message(text: string, own: boolean): void;
  transcribed(words: {
    speaker: Speaker;
    name: string;
    segment: string;
    text: string;
    final: boolean;
  }): void;
  agentChanged(agent: Agent): void;
  microphoneChanged(microphone: Microphone): void;
  soundBlocked(blocked: boolean): void;
  devicesChanged(): void;
  reconnecting(): void;
  reconnected(): void;
  disconnected(problem: ProblemKind): void;
}

/** The room could not be joined. */
export class JoinError extends Error {
  constructor(readonly kind: ProblemKind) {
    super(kind);
  }
}

/** The values of a form by the names of its fields; of choices, their places. */
export type FormContent = Readonly<Record<string, string | number | boolean | readonly number[]>>;

export interface Levels {
  /** From 0 to 1. */
  readonly microphone: number;
  readonly agent: number;
}

const EVENTS_OF_THIS_PAGE = "caal.page";
const EVENTS_OF_EVERYONE = "caal.tools";
const TRANSCRIPTION = "lk.transcription";
const CHAT = "lk.chat";
const CONFIRM = "caal.confirm";
/** A message that is not whole by then does not hold up those behind it. */
const EVENT_DEADLINE_MS = 5_000;

interface Meter {
  calculateVolume(): number;
  cleanup(): Promise<void>;
}

/** What a button sends for a call that waits for a person. */
export type CallAnswer = { readonly yes: boolean } | { readonly pin: string };

export class VoiceRoom {
  private readonly room: Room;
  private readonly sounds: HTMLElement;
  private readonly meters = new Map<Track, Meter>();
  private microphoneWanted = false;
  private left = false;
  /** The events that are being read. They are read one after the other, as they were sent. */
  private reading: Promise<void> = Promise.resolve();

  constructor(
    private readonly listener: RoomListener,
    devices: { microphone: string; loudspeaker: string },
  ) {
    this.room = new Room({
      audioCaptureDefaults: {
        ...(devices.microphone ? { deviceId: devices.microphone } : {}),
        echoCancellation: true,
        noiseSuppression: true,
        autoGainControl: true,
      },
      ...(devices.loudspeaker ? { audioOutput: { deviceId: devices.loudspeaker } } : {}),
    });
    this.sounds = document.createElement("div");
    this.sounds.hidden = true;
    this.listen();
  }

  /** Join the room. Call it in a click, so that the browser lets the page make sound. */
  async connect(url: string, token: string): Promise<void> {
    document.body.append(this.sounds);
    try {
      await this.room.connect(url, token);
    } catch (error) {
      this.sounds.remove();
      throw new JoinError(whyNotJoined(error));
    }
    this.listener.soundBlocked(!this.room.canPlaybackAudio);
  }

  /** Report the agent that is in the room already. */
  announceAgent(): void {
    this.agentMayHaveChanged();
  }

  async startSound(): Promise<void> {
    try {
      await this.room.startAudio();
    } catch {
      // The listener hears whether the sound is blocked.
    }
    this.listener.soundBlocked(!this.room.canPlaybackAudio);
  }

  /** Switch the microphone; the listener hears what became of it. */
  async setMicrophone(on: boolean): Promise<void> {
    this.microphoneWanted = on;
    if (!navigator.mediaDevices?.getUserMedia) {
      this.listener.microphoneChanged("insecure");
      return;
    }
    const local = this.room.localParticipant;
    if (on && !local.getTrackPublication(Track.Source.Microphone)) {
      this.listener.microphoneChanged("asking");
    }
    try {
      await local.setMicrophoneEnabled(on);
    } catch (error) {
      this.listener.microphoneChanged(whyNoMicrophone(error));
      return;
    }
    if (this.left) return;
    if (this.microphoneWanted !== on) {
      // The button was released before the browser was ready.
      await this.setMicrophone(this.microphoneWanted);
      return;
    }
    this.listener.microphoneChanged(on && local.isMicrophoneEnabled ? "on" : "muted");
  }

  /** Publish the microphone and mute it, so that holding a button only has to unmute it. */
  async askForMicrophone(): Promise<void> {
    await this.setMicrophone(true);
    if (this.room.localParticipant.isMicrophoneEnabled) await this.setMicrophone(false);
  }

  async sendWords(text: string): Promise<void> {
    await this.sendText(text, CHAT);
  }

  /** Answer a call that waits. */
  async answer(callId: string, hash: string, answer: CallAnswer): Promise<void> {
    const message = JSON.stringify({ call_id: callId, arguments_hash: hash, ...answer });
    await this.confirm(message);
  }

  /** Answer what a server asks; null refuses. */
  async fillIn(callId: string, questionId: string, content: FormContent | null): Promise<void> {
    const message = JSON.stringify({ call_id: callId, question_id: questionId, content });
    await this.confirm(message);
  }

  /** Use a device from now on; "" is the default of the system. */
  async useDevice(kind: "audioinput" | "audiooutput", id: string): Promise<boolean> {
    try {
      return await this.room.switchActiveDevice(kind, id || "default");
    } catch {
      return false;
    }
  }

  levels(): Levels {
    let agent = 0;
    let microphone = 0;
    for (const [track, meter] of this.meters) {
      const level = Math.min(1, meter.calculateVolume() * 2.5);
      if (track instanceof LocalAudioTrack) microphone = track.isMuted ? 0 : level;
      else agent = Math.max(agent, level);
    }
    return { microphone, agent };
  }

  async leave(): Promise<void> {
    this.left = true;
    this.stopMeters();
    this.sounds.remove();
    await this.room.disconnect();
  }

  /** `LocalParticipant.sendText` makes ids in a way that browsers have on secure origins only. */
  /** Send to the agent alone what others in the room must not read, such as a PIN. */
  private async confirm(message: string): Promise<void> {
    const agents = this.agents().map((each) => each.identity);
    if (agents.length === 0) throw new Error("no agent is in the room");
    await this.sendText(message, CONFIRM, agents);
  }

  private agents(): RemoteParticipant[] {
    return [...this.room.remoteParticipants.values()].filter((each) => each.isAgent);
  }

  private async sendText(text: string, topic: string, to?: string[]): Promise<void> {
    const streamId = [...crypto.getRandomValues(new Uint8Array(16))]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
    const writer = await this.room.localParticipant.streamText({
      topic,
      streamId,
      ...(to ? { destinationIdentities: to } : {}),
    });
    await writer.write(text);
    await writer.close();
  }

  private listen(): void {
    const { room, listener } = this;
    room
      .on(RoomEvent.ParticipantConnected, () => this.agentMayHaveChanged())
      .on(RoomEvent.ParticipantDisconnected, () => this.agentMayHaveChanged())
      .on(RoomEvent.ParticipantAttributesChanged, () => this.agentMayHaveChanged())
      .on(RoomEvent.TrackSubscribed, (track) => this.play(track))
      .on(RoomEvent.TrackUnsubscribed, (track) => {
        this.stopMeter(track);
        for (const element of track.detach()) element.remove();
      })
      .on(RoomEvent.LocalTrackPublished, ({ track }) => {
        if (track instanceof LocalAudioTrack) this.meter(track);
      })
      .on(RoomEvent.LocalTrackUnpublished, ({ track }) => {
        if (track) this.stopMeter(track);
      })
      .on(RoomEvent.AudioPlaybackStatusChanged, () => listener.soundBlocked(!room.canPlaybackAudio))
      .on(RoomEvent.ActiveDeviceChanged, (kind) => {
        // The meter still hears the device before.
        const track = room.localParticipant.getTrackPublication(Track.Source.Microphone)?.track;
        if (kind === "audioinput" && track instanceof LocalAudioTrack) this.meter(track);
      })
      .on(RoomEvent.MediaDevicesChanged, () => listener.devicesChanged())
      .on(RoomEvent.SignalReconnecting, () => listener.reconnecting())
      .on(RoomEvent.Reconnecting, () => listener.reconnecting())
      .on(RoomEvent.Reconnected, () => {
        listener.reconnected();
        this.agentMayHaveChanged();
      })
      .on(RoomEvent.Disconnected, (reason) => {
        this.stopMeters();
        this.sounds.remove();
        if (!this.left) listener.disconnected(whyDisconnected(reason));
      });
    room.registerTextStreamHandler(EVENTS_OF_THIS_PAGE, (reader, { identity }) => {
      this.reading = this.reading.then(() => this.readEvent(reader, identity, true));
    });
    room.registerTextStreamHandler(EVENTS_OF_EVERYONE, (reader, { identity }) => {
      this.reading = this.reading.then(() => this.readEvent(reader, identity, false));
    });
    room.registerTextStreamHandler(TRANSCRIPTION, (reader, { identity }) => {
      void this.readTranscription(reader, identity);
    });
  }

  private async readEvent(
    reader: TextStreamReader,
    identity: string,
    own: boolean,
  ): Promise<void> {
    // Another participant could otherwise show questions that nobody has asked.
    if (!this.room.getParticipantByIdentity(identity)?.isAgent) return;
    const whole = reader.withAbortSignal(AbortSignal.timeout(EVENT_DEADLINE_MS));
    const text = await readText(whole, () => undefined);
    if (text) this.listener.message(text, own);
  }

  private async readTranscription(reader: TextStreamReader, identity: string): Promise<void> {
    const participant = this.room.getParticipantByIdentity(identity);
    const isAgent = participant?.isAgent === true;
    const isOwn = identity === this.room.localParticipant.identity;
    const speaker: Speaker = isAgent ? "agent" : isOwn ? "user" : "other";
    const segment = reader.info.attributes?.["lk.segment_id"] || reader.info.id;
    const name = speaker === "other" ? participant?.name || identity : "";
    const show = (text: string, final: boolean): void =>
      this.listener.transcribed({ speaker, name, segment, text, final });
    // The agent's words grow as they are spoken; a person's come as a whole, again and again.
    const text = await readText(reader, (sofar) => {
      if (isAgent) show(sofar, false);
    });
    if (text === null) return;
    show(text, isAgent || reader.info.attributes?.["lk.transcription_final"] === "true");
  }

  private agentMayHaveChanged(): void {
    const agents = this.agents();
    const agent: Participant | undefined =
      agents.find((each) => "lk.agent.state" in each.attributes) ?? agents[0];
    const attributes = agent?.attributes ?? {};
    this.listener.agentChanged({
      present: agent !== undefined,
      state: attributes["lk.agent.state"] ?? "",
      caalState: attributes["caal.state"] ?? "",
      tool: attributes["caal.tool"] ?? "",
    });
  }

  private play(track: RemoteTrack): void {
    if (!(track instanceof RemoteAudioTrack)) return;
    this.sounds.append(track.attach());
    this.meter(track);
  }

  private meter(track: LocalAudioTrack | RemoteAudioTrack): void {
    this.stopMeter(track);
    try {
      this.meters.set(track, createAudioAnalyser(track, { cloneTrack: false }));
    } catch {
      // The levels are an ornament: without them the conversation goes on.
    }
  }

  private stopMeter(track: Track): void {
    void this.meters.get(track)?.cleanup();
    this.meters.delete(track);
  }

  private stopMeters(): void {
    for (const track of [...this.meters.keys()]) this.stopMeter(track);
  }
}

/** Read a stream to its end; null where it breaks or is too long. */
async function readText(
  reader: TextStreamReader,
  grown: (sofar: string) => void,
): Promise<string | null> {
  let text = "";
  try {
    for await (const piece of reader) {
      text += piece;
      if (text.length > MESSAGE_CHARS) return null;
      grown(text);
    }
  } catch {
    // What has come of an answer that was cut off was heard.
    return text || null;
  }
  return text;
}

function whyNotJoined(error: unknown): ProblemKind {
  if (error instanceof ConnectionError) {
    if (/max participants|is full/i.test(error.message)) return "room_full";
    if (error.reason === ConnectionErrorReason.LeaveRequest) return "room_closed";
  }
  return "room_unreachable";
}

function whyDisconnected(reason: DisconnectReason | undefined): ProblemKind {
  switch (reason) {
    case DisconnectReason.DUPLICATE_IDENTITY:
      return "other_tab";
    case DisconnectReason.PARTICIPANT_REMOVED:
      return "removed";
    case DisconnectReason.ROOM_DELETED:
    case DisconnectReason.ROOM_CLOSED:
      return "room_closed";
    default:
      return "connection_lost";
  }
}

function whyNoMicrophone(error: unknown): Microphone {
  switch (MediaDeviceFailure.getFailure(error)) {
    case MediaDeviceFailure.PermissionDenied:
      return "denied";
    case MediaDeviceFailure.NotFound:
      return "missing";
    case MediaDeviceFailure.DeviceInUse:
      return "busy";
    default:
      return "failed";
  }
}
