//! Tests of `weir history` and of `--baseline` with real runs, and copies of them with other figures.

use std::path::Path;

use serde_json::{Value, json};
use weir_testkit::program::{HasAll, Running, flat};
use weir_testkit::sandbox::{self, Sandbox};

const CLOSED: &str = "- {name: closed, closed: true, connections: 4, duration: 3s}";

/// Copies a run to another folder, as one that began at another time and completed a share of the requests.
pub(crate) fn copy_run(sandbox: &Sandbox, from: &str, to: &str, (began, share): (&str, f64)) {
    let (from, to) = (sandbox.path(from), sandbox.path(to));
    std::fs::create_dir_all(&to).expect("own folder");
    for entry in std::fs::read_dir(&from).expect("a run").flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("own file");
        }
    }
    change_header(&to, |header| header["started_at"] = began.into());
    let records = to.join("records.jsonl");
    let text = std::fs::read_to_string(&records).expect("records");
    let changed = text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).expect("a record");
        let slices = record.get_mut("slices").and_then(Value::as_array_mut);
        for slice in slices.into_iter().flatten() {
            let completed = slice["completed"].as_f64().unwrap_or(0.0) * share;
            slice["completed"] = (completed.round() as u64).into();
        }
        format!("{record}\n")
    });
    std::fs::write(&records, changed.collect::<String>()).expect("own file");
}

/// Changes the header of a run.
fn change_header(run: &Path, change: impl FnOnce(&mut Value)) {
    let path = run.join("run.json");
    let text = std::fs::read_to_string(&path).expect("run.json");
    let mut header: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut header);
    std::fs::write(&path, header.to_string()).expect("own file");
}

/// Makes a real run of nginx with one arm.
fn run_once(sandbox: &Sandbox, folder: &str, more: &str) {
    sandbox.write("study.yaml", &sandbox::study("{kind: nginx}", CLOSED, ""));
    sandbox.call(&format!("run study.yaml --out {folder} {more}")).with_code(0);
}

/// Returns a day of January or February.
fn day(number: u32) -> String {
    format!("2027-{:02}-{:02}T03:00:00Z", 1 + number / 28, 1 + number % 28)
}

/// Noise of about a per cent.
fn noise(number: u32) -> f64 {
    1.0 + 0.003 * (f64::from(number * 7 % 11) - 5.0)
}

#[test]
fn real_runs_over_time_are_too_few_for_a_claim_and_a_damaged_one_is_named() {
    let sandbox = Sandbox::new();
    for run in ["runs/a", "runs/b", "runs/c"] {
        run_once(&sandbox, run, "");
    }
    std::fs::write(sandbox.path("runs/b/histograms.hlog"), "no histogram").expect("own file");
    let shown = sandbox.call("history study.yaml").with_code(0);
    flat(&shown.stdout).has_all(&[
        "Whether tried has changed cannot be said yet: 8 runs on one machine are needed, and there are 2",
        "rate of baseline under the load closed",
        "b: it cannot be read",
    ]);
    let unjudged = sandbox.call("history runs --fail-if worse").with_code(1);
    unjudged.stderr.has("so it cannot be judged");
    sandbox.call("history runs --fail-if inconclusive").with_code(3);
    for (line, why) in [
        ("history runs/a", "runs/a is a single run"),
        ("history nowhere", "there is no study called `nowhere`"),
        ("history temporary", "there is no run in temporary"),
        ("history runs --format csv", "a history has no table of that kind"),
        ("history runs --fail-if 'p99 > 3ms'", "a history is judged as a whole"),
    ] {
        flat(&sandbox.call(line).with_code(2).stderr).has(why);
    }
}

