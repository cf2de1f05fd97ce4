// Charts of figures that grow: lines over time, and quantiles over time as bands. Each has its figures as a table, too.
import { useState } from "preact/hooks";

export interface Series {
  name: string;
  /** Seconds and values, ascending in time. */
  points: [number, number][];
}

interface Frame {
  x: (time: number) => number;
  y: (value: number) => number;
  times: [number, number];
  values: [number, number];
}

const WIDTH = 640;
const HEIGHT = 220;
const LEFT = 62;
const BOTTOM = 24;

/** Returns the scales of a chart; a logarithmic one begins at the smallest value. */
function frame(points: [number, number][], isLogarithmic: boolean): Frame {
  const times = points.map(([time]) => time);
  const values = points.map(([, value]) => value).filter((value) => !isLogarithmic || value > 0);
  const [begin, end] = [Math.min(...times), Math.max(...times)];
  const top = Math.max(...values, Number.MIN_VALUE);
  const bottom = isLogarithmic ? Math.min(...values, top) : 0;
  const scale = isLogarithmic ? Math.log : (value: number) => value;
  const height = scale(top) - scale(bottom) || 1;
  return {
    x: (time) => LEFT + ((time - begin) / (end - begin || 1)) * (WIDTH - LEFT - 8),
    y: (value) => 8 + (1 - (scale(Math.max(value, bottom)) - scale(bottom)) / height) * (HEIGHT - BOTTOM - 8),
    times: [begin, end],
    values: [bottom, top],
  };
}

function Axes({ shape, format }: { shape: Frame; format: (value: number) => string }) {
  const [bottom, top] = shape.values;
  return (
    <g class="axes">
      {[bottom, top].map((value) => (
        <g key={value}>
          <line x1={LEFT} x2={WIDTH - 8} y1={shape.y(value)} y2={shape.y(value)} />
          <text x={LEFT - 6} y={shape.y(value) + 4} text-anchor="end">{format(value)}</text>
        </g>
      ))}
      <text x={LEFT} y={HEIGHT - 6}>0 s</text>
      <text x={WIDTH - 8} y={HEIGHT - 6} text-anchor="end">{`${Math.round(shape.times[1] - shape.times[0])} s`}</text>
    </g>
  );
}

export function LineChart({ title, series, format }: { title: string; series: Series[]; format: (value: number) => string }) {
  const [hidden, setHidden] = useState<string[]>([]);
  const [pointed, setPointed] = useState<number>();
  const shown = series.filter(({ name, points }) => points.length > 0 && !hidden.includes(name));
  const points = shown.flatMap((one) => one.points);
  const shape = points.length ? frame(points, false) : undefined;
  const toggle = (name: string) =>
    setHidden((names) => (names.includes(name) ? names.filter((other) => other !== name) : [...names, name]));
  const point = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - 8);
    if (shape) {
      setPointed(shape.times[0] + Math.min(Math.max(share, 0), 1) * (shape.times[1] - shape.times[0]));
    }
  };
  return (
    <figure class="live-chart">
      <figcaption>{title}</figcaption>
      {shape ? (
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}: ${describe(shown, format)}`}
          onPointerMove={point} onPointerLeave={() => setPointed(undefined)}>
          <Axes shape={shape} format={format} />
          {shown.map((one) => (
            <polyline key={one.name} class={`line c${color(series, one.name)}`}
              points={one.points.map(([time, value]) => `${shape.x(time).toFixed(1)},${shape.y(value).toFixed(1)}`).join(" ")} />
          ))}
          {pointed === undefined ? null : <line class="pointed" x1={shape.x(pointed)} x2={shape.x(pointed)} y1={8} y2={HEIGHT - BOTTOM} />}
        </svg>
      ) : <p class="sub">Nothing yet.</p>}
      <p class="legend">
        {series.map(({ name, points: all }) => (
          <button key={name} type="button" aria-pressed={!hidden.includes(name)} onClick={() => toggle(name)}>
            <span class={`mark c${color(series, name)}`} aria-hidden="true" />{name}{" "}
            <span class="num">{valueAt(all, pointed, format)}</span>
          </button>
        ))}
      </p>
      <Figures title={title} series={series} format={format} />
    </figure>
  );
}

function color(series: Series[], name: string): number {
  return series.findIndex((one) => one.name === name) % 8;
}

/** Returns the value at a time, or the last one. */
function valueAt(points: [number, number][], time: number | undefined, format: (value: number) => string): string {
  const at = time === undefined ? points.at(-1) : points.findLast(([other]) => other <= time);
  return at ? format(at[1]) : "";
}

function describe(series: Series[], format: (value: number) => string): string {
  return series.map(({ name, points }) => `${name} ${valueAt(points, undefined, format)}`).join(", ");
}

const ROWS = 20;

function Figures({ title, series, format }: { title: string; series: Series[]; format: (value: number) => string }) {
  return (
    <details>
      <summary>The newest figures as a table</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead><tr><th scope="col">Name</th><th scope="col">Values, the newest first</th></tr></thead>
          <tbody>
            {series.map(({ name, points }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{points.slice(-ROWS).reverse().map(([, value]) => format(value)).join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Quantiles of one moment, ascending: p50, p90, p99, p99.9, max. */
export type Quantiles = [number, number, number, number, number];

export interface Moment {
  time: number;
  quantiles: Quantiles;
}

/** Shares of the requests between two quantiles, from the most frequent times to the rarest. */
const BANDS = ["p50 to p90", "p90 to p99", "p99 to p99.9", "p99.9 to max"];

/** Where response times lie over time, on a logarithmic axis: the darker, the more requests. */
export function Bands({ title, moments, format }: { title: string; moments: Moment[]; format: (value: number) => string }) {
  if (!moments.length) {
    return null;
  }
  const all = moments.flatMap(({ time, quantiles }) => quantiles.map((value): [number, number] => [time, value]));
  const shape = frame(all, true);
  const width = Math.max((WIDTH - LEFT - 8) / moments.length, 1);
  const last = moments.at(-1)?.quantiles ?? [0, 0, 0, 0, 0];
  return (
    <figure class="live-chart">
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}: p50 ${format(last[0])}, p99 ${format(last[2])} now`}>
        <Axes shape={shape} format={format} />
        {moments.map(({ time, quantiles }, place) =>
          BANDS.map((name, band) => {
            const [low, high] = [quantiles[band] ?? 0, quantiles[band + 1] ?? 0];
            const top = shape.y(high);
            return (
              <rect key={`${time} ${name}`} class={`share b${band}`} x={LEFT + place * width} width={width} y={top}
                height={Math.max(shape.y(low) - top, 0.5)} />
            );
          }),
        )}
      </svg>
      <p class="legend">
        {BANDS.map((name, band) => <span key={name}><span class={`mark b${band}`} aria-hidden="true" />{name}</span>)}
      </p>
    </figure>
  );
}
