// Answers of the server while they are awaited, and when they fail.
import { useEffect, useState } from "preact/hooks";

export interface Answer<T> {
  value?: T;
  error?: string;
}

/** Asks once, and again whenever one of `about` changes. */
export function useAnswer<T>(ask: () => Promise<T>, about: unknown[]): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({});
  useEffect(() => {
    let isCurrent = true;
    setAnswer({});
    ask().then(
      (value) => isCurrent && setAnswer({ value }),
      (error: Error) => isCurrent && setAnswer({ error: error.message }),
    );
    return () => {
      isCurrent = false;
    };
  }, about);
  return answer;
}

export function Failed({ error }: { error: string }) {
  return <p role="alert" class="warning">{error}</p>;
}

export function Waiting() {
  return <p role="status" class="sub">Reading …</p>;
}
