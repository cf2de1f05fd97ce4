// What a run has said so far, made from its events.
import type { Interval, Verdict, WeirEvent } from "./api.ts";
import type { Moment, Quantiles, Series } from "./charts.tsx";

/** Points of a line that are kept: the page must not grow with the run. */
const POINTS = 600;

export interface Bracket {
  arm: string;
  low: number;
  high: number;
}

export interface Progress {
  /** What goes on now. */
  phase: string;
  /** Blocks done, and all of them. */
  blocks?: [number, number];
  /** When the first event was written, milliseconds. */
  begun?: number;
  /** When the run will be over, as far as it is known, milliseconds. */
  ends?: number;
  rates: Map<string, Series>;
  p99s: Map<string, Series>;
  moments: Map<string, Moment[]>;
  verdicts: Verdict[];
  brackets: Map<string, Bracket>;
  remarks: string[];
}

export function nothing(): Progress {
  return { phase: "begins", rates: new Map(), p99s: new Map(), moments: new Map(), verdicts: [], brackets: new Map(), remarks: [] };
}

const PHASES: Record<string, string> = {
  begun: "starts proxies",
  arm_ready: "starts proxies",
  pilot_begun: "tries how long slices must be",
  trial_begun: "measures",
  trial_ended: "has measured a load",
  put_back: "puts settings back",
};

/** Takes an event into the progress, which is changed. */
export function take(progress: Progress, event: WeirEvent): void {
  const written = Date.parse(event.time);
  progress.begun ??= written;
  const seconds = (written - progress.begun) / 1000;
  progress.phase = PHASES[event.event] ?? progress.phase;
  for (const remark of event.remarks ?? []) {
    if (progress.remarks.length < 50) {
      progress.remarks.push(remark.text);
    }
  }
  if (typeof event.takes === "number") {
    progress.ends = written + event.takes * 1000;
  }
  switch (event.event) {
    case "trial_begun":
      progress.blocks = [0, event.blocks ?? 0];
      break;
    case "block":
      progress.blocks = [event.done ?? 0, event.of ?? 0];
      break;
    case "measured":
    case "interval":
      if (event.interval) {
        takeFigures(progress, event.arm ?? "load", seconds, event.interval);
      }
      break;
    case "verdicts":
      progress.verdicts = event.verdicts ?? [];
      break;
    case "bracket":
      if (event.bracket?.between) {
        const [low, high] = event.bracket.between;
        progress.brackets.set(event.bracket.arm, { arm: event.bracket.arm, low, high });
      }
      break;
  }
}

function takeFigures(progress: Progress, arm: string, seconds: number, figures: Interval): void {
  const times = figures.response_time;
  push(progress.rates, arm, [seconds, figures.rate]);
  push(progress.p99s, arm, [seconds, times["p99"] ?? 0]);
  const moments = progress.moments.get(arm) ?? [];
  const quantiles = ["p50", "p90", "p99", "p99.9", "max"].map((name) => times[name] ?? 0) as Quantiles;
  moments.push({ time: seconds, quantiles });
  progress.moments.set(arm, moments.slice(-POINTS / 4));
}

function push(all: Map<string, Series>, name: string, point: [number, number]): void {
  const series = all.get(name) ?? { name, points: [] };
  series.points.push(point);
  series.points.splice(0, series.points.length - POINTS);
  all.set(name, series);
}
