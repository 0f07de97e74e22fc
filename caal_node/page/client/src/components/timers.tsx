/** The timers and alarms that are set, counting down, and what rings now. */

import type { JSX } from "preact";

import { type Conversation, openQuestion } from "../conversation";
import type { SetTimer } from "../incoming";
import type { Actions } from "../session";
import { countdown, dueWords, timerWords } from "../texts";
import { Icon, useNow, useTexts } from "./shared";

/** Timers that have room above the conversation. */
const SHOWN = 4;

export function TimerList(props: {
  conversation: Conversation;
  actions: Actions;
}): JSX.Element | null {
  const texts = useTexts();
  const { conversation, actions } = props;
  const { set, more, ahead } = conversation.timers;
  const now = useNow(set.length > 0, 500) + ahead;
  if (set.length === 0) return null;
  const ringing = set.filter((timer) => timer.ringing);
  const shown = [...ringing, ...set.filter((timer) => !timer.ringing)].slice(0, SHOWN);
  const left = set.length + more - shown.length;
  // While something is asked, the words would be its answer.
  const canStop = conversation.phase === "connected" && openQuestion(conversation) === null;
  return (
    <section class="timers" aria-label={texts.timers}>
      <ul>
        {shown.map((timer) => (
          <li key={timer.number} class={timer.ringing ? "timer timer-ringing" : "timer"}>
            <Icon name={timer.kind === "timer" ? "timer" : "alarm"} />
            <span class="timer-name">{timerWords(texts, timer)}</span>
            <span class="timer-time">{timeOf(texts, timer, now)}</span>
          </li>
        ))}
        {left > 0 && <li class="quiet">{texts.moreTimers(left)}</li>}
      </ul>
      {ringing.length > 0 && (
        <div class="timers-stop">
          {canStop && (
            <button
              type="button"
              class="button primary"
              onClick={() => void actions.send(texts.stopRingingWords)}
            >
              {texts.stopRinging}
            </button>
          )}
          <span class="quiet">{texts.sayStop}</span>
        </div>
      )}
      <p class="hidden-text" role="alert">
        {ringing.map((timer) => texts.ringsNow(timerWords(texts, timer))).join(" ")}
      </p>
    </section>
  );
}

function timeOf(texts: ReturnType<typeof useTexts>, timer: SetTimer, now: number): string {
  if (timer.ringing) return texts.rings;
  return timer.kind === "timer" ? countdown(timer.due - now) : dueWords(texts, timer.due, now);
}
