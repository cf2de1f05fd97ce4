//! Lists of runs, with folders in every state.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Instant;

use weir_analysis::analyze;
use weir_model::record::Outcome;
use weir_notebook::{
    Filter, FolderProblem, RunEntry, RunState, change_notes, keep_summary, list_runs, read_entry,
    read_notes, read_summary,
};
use weir_record::{Run, RunWriter};

use crate::made::{Notebook, VERSION, names_in};

fn make_fifo(path: &std::path::Path) {
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

#[track_caller]
fn find<'a>(runs: &'a [RunEntry], name: &str) -> &'a RunEntry {
    runs.iter().find(|run| run.name == name).expect(name)
}

#[test]
fn every_folder_is_listed_with_its_state_and_what_is_wrong_with_it() {
    let notebook = Notebook::new();
    notebook.add("complete", 1, Some(Outcome::Complete));
    notebook.add("stopped", 2, Some(Outcome::Interrupted));
    notebook.add("failed", 3, Some(Outcome::Failed));
    notebook.add("killed", 4, None);
    let script = "<script>\u{1b}[2J";
    notebook.add(script, 5, Some(Outcome::Complete));
    let half = notebook.path("half");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("records.jsonl"), "").unwrap();
    let older = notebook.add("older", 6, None);
    fs::write(older.join("run.json"), r#"{"format": "weir-run/1"}"#).unwrap();
    let damaged = notebook.add("damaged", 7, None);
    fs::write(damaged.join("run.json"), "{").unwrap();
    let waiting = notebook.path("waiting");
    fs::create_dir(&waiting).unwrap();
    make_fifo(&waiting.join("run.json"));
    let huge = notebook.add("huge", 8, None);
    fs::File::create(huge.join("run.json")).unwrap().set_len(1 << 40).unwrap();
    let no_records = notebook.add("no records", 9, None);
    fs::remove_file(no_records.join("records.jsonl")).unwrap();
    make_fifo(&no_records.join("records.jsonl"));
    let open = notebook.add("open", 10, Some(Outcome::Complete));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let noted = notebook.add("noted", 11, Some(Outcome::Complete));
    fs::write(noted.join("notes.json"), "[1, 2").unwrap();
    symlink(notebook.path("complete"), notebook.path("link")).unwrap();
    symlink("/nowhere", notebook.path("dangling")).unwrap();
    fs::write(notebook.path("file"), "no folder").unwrap();
    fs::create_dir(notebook.path("something else")).unwrap();
    let running = notebook.add("running", 12, None);
    let (_writer, _) = RunWriter::resume(&running).unwrap();

    let runs = list_runs(&notebook.path(""), VERSION).unwrap();
    for (name, state, problem) in [
        ("complete", RunState::Complete, ""),
        ("stopped", RunState::Interrupted, ""),
        ("failed", RunState::Failed, ""),
        ("killed", RunState::Unfinished, ""),
        ("running", RunState::Running, ""),
        (script, RunState::Complete, ""),
        ("half", RunState::Unreadable, "no run.json: the run was killed before its first trial"),
        ("older", RunState::Unreadable, "has format `weir-run/1`"),
        ("damaged", RunState::Unreadable, "run.json:1: EOF"),
        ("waiting", RunState::Unreadable, "run.json"),
        ("huge", RunState::Unreadable, "longer than"),
        ("no records", RunState::Unreadable, "records.jsonl"),
        ("open", RunState::Complete, "others could have written it"),
        ("noted", RunState::Complete, "notes.json"),
        ("link", RunState::Unreadable, "a symbolic link"),
    ] {
        let run = find(&runs, name);
        assert_eq!(run.state, state, "{run:?}");
        let problems: Vec<String> = run.problems.iter().map(FolderProblem::to_string).collect();
        let is_told = problems.iter().any(|told| told.contains(problem));
        assert!(if problem.is_empty() { problems.is_empty() } else { is_told }, "{run:?}");
    }
    assert_eq!(runs.len(), 15, "{runs:#?}");
    let complete = find(&runs, "complete");
    assert_eq!((complete.study.as_str(), complete.question.as_str()), ("s", "?"));
    assert_eq!(complete.arms, ["stock", "tuned"]);
    assert!(complete.proxies == ["nginx"] && complete.size_bytes > 1_000);
    // The newest first; what has no time comes last.
    let dated = runs.iter().take_while(|run| !run.started_at.is_empty()).map(|run| &*run.name);
    let dated: Vec<&str> = dated.collect();
    assert_eq!(dated[0], "running");
    assert_eq!(*dated.last().unwrap(), "complete");
}

