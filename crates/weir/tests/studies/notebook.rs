//! Tests of `weir runs`, `weir export` and `weir import` with real runs.

use std::fs;
use std::process::Command;

use serde_json::Value;
use weir_testkit::program::{HasAll, Running, flat};
use weir_testkit::sandbox::{self, Sandbox};

use super::history::copy_run;

const CLOSED: &str = "- {name: closed, closed: true, connections: 4, duration: 3s, request: {path: /, fields: {X-Key: S3CRETS3CRET}}}";

/// Makes a real run of nginx with one change.
fn run_once(sandbox: &Sandbox, folder: &str) {
    let change = "one-at-a-time: {origin_keepalive: 16}\n";
    sandbox.write("study.yaml", &sandbox::study("{kind: nginx}", CLOSED, change));
    sandbox.call(&format!("run study.yaml --out {folder}")).with_code(0);
}

#[test]
fn a_real_run_is_listed_tagged_found_and_explains_itself() {
    let sandbox = Sandbox::new();
    run_once(&sandbox, "runs/first");
    let listed = sandbox.call("runs").with_code(0);
    flat(&listed.stdout).has_all(&[
        "first",
        "complete",
        "tried: Is it so?",
        "arms: baseline, same-as-baseline, origin_keepalive=16",
        "origin_keepalive=16 ",
        "1 run, ",
    ]);
    sandbox.call("runs tag first nightly v1.4").with_code(0).stdout.has("#nightly  #v1.4");
    sandbox.call("runs note runs/first 'after the update'").with_code(0);
    sandbox
        .call("runs find UPDATE --tag v1.4 --since 1h --proxy nginx")
        .with_code(0)
        .stdout
        .has("note: after the update");
    sandbox.call("runs find elsewhere").with_code(0).stdout.has("No such runs in runs");
    sandbox.call("runs tag first nightly --remove").with_code(0).stdout.has_none(&["nightly"]);
    let json = sandbox.call("runs --format json").with_code(0);
    let document: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let run = &document["runs"][0];
    assert_eq!((&run["tags"][0], &run["state"]), (&"v1.4".into(), &"complete".into()));
    // Neither keeps the run from being reported or resumed: the header and the study are as they were.
    sandbox.call("report runs/first").with_code(0);
    sandbox.call("run --resume runs/first").refused(&["is complete: there is nothing to resume"]);
    let page = fs::read_to_string(sandbox.path("runs/first/README.md")).expect("a page");
    let program = &Command::new("nginx").arg("-v").output().expect("nginx").stderr;
    let printed = String::from_utf8_lossy(program);
    let version = printed.trim().trim_start_matches("nginx version: ").split(' ').next();
    page.has_all(&[
        "This folder is one run of weir",
        "after the update",
        "| origin_keepalive=16 | nginx | origin_keepalive: 16 | baseline |",
        "No setting of a whole host or of a cluster was changed.",
        "## How to repeat it",
        "weir run study.yaml",
        "| records.jsonl | every measurement, a JSON record on each line |",
        version.expect("a version"),
        "/nginx\n",
    ]);
    page.has_none(&["S3CRET"]);
}

/// A setting of the whole host that changes nothing for these runs, as no CPU quota is set.
const HOST_SETTING: &str = "/proc/sys/kernel/sched_cfs_bandwidth_slice_us";

#[test]
fn a_changed_setting_of_the_host_is_in_the_page_with_its_values() {
    let before = fs::read_to_string(HOST_SETTING).unwrap_or_default();
    let Ok(value) = before.trim().parse::<u64>() else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let change = format!("one-at-a-time: {{kernel.sched_cfs_bandwidth_slice_us: {}}}\n", value + 1);
    sandbox.write("study.yaml", &sandbox::study("{kind: nginx}", CLOSED, &change));
    let line = ["run", "study.yaml", "--out", "runs/first", "--allow-host-settings"];
    let mut command = sandbox.weir(&line);
    command.env("WEIR_JOURNAL", sandbox.path("journal"));
    Running::start(&mut command).end().with_code(0);
    assert_eq!(fs::read_to_string(HOST_SETTING).unwrap_or_default(), before);
    let page = fs::read_to_string(sandbox.path("runs/first/README.md")).expect("a page");
    let row = format!("| kernel.sched_cfs_bandwidth_slice_us | {value} | {value}, {} |", value + 1);
    page.has_all(&["All of them were put back.", &row, "| put back |"]);
}

