/** The state of the conversation in large letters, and the controls of the sound. */

import type { JSX, TargetedPointerEvent } from "preact";
import { useEffect } from "preact/hooks";

import { openQuestion, runningCalls } from "../conversation";
import { toolWords } from "../incoming";
import type { Actions, View } from "../session";
import { microphoneWorks, stageOf } from "../stage";
import { Figure } from "./figure";
import { Hidden, Icon, useNow, useTexts } from "./shared";

/** Agents that are started on demand load their models before they join. */
const AGENT_LATE_MS = 15_000;

export function StagePanel({ view, actions }: { view: View; actions: Actions }): JSX.Element {
  const texts = useTexts();
  const { conversation, settings, held } = view;
  const stage = stageOf(conversation);
  const holds = settings.pushToTalk;
  const works = microphoneWorks(conversation) && conversation.phase === "connected";
  const isOn = conversation.microphone === "on";
  const now = useNow(stage === "waiting", 1_000);
  useHeldSpace(holds && works, actions);
  useEffect(() => {
    document.title = `${texts.stage[stage]} · ${texts.title}`;
  }, [stage, texts]);

  const tool = runningCalls(conversation).at(-1)?.tool ?? conversation.agent.tool;
  let hint = texts.stageHint[stage];
  if (stage === "asking" && openQuestion(conversation)?.form?.end === null) hint = texts.formHint;
  if (stage === "asking" && openQuestion(conversation)?.question?.pin) hint = texts.pinHint;
  if (stage === "working" && tool) hint = toolWords(tool);
  const isLate =
    stage === "waiting" && now - (conversation.agentAwaitedAt ?? now) > AGENT_LATE_MS;
  if (holds && works && (stage === "muted" || stage === "listening")) hint = texts.holdHint;
  const label = holds && stage === "muted" ? texts.stage.silent : texts.stage[stage];
  const isMutedToo = works && !isOn && !holds && stage !== "muted" && stage !== "asking";
  const inside = (
    <>
      <Figure stage={stage} levels={actions.levels} />
      <span class="stage-words">
        <span class="stage-name">{label}</span>
        {hint && <span class="stage-hint">{hint}</span>}
        {isMutedToo && <span class="stage-hint">{texts.agentMicOff}</span>}
      </span>
    </>
  );
  const press = holdable(actions);
  const problem = texts.microphoneProblem[conversation.microphone];
  return (
    <section class={`stage stage-${stage}`} aria-label={texts.state}>
      {!works && <div class="stage-area">{inside}</div>}
      {works && holds && (
        <button type="button" class="stage-area" aria-pressed={held} {...press}>
          {inside}
          <Hidden>{texts.hold}</Hidden>
        </button>
      )}
      {works && !holds && (
        <button type="button" class="stage-area" onClick={() => actions.toggleMicrophone()}>
          {inside}
          <Hidden>{isOn ? texts.muteLong : texts.unmuteLong}</Hidden>
        </button>
      )}
      {isLate && (
        <div class="notice" role="status">
          <p>{texts.noAgent}</p>
        </div>
      )}
      {conversation.phase === "lost" && <ProblemNotice view={view} actions={actions} />}
      {conversation.soundBlocked && conversation.phase === "connected" && (
        <div class="notice" role="alert">
          <p>{texts.soundBlocked}</p>
          <button type="button" class="button primary" onClick={() => actions.startSound()}>
            <Icon name="sound" />
            {texts.soundOn}
          </button>
        </div>
      )}
      {conversation.phase === "connected" && problem && (
        <div class="notice" role="status">
          <p>{problem}</p>
          {conversation.microphone !== "asking" && conversation.microphone !== "insecure" && (
            <button type="button" class="button" onClick={() => actions.retryMicrophone()}>
              {texts.askAgain}
            </button>
          )}
        </div>
      )}
      {(conversation.phase === "connected" || conversation.phase === "reconnecting") && (
        <div class="controls">
          {works && holds && (
            <button
              type="button"
              class={held ? "button primary talk-button" : "button talk-button"}
              aria-pressed={held}
              {...press}
            >
              <Icon name="microphone" />
              <span class="talk-button-words">{held ? texts.holding : texts.hold}</span>
            </button>
          )}
          {works && !holds && (
            <button
              type="button"
              class={isOn ? "button talk-button" : "button primary talk-button"}
              onClick={() => actions.toggleMicrophone()}
            >
              <Icon name={isOn ? "muted" : "microphone"} />
              <span class="talk-button-words">{isOn ? texts.mute : texts.unmute}</span>
            </button>
          )}
          <SoundSettings view={view} actions={actions} />
        </div>
      )}
    </section>
  );
}

