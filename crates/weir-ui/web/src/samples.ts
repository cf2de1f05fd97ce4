// Lines over time from the samples of hosts and proxies (docs/samples.md).
import type { Series } from "./charts.tsx";

export interface Rows {
  columns: string[];
  rows: string[][];
}

type Row = Record<string, string>;

function named({ columns, rows }: Rows): Row[] {
  return rows.map((row) => Object.fromEntries(columns.map((name, place) => [name, row[place] ?? ""])));
}

/** Returns the growth of a counter for each second, or the value of a gauge, by the name that `key` gives a row. */
function series(rows: Row[], key: (row: Row) => string, value: (row: Row) => number, isCounter: boolean): Series[] {
  const all = new Map<string, { series: Series; before?: { row: Row; time: number; value: number } }>();
  for (const row of rows) {
    const name = key(row);
    const [time, now] = [Number(row["t_s"]), value(row)];
    const line = all.get(name) ?? { series: { name, points: [] } };
    all.set(name, line);
    if (!Number.isFinite(now)) {
      continue;
    }
    const { before } = line;
    if (!isCounter) {
      line.series.points.push([time, now]);
    } else if (before && before.row["pid"] === row["pid"] && time > before.time && now >= before.value) {
      line.series.points.push([time, (now - before.value) / (time - before.time)]);
    }
    line.before = { row, time, value: now };
  }
  return [...all.values()].map((line) => line.series).filter((line) => line.points.length > 0);
}

/** CPUs that each process of the proxies uses. Arms are started anew between trials, so a process is named by its place. */
export function workerCpus(rows: Rows): Series[] {
  const proxies = named(rows).filter((row) => row["role"] === "proxy");
  const places = new Map<string, string[]>();
  for (const row of proxies) {
    const moment = `${row["t_s"]} ${row["arm"]}`;
    places.set(moment, [...(places.get(moment) ?? []), row["pid"] ?? ""]);
  }
  const place = (row: Row) => (places.get(`${row["t_s"]} ${row["arm"]}`) ?? []).indexOf(row["pid"] ?? "") + 1;
  const used = (row: Row) => (Number(row["user_ns"]) + Number(row["system_ns"])) / 1e9;
  const lines = series(proxies, (row) => `${row["arm"]}, ${row["name"]} ${place(row)}`, used, true);
  return lines.filter((line) => line.points.some(([, cpus]) => cpus > 0.001));
}

/** Connections that wait to be accepted by each arm's proxy. */
export function acceptQueues(rows: Rows): Series[] {
  const proxies = named(rows).filter((row) => row["role"] === "proxy");
  return series(proxies, (row) => `${row["arm"]} port ${row["port"]}`, (row) => Number(row["queue"]), false);
}

/** Sockets in TIME_WAIT, whose ports are not free yet. */
export function waitingPorts(rows: Rows): Series[] {
  const waiting = named(rows).filter((row) => row["state"] === "TIME_WAIT");
  return series(waiting, (row) => `${row["arm"]} ${row["role"]} ${row["side"]}`.trim(), (row) => Number(row["count"]), false);
}
