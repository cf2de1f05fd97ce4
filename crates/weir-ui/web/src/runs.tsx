// The list of runs: open one, compare two, go on with one that was interrupted.
import { useState } from "preact/hooks";
import { type ListedRun, read, send } from "./api.ts";
import { Failed, useAnswer, Waiting } from "./answer.tsx";

export function Runs({ isReadOnly }: { isReadOnly: boolean }) {
  const { value: runs, error } = useAnswer(() => read<ListedRun[]>("runs"), []);
  const [wanted, setWanted] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const [failure, setFailure] = useState("");
  const shown = runs?.filter((run) => JSON.stringify(run).toLowerCase().includes(wanted.toLowerCase())) ?? [];
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
      {runs || error ? null : <Waiting />}
      {runs?.length === 0 ? <p>There are no runs yet. Start one from <a href="#/studies">Studies</a>.</p> : null}
      <p class="tools">
        <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
        <button type="button" disabled={chosen.length !== 2} onClick={() => compare(chosen, shown)}>Compare two</button>
        <span class="sub" role="status">{shown.length} of {runs?.length ?? 0} runs, {chosen.length} chosen</span>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
        <table class="runs">
          <thead>
            <tr>
              <th scope="col">Run</th><th scope="col">Compare</th><th scope="col">Study</th><th scope="col">Began</th>
              <th scope="col">Ended</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ name, run, problem }) => (
              <tr key={name}>
                <th scope="row">{run ? <a href={`#/run/${encodeURIComponent(name)}`}>{name}</a> : name}</th>
                <td>
                  {run ? (
                    <input type="checkbox" aria-label={`Compare ${name}`} checked={chosen.includes(name)}
                      onChange={(event) => choose(name, event.currentTarget.checked)} />
                  ) : null}
                </td>
                <td colSpan={run ? 1 : 3}>{run ? <>{run.title}<span class="changes">{run.study}: {run.arms.join(", ")}</span></> : problem}</td>
                {run ? <td>{new Date(run.started_at).toLocaleString()}</td> : null}
                {run ? (
                  <td>
                    {run.outcome === "open" ? "not ended" : run.outcome}{" "}
                    {run.outcome !== "complete" && !isReadOnly ? (
                      <button type="button" onClick={() => resume(name)} aria-label={`Go on with ${name}`}>Go on</button>
                    ) : null}
                  </td>
                ) : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Opens the comparison of two runs, the earlier one first. */
function compare(chosen: string[], runs: ListedRun[]): void {
  const began = (name: string) => runs.find((run) => run.name === name)?.run?.started_at ?? "";
  const [old, next] = [...chosen].sort((one, other) => began(one).localeCompare(began(other)));
  location.hash = `#/compare/${encodeURIComponent(old ?? "")}/${encodeURIComponent(next ?? "")}`;
}
