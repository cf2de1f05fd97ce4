// The frame of the page: its sections, and which of them the address names.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { type About, read } from "./api.ts";
import { Catalog, Doctor, Fragment } from "./answers.tsx";
import { Editor } from "./editor.tsx";
import { Live } from "./live.tsx";
import { Runs } from "./runs.tsx";
import { Failed, useAnswer } from "./answer.tsx";

const SECTIONS = [
  ["runs", "Runs"],
  ["studies", "Studies"],
  ["live", "Live"],
  ["history", "History"],
  ["catalog", "Parameters"],
  ["doctor", "Doctor"],
] as const;

/** Returns the parts of the address behind "#/". */
function usePlace(): string[] {
  const here = () => location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const go = () => setPlace(here());
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, []);
  return place;
}

export function App() {
  const place = usePlace();
  const about = useAnswer<About>(() => read("about"), []);
  const section = place[0] || "runs";
  useEffect(() => {
    document.title = `${SECTIONS.find(([id]) => id === section)?.[1] ?? "Run"} · weir`;
    document.getElementById("content")?.focus({ preventScroll: true });
  }, [place.join("/")]);
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>Skip to the content</a>
      <header class="bar">
        <strong>weir</strong>
        <nav aria-label="Pages">
          {SECTIONS.map(([id, name]) => (
            <a key={id} href={`#/${id}`} aria-current={id === section ? "page" : undefined}>{name}</a>
          ))}
        </nav>
      </header>
      <main id="content" tabIndex={-1}>
        {about.error ? <Failed error={about.error} /> : null}
        {about.value ? <Section place={place} section={section} about={about.value} /> : null}
      </main>
      <footer class="foot">
        {about.value ? `${about.value.version} · ${about.value.folder}${about.value.is_read_only ? " · read only" : ""}` : ""}
      </footer>
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Section({ place, section, about }: { place: string[]; section: string; about: About }) {
  const run = place[1] ?? "";
  switch (section) {
    case "runs":
      return <Runs isReadOnly={about.is_read_only} />;
    case "run":
      return <Fragment title={run} path={`runs/${encodeURIComponent(run)}/report`} />;
    case "compare": {
      const [old, next] = [run, place[2] ?? ""].map(encodeURIComponent);
      return <Fragment title="Two runs" path={`compare?old=${old}&new=${next}`} />;
    }
    case "studies":
      return <Editor isReadOnly={about.is_read_only} name={run} />;
    case "live":
      return <Live isReadOnly={about.is_read_only} number={Number(run) || undefined} />;
    case "history":
      return <Fragment title="History" path="history" />;
    case "catalog":
      return <Catalog />;
    case "doctor":
      return <Doctor />;
    default:
      return <Titled title="Not here"><p>This address has no content.</p></Titled>;
  }
}

export function Titled({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <h1>{title}</h1>
      {children}
    </>
  );
}
