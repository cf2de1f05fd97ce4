//! Every rule of validity, just inside and just outside its limits.

use weir_model::load::{ErrorCount, ErrorKind};
use weir_model::record::{RunHeader, TrialRecord, Validity};

use super::fixture::{SLICE_NS, header, slice, three_arms, trial};
use crate::validity;
use crate::validity::RULES;

/// What is said of a trial of two slices at 10,000 per second after `change`.
fn said(
    load: &str,
    change: impl FnOnce(&mut TrialRecord, &mut RunHeader),
) -> Vec<(String, Validity)> {
    let mut header = header(three_arms());
    let slices = vec![slice(0, 10_000.0), slice(1, 10_000.0)];
    let mut trial = trial(load, "stock", 0, slices);
    change(&mut trial, &mut header);
    let reasons = validity(&trial, &header, None).into_iter();
    let said: Vec<_> = reasons
        .map(|reason| (reason.rule, reason.validity))
        .collect();
    assert!(
        said.iter().all(|(rule, _)| RULES.contains(&&rule[..])),
        "{said:?}"
    );
    said
}

fn one(rule: &str, validity: Validity) -> Vec<(String, Validity)> {
    vec![(rule.to_owned(), validity)]
}

fn refused(count: u64) -> ErrorCount {
    ErrorCount {
        kind: ErrorKind::Connect,
        words: "Connection refused (os error 111)".to_owned(),
        count,
    }
}

#[test]
fn nothing_speaks_against_a_quiet_trial() {
    assert_eq!(said("closed", |_, _| {}), []);
    assert_eq!(said("open", |_, _| {}), []);
}

#[test]
fn failures_are_errors_and_statuses_that_nobody_asked_for() {
    let with = |errors: u64| {
        said("closed", move |trial, _| {
            trial.errors = vec![refused(errors)];
        })
    };
    assert_eq!(with(2), []);
    assert_eq!(with(3), one("failures", Validity::Suspect));
    assert_eq!(with(106), one("failures", Validity::Invalid));
    let bad_gateway = said("closed", |trial, _| {
        trial.status_classes = [0, 0, 1990, 0, 0, 10];
    });
    assert_eq!(bad_gateway, one("failures", Validity::Suspect));
    // An origin that is told to answer 404 is answered 404.
    let asked_for = said("closed", |trial, header| {
        trial.status_classes = [0, 0, 0, 0, 2000, 0];
        header.study.origin.status = 404;
    });
    assert_eq!(asked_for, []);
}

#[test]
fn without_a_response_the_errors_own_words_are_the_reason() {
    let header = header(three_arms());
    let mut trial = trial("closed", "stock", 0, vec![slice(0, 0.0)]);
    trial.errors = vec![refused(7)];
    let reasons = validity(&trial, &header, None);
    assert_eq!(reasons.len(), 1);
    assert_eq!(reasons[0].rule, "nothing-answered");
    assert!(
        reasons[0]
            .seen
            .contains("Connection refused (os error 111)"),
        "{reasons:?}"
    );
    trial.slices.clear();
    assert_eq!(
        validity(&trial, &header, None)[0].validity,
        Validity::Invalid
    );
}

#[test]
fn stolen_time_counts_beyond_one_tick() {
    let stolen = |ms: u64| {
        said("closed", move |trial, _| {
            trial.slices[0].proxy_steal_ns = ms * 1_000_000;
        })
    };
    assert_eq!(stolen(10), [], "one tick of 200 ms");
    assert_eq!(stolen(20), [], "5 % beyond one tick");
    assert_eq!(stolen(30), one("proxy-steal", Validity::Suspect));
    assert_eq!(stolen(60), one("proxy-steal", Validity::Invalid));
}

#[test]
fn the_offered_rate_is_judged_with_some_grain_per_slice() {
    // 1,600 intended in 160 ms measured; two slices, each with a request and a millisecond of grain.
    let offered = |more: u64| said("open", move |trial, _| trial.slices[0].offered += more);
    assert_eq!(offered(23), []);
    assert_eq!(offered(24), one("offered-rate", Validity::Suspect));
    assert_eq!(offered(39), one("offered-rate", Validity::Invalid));
    let closed = said("closed", |trial, _| trial.slices[0].offered += 500);
    assert_eq!(closed, [], "nothing is intended in the closed loop");
}

