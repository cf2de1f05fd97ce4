//! Tests of `weir patch` with run folders that are written here, with known figures.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use weir_model::fixture;
use weir_model::record::{EndRecord, Outcome, PartRecord, Record, SliceRecord, TrialRecord};
use weir_model::study::Study;
use weir_parameters::Catalog;
use weir_record::RunWriter;
use weir_study::CheckContext;
use weir_testkit::program::{Ended, HasAll, Running};
use weir_testkit::sandbox::Sandbox;

const BLOCKS: u32 = 12;

fn parse_study(proxy: &str, arms: &str) -> Study {
    let text = format!(
        "weir: 1\nname: s\nquestion: What helps?\nproxy: {proxy}\n\
         loads: [{{name: closed, closed: true, connections: 5, duration: 1m}}]\n\
         arms:\n{arms}"
    );
    let context = CheckContext {
        descriptor_limit: 1024,
        most_descriptors: 524_288,
        own_tables: true,
        local_ports: 28_232,
        cpus_available: "0-1".parse().ok(),
        one_machine: true,
        node_sysctls: true,
        engine: weir_study::Engine::default(),
    };
    weir_study::parse(&text, "study.yaml", &Catalog::builtin(), &context)
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// Writes a run in which each arm carried `times` as much as the baseline, each block with other instances of the
/// proxies.
fn write_run(folder: &Path, study: Study, times: &[f64]) {
    let header = fixture::header(study);
    let mut writer = RunWriter::create(folder, &header, "").expect("a folder");
    let mut index = 0;
    for block in 0..BLOCKS {
        for (arm, times) in header.study.arms.iter().zip(times) {
            // A little of a difference between blocks, so that there is a spread.
            let rate = 10_000.0 * times * (1.0 + 0.003 * f64::from((block * 7) % 5));
            let trial = Box::new(trial(&arm.name, block, index, rate));
            writer.append(&Record::Trial(trial)).expect("written");
            index += 1;
        }
        let instances = PartRecord {
            load: "closed".to_owned(),
            first_block: block,
            blocks: 1,
            ..PartRecord::default()
        };
        let part = Record::Part(Box::new(instances));
        writer.append(&part).expect("written");
    }
    let end = EndRecord::new("", Outcome::Complete);
    writer.append(&Record::End(end)).expect("written");
}

fn trial(arm: &str, block: u32, index: u64, rate: f64) -> TrialRecord {
    let completed = (rate * 0.8) as u64;
    let completed_whole = rate as u64;
    TrialRecord {
        slices: vec![SliceRecord {
            index,
            start_ns: index * 1_000_000_000,
            measured_ns: 800_000_000,
            offered: completed,
            completed,
            completed_whole,
            proxy_cpu_ns: 1_000_000_000,
            generator_cpu_ns: 500_000_000,
            origin_requests: completed_whole,
            ..SliceRecord::default()
        }],
        status_classes: [0, 0, completed_whole, 0, 0, 0],
        ..fixture::trial("closed", arm, block)
    }
}

fn patch(sandbox: &Sandbox, more: &str) -> Ended {
    sandbox.call(&format!("patch own {more}"))
}

const FORWARD: &str = "--- a/etc/n.conf\n+++ b/etc/n.conf\n@@ -1 +1 @@\n-gzip off;\n+gzip on;\n";
const BACK: &str = "--- a/etc/n.conf\n+++ b/etc/n.conf\n@@ -1 +1 @@\n-gzip on;\n+gzip off;\n";

/// Writes a run with a user's configuration: `zipped` is better, `shorter` is better by less, `idle` is not better.
fn write_sample_run(sandbox: &Sandbox, times: [f64; 5]) {
    let arms = "- {name: zipped, settings: {gzip: on, net.core.somaxconn: 4000}}\n\
                - {name: shorter, settings: {keepalive_timeout: 5s}}\n\
                - {name: idle, settings: {multi_accept: on}}\n";
    let study = parse_study("{kind: nginx, configuration: /etc/n.conf}", arms);
    write_run(&sandbox.path("own"), study, &times);
    for (arm, forward, back) in
        [("zipped", FORWARD, BACK), ("shorter", "shorter\n", "longer\n"), ("idle", "", "")]
    {
        diffs(sandbox, arm, forward, back);
    }
}

/// Checks the run's folder, because patches are applied, often as root.
#[test]
fn a_patch_that_others_could_have_written_is_not_printed() {
    let sandbox = Sandbox::new();
    write_sample_run(&sandbox, [1.0, 1.0, 1.3, 1.1, 1.0]);
    let folder = sandbox.path("own");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("own folder");
    let why = "others could have written this patch: ";
    patch(&sandbox, "").refused(&[why, "own can be written by others", "\nhint: "]);
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("own folder");
    assert_eq!(patch(&sandbox, "").with_code(0).stdout, FORWARD);
}

/// Writes the diffs that the lab keeps of an arm.
fn diffs(sandbox: &Sandbox, arm: &str, forward: &str, back: &str) {
    let folder = sandbox.path(&format!("own/arms/{arm}"));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("patch.diff"), forward).expect("written");
    fs::write(folder.join("revert.diff"), back).expect("written");
}

