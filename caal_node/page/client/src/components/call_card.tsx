/** The card of one tool call: what it does, how far it is, how it ended, and its question. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";

import { type Call, type Form, isAsking, type Question } from "../conversation";
import { toolWords } from "../incoming";
import type { Actions } from "../session";
import { objectWords, type Texts, timeWords } from "../texts";
import { QuestionForm } from "./question_form";
import { Icon, type IconName, useFocusKept, useNow, useTexts } from "./shared";

const API_CALL = "api_";
const REASON_CHARS = 300;
/** After so long without the question's end, the buttons work again. */
const ANSWER_LATE_MS = 6_000;

/** Return a call in words: "Set light · kitchen, off". */
export function callWords(texts: Texts, call: Call): string {
  const object = objectWords(texts, call.parts);
  return toolWords(call.tool) + (object ? ` · ${object}` : "");
}

export function outcomeWords(texts: Texts, call: Call): string {
  if (call.outcome === null) return texts.running;
  return call.outcome === "unknown" ? texts.unknownOutcome : texts.outcome[call.outcome];
}

export function CallCard({ call, actions }: { call: Call; actions: Actions }): JSX.Element {
  const texts = useTexts();
  const isRunning = call.outcome === null;
  const asks = isRunning && isAsking(call);
  const now = useNow(isRunning, 200);
  const object = objectWords(texts, call.parts);
  const took = isRunning ? now - call.startedAt : call.durationMs;
  const look = asks ? "asking" : (call.outcome ?? "running");
  return (
    <article class={`call call-${look}`} tabIndex={-1}>
      <span class="call-sign" aria-hidden="true">
        <Sign look={look} />
      </span>
      <h3 class="call-title">
        <span class="call-verb">{toolWords(call.tool)}</span>
        {object && (
          <>
            <span class="call-dot"> · </span>
            <span class="call-object">{object}</span>
          </>
        )}
      </h3>
      <p class="call-meta">
        <span class="call-outcome">{asks ? texts.waitsForYou : outcomeWords(texts, call)}</span>
        {call.outcome !== "unknown" && <span class="call-time">{timeWords(texts, took)}</span>}
        <span class="call-place">{placeWords(texts, call)}</span>
      </p>
      {isRunning && call.progress && <Progress call={call} progress={call.progress} />}
      {call.question && isRunning && call.question.answer === null && (
        <QuestionBox call={call} question={call.question} actions={actions} />
      )}
      {call.question && call.question.answer !== null && (
        <p class="call-note">{texts.answered(call.question.answer, call.question.by)}</p>
      )}
      {call.form && isRunning && call.form.end === null && (
        <FormOrNote call={call} form={call.form} actions={actions} />
      )}
      {call.form && call.form.end !== null && (
        <p class="call-note">{texts.formEnded(call.form.end, call.form.by)}</p>
      )}
      {call.outcome === "unknown" && <p class="call-note">{texts.unknownHint}</p>}
      {call.outcome === "dry_run" && <p class="call-note">{texts.dryRunHint}</p>}
      {call.reason && call.outcome !== "ok" && (
        <p class="call-reason">
          {call.reason.length > REASON_CHARS
            ? `${call.reason.slice(0, REASON_CHARS)}…`
            : call.reason}
        </p>
      )}
      <Details call={call} />
    </article>
  );
}

function Sign({ look }: { look: string }): JSX.Element {
  if (look === "running") {
    return (
      <svg class="spinner" viewBox="0 0 24 24" focusable="false">
        <circle class="spinner-track" cx="12" cy="12" r="8" />
        <circle class="spinner-part" cx="12" cy="12" r="8" pathLength="100" />
      </svg>
    );
  }
  const names: Record<string, IconName> = {
    ok: "done",
    error: "failed",
    timeout: "failed",
    asking: "question",
    unknown: "question",
  };
  return <Icon name={names[look] ?? "stopped"} />;
}

function placeWords(texts: Texts, call: Call): string {
  const place =
    call.tier === "agent" ? texts.builtIn : call.tier === "n8n" ? texts.n8n : texts.server(call.source);
  return call.callId.startsWith(API_CALL) ? `${place}, ${texts.overApi}` : place;
}

function Progress(props: {
  call: Call;
  progress: NonNullable<Call["progress"]>;
}): JSX.Element {
  const texts = useTexts();
  const { done, total, message } = props.progress;
  return (
    <div class="call-progress">
      {total !== null && (
        <progress value={done} max={total} aria-label={texts.progress(toolWords(props.call.tool))} />
      )}
      {message && <p>{message}</p>}
    </div>
  );
}

function QuestionBox(props: {
  call: Call;
  question: Question;
  actions: Actions;
}): JSX.Element {
  const texts = useTexts();
  const { call, question, actions } = props;
  const now = useNow(question.sentAt !== null, 1_000);
  const [pin, setPin] = useState("");
  const box = useRef<HTMLDivElement>(null);
  useFocusKept(box, ".call");
  const isSent = question.sentAt !== null && now - question.sentAt < ANSWER_LATE_MS;
  return (
    <div class="question" role="group" aria-label={texts.questionTitle} ref={box}>
      <p class="question-words">{question.words}</p>
      <form
        class="question-buttons"
        onSubmit={(event) => {
          event.preventDefault();
          actions.answer(call.key, question.pin ? { pin } : { yes: true });
          setPin("");
        }}
      >
        {question.pin && (
          <input
            type="password"
            autocomplete="off"
            maxLength={64}
            required
            aria-label={texts.pin}
            placeholder={texts.pin}
            value={pin}
            onInput={(event) => setPin(event.currentTarget.value)}
          />
        )}
        <button type="submit" class="button primary" disabled={isSent}>
          {question.pin ? texts.sendPin : texts.yes}
        </button>
        <button
          type="button"
          class="button"
          disabled={isSent}
          onClick={() => actions.answer(call.key, { yes: false })}
        >
          {texts.no}
        </button>
        {isSent && (
          <span class="quiet" role="status">
            {texts.answerSent}
          </span>
        )}
      </form>
    </div>
  );
}

function FormOrNote(props: { call: Call; form: Form; actions: Actions }): JSX.Element {
  const texts = useTexts();
  const { form } = props;
  if (!form.message) return <p class="call-note">{texts.asksHidden}</p>;
  return <QuestionForm key={form.id} {...props} />;
}

function Details({ call }: { call: Call }): JSX.Element | null {
  const texts = useTexts();
  const rules = call.decisions.filter((each) => each.line || each.verdict);
  if (!call.argumentsText && !call.result && rules.length === 0) return null;
  return (
    <details class="call-details">
      <summary>
        <span class="call-details-word">{texts.details}</span>
        <Icon name="more" />
      </summary>
      <dl>
        <dt>{texts.toolTitle}</dt>
        <dd>
          <code>{call.tool}</code>
        </dd>
        {call.argumentsText && (
          <>
            <dt>{texts.argumentsTitle}</dt>
            <dd>
              <pre tabIndex={0}>{call.argumentsText}</pre>
            </dd>
          </>
        )}
        {call.result && (
          <>
            <dt>{texts.resultTitle}</dt>
            <dd>
              <pre tabIndex={0}>{call.result}</pre>
            </dd>
          </>
        )}
        {rules.length > 0 && (
          <>
            <dt>{texts.rulesTitle}</dt>
            <dd>
              <ul class="rules">
                {rules.map((rule, i) => (
                  <li key={i}>
                    {rule.by}: {rule.verdict}
                    {rule.line && <span class="quiet"> {rule.line}</span>}
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
      </dl>
    </details>
  );
}
