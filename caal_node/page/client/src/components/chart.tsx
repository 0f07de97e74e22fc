/** A chart of times: rows with a name, a time and a track, above an axis of seconds. */

import type { JSX } from "preact";

import { timeWords } from "../texts";
import { ticksOf } from "../waterfall";
import { Hidden, useTexts } from "./shared";

export function ChartRow(props: {
  name: string;
  time: string;
  hint?: string;
  children: preact.ComponentChildren;
}): JSX.Element {
  return (
    <div class="chart-row">
      <span class="chart-name">{props.name}</span>
      <svg class="chart-track" aria-hidden="true" focusable="false">
        <rect class="chart-ground" x="0" y="9" width="100%" height="2" rx="1" />
        {props.children}
      </svg>
      <span class="chart-time">
        {props.time}
        {props.hint && <Hidden> {props.hint}</Hidden>}
      </span>
    </div>
  );
}

/** `end` is the last time in ms; `share` gives the place of one in the chart's width. */
export function ChartAxis(props: { end: number; share: (at: number) => string }): JSX.Element {
  const texts = useTexts();
  return (
    <div class="chart-row" aria-hidden="true">
      <span />
      <svg class="chart-axis" focusable="false">
        {ticksOf(props.end).map((at) => (
          <text key={at} x={props.share(at)} y="13" text-anchor={at === 0 ? "start" : "middle"}>
            {at === 0 ? "0" : timeWords(texts, at)}
          </text>
        ))}
      </svg>
      <span />
    </div>
  );
}