#[test]
fn the_best_arms_diff_is_printed_with_what_it_rests_on() {
    let sandbox = Sandbox::new();
    write_sample_run(&sandbox, [1.0, 1.0, 1.3, 1.1, 1.0]);
    let best = patch(&sandbox, "").with_code(0);
    assert_eq!(best.stdout, FORWARD);
    best.says(&[
        "zipped: better: completed rate 1.300× (1.300–1.300) of baseline, VALID",
        "`patch -d / -p1 < FILE` applies it",
        "the diff is of /etc/n.conf and the files that it includes",
        "the arm also has, outside of configuration files: net.core.somaxconn = 4000",
    ]);
    let back = patch(&sandbox, "--revert").with_code(0);
    assert_eq!(back.stdout, BACK);
    back.says(&["takes it back"]);
    let shorter = patch(&sandbox, "--arm shorter").with_code(0);
    assert_eq!(shorter.stdout, "shorter\n");

    let idle = patch(&sandbox, "--arm idle").with_code(0);
    assert_eq!(idle.stdout, "");
    idle.says(&["idle changes nothing in /etc/n.conf: there is nothing to apply"]);
}

/// Checks that a missing interval is printed as in the report.
#[test]
fn one_block_gives_no_interval() {
    let sandbox = Sandbox::new();
    write_sample_run(&sandbox, [1.0, 1.0, 1.3, 1.1, 1.0]);
    let path = sandbox.path("own/records.jsonl");
    let records = fs::read_to_string(&path).expect("there");
    let first: Vec<&str> = records.lines().take(5).collect();
    fs::write(&path, first.join("\n") + "\n").expect("written");
    patch(&sandbox, "--arm zipped").with_code(0).says(&["completed rate 1.300× (–) of baseline"]);
}

/// Applies the printed diff by patch(1), and reverts it.
#[test]
fn the_diff_can_be_applied_and_taken_back() {
    let sandbox = Sandbox::new();
    write_sample_run(&sandbox, [1.0, 1.0, 1.3, 1.1, 1.0]);
    let root = sandbox.path("root");
    fs::create_dir_all(root.join("etc")).expect("a folder");
    let file = root.join("etc/n.conf");
    fs::write(&file, "gzip off;\n").expect("written");
    for (more, expected) in [("", "gzip on;\n"), ("--revert", "gzip off;\n")] {
        sandbox.write("change.diff", &patch(&sandbox, more).with_code(0).stdout);
        let applied = std::process::Command::new("patch")
            .args(["-s", "-p1", "-d"])
            .arg(&root)
            .arg("-i")
            .arg(sandbox.path("change.diff"))
            .status();
        let Ok(status) = applied else {
            println!("skipped: there is no patch(1) here");
            return;
        };
        assert!(status.success());
        assert_eq!(fs::read_to_string(&file).expect("there"), expected);
    }
}

#[test]
fn what_nothing_speaks_for_is_not_given_unasked() {
    let sandbox = Sandbox::new();
    write_sample_run(&sandbox, [1.0, 1.0, 0.9, 1.0, 1.0]);
    let none = patch(&sandbox, "").with_code(1);
    assert_eq!(none.stdout, "");
    none.says(&[
        "no arm is better than the baseline",
        "zipped: worse: completed rate 0.900×",
        "shorter: equivalent: completed rate 1.000×",
        "hint: --arm NAME",
    ]);
    let zipped = patch(&sandbox, "--arm zipped").with_code(0);
    assert_eq!(zipped.stdout, FORWARD);
}

/// Tests an arm that is better than the step before it, which carried half as much as the baseline.
#[test]
fn a_step_must_make_up_for_what_the_ones_before_it_lost() {
    for (times, code) in [([1.0, 1.0, 0.5, 0.6], 1), ([1.0, 1.0, 0.9, 1.2], 0)] {
        let sandbox = Sandbox::new();
        let arms = "- {name: slower, settings: {gzip: off}}\n\
                    - {name: then, settings: {origin_keepalive: 64}}\n";
        let mut study = parse_study("{kind: nginx, settings: {worker_processes: 1}}", arms);
        study.arms[3].against = 2;
        write_run(&sandbox.path("own"), study, &times);
        let ended = patch(&sandbox, "").with_code(code).says(&["then: better: completed rate 1."]);
        assert_eq!(ended.stdout.contains("keepalive 64"), code == 0);
    }
}

