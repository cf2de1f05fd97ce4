//! Tests of arms that were not what their levels say: read as equal although they differ, or without the intended
//! effect.

use weir_model::record::{Record, TrialRecord};
use weir_model::study::{ProxyKind, Settings};

use super::matrix::proxy;
use super::{AnalyzedRun, world};
use weir_analysis::fixture::{build_header, build_trials, run, three_arms};

/// A contradiction between reading and measurement is an error of the reading; the two are never printed side by side.
#[test]
fn an_arm_that_was_read_as_equal_and_differs_is_not_called_inert() {
    let mut header = build_header(three_arms());
    let changes = &mut header.study.arms[2].changes;
    changes.insert("backlog".to_owned(), "32768".to_owned());
    let (_folder, mut measured) = run(&header, build_trials(&header, "closed", 30, world(0.01)));
    measured.records.push(proxy("keepalive", &["backlog"]));
    let findings = AnalyzedRun::of(&measured);
    assert_eq!(findings.inert, []);
    let [misread] = &findings.misread[..] else {
        panic!("{:?}", findings.misread);
    };
    assert!((misread.ratio - 2.6).abs() < 0.1, "{misread:?}");
    let sentence = format!(
        "The value of backlog was read as equal in keepalive and stock, but the arms differ by {:.2} times in the \
         completed rate (load closed): the reading is wrong or something else differs.",
        misread.ratio
    );
    assert_eq!(weir_sentences::describe_misread(misread), sentence);
    assert!(findings.answer().ends_with(&sentence), "{}", findings.answer());
    assert!(!findings.answer().contains("inert"), "{}", findings.answer());

    // What the other change does is no contradiction.
    let changes = &mut measured.header.study.arms[2].changes;
    changes.insert("gzip".to_owned(), "off".to_owned());
    let findings = AnalyzedRun::of(&measured);
    assert_eq!((findings.misread.len(), findings.inert.len()), (0, 1));
}

/// Findings about the arm `kept` with these changes, if the baseline has `read` and the arm opens so many connections
/// to the origin server per request.
fn analyze_change(
    kind: ProxyKind,
    changes: &[(&str, &str)],
    read: &[(&str, &str)],
    connects: f64,
) -> AnalyzedRun {
    let mut header = build_header(three_arms());
    header.study.proxy.kind = kind;
    header.study.arms[2].changes = settings_of(changes);
    header.study.arms[2].settings = settings_of(read);
    header.study.arms[2].settings.extend(settings_of(changes));
    let mut all = build_trials(&header, "closed", 30, world(0.01));
    let of_arm = all.iter_mut().filter(|trial: &&mut TrialRecord| trial.arm == "keepalive");
    for slice in of_arm.flat_map(|trial| &mut trial.slices) {
        slice.origin_connects = (slice.origin_requests as f64 * connects) as u64;
    }
    let (_folder, mut run) = run(&header, all);
    let Record::Proxy(mut stock) = proxy("stock", &[]) else {
        unreachable!("it makes nothing else");
    };
    stock.effective = settings_of(read);
    run.records.push(Record::Proxy(stock));
    AnalyzedRun::of(&run)
}

fn settings_of(levels: &[(&str, &str)]) -> Settings {
    levels.iter().map(|(id, level)| ((*id).to_owned(), (*level).to_owned())).collect()
}

#[test]
fn a_change_is_held_against_the_counter_in_which_its_purpose_shows() {
    let keepalive = ("origin_keepalive", "64");
    #[rustfmt::skip]
    let rows = [
        (&[keepalive][..], &[("origin_keepalive", "0")][..], 1.0, &["origin_keepalive"][..]),
        (&[keepalive], &[("origin_keepalive", "0")], 0.97, &["origin_keepalive"]),
        (&[keepalive], &[("origin_keepalive", "0")], 0.001, &[]),
        // Nothing is said where it was on before, is not known, or is switched off.
        (&[keepalive], &[("origin_keepalive", "16")], 1.0, &[]),
        (&[keepalive], &[], 1.0, &[]),
        (&[("origin_keepalive", "0")], &[("origin_keepalive", "16")], 1.0, &[]),
        // A row without a counter.
        (&[("worker_connections", "64")], &[("worker_connections", "768")], 1.0, &[]),
        (&[keepalive, ("gzip", "on")], &[("origin_keepalive", "0"), ("gzip", "off")], 1.0,
         &["origin_keepalive"]),
    ];
    for (changes, read, connects, expected) in rows {
        let findings = analyze_change(ProxyKind::Nginx, changes, read, connects);
        let of_load = &findings.loads[0].ineffective;
        let ids: Vec<&str> = of_load.iter().map(|ineffective| &*ineffective.id).collect();
        assert_eq!(ids, expected, "{changes:?} {read:?} {connects}");
        let is_said = findings.answer().contains("did not take effect");
        assert_eq!(is_said, !expected.is_empty(), "{}", findings.answer());
    }
    let findings =
        analyze_change(ProxyKind::Nginx, &[keepalive], &[("origin_keepalive", "0")], 1.0);
    let sentence = "origin_keepalive = 64 did not take effect in keepalive: 1.000 connections to the origin server per \
                request, and 1.000 in stock.";
    assert!(findings.answer().ends_with(sentence), "{}", findings.answer());
}

#[test]
fn what_keeps_a_change_from_its_effect_is_named() {
    let read = [("http_reuse", "safe"), ("http_connection_mode", "http-server-close")];
    let findings = analyze_change(ProxyKind::Haproxy, &[("http_reuse", "always")], &read, 1.0);
    let clause =
        "http_connection_mode is http-server-close, and no connection to the origin is kept.";
    assert!(findings.answer().ends_with(clause), "{}", findings.answer());
}