#[test]
fn a_planted_step_is_found_with_what_else_changed_and_another_machine_is_a_break() {
    let sandbox = Sandbox::new();
    run_once(&sandbox, "real", "");
    for number in 0..40 {
        let share = noise(number) * if number < 20 { 1.0 } else { 0.95 };
        // A single bad run is no change.
        let share = if number == 10 { 0.7 } else { share };
        let run = format!("runs/night-{number:02}");
        copy_run(&sandbox, "real", &run, (&day(number), share));
        change_header(&sandbox.path(&run), |header| {
            if number >= 20 {
                header["environment"]["versions"]["nginx"] = "nginx/9.9".into();
            }
            if number >= 30 {
                header["environment"]["cpu_model"] = "another".into();
            }
        });
    }
    copy_run(&sandbox, "real", "runs/copy", (&day(3), 1.0));
    copy_run(&sandbox, "real", "runs/cut", ("2027-03-01T03:00:00Z", 1.0));
    let records = sandbox.path("runs/cut/records.jsonl");
    let text = std::fs::read_to_string(&records).expect("records");
    let cut: String = text.lines().take(3).map(|line| format!("{line}\n")).collect();
    std::fs::write(&records, cut).expect("own file");
    copy_run(&sandbox, "real", "runs/other", ("2026-01-01T03:00:00Z", 1.0));
    change_header(&sandbox.path("runs/other"), |header| {
        header["study"]["name"] = "foreign".into();
        header["study"]["loads"] = json!([]);
    });
    let shown = sandbox.call("history runs").with_code(0);
    flat(&shown.stdout).has_all(&[
        "Since night-20 (2027-01-21), worse: rate of baseline under the load closed",
        "% lower (",
        "with that run also changed: nginx",
        "→ nginx/9.9",
        "another machine since night-30 (2027-02-03): CPU model",
        "cut: it did not end as planned",
        "other: it is a run of another study (foreign)",
    ]);
    let ended = sandbox.call("history runs --format json").with_code(0);
    let document: Value = serde_json::from_str(&ended.stdout).expect("findings");
    assert_eq!(document["format"], "weir-history/1");
    let changes = document["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 1, "{document}");
    let figure = &changes[0]["figures"][0];
    let (ratio, found) = (figure["ratio"].as_f64(), figure["found"].as_u64());
    assert!((0.935..0.965).contains(&ratio.expect("a ratio")) && found <= Some(24), "{figure}");
    assert_eq!(document["breaks"][0]["at"], 30, "{document}");
    assert_eq!(document["left_out"].as_array().map(Vec::len), Some(3), "{document}");
    sandbox.call("history runs --fail-if worse").with_code(0);
    let failed = sandbox.call("history runs --fail-if worse --last 30 --junit h.xml").with_code(3);
    flat(&failed.stderr).has("--fail-if worse: Since night-20");
    std::fs::read_to_string(sandbox.path("h.xml")).expect("h.xml").has("<failure ");
    sandbox.call("history runs --fail-if better --last 30").with_code(0);
    let page = sandbox.call("history runs --format html").with_code(0);
    page.stdout.has_all(&["<svg class=\"chart wide\"", "class=\"level\"", "since night-20"]);
    sandbox.call("history runs --format markdown").with_code(0).stdout.has("night-20");
}

/// Returns the names of the runs that a baseline keeps.
fn kept(sandbox: &Sandbox) -> Vec<String> {
    let entries = std::fs::read_dir(sandbox.path("kept")).expect("a baseline").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name != ".weir-baseline").collect();
    names.sort();
    names
}

