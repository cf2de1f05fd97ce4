// The list of runs: open one, compare two, go on with one that was interrupted.
import { useState } from "preact/hooks";
import { read, type Run, send } from "./api.ts";
import { Failed, useAnswer, Waiting } from "./answer.tsx";

export function Runs({ isReadOnly }: { isReadOnly: boolean }) {
  const { value: list, error } = useAnswer(() => read<{ runs: Run[] }>("runs"), []);
  const [wanted, setWanted] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const [failure, setFailure] = useState("");
  const runs = list?.runs ?? [];
  const shown = runs.filter((run) => JSON.stringify(run).toLowerCase().includes(wanted.toLowerCase()));
  const choose = (name: string, isChosen: boolean) =>
    setChosen((names) => (isChosen ? [...names, name] : names.filter((other) => other !== name)));
  const resume = (name: string) =>
    send<{ number: number }>("POST", "jobs", { resume: name }).then(
      (job) => (location.hash = `#/live/${job?.number}`),
      (refusal: Error) => setFailure(refusal.message),
    );
  return (
    <>
      <h1>Runs</h1>
      {error ? <Failed error={error} /> : null}
      {failure ? <Failed error={failure} /> : null}
      {list || error ? null : <Waiting />}
      {list?.runs.length === 0 ? <p>There are no runs yet. Start one from <a href="#/studies">Studies</a>.</p> : null}
      <p class="tools">
        <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <button type="button" disabled={chosen.length !== 2} onClick={() => compare(chosen, runs)}>Compare two</button>
        <span class="sub" role="status">{shown.length} of {runs.length} runs, {chosen.length} chosen</span>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
        <table class="runs">
          <thead>
            <tr>
              <th scope="col">Run</th><th scope="col">Compare</th><th scope="col">Study and verdict</th><th scope="col">Began</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((run) => (
              <Row key={run.name} run={run} isChosen={chosen.includes(run.name)} choose={choose} resume={isReadOnly ? undefined : resume} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface RowOptions {
  run: Run;
  isChosen: boolean;
  choose: (name: string, isChosen: boolean) => void;
  /** Goes on with a run; nothing where the page only shows. */
  resume: ((name: string) => void) | undefined;
}

const GOES_ON = ["interrupted", "failed", "unfinished"];

function Row({ run, isChosen, choose, resume }: RowOptions) {
  const { name, state } = run;
  const isReadable = state !== "unreadable";
  return (
    <tr>
      <th scope="row">
        {isReadable ? <a href={`#/run/${encodeURIComponent(name)}`}>{name}</a> : name}
        {run.tags.map((tag) => <span key={tag} class="tag">{tag}</span>)}
      </th>
      <td>
        {isReadable ? (
          <input type="checkbox" aria-label={`Compare ${name}`} checked={isChosen} onChange={(event) => choose(name, event.currentTarget.checked)} />
        ) : null}
      </td>
      <td>
        {run.title}
        {run.validity ? <> <span class={`badge ${run.validity.toLowerCase()}`}>{run.validity}</span> {run.verdict}</> : null}
        <span class="changes">{run.arms.join(", ")}</span>
        {run.note ? <span class="changes">{run.note}</span> : null}
        {run.problems.map((one) => <span key={one.problem} class="changes">{explain(one)}</span>)}
      </td>
      <td>{run.started_at ? new Date(run.started_at).toLocaleString() : ""}</td>
      <td>
        {state}{" "}
        {resume && GOES_ON.includes(state) ? (
          <button type="button" onClick={() => resume(name)} aria-label={`Go on with ${name}`}>Go on</button>
        ) : null}
      </td>
    </tr>
  );
}

const PROBLEMS: Record<string, string> = {
  link: "The folder is a symbolic link, which is not followed.",
  no_header: "There is no run.json: the run was ended before its first trial.",
  foreign: "Others could have written it",
  unreadable: "It cannot be read",
};

function explain({ problem, why }: { problem: string; why?: string }): string {
  const text = PROBLEMS[problem] ?? problem;
  return why ? `${text}: ${why}` : text;
}

/** Opens the comparison of two runs, the earlier one first. */
function compare(chosen: string[], runs: Run[]): void {
  const began = (name: string) => runs.find((run) => run.name === name)?.started_at ?? "";
  const [old, next] = [...chosen].sort((one, other) => began(one).localeCompare(began(other)));
  location.hash = `#/compare/${encodeURIComponent(old ?? "")}/${encodeURIComponent(next ?? "")}`;
}