#[test]
fn a_generator_that_lags_or_is_out_of_breath_matters_in_the_open_loop() {
    let lag =
        |ns: u64| move |trial: &mut TrialRecord, _: &mut RunHeader| trial.dispatch_lag.p99 = ns;
    assert_eq!(said("open", lag(100_000)), [], "a quarter of 400 µs");
    assert_eq!(
        said("open", lag(101_000)),
        one("dispatch-lag", Validity::Suspect)
    );
    assert_eq!(
        said("open", lag(201_000)),
        one("dispatch-lag", Validity::Invalid)
    );
    assert_eq!(said("closed", lag(201_000)), []);

    let busy = |trial: &mut TrialRecord, _: &mut RunHeader| {
        trial
            .slices
            .iter_mut()
            .for_each(|slice| slice.generator_cpu_ns = SLICE_NS * 96 / 100);
    };
    assert_eq!(said("open", busy), one("generator-busy", Validity::Suspect));
    assert_eq!(said("closed", busy), [], "the proxy was busy as well");
}

#[test]
fn requests_that_never_ended_matter_in_the_open_loop() {
    let lost = |trial: &mut TrialRecord, _: &mut RunHeader| trial.censored.queued = 21;
    assert_eq!(said("open", lost), one("censored", Validity::Suspect));
    assert_eq!(said("closed", lost), []);
}

#[test]
fn a_proxy_that_waits_for_the_others_was_not_the_limit() {
    let idle = |trial: &mut TrialRecord| {
        let slices = trial.slices.iter_mut();
        slices.for_each(|slice| slice.proxy_cpus_idle_ns = SLICE_NS * 3 / 10);
    };
    // Generator and origin share a CPU: together they use 75 %, then 85 % of it.
    assert_eq!(said("closed", |trial, _| idle(trial)), []);
    let more = |trial: &mut TrialRecord| {
        let slices = trial.slices.iter_mut();
        slices.for_each(|slice| slice.generator_cpu_ns += SLICE_NS / 10);
    };
    let both = said("closed", |trial, _| {
        idle(trial);
        more(trial);
    });
    assert_eq!(both, one("proxy-not-limit", Validity::Suspect));
    // With a CPU each, neither is busy.
    let apart = said("closed", |trial, header| {
        idle(trial);
        more(trial);
        header.cpus.origin = "2".parse().unwrap();
    });
    assert_eq!(apart, []);
}

#[test]
fn processes_of_others_on_the_proxys_cpus_are_told() {
    let with = |own: f64, change: fn(&mut RunHeader)| {
        said("closed", move |trial, header| {
            let own = (own * SLICE_NS as f64) as u64;
            let slices = trial.slices.iter_mut();
            slices.for_each(|slice| slice.proxy_cpu_ns = own);
            change(header);
        })
    };
    // A tick of idle time that was not counted is a tenth of a slice here.
    assert_eq!(with(0.86, |_| {}), []);
    let crowded = one("proxy-crowded", Validity::Suspect);
    assert_eq!(with(0.84, |_| {}), crowded);
    assert_eq!(with(0.2, |_| {}), crowded);
    let shared = |header: &mut RunHeader| header.cpus.proxy = header.cpus.generator.clone();
    assert_eq!(with(0.2, shared), [], "one's own processes are no others");
}

#[test]
fn a_slice_must_be_longer_than_a_response() {
    let with = |load: &'static str, p50| said(load, move |trial, _| trial.response_time.p50 = p50);
    assert_eq!(with("closed", 20_000_000), []);
    let too_short = one("slice-too-short", Validity::Suspect);
    assert_eq!(with("closed", 20_100_000), too_short);
    assert_eq!(with("open", 20_100_000), [], "its rate is given");
}

#[test]
fn ports_that_ran_out_have_a_name_of_their_own() {
    let with = |count| {
        said("closed", move |trial, _| {
            trial.errors = vec![ErrorCount {
                kind: ErrorKind::Connect,
                words: "Cannot assign requested address (os error 99)".to_owned(),
                count,
            }];
        })
    };
    assert_eq!(with(1), one("ports-exhausted", Validity::Suspect));
    let many = with(200);
    let rules: Vec<&str> = many.iter().map(|(rule, _)| &rule[..]).collect();
    assert_eq!(rules, ["failures", "ports-exhausted"]);
    assert!(
        many.iter()
            .all(|(_, validity)| *validity == Validity::Invalid)
    );
}

#[test]
fn counters_must_be_read_when_a_slice_begins() {
    let with = |load: &'static str, late_ns| {
        said(load, move |trial, _| {
            for slice in &mut trial.slices {
                slice.late_ns = late_ns;
            }
        })
    };
    let of_slice = |share: f64| (SLICE_NS as f64 * share) as u64;
    assert_eq!(with("closed", of_slice(0.05)), []);
    for load in ["closed", "open"] {
        let late = with(load, of_slice(0.06));
        assert_eq!(late, one("late-counters", Validity::Suspect), "{load}");
    }
    let too_late = with("closed", of_slice(0.51));
    assert_eq!(too_late, one("late-counters", Validity::Invalid));
}
