//! Tests of the words that a study shares with `weir load`: every word of a load and of the flows beside it, and those
//! that a study refuses.

use std::time::Duration;

use weir_model::flow::{ArrivalsSpec, FlowSpec, LoadSpec, SourceSpec, TraceSpec};
use weir_model::load::{Assignment, Close, Lifetime, Overflow, Segment, Spacing};
use weir_model::request::{ExpectSpec, FieldSpec, StatusSpec};
use weir_model::spin::Spin;
use weir_model::tls::{ClientCertificate, Resumption, TlsSpec, TlsVersion};

use crate::{messages_of, read, with};

const TEN: &str = "{slice: 10s}";

/// Returns a study with these keys in its load, and with this section `blocks`.
fn study_text(keys: &str, blocks: &str) -> String {
    let text = with("").replace("closed: true", keys).replace("duration: 1m", "duration: 20m");
    format!("{text}blocks: {blocks}\n")
}

fn read_load(keys: &str) -> LoadSpec {
    match read(&study_text(keys, TEN)) {
        Ok(study) => study.loads[0].clone(),
        Err(errors) => panic!("{keys}: {}", errors.render(false)),
    }
}

fn refused(keys: &str, blocks: &str) -> Vec<String> {
    messages_of(&study_text(keys, blocks))
}

fn open(flow: &mut FlowSpec) {
    flow.arrivals = ArrivalsSpec::Constant(100.0);
}

fn resumed(resumption: Resumption) -> Option<TlsSpec> {
    let versions = vec![TlsVersion::V1_3];
    Some(TlsSpec { versions, resumption, ..TlsSpec::default() })
}

type Changes = fn(&mut FlowSpec);

