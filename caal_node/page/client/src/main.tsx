/** Starts the page. */

import { type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { App } from "./components/app";
import { TextsContext } from "./components/shared";
import { pageId, takeKey } from "./key";
import { Server } from "./server";
import { Session } from "./session";
import "./style.css";
import { textsFor } from "./texts";

const texts = textsFor(navigator.languages);
document.documentElement.lang = texts.lang;

const key = takeKey();
const server = new Server(key, pageId());
const session = new Session(server);
if (!key) session.start(); // which says at once that the key is missing

// A new link that is opened in this tab changes only the fragment.
addEventListener("hashchange", () => {
  if (location.hash.includes("key=")) {
    takeKey();
    location.reload();
  }
});

function Page(): JSX.Element {
  const [view, setView] = useState(session.view);
  useEffect(() => {
    setView(session.view);
    return session.subscribe(() => setView(session.view));
  }, []);
  return (
    <TextsContext.Provider value={texts}>
      <App view={view} actions={session} server={server} />
    </TextsContext.Provider>
  );
}

const root = document.getElementById("page");
if (root) render(<Page />, root);

if (import.meta.env.PROD && "serviceWorker" in navigator) {
  navigator.serviceWorker.register("/sw.js").catch(() => {
    // Without it, the page only cannot be installed.
  });
}