function ProblemNotice({ view, actions }: { view: View; actions: Actions }): JSX.Element | null {
  const texts = useTexts();
  const { problem } = view.conversation;
  const now = useNow(problem?.retryAt != null, 500);
  if (!problem) return null;
  return (
    <div class="notice problem">
      <p role="alert">{problem.detail || texts.problem[problem.kind]}</p>
      {problem.retryAt !== null && (
        <p class="quiet">{texts.retryIn(Math.ceil((problem.retryAt - now) / 1000))}</p>
      )}
      {problem.kind !== "key_missing" && (
        <button type="button" class="button primary" onClick={() => actions.retry()}>
          {problem.kind === "other_tab" ? texts.continueHere : texts.tryAgain}
        </button>
      )}
    </div>
  );
}

function SoundSettings({ view, actions }: { view: View; actions: Actions }): JSX.Element {
  const texts = useTexts();
  const { settings, devices } = view;
  const canChooseSpeaker = "setSinkId" in HTMLMediaElement.prototype;
  return (
    <details
      class="sound"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary")?.focus();
      }}
    >
      <summary class="button">
        <Icon name="settings" />
        <span class="sound-title">{texts.sound}</span>
      </summary>
      <div class="sound-body">
        <DeviceChoice
          label={texts.microphone}
          devices={devices.microphones}
          chosen={settings.microphone}
          choose={(microphone) => actions.setSettings({ ...settings, microphone })}
        />
        {canChooseSpeaker ? (
          <DeviceChoice
            label={texts.loudspeaker}
            devices={devices.loudspeakers}
            chosen={settings.loudspeaker}
            choose={(loudspeaker) => actions.setSettings({ ...settings, loudspeaker })}
          />
        ) : (
          <p class="quiet">{texts.speakerFixed}</p>
        )}
        {view.deviceFailed && <p role="alert">{texts.deviceFailed}</p>}
        <label class="check">
          <input
            type="checkbox"
            checked={settings.pushToTalk}
            onChange={(event) =>
              actions.setSettings({ ...settings, pushToTalk: event.currentTarget.checked })
            }
          />
          <span>
            {texts.pushToTalk}
            <span class="quiet">{texts.pushToTalkHint}</span>
          </span>
        </label>
        <button type="button" class="button" onClick={() => actions.end()}>
          <Icon name="end" />
          {texts.end}
        </button>
      </div>
    </details>
  );
}

function DeviceChoice(props: {
  label: string;
  devices: readonly MediaDeviceInfo[];
  chosen: string;
  choose: (id: string) => void;
}): JSX.Element {
  const texts = useTexts();
  const isThere = props.devices.some((each) => each.deviceId === props.chosen);
  return (
    <label class="field">
      <span class="field-name">{props.label}</span>
      <select
        value={isThere ? props.chosen : ""}
        onChange={(event) => props.choose(event.currentTarget.value)}
      >
        <option value="">{texts.standard}</option>
        {props.devices.map((each, i) => (
          <option key={each.deviceId} value={each.deviceId}>
            {each.label || texts.device(i + 1)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What makes a button talk while it is held, by pointer or by key. */
function holdable(actions: Actions) {
  const isKey = (event: KeyboardEvent) => event.key === " " || event.key === "Enter";
  return {
    onPointerDown: (event: TargetedPointerEvent<HTMLElement>) => {
      event.currentTarget.setPointerCapture(event.pointerId);
      actions.hold(true);
    },
    onPointerUp: () => actions.hold(false),
    onPointerCancel: () => actions.hold(false),
    onContextMenu: (event: Event) => event.preventDefault(),
    onKeyDown: (event: KeyboardEvent) => {
      if (!isKey(event)) return;
      event.preventDefault();
      if (!event.repeat) actions.hold(true);
    },
    onKeyUp: (event: KeyboardEvent) => {
      if (isKey(event)) actions.hold(false);
    },
    onBlur: () => actions.hold(false),
  };
}

/** Space talks wherever it does not mean something else: in a text, or on a button. */
function useHeldSpace(active: boolean, actions: Actions): void {
  useEffect(() => {
    if (!active) return;
    const isTaken = (target: EventTarget | null) =>
      target instanceof Element &&
      target.closest("input, textarea, select, button, summary, a, [contenteditable]") !== null;
    const down = (event: KeyboardEvent) => {
      if (event.key !== " " || isTaken(event.target)) return;
      event.preventDefault();
      if (!event.repeat) actions.hold(true);
    };
    const up = (event: KeyboardEvent) => {
      if (event.key === " " && !isTaken(event.target)) actions.hold(false);
    };
    const away = () => actions.hold(false);
    addEventListener("keydown", down);
    addEventListener("keyup", up);
    addEventListener("blur", away);
    return () => {
      removeEventListener("keydown", down);
      removeEventListener("keyup", up);
      removeEventListener("blur", away);
    };
  }, [active, actions]);
}
