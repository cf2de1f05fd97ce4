//! Tests of loads that are refused for `connection` or `tls`, of the keys `hold` and `size`, and of the figures and
//! limits of such loads.

use std::time::Duration;

use weir_model::study::{LoadSpec, Metric};
use weir_model::tls::Trust;

use crate::{messages_of, read, with};

/// Returns a study with additional keys in its load, and with a proxy that serves files.
fn study_text(keys: &str) -> String {
    with("")
        .replace("closed: true", keys)
        .replace("kind: nginx", "kind: nginx, role: {static-files: {size: 1KiB}}")
}

fn with_figures(figures: &str) -> String {
    format!(
        "{}published: {{source: s, metric: m, figures: {figures}}}\n",
        study_text("closed: true")
    )
}

fn read_load(keys: &str) -> LoadSpec {
    match read(&study_text(&format!("closed: true, {keys}"))) {
        Ok(study) => study.loads[0].clone(),
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

#[test]
fn a_load_that_says_nothing_holds_none_and_has_no_size() {
    let load = read_load("timeout: 1s");
    assert_eq!((load.held(), load.size), (0, None));
}

#[test]
fn a_size_is_a_file_of_its_own() {
    for (written, bytes, target) in
        [("1MiB", 1 << 20, "/1048576"), ("0", 0, "/0"), ("1KiB", 1024, "/1024")]
    {
        let load = read_load(&format!("size: {written}"));
        let request = load.request().expect("it asks");
        assert_eq!((load.size, &*request.target), (Some(bytes), target));
    }
    let load = read_load("size: 2k, request: {method: HEAD}");
    let request = load.request().expect("it asks");
    assert_eq!((&*request.method, &*request.target), ("HEAD", "/2048"));
}

#[rustfmt::skip]
static REFUSED: &[(&str, &[&str])] = &[
    ("connection: keepalive", &["`keepalive` is not a connection policy [keep-alive]"]),
    ("connection: {requests: 5, time: 1s}", &["a connection is used for a number of requests or for a time, not for both"]),
    ("connection: {requests: 0}", &["`0` is not a whole number from 1 to 4294967295"]),
    ("connection: {request: 5}", &["`connection` has no key `request` [requests]"]),
    ("connection: {reqs: 5}", &["`connection` has no key `reqs`"]),
    ("tls: yes", &["`yes` is not `true` or `false`"]),
    ("tls: {versions: 1.2}", &["`tls` has no key `versions` [version]"]),
    ("tls: {version: 1.1}", &["`1.1` is not a TLS version that weir supports"]),
    ("tls: {ciphers: ecdhe-rsa-aes256-gcm-sha348}",
     &["there is no cipher `ecdhe-rsa-aes256-gcm-sha348` [ECDHE-RSA-AES256-GCM-SHA384]"]),
    ("tls: {version: 1.3, ciphers: [ECDHE-RSA-AES256-GCM-SHA384]}",
     &["`ECDHE-RSA-AES256-GCM-SHA384` does not belong to a TLS version that is offered"]),
    ("tls: {ciphers: [TLS_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]}",
     &["`TLS_AES_128_GCM_SHA256` is listed twice"]),
    ("tls: {resumption: of}", &["`of` is not a share of resumed connections"]),
    ("trace-speed: 2", &["only a trace has a speed"]),
    ("flows: [{name: a, closed: true, connections: [1, 2]}]", &["a flow under `flows` has a single value for each key"]),
    ("flows: [{name: a, closed: true, connections: 1..3}]", &["a flow under `flows` has a single value for each key"]),
    ("hold: -1", &["`-1` is not a whole number from 0 to 1000000"]),
    ("size: 1MiB, request: {path: /a}", &["a load cannot have both a size and a path"]),
    ("size: 2GiB", &["`2GiB` is above 1024 MiB"]),
    ("optional: maybe", &["`maybe` is not `true` or `false`"]),
];

#[test]
fn what_cannot_be_is_refused_with_what_is_right() {
    for &(keys, expected) in REFUSED {
        let text = study_text(&format!("closed: true, {keys}"));
        assert_eq!(messages_of(&text), expected, "{keys}");
    }
    let outside = with("")
        .replace("kind: nginx", "kind: external, address: \"127.0.0.1:80\"")
        .replace("closed: true", "closed: true, size: 1MiB");
    let not_ours = "weir does not choose what an external proxy answers";
    assert_eq!(messages_of(&outside).last().map(String::as_str), Some(not_ours));
    // One arm is enough, and a matrix says it once.
    let beside = "arms: [{name: a, proxy: {kind: external, address: \"127.0.0.1:80\"}}]";
    let beside = with(beside).replace("closed: true", "closed: true, size: 1MiB");
    assert_eq!(messages_of(&beside), [not_ours]);
    let matrix = beside.replace("connections: 20", "connections: [10, 20]");
    assert_eq!(messages_of(&matrix), [not_ours]);
    let trust = "tls: {ca: ours.pem}";
    let secure = beside.replace("size: 1MiB", trust);
    let study = read(&secure).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let tls = study.loads[0].main.tls.as_ref().expect("it is asked over TLS");
    assert_eq!(tls.trust, Trust::Ca("ours.pem".to_owned()));
    let ours = with("").replace("closed: true", &format!("closed: true, {trust}"));
    let of_others = "`ca` and `insecure` are for the certificate of an external proxy";
    assert_eq!(messages_of(&ours), [of_others]);
}

#[test]
fn a_capacity_needs_nothing_to_compare() {
    let text = study_text("closed: true");
    let study = read(&format!("{text}objective: {{capacity: 'p99 < 30ms'}}\n"))
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!((study.arms.len(), study.capacity.len()), (1, 1));
}

#[test]
fn a_limit_is_for_response_times_and_needs_nothing_to_compare() {
    let open = study_text("rate: 1000");
    let study = read(&format!("{open}a/a: false\nobjective: {{within: 30ms}}\n"))
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(study.arms.len(), 1);
    assert_eq!(study.objective.metric, Metric::ResponseP99);
    assert_eq!(study.objective.within, Some(Duration::from_millis(30)));
    let closed = study_text("closed: true");
    assert_eq!(
        messages_of(&format!("{closed}objective: {{metric: rate, within: 30ms}}\n")),
        ["only a response time can have a limit"]
    );
    assert_eq!(
        messages_of(&format!("{open}objective: {{within: 2h}}\n")),
        ["`2h` is not a duration from 1us to 60m"]
    );
}

#[test]
fn received_bytes_are_of_closed_loads() {
    let objective = "objective: {metric: received-bytes}\n";
    let study = read(&format!("{}{objective}", study_text("closed: true")));
    let metric = study.map(|study| study.objective.metric);
    assert_eq!(metric, Ok(Metric::ReceivedBytes));
    assert_eq!(
        messages_of(&format!("{}{objective}", study_text("rate: 1000"))),
        ["no closed load measures this metric"]
    );
}

#[test]
fn published_figures_may_be_of_one_load() {
    let study = read(&with_figures("{baseline: 3, closed: {baseline: 5}}"))
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let published = study.published.expect("they are given");
    assert_eq!(published.of_load("closed")["baseline"], 5.0);
    assert_eq!(published.of_load("another")["baseline"], 3.0);
    assert_eq!(
        messages_of(&with_figures("{close: {baselin: 5}}")),
        ["no load is named `close` [closed]", "no arm is named `baselin` [baseline]"]
    );
}