#[test]
fn two_hundred_runs_with_large_records_are_listed_without_reading_them() {
    let notebook = Notebook::new();
    for number in 0..200 {
        let dir = notebook.add(&format!("run-{number}"), 1 + number % 28, Some(Outcome::Complete));
        let end = fs::read(dir.join("records.jsonl")).unwrap();
        // Nobody could read these in seconds.
        let records = fs::File::options().write(true).open(dir.join("records.jsonl")).unwrap();
        records.set_len(1 << 30).unwrap();
        let mut records = fs::File::options().append(true).open(dir.join("records.jsonl")).unwrap();
        std::io::Write::write_all(&mut records, &[b"\n", &end[..]].concat()).unwrap();
    }
    let begun = Instant::now();
    let runs = list_runs(&notebook.path(""), VERSION).unwrap();
    assert_eq!(runs.len(), 200);
    assert!(runs.iter().all(|run| run.state == RunState::Complete));
    // 200 GiB: reading them takes minutes on any machine.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn a_summary_counts_only_for_the_records_and_the_version_it_was_made_from() {
    let notebook = Notebook::new();
    let dir = notebook.add("run", 1, Some(Outcome::Complete));
    let run = Run::read(&dir).unwrap();
    let summary = keep_summary(&run, &analyze(&run), VERSION).unwrap();
    assert_eq!(read_summary(&dir, VERSION), Some(summary));
    assert_eq!(read_entry(&dir, VERSION).verdict, "nothing usable was measured");
    assert_eq!(read_summary(&dir, "another version"), None);
    let mode =
        |bits| fs::set_permissions(dir.join("summary.json"), fs::Permissions::from_mode(bits));
    mode(0o666).unwrap();
    assert_eq!(read_summary(&dir, VERSION), None);
    mode(0o600).unwrap();
    assert!(read_summary(&dir, VERSION).is_some());
    let records = dir.join("records.jsonl");
    let text = fs::read_to_string(&records).unwrap();
    fs::write(&records, text + "\n").unwrap();
    assert_eq!(read_summary(&dir, VERSION), None);
    assert_eq!(read_entry(&dir, VERSION).validity, None);
}

#[test]
fn tags_and_notes_are_kept_bounded_and_searched() {
    let notebook = Notebook::new();
    let dir = notebook.add("night", 3, Some(Outcome::Complete));
    let tags = ["release-1.4".to_owned(), "häufig".to_owned()];
    change_notes(&dir, |notes| notes.add_tags(&tags)).unwrap();
    change_notes(&dir, |notes| notes.set_note("  after the kernel update\n")).unwrap();
    for tag in ["", "two words", "a\u{1b}b", "<b>", &"x".repeat(65)] {
        let refused = change_notes(&dir, |notes| notes.add_tags(&[tag.to_owned()]));
        assert!(refused.is_err(), "{tag:?}");
    }
    let many: Vec<String> = (0..40).map(|number| format!("tag-{number}")).collect();
    assert!(change_notes(&dir, |notes| notes.add_tags(&many)).is_err());
    assert!(change_notes(&dir, |notes| notes.set_note(&"x".repeat(5_000))).is_err());
    let notes = read_notes(&dir).unwrap();
    assert_eq!(notes.tags.iter().collect::<Vec<_>>(), ["häufig", "release-1.4"]);
    assert_eq!(notes.note, "after the kernel update");
    let run = read_entry(&dir, VERSION);
    for (name, value, is_accepted) in [
        ("", "", true),
        ("text", "KERNEL", true),
        ("text", "tuned", true),
        ("text", "night", true),
        ("text", "day", false),
        ("tag", "release-1.4", true),
        ("tag", "release", false),
        ("since", "2026-01-03T08:00:00Z", true),
        ("since", "2026-01-03T08:00:01Z", false),
        ("proxy", "nginx", true),
        ("proxy", "envoy", false),
        ("study", "s", true),
        ("study", "t", false),
    ] {
        let mut filter = Filter::default();
        match name {
            "text" => filter.text = Some(value.to_owned()),
            "tag" => filter.tags = vec![value.to_owned()],
            "since" => filter.since = Some(value.parse().unwrap()),
            "proxy" => filter.proxy = Some(value.to_owned()),
            "study" => filter.study = Some(value.to_owned()),
            _ => {}
        }
        assert_eq!(filter.accepts(&run), is_accepted, "{filter:?}");
    }
    change_notes(&dir, |notes| {
        notes.remove_tags(&tags);
        notes.set_note("")
    })
    .unwrap();
    assert!(read_notes(&dir).unwrap().tags.is_empty());
    // The run can go on as before.
    assert!(RunWriter::resume(&dir).is_ok());
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(change_notes(&dir, |notes| notes.set_note("mine")).is_err());
    assert_eq!(names_in(&dir).iter().filter(|name| name.contains("notes")).count(), 1);
}
