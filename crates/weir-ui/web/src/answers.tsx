// Sections that show what a command answers: reports, comparisons, parameters, the doctor.
import { useEffect, useRef, useState } from "preact/hooks";
import { read, readText } from "./api.ts";
import { Failed, useAnswer, Waiting } from "./answer.tsx";
import { addTools } from "./report.ts";

/** Markup of weir's own renderer, in which names are escaped. Scripts in it would not run: the page's policy forbids them. */
export function Fragment({ title, path }: { title: string; path: string }) {
  const { value, error } = useAnswer(() => readText(path), [path]);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (place.current && value !== undefined) {
      place.current.innerHTML = value;
      keepAddress(place.current);
      addTools(place.current);
    }
  }, [value]);
  if (error) {
    return <><h1>{title}</h1><Failed error={error} /></>;
  }
  return value === undefined ? <><h1>{title}</h1><Waiting /></> : <div ref={place} class="report" />;
}

/** Makes links to a report's own sections scroll there, as the address belongs to the page. */
function keepAddress(report: HTMLElement): void {
  for (const link of report.querySelectorAll<HTMLAnchorElement>('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const target = report.querySelector<HTMLElement>(`[id="${CSS.escape(link.hash.slice(1))}"]`);
      target?.setAttribute("tabindex", "-1");
      target?.focus();
    });
  }
}

interface Parameter {
  id: string;
  scope: string;
  default?: string | null;
  why?: string;
}

export function Catalog() {
  const { value, error } = useAnswer(() => read<{ parameters: Parameter[] }>("catalog"), []);
  const [wanted, setWanted] = useState("");
  const rows = value?.parameters.filter((row) => JSON.stringify(row).includes(wanted)) ?? [];
  return (
    <>
      <h1>Parameters</h1>
      <p class="sub">What a study of nginx can vary. `weir parameters --proxy NAME` lists those of the other proxies.</p>
      {error ? <Failed error={error} /> : null}
      {value ? null : <Waiting />}
      <p>
        <label>Find <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Parameters">
        <table>
          <thead><tr><th scope="col">Parameter</th><th scope="col">Where</th><th scope="col">Why it matters</th></tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.id}><th scope="row">{row.id}</th><td>{row.scope}</td><td>{row.why}</td></tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

export function Doctor() {
  const { value, error } = useAnswer(() => readText("doctor"), []);
  return (
    <>
      <h1>Doctor</h1>
      <p class="sub">Settings of this host and its nginx that would limit a load, as `weir doctor` finds them.</p>
      {error ? <Failed error={error} /> : null}
      {value === undefined && !error ? <Waiting /> : <pre tabIndex={0}>{value}</pre>}
    </>
  );
}
