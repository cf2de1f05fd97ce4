//! Tests of `--place generator=HOST,HOST`: a load that several hosts send together.

use std::time::Duration;

use rustix::process::Signal;
use weir_model::load_report::LoadReport;
use weir_model::record::{GeneratorStart, Outcome, Record};
use weir_report::load::histogram;
use weir_testkit::lan::{Lan, Like};
use weir_testkit::program::{HasAll, within};
use weir_testkit::ssh::signal;

/// A study of two arms under a given rate, as short as possible.
const STUDY: &str = "\
weir: 1
name: two-generators
question: Does a load that two hosts send come whole?
proxy: {kind: nginx, settings: {worker_processes: 1}}
loads:
- {name: open, rate: 400/s, connections: 8, duration: 2s}
arms:
- {name: keeps-origin, settings: {origin_keepalive: 8}}
blocks: {slice: 50ms, at-least: 6, instances: 1}
";

/// Returns hosts whose clocks are an hour apart from each other.
fn lan(hosts: u32) -> Option<Lan> {
    Lan::of(
        &(1..=hosts)
            .map(|number| Like { ahead: Duration::from_secs(3600) * number, ..Like::default() })
            .collect::<Vec<_>>(),
    )
}

/// Checks that generators started together: a wrong clock would be off by an hour, a busy machine is off by
/// milliseconds.
#[track_caller]
fn assert_together(starts: &[GeneratorStart], hosts: usize) {
    assert_eq!(starts.len(), hosts);
    let (spread, unsure) = GeneratorStart::spread_ns(starts).expect("there are some");
    assert!(spread < 200_000_000 && unsure < 200_000_000, "{starts:?}");
}

/// Removes the files of a killed run, with the command of its hint.
#[track_caller]
fn restore(lan: &Lan) {
    lan.start("restore --host web2").end().with_code(0);
    lan.assert_clean();
}

#[test]
fn four_generators_send_what_one_sends_and_their_histograms_are_added() {
    let Some(lan) = lan(4) else { return };
    let (_origin, address) = lan.origin("--delay 5ms");
    let [single, four] = ["web1", "web1,web2,web3,web4"].map(|generators| {
        let line = format!(
            "load http://{address}/ -R 1000 -c 40 -t 1 -d 3s --format json --place generator={generators}"
        );
        let report: LoadReport = lan.start(&line).end().with_code(0).document();
        lan.assert_clean();
        report
    });
    assert!(single.generators.is_empty() && single.results.load.cpus.len() == 1);
    assert_eq!(four.results.load.cpus.len(), 4);

    for report in [&single, &four] {
        assert_eq!((report.results.counts.due, report.results.counts.connected), (3000, 40));
        // All that was due was sent, some of it late beside what else runs here.
        within(report.results.rates.offered, 800.0..1020.0);
        within(report.results.rates.completed, 700.0..1020.0);
    }
    for report in [&single, &four] {
        let mut quantiles = report.results.response_time.quantiles.iter();
        let (_, median_ns) = quantiles.find(|(quantile, _)| *quantile == 0.5).unwrap();
        // Every answer takes 5 ms, and longer beside what else runs here.
        within(*median_ns as f64 / 1e6, 5.0..);
    }

    let starts: Vec<_> = four.generators.iter().map(|single| single.start.clone()).collect();
    assert_together(&starts, 4);
    let names: Vec<&str> = starts.iter().map(|start| &*start.host).collect();
    assert_eq!(names, ["web1", "web2", "web3", "web4"]);
    assert!(four.generators.iter().all(|single| single.due == 750));
    let mut sum = histogram(&four.generators[0].response_time).unwrap();
    for generator in &four.generators[1..] {
        sum.add(histogram(&generator.response_time).unwrap()).unwrap();
    }
    assert_eq!(sum.len(), four.results.response_time.count);
    assert!(sum == histogram(&four.results.response_time).unwrap(), "bucket by bucket");

    let running =
        lan.start(&format!("load http://{address}/ -c 8 -d 1s --place generator=web1,web2"));
    running.end().with_code(0).stdout.has_all(&[
        "of 2 generators",
        "web1: ",
        "web2: ",
        "apart, by clocks",
    ]);
}

