//! Tests of `weir run`: a whole run with the real nginx, and everything that it leaves.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::record::{FORMAT, LinkEnd, Outcome, Record};
use weir_model::sample::SampleRow;
use weir_model::study::ArmRole;
use weir_record::{Run, Sample};
use weir_testkit::program::{Ended, HasAll, Running, flat};
use weir_testkit::sandbox::{Sandbox, names_in, sum};
use weir_testkit::schema;

use crate::report;

const STUDY: &str = "\
# A comment, which has to survive: the run folder keeps the text as it was.
weir: 1
name: two-arms
question: Does a connection to the origin that is kept make nginx carry more?
proxy:
  kind: nginx
  settings: {worker_processes: 1}
loads:
  - {name: closed, closed: true, connections: 8, duration: 3s}
  - {name: open, rate: 200, connections: 8, duration: 2s}
arms:
  - {name: keeps-origin, settings: {origin_keepalive: 16}}
blocks: {slice: 50ms, at-least: 6}
";

const ARMS: [&str; 3] = ["baseline", "same-as-baseline", "keeps-origin"];

/// Loads and their numbers of blocks: 50 ms for each of three arms, twice.
const BLOCKS: [(&str, usize); 2] = [("closed", 10), ("open", 6)];

#[test]
fn a_whole_run_and_its_report() {
    let sandbox = Sandbox::new();
    sandbox.write("study.yaml", STUDY);
    // A load lasts a second or two, and the generator has threads only then.
    let line = ["run", "study.yaml", "--out", "a run", "--samples", "10hz"];
    let ended = Running::start(&mut sandbox.weir(&line)).end().with_code(0);
    sandbox.assert_clean();
    check_words(&ended, &sandbox);
    check_files(&sandbox);
    let run = sandbox.records();
    assert!(!run.truncated);
    check_header(&run);
    schema::assert_records_valid(&sandbox.run_folder());
    check_sessions_and_ends(&run);
    check_blocks(&run);
    check_histograms(&run);
    check_proxies(&run);
    check_origin_connections(&run);
    check_samples(&run, &run.samples.rows);
    report::of_a_complete_run(&sandbox);
    sizes_a_larger_load(&sandbox);
    refuses_to_go_on_or_over(&sandbox);
}

/// Asks what five times the rate of the open load takes.
fn sizes_a_larger_load(sandbox: &Sandbox) {
    let sized = sandbox.call("size 'a run' --rate 1k").with_code(0);
    flat(&sized.stdout).has_all(&["1,000 requests/s", " need 5 machines like the measured one"]);
    sandbox.call("size 'a run' --rate 1k --arm nobody").refused(&["no run has an arm `nobody`"]);
}

/// Checks the result on standard output, and the progress on standard error.
fn check_words(ended: &Ended, sandbox: &Sandbox) {
    for arm in ARMS {
        ended.stdout.has(arm);
        ended.stderr.has(arm);
    }
    let page = sandbox.run_folder().join("report.html");
    ended.stdout.has(&page.to_string_lossy());
    ended.stderr.has_all(&[
        "closed: 10 blocks in ",
        "open: 6 blocks in ",
        " at 200 requests/s",
        " left of the run",
    ]);
}

fn check_files(sandbox: &Sandbox) {
    let folder = sandbox.run_folder();
    #[rustfmt::skip]
    let expected = [
        "README.md", "arms", "histograms.hlog", "records.jsonl", "report.html", "report.md",
        "run.identity", "run.json", "run.sha256", "samples", "study.yaml", "summary.json",
    ];
    assert_eq!(names_in(&folder), expected);
    assert_eq!(sandbox.read("study.yaml"), STUDY);
    for arm in ARMS {
        for name in ["nginx.conf", "effective.conf"] {
            let text = sandbox.read(&format!("arms/{arm}/{name}"));
            let keeps_origin = text.contains("keepalive 16;");
            assert_eq!(keeps_origin, arm == "keeps-origin", "{arm}/{name}:\n{text}");
        }
    }
}

