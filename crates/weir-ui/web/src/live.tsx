// A run while it works: figures of each arm, hosts, verdicts and brackets so far.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Job, type News, read, send, type Verdict } from "./api.ts";
import { Bands, LineChart, type Series } from "./charts.tsx";
import { Failed, useAnswer, Waiting } from "./answer.tsx";
import { nothing, type Progress, take } from "./events.ts";
import { acceptQueues, type Rows, waitingPorts, workerCpus } from "./samples.ts";

const SAMPLES_MS = 2000;
const RETRY_MS = 1000;

export function Live({ isReadOnly, number }: { isReadOnly: boolean; number: number | undefined }) {
  const { value: jobs, error } = useAnswer(() => read<Job[]>("jobs"), [number]);
  if (error) {
    return <Failed error={error} />;
  }
  if (!jobs) {
    return <Waiting />;
  }
  const shown = number ?? jobs[0]?.number;
  return (
    <>
      <h1>Live</h1>
      {jobs.length ? null : <p>The page has started no run yet. Start one from <a href="#/studies">Studies</a>.</p>}
      {jobs.length > 1 ? (
        <p class="tools">
          <label for="job">Run</label>
          <select id="job" value={shown} onChange={(event) => (location.hash = `#/live/${event.currentTarget.value}`)}>
            {jobs.map((job) => <option key={job.number} value={job.number}>{job.number}: {job.title}</option>)}
          </select>
        </p>
      ) : null}
      {shown ? <Watched key={shown} number={shown} isReadOnly={isReadOnly} /> : null}
    </>
  );
}

/** Follows a job until it has ended. A server that does not answer is asked again: the run goes on without the page. */
function useNews(number: number): { news?: News; progress: Progress; error: string } {
  const progress = useRef(nothing());
  const [news, setNews] = useState<News>();
  const [error, setError] = useState("");
  useEffect(() => {
    const leaving = new AbortController();
    const follow = async () => {
      let after = 0;
      while (!leaving.signal.aborted) {
        try {
          const news = await read<News>(`jobs/${number}?after=${after}`, leaving.signal);
          news.events.forEach((event) => take(progress.current, event));
          after = news.next;
          setError("");
          setNews({ ...news, events: [] });
          if (news.ended !== null) {
            return;
          }
        } catch (refusal) {
          setError((refusal as Error).message);
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        }
      }
    };
    void follow();
    return () => leaving.abort();
  }, [number]);
  return news ? { news, progress: progress.current, error } : { progress: progress.current, error };
}

function Watched({ number, isReadOnly }: { number: number; isReadOnly: boolean }) {
  const { news, progress, error } = useNews(number);
  const [failure, setFailure] = useState("");
  const hosts = useSamples(news?.run ?? null, news?.ended === null);
  const stop = () => send("POST", `jobs/${number}/stop`, {}).catch((refusal: Error) => setFailure(refusal.message));
  if (!news) {
    return error ? <Failed error={error} /> : <Waiting />;
  }
  const [done, all] = progress.blocks ?? [0, 0];
  const arms = [...progress.moments.keys()];
  return (
    <>
      <h2 class="job">{news.title}</h2>
      {error ? <Failed error={error} /> : null}
      {failure ? <Failed error={failure} /> : null}
      <p role="status">{describe(news, progress)}</p>
      {all ? <progress aria-label="Blocks" value={done} max={all} /> : null}
      <p class="tools">
        {news.ended === null && !isReadOnly ? (
          <button type="button" disabled={news.is_stopping} onClick={stop}>{news.is_stopping ? "Stopping …" : "Stop"}</button>
        ) : null}
        {news.ended !== null && news.run ? <a class="button" href={`#/run/${encodeURIComponent(news.run)}`}>Open the report</a> : null}
      </p>
      <Verdicts verdicts={progress.verdicts} isFinal={news.ended !== null} />
      <Brackets progress={progress} />
      {progress.rates.size ? (
        <>
          <LineChart title="Responses per second, by arm" series={[...progress.rates.values()]} format={rate} />
          <LineChart title="p99 of the response time, by arm" series={[...progress.p99s.values()]} format={time} />
        </>
      ) : null}
      {arms.map((arm) => (
        <Bands key={arm} title={`Response times of ${arm}`} moments={progress.moments.get(arm) ?? []} format={time} />
      ))}
      {hosts.map(({ title, series, format }) => (series.length ? <LineChart key={title} title={title} series={series} format={format} /> : null))}
      {progress.remarks.length ? (
        <details><summary>Notes ({progress.remarks.length})</summary><ul>{progress.remarks.map((text) => <li key={text}>{text}</li>)}</ul></details>
      ) : null}
      {news.messages ? <pre tabIndex={0} aria-label="Messages">{news.messages}</pre> : null}
      {news.summary ? <pre tabIndex={0} aria-label="Summary">{news.summary}</pre> : null}
    </>
  );
}

