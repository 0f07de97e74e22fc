/** The figure in the middle of the page: five bars that follow the voices, or a sign of the state. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Levels } from "../room";
import type { Stage } from "../stage";
import { Icon, type IconName } from "./shared";

const SIGNS: Partial<Record<Stage, IconName>> = {
  muted: "muted",
  silent: "keyboard",
  asking: "question",
  lost: "broken",
};
const BAR = 7;
const GAP = 13;
const TALL = 46;
/** How much of the level each bar shows. */
const SHARES = [0.5, 0.8, 1, 0.75, 0.45] as const;

export function Figure({ stage, levels }: { stage: Stage; levels: () => Levels }): JSX.Element {
  const sign = SIGNS[stage];
  return (
    <span class={`figure figure-${stage}`} aria-hidden="true">
      <svg class="ring" viewBox="0 0 120 120" focusable="false">
        <circle class="ring-track" cx="60" cy="60" r="56" />
        <circle class="ring-part" cx="60" cy="60" r="56" pathLength="100" />
      </svg>
      {sign ? <Icon name={sign} /> : <Bars stage={stage} levels={levels} />}
    </span>
  );
}

function Bars({ stage, levels }: { stage: Stage; levels: () => Levels }): JSX.Element {
  const svg = useRef<SVGSVGElement>(null);
  const follows = stage === "listening" || stage === "speaking";
  useEffect(() => {
    const bars = [...(svg.current?.children ?? [])];
    const draw = (level: number, tick: number) => {
      bars.forEach((bar, i) => {
        const sway = follows ? 0.82 + 0.18 * Math.sin(tick / 130 + i * 1.7) : 1;
        const height = BAR + TALL * level * (SHARES[i] ?? 0.5) * sway;
        bar.setAttribute("height", height.toFixed(1));
        bar.setAttribute("y", (60 - height / 2).toFixed(1));
      });
    };
    if (!follows) {
      draw(stage === "start" ? 1 : 0, 0);
      return;
    }
    let shown = 0;
    let frame = 0;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) {
      draw(0.7, 0);
      return;
    }
    const step = (tick: number) => {
      const now = levels();
      const level = Math.max(stage === "speaking" ? now.agent : now.microphone, 0.12);
      // It rises at once and falls slowly, as a level meter does.
      shown = level > shown ? shown + (level - shown) * 0.6 : shown + (level - shown) * 0.12;
      draw(shown, tick);
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [stage, follows, levels]);
  return (
    <svg class="bars" ref={svg} viewBox="0 0 120 120" focusable="false">
      {SHARES.map((_, i) => (
        <rect
          key={i}
          class="bar"
          x={60 + (i - 2) * GAP - BAR / 2}
          y={60 - BAR / 2}
          width={BAR}
          height={BAR}
          rx={BAR / 2}
        />
      ))}
    </svg>
  );
}
