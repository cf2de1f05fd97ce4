use super::*;
use crate::request::{FieldSpec, StatusSpec};

fn read_text(text: &str) -> Result<FlowSpec, Vec<String>> {
    let settings = text.split("; ").filter(|word| !word.is_empty()).map(|word| {
        let (key, text) = word.split_once(' ').unwrap_or((word, ""));
        FlowSetting {
            key: Key::of_word(key).unwrap_or_else(|| panic!("{key}")),
            text: text.to_owned(),
        }
    });
    let settings: Vec<_> = settings.collect();
    let base = FlowSpec::new(50, ArrivalsSpec::Closed);
    let (spec, faults) = read(&settings, base, Duration::from_secs(10));
    if faults.is_empty() { Ok(spec) } else { Err(faults.into_iter().map(write_fault).collect()) }
}

fn write_fault(fault: Fault) -> String {
    let nearest = fault.nearest.map(|word| format!(" [{word}]")).unwrap_or_default();
    format!("{}: {}{nearest}", fault.key.flag(), fault.message)
}

type Changes = fn(&mut FlowSpec);

#[rustfmt::skip]
static CHANGES: &[(&str, Changes)] = &[
    ("connections 7", |spec| spec.connections = 7),
    ("connection keep-alive", |_| ()),
    ("connection close", |spec| spec.lifetime = Lifetime::Request),
    ("connection 1", |spec| spec.lifetime = Lifetime::Request),
    ("connection 100", |spec| spec.lifetime = Lifetime::Requests(100)),
    ("connection 10s", |spec| spec.lifetime = Lifetime::Time(10_000_000_000)),
    ("connection hold", |spec| spec.arrivals = ArrivalsSpec::Held),
    ("connection hold:10s", |spec| spec.arrivals = ArrivalsSpec::Constant(5.0)),
    ("connection 1; close reset", |spec| { spec.lifetime = Lifetime::Request; spec.close = Close::Reset; }),
    ("close fin", |_| ()),
    ("connect-rate 2k", |spec| spec.connect_rate = Some(2000.0)),
    ("pipeline 4", |spec| spec.pipeline = 4),
    ("rate 300", |spec| spec.arrivals = ArrivalsSpec::Constant(300.0)),
    ("rate 100..500", |spec| { let (from, to, ns) = (100.0, 500.0, 10_000_000_000);
         spec.arrivals = ArrivalsSpec::Varied(vec![Segment { from, to, ns }]); }),
    ("rate 9; arrivals poisson:7", |spec| { spec.arrivals = ArrivalsSpec::Constant(9.0);
         spec.spacing = Spacing::Poisson { seed: 7 }; }),
    ("trace a.log; trace-speed 2", |spec| { let (file, speed) = ("a.log".to_owned(), 2.0);
         spec.arrivals = ArrivalsSpec::Trace(TraceSpec { file, speed }); }),
    ("rate 9; schedule per-connection", |spec| { spec.arrivals = ArrivalsSpec::Constant(9.0);
         spec.assignment = Assignment::PerConnection; }),
    ("rate 9; overflow drop", |spec| { spec.arrivals = ArrivalsSpec::Constant(9.0); spec.overflow = Overflow::Drop;
         }),
    ("requests 1000", |spec| spec.limit = Some(1000)),
    ("timeout 5s", |spec| spec.timeout = Duration::from_secs(5)),
    ("expect status=2xx,304; expect size=1KiB; expect field=Via; expect field=Age: 0",
     |spec| spec.requests[0].expect = Some(ExpectSpec { status: vec![StatusSpec::Class(2), StatusSpec::Code(304)],
         size: Some(1024), fields: vec![("Via".to_owned(), FieldSpec::Present), ("Age".to_owned(),
         FieldSpec::Value("0".to_owned()))], sha256: None })),
    ("expect status=200; expect status=204", |spec| spec.requests[0].expect = Some(ExpectSpec {
         status: vec![StatusSpec::Code(200), StatusSpec::Code(204)], ..ExpectSpec::default() })),
    ("tls", |spec| spec.tls = Some(TlsSpec::default())),
    ("tls; version 1.3; groups P-256; alpn h2,http/1.1; early-data",
     |spec| spec.tls = Some(TlsSpec { versions: vec![TlsVersion::V1_3], groups: vec!["secp256r1".to_owned()],
         alpn: vec!["h2".to_owned(), "http/1.1".to_owned()], early_data: true, ..TlsSpec::default() })),
    ("tls; ca a.pem; sni b.test; resumption 80%",
     |spec| spec.tls = Some(TlsSpec { trust: Trust::Ca("a.pem".to_owned()), server_name: Some("b.test".to_owned()),
         resumption: crate::tls::Resumption::Ratio(0.8), ..TlsSpec::default() })),
    ("tls; cert a.pem; key b.pem; insecure",
     |spec| spec.tls = Some(TlsSpec { client: Some(ClientCertificate { certificate: "a.pem".to_owned(),
         key: "b.pem".to_owned() }), trust: Trust::Insecure, ..TlsSpec::default() })),
];