fn check_header(run: &Run) {
    assert_eq!(run.header.format, FORMAT);
    assert_eq!(run.header.run, "a run");
    assert_eq!(run.study_text, STUDY);
    let study = &run.header.study;
    let roles = [ArmRole::Baseline, ArmRole::SameAsBaseline, ArmRole::Change];
    let arms = study.arms.iter().map(|arm| (&*arm.name, arm.role));
    assert!(arms.eq(ARMS.into_iter().zip(roles)));
    let environment = &run.header.environment;
    assert!(environment.versions["nginx"].starts_with("nginx/"));
    assert!(!environment.kernel.is_empty() && environment.memory_bytes > 0);
    assert!(environment.sysctls.contains_key("net.core.somaxconn"));
    let version = &run.header.weir_version;
    assert!(version.starts_with(env!("CARGO_PKG_VERSION")));
    let around = run.header.surroundings.as_ref().expect("they were looked at");
    for (from, to) in [(LinkEnd::Generator, LinkEnd::Proxy), (LinkEnd::Proxy, LinkEnd::Origin)] {
        let link = around.link(from, to).expect("it carries bytes");
        assert!(link.forth.is_some() && link.back.is_some() && link.mtu.is_some(), "{link:?}");
    }
    let (there, back) =
        (around.generator_to_proxy_bytes_per_s(), around.proxy_to_generator_bytes_per_s());
    assert!(there > Some(0.0) && back > Some(0.0), "{around:?}");
    assert_eq!(around.hosts[0].roles.len(), 3);
}

/// Checks the counters of all hosts and proxies during the trials, by a clock that the slices' times can be converted
/// to.
fn check_samples(run: &Run, samples: &[Sample]) {
    for (role, name) in [("generator", "weir-load"), ("proxy", "nginx"), ("origin", "origin-")] {
        let mut rows = rows_of(samples, "processes").filter(|row| row.keys[0] == role);
        assert!(rows.any(|row| row.keys[2].starts_with(name)), "{role}");
    }
    for arm in ARMS {
        let mut processes = rows_of(samples, "processes").filter(|row| row.arm == arm);
        assert!(processes.any(|row| row.keys[0] == "proxy"), "{arm}");
        let requests = rows_of(samples, "proxy")
            .filter(|row| row.arm == arm && row.keys == ["requests"])
            .map(|row| row.values[0]);
        // A new instance counts from zero.
        assert!(requests.max().flatten() > Some(100), "{arm}");
    }
    let parts = run.parts("closed").chain(run.parts("open"));
    for part in parts {
        assert!(part.samples_cpu_ns > 0);
        let at_ns = part.samples_at_ns.expect("there are samples");
        let trials = run.trials_in(|_| true).filter(|trial| {
            let blocks = part.first_block..part.first_block + part.blocks;
            (&trial.load, trial.phase) == (&part.load, part.phase) && blocks.contains(&trial.block)
        });
        let slices: Vec<u64> =
            trials.flat_map(|trial| &trial.slices).map(|slice| slice.start_ns).collect();
        let [begin, end] = [slices.iter().min(), slices.iter().max()].map(|start| {
            let start_ns = start.expect("a part has slices");
            start_ns.checked_add_signed(at_ns).expect("after the run began")
        });
        let near_ns = begin.saturating_sub(NEAR)..end + NEAR;
        assert!(
            rows_of(samples, "network").any(|row| near_ns.contains(&row.at_ns)),
            "none from {begin} to {end}"
        );
    }
}

fn rows_of<'s>(samples: &'s [Sample], table: &str) -> impl Iterator<Item = &'s SampleRow> {
    samples.iter().map(|sample| &sample.row).filter(move |row| row.table == table)
}

/// Most nanoseconds between two samples, on a busy machine too.
const NEAR: u64 = 1_500_000_000;

/// Checks that there is one session, one end of each load, and one end of the run.
fn check_sessions_and_ends(run: &Run) {
    let records = run.records.iter();
    let sessions = records.clone().filter(|record| matches!(record, Record::Session(_)));
    let load_ends = records.clone().filter(|record| matches!(record, Record::LoadEnd(_)));
    let ends = records.filter(|record| matches!(record, Record::End(_)));
    assert_eq!((sessions.count(), load_ends.count(), ends.count()), (1, 2, 1));
    assert_eq!(run.outcome(), Some(Outcome::Complete));
}

/// Checks that there are as many blocks as planned, each with every arm, and each arm with two slices in ABBA order.
fn check_blocks(run: &Run) {
    for (load, planned) in BLOCKS {
        let blocks = run.blocks(load);
        assert_eq!(blocks.len(), planned, "{load}");
        let numbers: Vec<_> = blocks.keys().map(|&(block, _)| block as usize).collect();
        assert_eq!(numbers, (0..planned).collect::<Vec<_>>());
        for (block, trials) in blocks {
            let arms: Vec<_> = trials.iter().map(|trial| &trial.arm[..]).collect();
            assert_eq!(arms, ARMS, "{load} {block:?}");
            let mut places = BTreeMap::new();
            for trial in trials {
                assert_eq!(trial.slices.len(), 2);
                for slice in &trial.slices {
                    // The first fifth is discarded.
                    assert_eq!(slice.measured_ns, 40_000_000);
                    places.insert(slice.index, trial.arm.clone());
                }
                let answered: u64 = trial.slices.iter().map(|slice| slice.completed_whole).sum();
                assert_eq!(trial.status_classes[2], answered);
                assert_eq!(trial.status_classes.iter().sum::<u64>(), answered);
            }
            let order: Vec<_> = places.into_values().collect();
            let mut mirrored = order.clone();
            mirrored.reverse();
            assert_eq!((order.len(), &order), (6, &mirrored), "{load} {block:?}");
        }
    }
}