#[rustfmt::skip]
static CHANGES: &[(&str, Changes)] = &[
    ("closed: true", |_| ()),
    ("rate: 100", open),
    ("closed: false, rate: 100", open),
    ("rate: 100, arrivals: poisson:7", |flow| { open(flow); flow.spacing = Spacing::Poisson { seed: 7 }; }),
    ("rate: 2, arrivals: burst:20", |flow| { flow.arrivals = ArrivalsSpec::Constant(2.0);
         flow.spacing = Spacing::Burst { size: 20 }; }),
    ("rate: 100..5000", |flow| { let (from, to, ns) = (100.0, 5000.0, 10_000_000_000);
         flow.arrivals = ArrivalsSpec::Varied(vec![Segment { from, to, ns }]); }),
    ("rate: '100@2s,300'",
     |flow| { let steps = [(100.0, 2), (300.0, 8)].map(|(rate, seconds)| Segment { ns: seconds * 1_000_000_000,
         ..Segment::flat(rate) }); flow.arrivals = ArrivalsSpec::Varied(steps.into()); }),
    ("trace: day.log, trace-speed: 2", |flow| { let (file, speed) = ("day.log".to_owned(), 2.0);
         flow.arrivals = ArrivalsSpec::Trace(TraceSpec { file, speed }); }),
    ("rate: 100, schedule: per-connection", |flow| { open(flow); flow.assignment = Assignment::PerConnection; }),
    ("rate: 100, overflow: drop", |flow| { open(flow); flow.overflow = Overflow::Drop; }),
    ("closed: true, pipeline: 4", |flow| flow.pipeline = 4),
    ("closed: true, connect-rate: 2k", |flow| flow.connect_rate = Some(2000.0)),
    ("closed: true, connection: 100", |flow| flow.lifetime = Lifetime::Requests(100)),
    ("closed: true, connection: 30s", |flow| flow.lifetime = Lifetime::Time(30_000_000_000)),
    ("closed: true, connection: keep-alive", |_| ()),
    ("closed: true, connection: per-request", |flow| flow.lifetime = Lifetime::Request),
    ("closed: true, connection: 100, close: reset", |flow| { flow.lifetime = Lifetime::Requests(100);
         flow.close = Close::Reset; }),
    ("closed: true, connection: {requests: 1}", |flow| flow.lifetime = Lifetime::Request),
    ("closed: true, connection: {requests: 100}", |flow| flow.lifetime = Lifetime::Requests(100)),
    ("closed: true, connection: {time: 10s}", |flow| flow.lifetime = Lifetime::Time(10_000_000_000)),
    ("connection: hold:10s", |flow| flow.arrivals = ArrivalsSpec::Constant(2.0)),
    ("closed: true, source: 8", |flow| flow.sources = SourceSpec::Count(8)),
    ("closed: true, timeout: 5s", |flow| flow.timeout = Duration::from_secs(5)),
    ("closed: true, expect: status=2xx", |flow| flow.requests[0].expect = Some(ExpectSpec {
         status: vec![StatusSpec::Class(2)], ..ExpectSpec::default() })),
    ("closed: true, expect: [status=200, status=204]", |flow| flow.requests[0].expect = Some(ExpectSpec {
         status: vec![StatusSpec::Code(200), StatusSpec::Code(204)], ..ExpectSpec::default() })),
    ("closed: true, expect: [status=200, 'size=1KiB', 'field=Via']",
     |flow| flow.requests[0].expect = Some(ExpectSpec { status: vec![StatusSpec::Code(200)], size: Some(1024),
         fields: vec![("Via".to_owned(), FieldSpec::Present)], sha256: None })),
    ("closed: true, expect: {status: 200, size: 1KiB}",
     |flow| flow.requests[0].expect = Some(ExpectSpec { status: vec![StatusSpec::Code(200)], size: Some(1024),
         ..ExpectSpec::default() })),
    ("closed: true, request: {path: '/{{sequence}}', method: PUT, content: hi}",
     |flow| { let request = &mut flow.requests[0].request; request.method = "PUT".to_owned();
         request.target = "/{{sequence}}".to_owned(); request.content = b"hi".to_vec(); }),
    ("closed: true, requests: [{path: /a, weight: 3, name: a}, {path: /b}]",
     |flow| { let mut a = flow.requests[0].clone(); let mut b = a.clone();
         (a.name, a.weight, a.request.target) = (Some("a".to_owned()), 3.0, "/a".to_owned());
         b.request.target = "/b".to_owned(); flow.requests = vec![a, b]; }),
    ("closed: true, tls: {groups: [x25519, P-256], alpn: http/1.1, early-data: true}",
     |flow| flow.tls = Some(TlsSpec { groups: vec!["x25519".to_owned(), "secp256r1".to_owned()], early_data: true,
         ..TlsSpec::default() })),
    ("closed: true, tls: {cert: c.pem, key: k.pem}",
     |flow| flow.tls = Some(TlsSpec { client: Some(ClientCertificate { certificate: "c.pem".to_owned(),
         key: "k.pem".to_owned() }), ..TlsSpec::default() })),
    ("closed: true, host: Shop.example", |flow| flow.host = Some("shop.example".to_owned())),
    ("closed: true, path: '/a?b'", |flow| flow.requests[0].request.target = "/a?b".to_owned()),
    ("closed: true, tls: true", |flow| flow.tls = Some(TlsSpec::default())),
    ("closed: true, tls: false", |_| ()),
    ("closed: true, tls: {version: 1.2, ciphers: [ECDHE-RSA-AES256-GCM-SHA384, ECDHE-RSA-CHACHA20-POLY1305], \
      resumption: 80%}",
     |flow| flow.tls = Some(TlsSpec { versions: vec![TlsVersion::V1_2], resumption: Resumption::Ratio(0.8),
         ciphers: ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"].map(str::to_owned).into(),
         ..TlsSpec::default() })),
    ("closed: true, tls: {version: 1.3, resumption: on}", |flow| flow.tls = resumed(Resumption::On)),
    ("closed: true, tls: {version: 1.3, resumption: off}", |flow| flow.tls = resumed(Resumption::Off)),
    ("closed: true, tls: {version: 1.3, resumption: 100%}", |flow| flow.tls = resumed(Resumption::Ratio(1.0))),
    ("closed: true, tls: {version: 1.3, resumption: 0.25}", |flow| flow.tls = resumed(Resumption::Ratio(0.25))),
];

#[test]
fn every_word_of_a_flow_changes_what_it_says() {
    for &(keys, changes) in CHANGES {
        let mut expected = FlowSpec::new(20, ArrivalsSpec::Closed);
        changes(&mut expected);
        assert_eq!(read_load(keys).main, expected, "{keys}");
    }
}

