/** The conversation: what was said, the calls at their places, and the field to type in. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Conversation, Entry, WordsEntry } from "../conversation";
import { openQuestion } from "../conversation";
import type { Actions, View } from "../session";
import { CallCard } from "./call_card";
import { Icon, useTexts } from "./shared";

/** Pixels from the end at which the newest entry is still kept in sight. */
const NEAR_END = 80;

export function Talk({ view, actions }: { view: View; actions: Actions }): JSX.Element {
  const texts = useTexts();
  const { conversation } = view;
  const scroller = useRef<HTMLElement>(null);
  const follows = useRef(true);
  const [isAway, setAway] = useState(false);
  const asking = openQuestion(conversation);
  const question = asking ? asking.key + (asking.form?.id ?? "") : "";

  const toEnd = () => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  useLayoutEffect(() => {
    if (follows.current) toEnd();
  }, [conversation.entries, conversation.calls]);
  useEffect(() => {
    if (question) toEnd();
  }, [question]);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    follows.current = left < NEAR_END;
    setAway(!follows.current);
  };
  return (
    <div class="talk">
      <section
        class="transcript"
        id="conversation"
        aria-labelledby="conversation-title"
        tabIndex={0}
        ref={scroller}
        onScroll={onScroll}
      >
        <h2 id="conversation-title" class="hidden-text">
          {texts.conversation}
        </h2>
        {conversation.entries.length === 0 ? (
          <div class="empty">
            <p class="empty-title">{texts.empty}</p>
            {conversation.phase === "connected" && <p>{texts.emptyHint}</p>}
          </div>
        ) : (
          <ol class="entries">
            {conversation.entries.map((entry, i) => (
              <EntryItem
                key={entry.id}
                entry={entry}
                before={conversation.entries[i - 1]}
                conversation={conversation}
                actions={actions}
              />
            ))}
          </ol>
        )}
      </section>
      {isAway && (
        <button
          type="button"
          class="button newest"
          onClick={() => {
            follows.current = true;
            toEnd();
          }}
        >
          <Icon name="down" />
          {texts.newest}
        </button>
      )}
      <Composer conversation={conversation} actions={actions} />
    </div>
  );
}

function EntryItem(props: {
  entry: Entry;
  before: Entry | undefined;
  conversation: Conversation;
  actions: Actions;
}): JSX.Element | null {
  const texts = useTexts();
  const { entry, before, conversation, actions } = props;
  switch (entry.kind) {
    case "words": {
      const continues =
        before?.kind === "words" && before.speaker === entry.speaker && before.name === entry.name;
      return <Words entry={entry} continues={continues} />;
    }
    case "calls": {
      const calls = entry.keys.flatMap((key) => conversation.calls.get(key) ?? []);
      return (
        <li class="calls" aria-label={texts.callsOfTurn(calls.length)}>
          {calls.map((call) => (
            <CallCard key={call.key} call={call} actions={actions} />
          ))}
        </li>
      );
    }
    case "sources":
      return (
        <li class="sources">
          <h3 class="small-title">{texts.sources}</h3>
          <ul>
            {entry.sources.map((source, i) => (
              <li key={i}>
                {source.href ? (
                  <a href={source.href} target="_blank" rel="noopener noreferrer">
                    {source.title}
                    <Icon name="outside" />
                  </a>
                ) : (
                  <span>{source.title}</span>
                )}
                {source.site && <span class="quiet">{source.site}</span>}
              </li>
            ))}
          </ul>
        </li>
      );
    case "tools":
      return (
        <li class="line">
          <p>
            {entry.found ? texts.toolsFound : texts.toolsShown} <span>{entry.tools.join(", ")}</span>
          </p>
        </li>
      );
    case "claim":
      return (
        <li class="correction">
          <h3 class="small-title">{texts.corrected}</h3>
          <p>
            <del>{entry.claim}</del>
          </p>
          <p class="quiet">{texts.claimBecame(entry.became)}</p>
        </li>
      );
    case "fact":
      return (
        <li class="correction">
          <h3 class="small-title">{texts.corrected}</h3>
          <p>
            <del>{entry.clause}</del> <ins>{texts.factHeard(entry.heard)}</ins>
          </p>
          {entry.heard && <p class="quiet">{texts.factHint}</p>}
        </li>
      );
    case "source_state":
      return (
        <li class="line">
          <p>
            {entry.down ? texts.sourceDown(entry.source) : texts.sourceBack(entry.source)}
            {entry.down && <span> {entry.reason || texts.sourceDownHint}</span>}
          </p>
        </li>
      );
    case "speech_failed":
      return (
        <li class="line">
          <p>
            {texts.speechFailed} {entry.reason && <span>{texts.speechFailedHint(entry.reason)}</span>}
          </p>
        </li>
      );
    case "gap":
      return (
        <li class="gap">
          <span>{entry.back ? texts.backGap : texts.lostGap}</span>
        </li>
      );
  }
}

function Words({ entry, continues }: { entry: WordsEntry; continues: boolean }): JSX.Element {
  const texts = useTexts();
  const name =
    entry.speaker === "user"
      ? texts.you
      : entry.speaker === "agent"
        ? texts.agent
        : entry.name || texts.other;
  return (
    <li class={`words words-${entry.speaker}${entry.final ? "" : " words-interim"}`}>
      <p class={continues ? "hidden-text" : "speaker"}>{name}</p>
      <p class="said">{entry.text}</p>
    </li>
  );
}

function Composer(props: { conversation: Conversation; actions: Actions }): JSX.Element {
  const texts = useTexts();
  const { conversation, actions } = props;
  const [text, setText] = useState("");
  const [failed, setFailed] = useState(false);
  const isConnected = conversation.phase === "connected";
  const submit = async () => {
    const words = text.trim();
    if (!words || !isConnected) return;
    setText("");
    const sent = await actions.send(words);
    setFailed(!sent);
    // What could not be sent is given back, unless something else was begun.
    if (!sent) setText((now) => now || words);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {failed && (
        <p class="composer-note" role="alert">
          {texts.notSent}
        </p>
      )}
      {!isConnected && (
        <p class="composer-note" id="composer-note">
          {texts.writeOffline}
        </p>
      )}
      <div class="composer-row">
        <textarea
          rows={1}
          maxLength={2000}
          value={text}
          aria-label={texts.write}
          placeholder={texts.write}
          aria-describedby={isConnected ? undefined : "composer-note"}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              void submit();
            }
          }}
        />
        <button
          type="submit"
          class="button primary send"
          aria-label={texts.send}
          disabled={!isConnected || !text.trim()}
        >
          <Icon name="send" />
        </button>
      </div>
    </form>
  );
}