/// Checks that every tag leads to a histogram with as many values as its record says.
fn check_histograms(run: &Run) {
    let mut tags = BTreeSet::new();
    for trial in run.trials() {
        let (response, service) = (&trial.response_time, &trial.service_time);
        let mut summaries = vec![response, service, &trial.dispatch_lag];
        summaries.retain(|summary| !summary.tag.is_empty());
        for summary in summaries {
            let counts = run.histogram(summary).iter().map(|(_, count)| count);
            assert_eq!(counts.sum::<u64>(), summary.count, "{}", summary.tag);
            assert!(tags.insert(summary.tag.clone()), "{} twice", summary.tag);
        }
    }
    // In a closed loop service_time is response_time, and kept once.
    assert_eq!(tags.len(), 3 * (2 * 10 + 3 * 6));
}

/// Checks the settings that were read back from the proxies themselves.
fn check_proxies(run: &Run) {
    let mut addresses = BTreeSet::new();
    let proxies = run.records.iter().filter_map(|record| match record {
        Record::Proxy(proxy) => Some(proxy),
        _ => None,
    });
    let mut pids = BTreeSet::new();
    for (proxy, arm) in proxies.clone().zip(ARMS.iter().cycle()) {
        assert_eq!(proxy.arm, *arm);
        let keepalive = if *arm == "keeps-origin" { "16" } else { "0" };
        assert_eq!(proxy.effective["origin_keepalive"], keepalive);
        assert_eq!(proxy.effective["worker_processes"], "1");
        assert_eq!(proxy.effective["access_log"], "on");
        assert_eq!(proxy.nofile, 1024, "what systemd gives a service");
        addresses.insert(&proxy.address);
        // An instance is a process of its own.
        assert!(pids.insert(proxy.pid));
    }
    // Ten blocks are spread over eight instances and six over six; the second load begins with the first's last.
    assert_eq!((proxies.count(), addresses.len()), (3 * 13, 3));
}

/// Checks the mechanism of the gain, which no noise can hide: a stock nginx opens a connection to the origin for each
/// request, the other arm reuses its own.
fn check_origin_connections(run: &Run) {
    for (load, _) in BLOCKS {
        let sums = ARMS.map(|arm| {
            let requests = sum(run, load, arm, |slice| slice.origin_requests);
            (requests, sum(run, load, arm, |slice| slice.origin_connects))
        });
        let [stock @ .., keeps] = sums;
        for (requests, connects) in stock {
            // At the end of the trial each of the 8 connections may have one under way.
            let differ = requests.abs_diff(connects);
            assert!(requests > 8 && differ <= 8, "{load}: {sums:?}");
        }
        assert!(keeps.0 > 8 && keeps.1 * 4 <= keeps.0, "{load}: {sums:?}");
    }
}

fn refuses_to_go_on_or_over(sandbox: &Sandbox) {
    let resumed = sandbox.resume();
    resumed.refused_in_a_line(&["is complete: there is nothing to resume", "weir report 'a run'"]);
    sandbox.run(STUDY).end().refused_in_a_line(&["a run exists and is not empty", "\nhint: "]);
}

#[test]
fn a_run_ends_in_the_format_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let (first, _) = STUDY.split_once("  - {name: open").expect("two loads");
    let (_, after) = STUDY.split_once("duration: 2s}\n").expect("two loads");
    sandbox.write("study.yaml", &format!("{first}{after}"));
    let ended = sandbox
        .call("run study.yaml --out 'a run' --format json")
        .with_code(0)
        .says(&["report.html", "report.md"]);
    let json: serde_json::Value = ended.document();
    assert_eq!(json["format"], "weir-findings/2");
    let report = sandbox.call("report 'a run' --format json").with_code(0);
    assert_eq!(report.stdout, ended.stdout);
    sandbox.read("report.html").has("keeps-origin");
    sandbox
        .call("run study.yaml --out else --format csv -o nowhere/x.csv")
        .refused_in_a_line(&["-o nowhere/x.csv: No such file"]);
}