#[test]
fn each_word_changes_what_it_says() {
    for &(text, changes) in CHANGES {
        let mut expected = FlowSpec::new(50, ArrivalsSpec::Closed);
        changes(&mut expected);
        assert_eq!(read_text(text), Ok(expected), "{text}");
    }
}

const KEPT: &str = "--close: connections that are kept are closed by the server or at the end, so there is nothing to reset";

#[rustfmt::skip]
static WRONG: &[(&str, &[&str])] = &[
    ("connections 0", &["-c: `0` is not a whole number of at least 1"]),
    ("connection forever", &["--connection: `forever` is not a connection policy"]),
    ("connection keepalive", &["--connection: `keepalive` is not a connection policy [keep-alive]"]),
    ("connection 0", &["--connection: `0` is not a connection policy"]),
    ("pipeline many", &["--pipeline: `many` is not a whole number from 1 to 1024"]),
    ("pipeline 1025", &["--pipeline: `1025` is not a whole number from 1 to 1024"]),
    ("rate 9; overflow dorp", &["--overflow: `dorp` is not `queue` or `drop` [drop]"]),
    ("requests 0", &["-n: `0` is not a whole number of at least 1"]),
    ("timeout 0", &["-T: `0` is not a duration of at least 1ms"]),
    ("trace a; trace-speed 0",
     &["--trace-speed: `0` is out of range: the speed of a trace must be from 0.000001 to 1000000"]),
    ("rate 5; trace-speed 2", &["--trace-speed: only a trace has a speed"]),
    ("rate 1,000", &["-R: `1,000` is not a rate: write 1000 without commas between its digits; steps are written 1000,2000"]),
    ("rate 99999999999999999999",
     &["-R: `99999999999999999999` is out of range: a rate must be from 0.000001 to 1000000000"]),
    ("expect colour=red", &["--expect: `colour=red` is not something that can be expected"]),
    ("expect stats=200", &["--expect: `stats=200` is not something that can be expected [status]"]),
    ("expect status=7xx", &["--expect: `7xx` is not a status code from 100 to 599, or a class such as 2xx"]),
    ("expect status=200,999", &["--expect: `999` is not a status code from 100 to 599, or a class such as 2xx"]),
    ("expect status=200,status=204",
     &["--expect: `status=204` is not a status code from 100 to 599, or a class such as 2xx"]),
    ("expect sha256=abc; expect field=a b: c",
     &["--expect: `abc` is not 64 hexadecimal digits", "--expect: `a b` is not a valid header name (RFC 9110 §5.1)"]),
    ("tls; version 1.1", &["--tls: `1.1` is not a TLS version that weir supports"]),
    ("ciphers TLS_AES_128_GCM_SHA256", &["--ciphers: requests go out without TLS"]),
    ("connection hold; rate 5; pipeline 2", &["--connection: held connections have no rate and no trace",
         "--pipeline: held connections send nothing"]),
    ("overflow drop; schedule per-connection; arrivals poisson",
     &["--overflow: only a load with a rate can drop requests", "--schedule: only a load with a rate has a schedule",
         "--arrivals: only a load with a rate has arrivals to spread"]),
    ("close rest", &["--close: `rest` is not `fin` or `reset` [reset]"]),
    ("close reset", &[KEPT]),
    ("connection hold; close reset", &[KEPT]),
    ("connection per-request; connect-rate 5; pipeline 2",
     &["--connect-rate: each request opens a connection, so connections have the rate of the requests",
         "--pipeline: a connection per request cannot have several in flight"]),
];

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    for &(text, expected) in WRONG {
        assert_eq!(read_text(text).expect_err(text), expected, "{text}");
    }
    let all = read_text("connections 0; pipeline 0; timeout soon").expect_err("three");
    assert_eq!(all.len(), 3, "{all:?}");
}

#[test]
fn every_key_has_a_word_and_a_flag_of_its_own() {
    for (key, word, flag) in NAMES {
        assert_eq!((key.word(), key.flag()), (word, flag));
        assert_eq!(Key::of_word(word), Some(key), "{word}");
    }
}