#[test]
fn a_generator_that_is_lost_is_named_and_the_others_stop() {
    let Some(lan) = lan(2) else { return };
    let (_origin, address) = lan.origin("");
    let mut running = lan.start(&format!(
        "load http://{address}/ -c 4 -d 60s --every 1s --place generator=web1,web2"
    ));
    running.wait_until("an interval", |weir| weir.stderr().contains("/s"));
    for pid in lan.host(2).agents() {
        signal(pid, Signal::KILL);
    }
    let stderr = running.end().with_code(1).stderr;
    stderr.has_all(&["the agent on web2 is gone", "weir restore --host web2"]);
    restore(&lan);
}

#[test]
fn a_study_under_a_load_of_two_generators() {
    let Some(lan) = lan(2) else { return };
    let places = "--place generator=web1,web2";
    lan.run(STUDY, places).end().with_code(0);
    lan.assert_clean();
    let run = lan.records();
    assert_eq!(run.outcome(), Some(Outcome::Complete));
    assert_eq!(run.header.places.generator.as_deref(), Some("web1"));
    assert_eq!(run.header.places.more_generators, ["web2"]);
    let links = &run.header.surroundings.as_ref().unwrap().links;
    let from: Vec<_> = links.iter().filter_map(|link| link.host.as_deref()).collect();
    assert_eq!(from, ["web1", "web2"]);
    for trial in run.trials() {
        let slices = &trial.slices;
        let due = slices.iter().map(|slice| slice.due).sum::<u64>();
        let sent = slices.iter().map(|slice| slice.sent).sum::<u64>();
        let shares = &trial.generators;
        assert_eq!(shares.len(), 2);
        assert_eq!(shares.iter().map(|share| share.due).sum::<u64>(), due);
        assert_eq!(shares.iter().map(|share| share.sent).sum::<u64>(), sent);
        let timed = shares.iter().map(|share| share.timed).sum::<u64>();
        assert_eq!(timed, trial.response_time.count);
        assert!(shares.iter().all(|share| share.due > 0 && share.cpu_ns > 0));
    }
    let mut parts = 0;
    for record in &run.records {
        let Record::Part(part) = record else { continue };
        assert_together(&part.starts, 2);
        parts += 1;
    }
    assert!(parts > 0);
    lan.sandbox.read("report.md").has_all(&["on each of web1, web2", "generators started apart"]);
}

#[test]
fn the_capacity_of_a_url_is_searched_by_two_generators() {
    let Some(lan) = lan(2) else { return };
    // Some 400 requests/s, whatever the machine has to do beside.
    let (_origin, address) = lan.origin("--concurrency 2 --delay 5ms");
    let places = "--place generator=web1,web2 --out 'a run'";
    let mut running = lan.start(&format!("capacity http://{address}/ -c 8 {places}"));
    lan.sandbox.await_trials(&mut running, 4);
    running.signal(Signal::INT);
    running.end().with_code(130);
    lan.assert_clean();
    let run = lan.records();
    assert_eq!(run.header.places.more_generators, ["web2"]);
    let shared = run.trials_in(|_| true).filter(|trial| trial.generators.len() == 2);
    assert!(shared.count() >= 4);
}

#[test]
fn a_run_whose_generator_is_lost_ends_and_goes_on_with_the_same_hosts() {
    let Some(lan) = lan(2) else { return };
    let study = STUDY.replace("duration: 2s", "duration: 20s");
    let mut running = lan.run(&study, "--place generator=web1,web2");
    lan.sandbox.await_trials(&mut running, 4);
    for pid in lan.host(2).agents() {
        signal(pid, Signal::KILL);
    }
    let stderr = running.end().with_code(1).stderr;
    stderr.has_all(&["the agent on web2 is gone", "what was recorded is in"]);
    restore(&lan);

    let resume = "run --resume 'a run'";
    let ended = lan.start(&format!("{resume} --place generator=web1")).end();
    ended.refused(&["it started with the generators on web1, web2"]);
    let mut again = lan.start(resume);
    let blocks = lan.sandbox.trials();
    again.wait_until("more blocks", |_| lan.sandbox.trials() > blocks);
    assert!((1..=2).all(|number| !lan.host(number).agents().is_empty()));
    again.signal(Signal::INT);
    again.end().with_code(130);
    lan.assert_clean();
}
