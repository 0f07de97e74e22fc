/** The whole page: the state at one side, and one of three views. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type Conversation, openQuestion } from "../conversation";
import type { Actions, View } from "../session";
import { callWords, outcomeWords } from "./call_card";
import { Figure } from "./figure";
import { Look } from "./look";
import { Hidden, Icon, useTexts } from "./shared";
import { StagePanel } from "./stage_panel";
import { Steer, type SteeringServer } from "./steer";
import { Talk } from "./talk";
import { TimerList } from "./timers";
import type { TraceReader } from "./traced_turns";

export type ViewName = "talk" | "steer" | "look";

const VIEWS: readonly ViewName[] = ["talk", "steer", "look"];

export function App(props: {
  view: View;
  actions: Actions;
  server: SteeringServer & TraceReader;
  first?: ViewName;
}): JSX.Element {
  const texts = useTexts();
  const { view, actions, server } = props;
  const { conversation } = view;
  const [shown, setShown] = useState<ViewName>(props.first ?? "talk");
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    // A button that is gone after it was pressed leaves the focus nowhere.
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [conversation.phase]);
  const isKeyless = conversation.problem?.kind === "key_missing";
  if (conversation.phase === "start" || isKeyless) {
    return <Welcome actions={actions} isKeyless={isKeyless} />;
  }
  const asks = openQuestion(conversation) !== null;
  return (
    <div class={`app app-${shown}`}>
      <a class="skip" href="#main">
        {texts.skip}
      </a>
      <header class="top">
        <h1 class="brand">
          <Brand />
          <span class="brand-name">{texts.title}</span>
        </h1>
        <nav class="views" aria-label={texts.views}>
          {VIEWS.map((name) => (
            <button
              key={name}
              type="button"
              class="view-button"
              aria-current={shown === name ? "page" : undefined}
              onClick={() => setShown(name)}
            >
              {texts[name]}
              {name === "talk" && asks && shown !== "talk" && (
                <>
                  <span class="view-dot" />
                  <Hidden>, {texts.waitsForYou}</Hidden>
                </>
              )}
            </button>
          ))}
        </nav>
      </header>
      <StagePanel view={view} actions={actions} />
      <main id="main" class="main" tabIndex={-1} ref={main}>
        <SourcesDown conversation={conversation} />
        <TimerList conversation={conversation} actions={actions} />
        {shown === "talk" && <Talk view={view} actions={actions} />}
        {shown !== "talk" && (
          <div class="scroll" tabIndex={0} role="region" aria-label={texts[shown]}>
            {/* An agent that comes has other tools: they are asked for anew. */}
            {shown === "steer" ? <Steer key={`${conversation.agent.present}`} server={server} /> : <Look conversation={conversation} server={server} />}
          </div>
        )}
      </main>
      <Announcer conversation={conversation} />
    </div>
  );
}

function Welcome(props: { actions: Actions; isKeyless: boolean }): JSX.Element {
  const texts = useTexts();
  const { actions, isKeyless } = props;
  return (
    <main class="welcome">
      <Figure stage="start" levels={actions.levels} />
      <h1>{texts.startLead}</h1>
      <p class="lead">{texts.startBody}</p>
      {isKeyless ? (
        <p class="notice" role="alert">
          {texts.problem.key_missing}
        </p>
      ) : (
        <>
          <button type="button" class="button primary large" onClick={() => actions.start()}>
            <Icon name="microphone" />
            {texts.start}
          </button>
          <p class="quiet">{texts.startHint}</p>
        </>
      )}
    </main>
  );
}

function Brand(): JSX.Element {
  return (
    <svg class="brand-sign" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <rect x="3" y="9.5" width="3" height="5" rx="1.5" />
      <rect x="8" y="6" width="3" height="12" rx="1.5" />
      <rect x="13" y="3" width="3" height="18" rx="1.5" />
      <rect x="18" y="8" width="3" height="8" rx="1.5" />
    </svg>
  );
}

function SourcesDown({ conversation }: { conversation: Conversation }): JSX.Element | null {
  const texts = useTexts();
  const { sourcesDown } = conversation;
  if (sourcesDown.size === 0) return null;
  return (
    <ul class="sources-down">
      {[...sourcesDown].slice(0, 3).map(([source, reason]) => (
        <li key={source}>
          <strong>{texts.sourceDown(source)}</strong> {reason || texts.sourceDownHint}
        </li>
      ))}
    </ul>
  );
}

/** Says to screen readers what the page shows: answers and ends of calls when there is time. */
function Announcer({ conversation }: { conversation: Conversation }): JSX.Element {
  const texts = useTexts();
  const call = openQuestion(conversation);
  const asked = call?.question?.answer === null ? call.question.words : call?.form?.message;
  return (
    <>
      <div class="hidden-text" role="log" aria-live="polite">
        {conversation.news.map((news) => {
          if (news.kind === "answer") return <p key={news.id}>{news.text}</p>;
          if (news.kind === "question") return null;
          const call = conversation.calls.get(news.key);
          if (!call) return null;
          const words = texts.outcomeNews(callWords(texts, call), outcomeWords(texts, call));
          return <p key={news.id}>{words}</p>;
        })}
      </div>
      <div class="hidden-text" role="alert" aria-live="assertive">
        {asked}
      </div>
    </>
  );
}