#[test]
fn a_baseline_keeps_what_is_not_worse_and_nothing_else() {
    let sandbox = Sandbox::new();
    run_once(&sandbox, "real", "--baseline kept --fail-if worse");
    assert_eq!(kept(&sandbox).len(), 1);
    std::fs::remove_dir_all(sandbox.path("kept")).expect("own folder");
    for number in 0..12 {
        copy_run(&sandbox, "real", &format!("in/{number}"), (&day(number), noise(number)));
        let line = format!("compare in/{number} --baseline kept --keep 10 --fail-if worse");
        let ended = sandbox.call(&line).with_code(0);
        flat(&ended.stdout).has("The baseline kept keeps this run: it now has");
    }
    let names = kept(&sandbox);
    assert_eq!(names.len(), 10, "{names:?}");
    let days: Vec<&str> = names.iter().map(|name| &name[6..8]).collect();
    assert_eq!(days, ["01", "02", "03", "04", "05", "08", "09", "10", "11", "12"]);
    copy_run(&sandbox, "real", "in/worse", (&day(20), 0.8));
    let failed = sandbox.call("compare in/worse --baseline kept --fail-if worse").with_code(3);
    flat(&failed.stdout).has_all(&["worse is worse than", "does not keep this run"]);
    assert_eq!(kept(&sandbox), names);
    // What a killed weir left goes; what is damaged is named and stays.
    std::fs::create_dir(sandbox.path("kept/.unfinished-x")).expect("own folder");
    std::fs::write(sandbox.path(&format!("kept/{}/records.jsonl", names[0])), "{\n").expect("own");
    let ended = sandbox.call("compare in/11 --baseline kept --keep 10").with_code(0);
    flat(&ended.stderr).has_all(&[&names[0], "is left out: it cannot be read"]);
    assert!(!kept(&sandbox).contains(&".unfinished-x".to_owned()));
    copy_run(&sandbox, "real", "in/machine", (&day(21), 1.0));
    change_header(&sandbox.path("in/machine"), |header| {
        header["environment"]["cpu_model"] = "another".into();
    });
    let refused = sandbox.call("compare in/machine --baseline kept").with_code(1);
    flat(&refused.stderr).has_all(&["its runs are of another machine (CPU model", "--renew"]);
    let renewed = sandbox.call("compare in/machine --baseline kept --renew").with_code(0);
    flat(&renewed.stdout).has("it now has 1 run, of at most 20");
}

#[test]
fn two_weirs_add_to_one_baseline_and_what_does_not_fit_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    run_once(&sandbox, "real", "");
    let both: Vec<Running> = [1, 2]
        .map(|number| {
            copy_run(&sandbox, "real", &format!("in/{number}"), (&day(number), noise(number)));
            let run = format!("in/{number}");
            Running::start(&mut sandbox.weir(&["compare", &run, "--baseline", "kept"]))
        })
        .into();
    for running in both {
        running.end().with_code(0);
    }
    assert_eq!(kept(&sandbox).len(), 2);
    let study =
        sandbox::study("{kind: nginx}", CLOSED, "").replace("connections: 4", "connections: 7");
    sandbox.write("other.yaml", &study);
    for (line, why) in [
        ("run other.yaml --baseline kept", "it keeps runs of tried, which have no arm and load"),
        ("run study.yaml --baseline in", "it has files in it, and is no baseline"),
        ("run study.yaml --baseline study.yaml", "--baseline study.yaml"),
        ("run study.yaml --keep 12", "--baseline"),
        ("compare in/1 in/2 --baseline kept", "give one run: weir compare RUN --baseline DIR"),
        ("compare http://127.0.0.1:9/ http://127.0.0.2:9/ --baseline kept", "side by side"),
    ] {
        flat(&sandbox.call(line).with_code(2).stderr).has(why);
    }
    sandbox.call("run study.yaml --check --baseline new").with_code(0);
    assert!(!sandbox.path("new").exists());
}

/// The examples for CI servers with a baseline, run twice as by two commits.
#[test]
fn the_examples_with_a_baseline_fill_it_and_pass() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compare.md");
    let text = std::fs::read_to_string(docs).expect("docs/compare.md");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| line.starts_with("weir run nightly"));
    let examples: Vec<String> =
        starts.map(|(place, line)| format!("{line} {}", lines[place + 1])).collect();
    assert_eq!(examples.len(), 2, "{examples:?}");
    let sandbox = Sandbox::new();
    sandbox.write("nightly.yaml", &sandbox::study("{kind: nginx}", CLOSED, ""));
    for (place, line) in examples.iter().enumerate() {
        let own_folder = line.replace("runs/ci", &format!("runs/ci-{place}"));
        let ended = sandbox.call(own_folder.trim_start_matches("weir ")).with_code(0);
        flat(&ended.stdout).has("The baseline weir-baseline keeps this run");
        std::fs::read_to_string(sandbox.path("weir.xml")).expect("weir.xml").has("<testsuite");
    }
}
