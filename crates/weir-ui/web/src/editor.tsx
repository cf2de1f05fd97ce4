// Studies: read, change, check as one types, save, start.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Problem, read, send, type StudyText } from "./api.ts";
import { Failed, useAnswer, Waiting } from "./answer.tsx";

const PAUSE_MS = 250;

interface Studies {
  own: StudyText[];
  ready_made: StudyText[];
}

interface Checked {
  errors: Problem[];
  plan: string;
}

export function Editor({ isReadOnly, name }: { isReadOnly: boolean; name: string }) {
  const { value, error } = useAnswer(() => read<Studies>("studies"), []);
  const words = useAnswer(() => read<{ parameters: { id: string }[] }>("catalog"), []);
  if (error) {
    return <Failed error={error} />;
  }
  if (!value) {
    return <Waiting />;
  }
  const all = [...value.own, ...value.ready_made];
  const study = all.find((one) => one.name === name);
  return (
    <>
      <h1>Studies</h1>
      <p class="tools">
        <label for="study">Study</label>
        <select id="study" value={name} onChange={(event) => (location.hash = `#/studies/${encodeURIComponent(event.currentTarget.value)}`)}>
          <option value="">Choose one …</option>
          {value.own.length ? <optgroup label="Yours">{value.own.map(option)}</optgroup> : null}
          <optgroup label="Ready-made">{value.ready_made.map(option)}</optgroup>
        </select>
      </p>
      {study ? (
        <Text key={study.name} study={study} isReadOnly={isReadOnly} words={words.value?.parameters.map((row) => row.id) ?? []} />
      ) : null}
    </>
  );
}

function option(study: StudyText) {
  return <option key={study.name} value={study.name}>{study.name}</option>;
}

function Text({ study, isReadOnly, words }: { study: StudyText; isReadOnly: boolean; words: string[] }) {
  const [text, setText] = useState(study.text);
  const [saved, setSaved] = useState(study.text);
  const [name, setName] = useState(study.name);
  const [checked, setChecked] = useState<Checked>();
  const [failure, setFailure] = useState("");
  const [offered, setOffered] = useState<string[]>([]);
  const [chosen, setChosen] = useState(0);
  const area = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    const timer = setTimeout(() => {
      send<Checked>("POST", "check", { text }).then(setChecked, (refusal: Error) => setFailure(refusal.message));
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);

  const save = async () => {
    await send("PUT", `studies/${encodeURIComponent(name)}`, { text });
    setSaved(text);
  };
  const start = async () => {
    if (text !== saved || name !== study.name) {
      await save();
    }
    const job = await send<{ number: number }>("POST", "jobs", { study: name });
    location.hash = `#/live/${job?.number}`;
  };
  const attempt = (work: () => Promise<void>) => work().then(() => setFailure(""), (refusal: Error) => setFailure(refusal.message));

  const show = (problem: Problem) => {
    const begin = text.split("\n").slice(0, problem.line - 1).join("\n").length + (problem.line > 1 ? 1 : 0) + problem.column - 1;
    area.current?.focus();
    area.current?.setSelectionRange(begin, begin + Math.max(problem.length, 1));
  };
  const offer = () => {
    const before = wordBefore(area.current);
    setOffered(before.length < 2 ? [] : words.filter((word) => word.startsWith(before) && word !== before).slice(0, 8));
    setChosen(0);
  };
  const complete = (word: string) => {
    const place = area.current;
    if (place) {
      const end = place.selectionStart;
      place.setRangeText(word, end - wordBefore(place).length, end, "end");
      setText(place.value);
      setOffered([]);
      place.focus();
    }
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey && event.key === " ") {
      event.preventDefault();
      offer();
    } else if (offered.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setChosen((place) => (place + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
    } else if (offered.length && event.key === "Enter") {
      event.preventDefault();
      complete(offered[chosen] ?? "");
    } else if (event.key === "Escape") {
      setOffered([]);
    }
  };
  const errors = checked?.errors ?? [];
  return (
    <>
      <label for="study-text">Text of the study <span class="sub">(Ctrl+Space completes parameters)</span></label>
      <textarea id="study-text" ref={area} class="code" spellcheck={false} rows={24} value={text} readOnly={isReadOnly}
        aria-invalid={errors.length > 0} aria-describedby="study-check" aria-controls="offers"
        onInput={(event) => { setText(event.currentTarget.value); setOffered([]); }} onKeyDown={onKey} />
      <ul id="offers" role="listbox" aria-label="Parameters to insert" class="offers" hidden={!offered.length}>
        {offered.map((word, place) => (
          <li key={word} role="option" aria-selected={place === chosen} onPointerDown={() => complete(word)}>{word}</li>
        ))}
      </ul>
      <div id="study-check" role="status">
        {checked && !errors.length ? <p class="fine">No errors. {checked.plan}</p> : null}
        {errors.length ? <p>{errors.length === 1 ? "1 error" : `${errors.length} errors`}</p> : null}
      </div>
      <ul class="errors" aria-label="Errors">
        {errors.map((problem) => (
          <li key={`${problem.line}:${problem.column}:${problem.message}`}>
            <button type="button" onClick={() => show(problem)}>{problem.line}:{problem.column}</button> {problem.message}
            {problem.hint ? <span class="changes">{problem.hint}</span> : null}
          </li>
        ))}
      </ul>
      {failure ? <Failed error={failure} /> : null}
      {isReadOnly ? null : (
        <p class="tools">
          <label>Name <input value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
          <button type="button" onClick={() => attempt(save)}>Save</button>
          <button type="button" class="main" disabled={errors.length > 0} onClick={() => attempt(start)}>Start</button>
          <span class="sub">{text === saved ? "" : "Start saves it under this name first."}</span>
        </p>
      )}
    </>
  );
}

/** Returns the part of a parameter's name before the cursor. */
function wordBefore(area: HTMLTextAreaElement | null): string {
  return area ? /[A-Za-z0-9_.-]*$/.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "" : "";
}