#[test]
fn runs_and_arms_that_are_not_there() {
    let sandbox = Sandbox::new();
    write_sample_run(&sandbox, [1.0, 1.0, 1.3, 1.1, 1.0]);
    let nowhere = sandbox.call("patch nowhere");
    nowhere.refused_in_a_line(&["nowhere/run.json: No such file or directory"]);
    patch(&sandbox, "--arm ziped")
        .refused_in_a_line(&["the run has no arm named `ziped`", "did you mean `zipped`?"]);
    patch(&sandbox, "--arm something-else")
        .refused_in_a_line(&["its arms are baseline, same-as-baseline, zipped"]);
    fs::remove_file(sandbox.path("own/arms/zipped/patch.diff")).expect("there");
    patch(&sandbox, "").with_code(1).says(&["the run has not started the arm zipped"]);
}

#[test]
fn without_a_configuration_of_the_users_directives_are_printed() {
    let sandbox = Sandbox::new();
    let arms = "- {name: kept, settings: {origin_keepalive: 64, access_log: buffered}}\n\
                - {name: queue, settings: {net.core.somaxconn: 4000}}\n\
                - {name: other, proxy: {kind: nginx, stock: none, settings: {worker_processes: 2}}}\n";
    let study = parse_study("{kind: nginx, settings: {worker_processes: 1}}", arms);
    write_run(&sandbox.path("own"), study, &[1.0, 1.0, 1.3, 1.0, 1.0]);
    let best = patch(&sandbox, "")
        .with_code(0)
        .says(&["this run has no configuration of yours", "{logs} stands for"]);
    let lines: Vec<&str> = best.stdout.lines().collect();
    assert!(lines.contains(&"upstream: keepalive 64"), "{lines:?}");
    best.stdout.has("http: access_log ");
    let back = patch(&sandbox, "--revert").with_code(0).stdout;
    back.has_all(&["origin_keepalive: unwritten, which is 0"]);

    let queue = patch(&sandbox, "--arm queue").with_code(0);
    assert_eq!(queue.stdout, "");
    queue.says(&["outside of configuration files: net.core.somaxconn = 4000"]);
    let two_workers = patch(&sandbox, "--arm other").with_code(0);
    assert_eq!(two_workers.stdout, "main: worker_processes 2\n");
    patch(&sandbox, "--arm baseline").with_code(0).says(&["compared with nothing"]);
}

/// Checks that the program's arguments and environment, which are in no file of the user's, are listed beside the diff.
#[test]
fn what_the_program_is_started_with_is_told() {
    let sandbox = Sandbox::new();
    let arms = "- {name: collected, settings: {gogc: 400, keepalive_timeout: 5s}}\n\
                - {name: other, proxy: {kind: caddy, configuration: /etc/b.json, settings: {gogc: 200}}}\n";
    let proxy = "{kind: caddy, configuration: /etc/a.json, settings: {gogc: 200}}";
    let times = [1.0, 1.0, 1.3, 1.0];
    write_run(&sandbox.path("own"), parse_study(proxy, arms), &times);
    for (arm, words) in [("collected", "gogc = 400\n"), ("other", "gogc = 200\n")] {
        diffs(&sandbox, arm, "", "");
        let ended = patch(&sandbox, &format!("--arm {arm}")).with_code(0);
        ended.says(&[&format!("the arm also has, outside of configuration files: {words}")]);
    }
}

/// Checks that secrets are masked on a terminal, where others may look on, but not in a file, which is to be applied.
#[test]
fn secrets_around_a_change_are_masked_on_a_terminal_alone() {
    let sandbox = Sandbox::new();
    write_sample_run(&sandbox, [1.0, 1.0, 1.3, 1.1, 1.0]);
    let secret = " proxy_set_header Authorization \"Basic czNjcjN0\";\n";
    let diff = format!("{FORWARD}{secret}");
    diffs(&sandbox, "zipped", &diff, BACK);
    assert_eq!(patch(&sandbox, "").with_code(0).stdout, diff);
    let line = format!("{} patch own", env!("CARGO_BIN_EXE_weir"));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(sandbox.path(""));
    let shown = Running::start(&mut script).end().with_code(0).stdout;
    shown.has_all(&[
        "+gzip on;",
        "proxy_set_header Authorization \"(masked)\";",
        "secrets are masked here",
    ]);
    shown.has_none(&["czNjcjN0"]);
}