#[test]
fn runs_of_older_versions_are_listed_and_analyzed_when_that_is_wanted() {
    let sandbox = Sandbox::new();
    run_once(&sandbox, "real");
    copy_run(&sandbox, "real", "runs/new", ("2027-01-02T00:00:00Z", 1.0));
    copy_run(&sandbox, "real", "runs/old", ("2027-01-01T00:00:00Z", 1.0));
    fs::remove_file(sandbox.path("runs/old/summary.json")).expect("a summary");
    let name = "<script>alert(1)</script>";
    fs::create_dir(sandbox.path("runs").join(name.replace('/', "\u{1b}"))).expect("own folder");
    fs::write(sandbox.path("runs").join(name.replace('/', "\u{1b}")).join("run.json"), "{")
        .expect("own file");
    let listed = sandbox.call("runs").with_code(0);
    // The copies have other times than the summary that came with them.
    listed
        .stdout
        .has_all(&["<script>alert(1)<\\u001bscript>", "Without a verdict of this weir: 2"]);
    listed.stdout.has_none(&["\u{1b}"]);
    let updated = sandbox.call("runs --update").with_code(0);
    updated.stdout.has_none(&["Without a verdict"]);
    assert_eq!(
        flat(&updated.stdout).matches(" origin_keepalive=16 ").count(),
        2,
        "{}",
        updated.stdout
    );
    let first = listed.stdout.find("new ").expect("new");
    assert!(first < listed.stdout.find("old ").expect("old"));
    for (line, why) in [
        ("runs nowhere", "cannot read nowhere"),
        ("runs runs/new", "runs/new is a single run"),
        ("runs --since yesterday", "neither a date"),
        ("runs tag new 'two words'", "cannot be a tag"),
        ("runs tag nowhere a", "nowhere"),
        ("runs delete new", "standard input is no terminal"),
        ("runs delete new nowhere --yes", "nowhere is not removed"),
        ("runs delete new --older-than never --yes", "no age"),
    ] {
        flat(&sandbox.call(line).with_code(2).stderr).has(why);
    }
    sandbox.call("runs delete new old --dry-run").with_code(0).stdout.has("runs/old");
    // In 2027 nothing of 2027 is that old; the test is not run in 2030.
    sandbox
        .call("runs delete new old --older-than 2000d --yes")
        .with_code(0)
        .stdout
        .has("nothing was removed");
    assert!(sandbox.path("runs/new").exists() && sandbox.path("runs/old").exists());
    sandbox.call("runs delete old runs/new --yes").with_code(0).stdout.has("Removed 2 runs");
    assert!(!sandbox.path("runs/new").exists() && !sandbox.path("runs/old").exists());
}

fn read_table(sandbox: &Sandbox, name: &str) -> String {
    fs::read_to_string(sandbox.path("tables").join(name)).expect(name)
}

#[test]
fn a_real_run_is_exported_and_imported() {
    let sandbox = Sandbox::new();
    run_once(&sandbox, "runs/first");
    let csv = sandbox.call("export first --format csv -o tables").with_code(0);
    csv.stdout.has("tables: ");
    let report = sandbox.call("report runs/first --format csv").with_code(0);
    assert_eq!(read_table(&sandbox, "verdicts.csv"), report.stdout);
    let trials = read_table(&sandbox, "trials.csv");
    let columns = trials.lines().next().map(|line| line.split(',').count());
    assert!(trials.lines().all(|line| Some(line.split(',').count()) == columns), "{trials}");
    let rate = trials.lines().nth(1).and_then(|line| line.split(',').nth(14)?.parse::<f64>().ok());
    assert!(rate > Some(1.0), "{trials}");
    read_table(&sandbox, "samples-host.csv").has("t_s,host,arm");
    sandbox.call("export first --format csv -o tables").refused(&["tables exists"]);

    let archive = sandbox.call("export first --format archive").with_code(0);
    archive.stdout.has_all(&["first.tar.gz: ", "Secrets are masked in: run.json, study.yaml"]);
    let imported = sandbox.call("import first.tar.gz --into others").with_code(0);
    imported.stdout.has("others/first");
    let answer =
        |folder: &str| sandbox.call(&format!("report {folder} --format csv")).with_code(0).stdout;
    assert_eq!(answer("others/first"), answer("runs/first"));
    let header = fs::read_to_string(sandbox.path("others/first/run.json")).expect("a header");
    header.has_none(&["S3CRET"]);
    sandbox.call("import first.tar.gz --into others").refused(&["others/first exists"]);
    sandbox.call("import study.yaml --into others").refused(&["study.yaml is not imported"]);

    // The same run later, so that there is something to compare.
    copy_run(&sandbox, "runs/first", "runs/second", ("2027-01-01T00:00:00Z", 1.0));
    sandbox
        .call("export second --format archive --with-secrets -o s.tar.gz")
        .with_code(0)
        .stdout
        .has("It has the secrets");
    sandbox.call("import s.tar.gz").refused(&["runs/first exists"]);
    sandbox.call("import s.tar.gz --into more").with_code(0);
    let compared = sandbox.call("compare runs/first more/first").with_code(0);
    flat(&compared.stdout).has("cannot be said");
}