#[test]
fn a_thread_is_awake_before_arrivals_as_long_as_is_asked_for() {
    for (keys, spin) in [
        ("rate: 100", Spin::Auto),
        ("rate: 100, spin: auto", Spin::Auto),
        ("rate: 100, spin: 0s", Spin::OFF),
        ("rate: 100, spin: 1s", Spin::For(Duration::from_secs(1))),
    ] {
        assert_eq!(read_load(keys).spin, spin, "{keys}");
    }
}

#[test]
fn a_load_has_flows_beside_its_own() {
    let keys = "rate: 100, spin: 50us, hold: 100, flows: [\
                {name: slow, rate: 5, connections: 2, request: {path: /slow}}, \
                {name: idle, connection: hold, connections: 7}]";
    let load = read_load(keys);
    assert_eq!(load.spin, Spin::For(Duration::from_micros(50)));
    let names: Vec<&str> = load.flows().map(|flow| &*flow.name).collect();
    assert_eq!(names, ["main", "slow", "idle", "held"]);
    assert_eq!((load.asking(), load.held(), load.rate()), (22, 107, Some(105.0)));
    assert_eq!(load.beside[0].requests[0].request.target, "/slow");

    let text = study_text(keys, TEN);
    let half = "50%".parse().expect("a scale");
    let context = crate::context();
    let catalog = weir_parameters::Catalog::builtin();
    let study = weir_study::parse_scaled(&text, "s.yaml", &catalog, &context, half);
    let load = &study.expect("it is right").loads[0];
    let flows: Vec<(u32, Option<f64>)> = load.flows().map(|f| (f.connections, f.rate())).collect();
    let expected = [(10, Some(50.0)), (1, Some(3.0)), (4, None), (50, None)];
    assert_eq!(flows, expected);
}

#[test]
fn a_file_of_requests_is_read_and_its_errors_have_their_place() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().display().to_string();
    std::fs::write(file.path(), "requests:\n- {path: /a, weight: 2}\n- {path: /b}\n")
        .expect("written");
    let load = read_load(&format!("closed: true, request-set: {path}"));
    assert_eq!((load.requests.len(), load.requests[0].weight), (2, 2.0));
    std::fs::write(file.path(), "requests:\n- {path: /a, weight: 0}\n").expect("written");
    let messages = refused(&format!("closed: true, request-set: {path}"), TEN);
    assert_eq!(
        messages,
        [format!("{path}:2:22: `0` is out of range: a weight must be from 0.000001 to 1000000000")]
    );
}

