/** What a server asks while its tool runs, as a form: the answer is sent, or refused. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import type { Call, Form } from "../conversation";
import type { FormField } from "../incoming";
import type { FormContent } from "../room";
import type { Actions } from "../session";
import { useFocusKept, useNow, useTexts } from "./shared";

/** After so long without the question's end, the answer was not taken, and can be sent again. */
const ANSWER_LATE_MS = 6_000;
/** Characters that the agent takes of a text. */
const TEXT_CHARS = 2_000;

type Value = FormContent[string];

export function QuestionForm(props: { call: Call; form: Form; actions: Actions }): JSX.Element {
  const texts = useTexts();
  const { call, form, actions } = props;
  const now = useNow(form.sentAt !== null, 1_000);
  const element = useRef<HTMLFormElement>(null);
  useFocusKept(element, ".call");
  const isSent = form.sentAt !== null && now - form.sentAt < ANSWER_LATE_MS;
  const isLate = form.sentAt !== null && !isSent;
  const id = `${call.key}-${form.id}`;
  const send = (content: FormContent | null) => {
    if (!isSent) actions.fillIn(call.key, content);
  };
  // The buttons stay as they are while the answer is on its way: a disabled one loses the focus.
  return (
    <form
      class="question"
      aria-labelledby={id}
      ref={element}
      onInput={(event) => forgetMissing(event.currentTarget)}
      onSubmit={(event) => {
        event.preventDefault();
        const content = contentOf(event.currentTarget, form.fields, texts.chooseOne);
        if (content) send(content);
      }}
    >
      <p class="question-words" id={id}>
        {form.message}
      </p>
      {form.fields.map((field, place) => (
        <Field key={field.name} field={field} place={place} id={`${id}-${place}`} />
      ))}
      <div class="question-buttons">
        <button type="submit" class="button primary" aria-disabled={isSent}>
          {form.fields.length === 0 ? texts.yes : texts.sendForm}
        </button>
        <button type="button" class="button" aria-disabled={isSent} onClick={() => send(null)}>
          {form.fields.length === 0 ? texts.no : texts.refuseForm}
        </button>
        <span class="quiet" role="status">
          {isSent && texts.answerSent}
          {isLate && texts.answerLate}
        </span>
      </div>
      {form.failed && (
        <p class="call-note" role="alert">
          {texts.answerNotSent}
        </p>
      )}
    </form>
  );
}

function Field(props: { field: FormField; place: number; id: string }): JSX.Element {
  const texts = useTexts();
  const { field, place, id } = props;
  const { kind, preset, description } = field;
  const name = nameOf(place);
  const needed = isNeeded(field);
  const described = description ? `${id}-more` : undefined;
  const title = (
    <>
      {field.title}
      {!needed && kind !== "boolean" && <span class="quiet"> {texts.optional}</span>}
    </>
  );
  const more = description && (
    <p class="quiet field-more" id={described}>
      {description}
    </p>
  );
  if (kind === "boolean") {
    return (
      <div class="form-field">
        <label class="check">
          <input
            type="checkbox"
            name={name}
            defaultChecked={preset === true}
            aria-describedby={described}
          />
          <span>{title}</span>
        </label>
        {more}
      </div>
    );
  }
  if (kind === "choices") {
    return (
      <fieldset class="form-field" aria-describedby={described}>
        <legend class="field-name">{title}</legend>
        {more}
        {field.choices.map((choice, each) => (
          <label class="check" key={each}>
            <input
              type="checkbox"
              name={name}
              value={each}
              defaultChecked={Array.isArray(preset) && preset.includes(each)}
            />
            <span>{choice}</span>
          </label>
        ))}
      </fieldset>
    );
  }
  return (
    <div class="form-field">
      <label class="field">
        <span class="field-name">{title}</span>
        {kind === "choice" ? (
          <select name={name} required={needed} aria-describedby={described}>
            <option value="">{texts.choose}</option>
            {field.choices.map((choice, each) => (
              <option key={each} value={each} selected={preset === each}>
                {choice}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...(kind === "text"
              ? { type: "text", maxLength: TEXT_CHARS }
              : { type: "number", step: kind === "integer" ? "1" : "any" })}
            name={name}
            required={needed}
            autoComplete="off"
            placeholder={preset === null ? undefined : String(preset)}
            aria-describedby={described}
          />
        )}
      </label>
      {more}
    </div>
  );
}

/** Whether a value has to be given. For what is left empty, the agent takes the default. */
function isNeeded(field: FormField): boolean {
  // A default choice is chosen at first, so who takes it away wants another one.
  const chooses = field.kind === "choice" || field.kind === "choices";
  return field.required && (chooses || field.preset === null);
}

function nameOf(place: number): string {
  return `field-${place}`;
}

/** Return what the form holds; null where a choice is missing, which the browser then says. */
function contentOf(
  form: HTMLFormElement,
  fields: readonly FormField[],
  chooseOne: string,
): FormContent | null {
  const values: [string, Value][] = [];
  for (const [place, field] of fields.entries()) {
    const given = new FormData(form).getAll(nameOf(place)).map(String);
    const value = valueOf(field, given);
    if (value !== null) values.push([field.name, value]);
    else if (isNeeded(field)) {
      const box = form.querySelector<HTMLInputElement>(`input[name="${nameOf(place)}"]`);
      box?.setCustomValidity(chooseOne);
      box?.reportValidity();
      return null;
    }
  }
  return Object.fromEntries(values);
}

function valueOf(field: FormField, given: readonly string[]): Value | null {
  const [first = ""] = given;
  switch (field.kind) {
    case "boolean":
      return given.length > 0;
    case "choices":
      return given.length > 0 ? given.map(Number) : null;
    case "text":
      return first.trim() || null;
    default:
      return first === "" ? null : Number(first);
  }
}

/** What was missing may be there now. */
function forgetMissing(form: HTMLFormElement): void {
  for (const box of form.querySelectorAll("input")) box.setCustomValidity("");
}
