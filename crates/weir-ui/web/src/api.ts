// Requests to the server. The token comes in the URL's fragment, which browsers send to nobody, and stays in this tab.

const KEY = "weir-token";

export class Refusal extends Error {}

/** Takes the token from the URL, and leaves an address without it. */
export function takeToken(): void {
  const fragment = location.hash.slice(1);
  if (fragment && !fragment.startsWith("/")) {
    sessionStorage.setItem(KEY, fragment);
    history.replaceState(null, "", "#/runs");
  }
}

async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const token = sessionStorage.getItem(KEY) ?? "";
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  let response: Response;
  try {
    response = await fetch(`/api/${path}`, { ...options, headers });
  } catch {
    throw new Refusal("weir ui does not answer: has it been ended?");
  }
  if (!response.ok) {
    throw new Refusal((await response.text()) || `the server answers ${response.status}`);
  }
  return response;
}

export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, signal ? { signal } : {})).json() as Promise<T>;
}

export async function readText(path: string): Promise<string> {
  return (await request(path)).text();
}

export async function send<T>(method: string, path: string, body: unknown): Promise<T | undefined> {
  const response = await request(path, { method, body: JSON.stringify(body) });
  const text = await response.text();
  return text ? (JSON.parse(text) as T) : undefined;
}

export interface About {
  version: string;
  folder: string;
  is_read_only: boolean;
}

/** A run in the list of `weir runs --format json`. */
export interface Run {
  name: string;
  state: string;
  started_at: string;
  study: string;
  title: string;
  question: string;
  arms: string[];
  validity?: string;
  verdict: string;
  tags: string[];
  note: string;
  problems: { problem: string; why?: string }[];
}

export interface StudyText {
  name: string;
  text: string;
}

export interface Problem {
  line: number;
  column: number;
  length: number;
  message: string;
  hint: string | null;
}

export interface Job {
  number: number;
  title: string;
  run: string | null;
  is_stopping: boolean;
  ended: number | null;
}

export interface News extends Job {
  next: number;
  events: WeirEvent[];
  messages: string;
  summary: string;
}

/** Figures of an interval of a load (docs/load-format.md); times in nanoseconds. */
export interface Interval {
  rate: number;
  completed: number;
  errors: { kind: string; count: number }[];
  response_time: Record<string, number>;
}

export interface Verdict {
  load: string;
  metric: string;
  arm: string;
  against: string;
  verdict: string;
  ratio: number | null;
  interval: [number, number] | null;
  blocks: number;
}

/** An event of `--progress jsonl` (docs/progress.md). Only the fields that the page reads are named. */
export interface WeirEvent {
  event: string;
  time: string;
  load?: string;
  loads?: string[];
  arm?: string;
  done?: number;
  of?: number;
  blocks?: number;
  takes?: number;
  rate?: number | null;
  interval?: Interval;
  verdicts?: Verdict[];
  bracket?: { arm: string; load?: string; between: [number, number] | null };
  remarks?: { text: string }[];
  [other: string]: unknown;
}