interface HostChart {
  title: string;
  series: Series[];
  format: (value: number) => string;
}

/** Reads the samples of a run for as long as it works, and once more at its end. */
function useSamples(run: string | null, isWorking: boolean): HostChart[] {
  const [charts, setCharts] = useState<HostChart[]>([]);
  useEffect(() => {
    if (!run) {
      return;
    }
    const table = (name: string) => read<Rows>(`runs/${encodeURIComponent(run)}/samples/${name}`);
    const look = async () => {
      const [processes, listeners, sockets] = await Promise.all([table("processes"), table("listeners"), table("sockets")]);
      setCharts([
        { title: "CPUs used by the proxies' processes", series: workerCpus(processes), format: (value) => value.toFixed(2) },
        { title: "Connections in the accept queue", series: acceptQueues(listeners), format: whole },
        { title: "Sockets in TIME_WAIT", series: waitingPorts(sockets), format: whole },
      ]);
    };
    const attempt = () => void look().catch(() => undefined);
    attempt();
    const timer = isWorking ? setInterval(attempt, SAMPLES_MS) : undefined;
    return () => clearInterval(timer);
  }, [run, isWorking]);
  return charts;
}

function describe(news: News, progress: Progress): string {
  if (news.ended === 0) {
    return "Done.";
  }
  if (news.ended !== null) {
    return news.ended === 130 ? "Interrupted: what was measured is in the report." : `Ended with exit code ${news.ended}.`;
  }
  const [done, all] = progress.blocks ?? [0, 0];
  const blocks = all ? `, block ${done} of ${all}` : "";
  const left = progress.ends ? Math.max(Math.round((progress.ends - Date.now()) / 1000), 0) : undefined;
  return `It ${progress.phase}${blocks}${left === undefined ? "" : `, about ${left} s left`}.`;
}

function Verdicts({ verdicts, isFinal }: { verdicts: Verdict[]; isFinal: boolean }) {
  if (!verdicts.length) {
    return null;
  }
  return (
    <>
      <h3>{isFinal ? "Verdicts" : "Verdicts so far"}</h3>
      {isFinal ? null : <p class="sub">What the run would say if it ended now.</p>}
      <div class="scroll" tabIndex={0} role="region" aria-label="Verdicts">
        <table>
          <thead><tr><th scope="col">Arm</th><th scope="col">Load and metric</th><th scope="col">Ratio to {verdicts[0]?.against}</th><th scope="col">Verdict</th></tr></thead>
          <tbody>
            {verdicts.map((one) => (
              <tr key={`${one.load} ${one.metric} ${one.arm}`}>
                <th scope="row">{one.arm}</th>
                <td>{one.load}, {one.metric}</td>
                <td>{ratio(one)}</td>
                <td class={one.verdict}>{one.verdict}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function ratio({ ratio, interval }: Verdict): string {
  const range = interval ? ` (${interval[0].toFixed(3)} to ${interval[1].toFixed(3)})` : "";
  return ratio === null ? "" : `${ratio.toFixed(3)}${range}`;
}

function Brackets({ progress }: { progress: Progress }) {
  if (!progress.brackets.size) {
    return null;
  }
  return (
    <>
      <h3>Capacities so far</h3>
      <table>
        <thead><tr><th scope="col">Arm</th><th scope="col">Holds</th><th scope="col">Breaks</th></tr></thead>
        <tbody>
          {[...progress.brackets.values()].map(({ arm, low, high }) => (
            <tr key={arm}><th scope="row">{arm}</th><td>{rate(low)}/s</td><td>{rate(high)}/s</td></tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function rate(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** Shows nanoseconds in the unit that fits. */
function time(value: number): string {
  const [unit, size] = value < 1e6 ? ["µs", 1e3] : value < 1e9 ? ["ms", 1e6] : ["s", 1e9];
  return `${(value / (size as number)).toPrecision(3)} ${unit}`;
}
