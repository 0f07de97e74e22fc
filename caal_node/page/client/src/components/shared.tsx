/** What several components use: texts, the time, icons. */

import { createContext, type JSX, type RefObject } from "preact";
import { useContext, useEffect, useLayoutEffect, useState } from "preact/hooks";

import { type Texts, textsFor } from "../texts";

export const TextsContext = createContext<Texts>(textsFor(["en"]));

export function useTexts(): Texts {
  return useContext(TextsContext);
}

/** The time that components count from; a scene stops it. */
export const ClockContext = createContext<() => number>(() => Date.now());

/** Return the time now, again every so often while `active`. */
export function useNow(active: boolean, everyMs: number): number {
  const clock = useContext(ClockContext);
  const [now, setNow] = useState(clock);
  useEffect(() => {
    if (!active) return;
    setNow(clock());
    const timer = setInterval(() => setNow(clock()), everyMs);
    return () => clearInterval(timer);
  }, [active, everyMs, clock]);
  return active ? Math.max(now, clock()) : now;
}

/** Give the focus to what is around a part that is removed: it would be lost with its button. */
export function useFocusKept(part: RefObject<HTMLElement | null>, around: string): void {
  useLayoutEffect(() => {
    const element = part.current;
    return () => {
      if (element?.contains(document.activeElement)) {
        element.closest<HTMLElement>(around)?.focus({ preventScroll: true });
      }
    };
  }, [part, around]);
}

const PATHS = {
  microphone: "M12 3.5a3 3 0 0 1 3 3V12a3 3 0 0 1-6 0V6.5a3 3 0 0 1 3-3ZM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3",
  muted: "M9 9v3a3 3 0 0 0 4.7 2.5M15 11.5v-5a3 3 0 0 0-5.8-1M5.5 11.5a6.5 6.5 0 0 0 10.2 5.3M18.5 11.5c0 .9-.2 1.7-.5 2.5M12 18v3M4 3.5l16 17",
  done: "M5 12.5l4.5 4.5L19 7.5",
  failed: "M12 7v6.5M12 17v.2",
  stopped: "M7 12h10",
  keyboard: "M4 7h16v10H4zM7.5 10.5h.1M11 10.5h.1M14.5 10.5h.1M8.5 14h7",
  sound: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.5 9a4 4 0 0 1 0 6M18 6.5a7.5 7.5 0 0 1 0 11",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.8v4.4M9 14.8v4.4",
  end: "M7 7l10 10M17 7L7 17",
  send: "M12 19V5.5M6 11.5l6-6 6 6",
  down: "M12 5v13.5M6 12.5l6 6 6-6",
  broken: "M9.5 14.5l-2 2a3.2 3.2 0 0 1-4.5-4.5l2.5-2.5M14.5 9.5l2-2a3.2 3.2 0 0 1 4.5 4.5l-2.5 2.5M8.5 4.5v2M4.5 8.5h2M15.5 19.5v-2M19.5 15.5h-2",
  question: "M8.8 9a3.3 3.3 0 1 1 4.9 2.9c-1.1.6-1.7 1.2-1.7 2.4M12 18v.2",
  outside: "M9 6H6v12h12v-3M12.5 5.5H18.5V11.5M18 6l-7.5 7.5",
  more: "M6 9.5l6 6 6-6",
  timer: "M12 7.5v5l3 2M9.5 3h5M12 5.5a7.5 7.5 0 1 1 0 15a7.5 7.5 0 0 1 0-15Z",
  alarm: "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 2h-15zM10 21h4",
  reload: "M19 12a7 7 0 1 1-2.2-5.1M19 4.5V8h-3.5",
} as const;

export type IconName = keyof typeof PATHS;

/** A drawing beside words that say the same, so it is hidden from screen readers. */
export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Hidden({ children }: { children: preact.ComponentChildren }): JSX.Element {
  return <span class="hidden-text">{children}</span>;
}
