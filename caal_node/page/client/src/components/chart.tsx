/** One row of a chart of times: its name and time in words, and the track with what is drawn. */

import type { JSX } from "preact";

import { Hidden } from "./shared";

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