#[rustfmt::skip]
static REFUSED: &[(&str, &str, &[&str])] = &[
    ("rate: 100..5000", "{at-least: 6}", &["a load whose rate changes needs a slice"]),
    ("trace: a.log", "{at-least: 6}", &["a load whose rate changes needs a slice"]),
    ("rate: '100@9s,300@9s'", TEN,
     &["the steps of `100@9s,300@9s` take 18s, but there are only 10s: make them shorter, or the time longer"]),
    ("rate: 100..200, arrivals: burst:20", TEN, &["a load with bursts needs its rate in requests per second"]),
    ("closed: false, rate: 100..5000", "{at-least: 6}", &["a load whose rate changes needs a slice"]),
    ("rate: 100, trace: a.log", "{at-least: 6}", &["a load has either a `rate` or a `trace`"]),
    ("rate: 100, trace: a.log", TEN, &["a load has either a `rate` or a `trace`"]),
    ("closed: true, trace: a.log", TEN, &["a load is either closed or has a rate"]),
    ("closed: true, requests: 1000", TEN,
     &["a study does not end after a number of requests"]),
    ("closed: true, requests: /", TEN, &["expected a list of requests, found `/`"]),
    ("rate: 99999999999999999999", TEN,
     &["`99999999999999999999` is out of range: a rate must be from 0.000001 to 1000000000"]),
    ("rate: 0..2000M", TEN, &["`2000M` is out of range: a rate must be from 0.000001 to 1000000000"]),
    ("closed: true, connect-rate: 99999999999", TEN,
     &["`99999999999` is out of range: a rate must be from 0.000001 to 1000000000"]),
    ("trace: a.log, trace-speed: 1e300", TEN,
     &["`1e300` is out of range: the speed of a trace must be from 0.000001 to 1000000"]),
    ("closed: true, requests: [{path: /, weight: 1e308}]", TEN,
     &["`1e308` is out of range: a weight must be from 0.000001 to 1000000000"]),
    ("closed: true, expect: status=7xx", TEN,
     &["`7xx` is not a status code from 100 to 599, or a class such as 2xx"]),
    ("closed: true, expect: [status=200, status=999]", TEN,
     &["`999` is not a status code from 100 to 599, or a class such as 2xx"]),
    ("closed: true, expect: {status: [200, 7xx]}", TEN, &["`7xx` is not a status code from 100 to 599"]),
    ("closed: true, expect: sha256=abc", TEN, &["`abc` is not 64 hexadecimal digits"]),
    ("rat: 5", TEN, &["a load has no key `rat` [rate]"]),
    ("closd: true, timeuot: 0", TEN,
     &["a load has no key `closd` [closed]", "a load has no key `timeuot` [timeout]",
         "`0` is not a duration from 1ms to 24h"]),
    ("closed: true, ramp-up: 5s", TEN,
     &["a study has no `ramp-up`: arms take turns, so each would get another part of it"]),
    ("connection: hold", TEN, &["a load must send requests"]),
    ("closed: true, pipeline: many", TEN, &["`many` is not a whole number from 1 to 1024"]),
    ("rate: 100, schedule: globl", TEN, &["`globl` is not `global` or `per-connection` [global]"]),
    ("closed: true, overflow: drop", TEN, &["only a load with a rate can drop requests"]),
    ("rate: 100, arrivals: poison", TEN,
     &["`poison` is not a spacing of arrivals: write even, poisson, poisson:SEED or burst:SIZE; the nearest is `poisson`"]),
    ("closed: true, expect: colour", TEN, &["`colour` is not something that can be expected"]),
    ("closed: true, expect: status=200, requests: [{path: /}]", TEN,
     &["with several requests, each has its own `expect`"]),
    ("closed: true, request: {path: /}, requests: [{path: /}]", TEN, &["a load can have only one of `request`, `requests` and `request-set`"]),
    ("closed: true, request-set: /nowhere", TEN, &["cannot read `/nowhere`: No such file or directory (os error 2)"]),
    ("closed: true, source: 300", TEN, &["`300` is not a whole number from 1 to 253"]),
    ("closed: true, tls: {cert: c.pem}", TEN, &["a client certificate needs both `cert` and `key`"]),
    ("closed: true, tls: {ciphers: ECDHE-ECDSA-AES256-GCM-SHA384}", TEN,
     &["`ECDHE-ECDSA-AES256-GCM-SHA384` needs an ECDSA certificate"]),
    ("closed: true, tls: {groups: x22519}", TEN, &["there is no group `x22519`; did you mean `x25519`?"]),
    ("closed: true, host: 'http://a'", TEN, &["`http://a` is not a host name"]),
    ("closed: true, host: a..b", TEN, &["`a..b` is not a host name"]),
    ("closed: true, host: 'a.example:0'", TEN, &["`a.example:0` is not a host name"]),
    ("closed: true, host: 'a.example:http'", TEN, &["`a.example:http` is not a host name"]),
    ("closed: true, path: a", TEN, &["`a` is not a path"]),
    ("closed: true, path: /a, request: {path: /b}", TEN, &["a load cannot have two paths"]),
    ("closed: true, path: /a, requests: [{path: /b}]", TEN, &["a load cannot have two paths"]),
    ("closed: true, path: /a, size: 1KiB", TEN, &["a load cannot have both a size and a path"]),
    ("closed: true, port: 0", TEN,
     &["`0` is not a whole number from 1 to 65535", "`port` names a listener of a `configuration`, and no arm has one"]),
    ("closed: true, port: 80, flows: [{name: a, closed: true, connections: 1, port: 81}]", TEN,
     &["`port` names a listener of a `configuration`, and no arm has one"; 2]),
    ("closed: true, flows: [{name: main, rate: 5, connections: 1}]", TEN,
     &["two flows of the load have this name", "the flows of a load must all be closed, or all have rates"]),
    ("rate: 9, flows: [{name: a, rate: 9, burst: 2, connections: 2}, {rate: 9, connections: 1}]", TEN,
     &["only the load's own flow can have bursts", "a flow needs the key `name`"]),
];

#[test]
fn what_a_study_cannot_measure_is_refused_with_a_reason() {
    for &(keys, blocks, expected) in REFUSED {
        assert_eq!(refused(keys, blocks), expected, "{keys}");
    }
}
