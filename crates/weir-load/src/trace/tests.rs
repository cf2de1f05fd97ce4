use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

const MS: u64 = 1_000_000;

fn read(text: &str) -> Result<Trace, TraceError> {
    Trace::from_reader(text.as_bytes(), "day.log", 1.0)
}

fn log(second: u32, request: &str) -> String {
    format!(
        "192.0.2.7 - - [21/Nov/2026:13:00:{second:02} +0000] \"{request} HTTP/1.1\" 200 612 \"-\" \"curl\"\n"
    )
}

/// Builds the lines of a log, each given as a digit for its second and its request.
fn logs(lines: &[&str]) -> String {
    lines.iter().map(|line| log(line[..1].parse().unwrap(), &line[1..])).collect()
}

fn message(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn times_count_from_the_first_and_keep_their_gaps() {
    let trace = read("# seconds\n10.5\n10.500000001\n\n12\r\n10.75").unwrap();
    assert_eq!(*trace.times, [0, 1, 250 * MS, 1500 * MS]);
    assert_eq!((trace.which.clone(), &*trace.left_out), (None, &[][..]));
    assert!(trace.requests.is_empty());
    assert_eq!(
        trace.arrivals("day.log"),
        Arrivals::Trace {
            file: "day.log".to_owned(),
            arrivals: 4,
            length_ns: 1500 * MS,
            every_ns: None,
            left_out: Vec::new(),
        }
    );
    // Whole numbers are numbers: three at once are three at once.
    assert_eq!(*read("5\n5\n5\n6").unwrap().times, [0, 0, 0, S]);
}

#[test]
fn lines_of_one_second_of_a_log_are_spread_over_it() {
    let lines = ["1GET /a", "1GET /b", "3POST /a", "3GET /a", "3GET /b", "3GET /a"];
    let trace = read(&logs(&lines)).unwrap();
    let want = [0, 500 * MS, 2 * S, 2250 * MS, 2500 * MS, 2750 * MS];
    assert_eq!(*trace.times, want);
    let named = trace.requests.iter().map(|(m, t)| format!("{m} {t}"));
    assert_eq!(named.collect::<Vec<_>>(), ["GET /a", "GET /b", "POST /a"]);
    assert_eq!(trace.which.as_deref(), Some(&[0, 1, 2, 0, 1, 0][..]));
    // The same of a clock in another notation; but not if one line has a fraction.
    let times = "2026-11-21T13:00:01Z\n2026-11-21T13:00:01Z\n2026-11-21T13:00:02Z\n";
    assert_eq!(*read(times).unwrap().times, [0, 500 * MS, S]);
    let times = format!("{times}2026-11-21T13:00:02.5Z\n");
    assert_eq!(*read(&times).unwrap().times, [0, 0, S, 1500 * MS]);
}

#[test]
fn lines_out_of_order_are_sorted_and_equal_ones_stay() {
    let lines = [("1.5", "a"), ("1.2", "b"), ("1.5", "c"), ("1.2", "d")];
    let trace = read(
        &lines.map(|(time, path)| format!("{{\"time\":{time},\"path\":\"/{path}\"}}\n")).concat(),
    )
    .unwrap();
    assert_eq!(*trace.times, [0, 0, 300 * MS, 300 * MS]);
    let which = trace.which.unwrap();
    let order = which.iter().map(|&i| &*trace.requests[i as usize].1);
    assert_eq!(order.collect::<Vec<_>>(), ["/b", "/d", "/a", "/c"]);
    let pause = Pause { ns: 300 * MS, until_line: 1 };
    assert_eq!(trace.longest_pause, Some(pause));
}

#[test]
fn junk_of_real_logs_is_counted_by_kind_and_left_out() {
    let lines = r"1GET /|1-|1\x16\x03\x01|2GET /|2OPTIONS *|2-|2GET /ü".split('|');
    let lines: Vec<&str> = lines.collect();
    let trace = read(&logs(&lines)).unwrap();
    assert_eq!(&*trace.times, &[0, S][..]);
    let (count, kinds) = LeftOut::told(&trace.left_out);
    let words = "2 without a request (`-`) (first: 2); 1 not HTTP (a TLS handshake or other bytes) (first: 3); \
                 1 `OPTIONS *` or CONNECT (first: 5); 1 with a target in escapes, with spaces or not in ASCII (first: 7)";
    assert_eq!((count, &*kinds), (5, words));
    let nothing = message(&log(1, "-"));
    let words = "`day.log` has no request that can be sent (1 without a request (`-`) (first: 1))";
    assert!(nothing.contains(words), "{nothing}");
    assert!(message("").contains("a trace needs at least one line"));
    // A line that rotation has cut, another program's, and a comment.
    let alien = format!("cut\n{}[notice] reload\n# x\n", logs(&["1POST /"; 18]));
    let trace = read(&alien).unwrap();
    assert_eq!(LeftOut::told(&trace.left_out), (2, format!("2 {UNREADABLE} (first: 1)")));
    assert_eq!(trace.with_content(), 18);
    let tenth = message(&(alien + "x\n"));
    assert!(tenth.starts_with("day.log:1:1: expected a time"), "{tenth}");
    let hopeless = message(&"x\n".repeat(1000));
    assert!(hopeless.starts_with("day.log:1:1: "), "{hopeless}");
    let times = message(&format!("cut\n{}", "1.5\n".repeat(100)));
    assert!(times.starts_with("day.log:1:1: "), "{times}");
}

/// Every log contains the same two requests, a quarter of a second apart.
#[test]
fn every_log_of_a_proxy_becomes_the_same_trace() {
    #[rustfmt::skip]
    let rows = [
        ("HAProxy", r##"lb haproxy[7]: 192.0.2.1:5 [21/Nov/2026:13:00:01.TIME] fe~ be/s 0/0/1/2/3 200 5 - - ---- 1/1/0/0/0 0/0 "GET /x#3Fy=1 HTTP/1.1""##.replace("#3F", "?")),
        ("HAProxy, escaped", r##"192.0.2.1:5 [21/Nov/2026:13:00:01.TIME] fe be/s 0/0/1/2/3 200 5 - - ---- 1/1/0/0/0 0/0 {a|#22b} "GET /x?y#3D1 HTTP/1.1""##.to_owned()),
        ("Envoy", r#"[2026-11-21T13:00:01.TIMEZ] "GET /x?y=1 HTTP/1.1" 200 - 0 5 1 1 "-" "curl" "id" "a.test" "192.0.2.2:80""#.to_owned()),
        ("Traefik", r#"192.0.2.1 - - [21/Nov/2026:13:00:01.TIME +0000] "GET /x?y=1 HTTP/1.1" 200 5 "-" "-" 1 "r@file" "http://192.0.2.2:80" 1ms"#.to_owned()),
        ("ingress-nginx", r#"192.0.2.1 - - [21/Nov/2026:13:00:01.TIME +0000] "GET /x?y=1 HTTP/1.1" 200 5 "-" "curl" 79 0.001 [ns-app-80] [] 192.0.2.2:80 5 0.001 200 id"#.to_owned()),
        ("ALB", format_aws("h2 2026-11-21T13:00:09.000Z app/a/1 192.0.2.1:5 192.0.2.2:80 0 0 0 200 200 3 6") + r#" TLSv1.2 arn "Root=1" "-" "-" 0 2026-11-21T13:00:01.TIMEZ "forward""#),
        ("ELB", format_aws("2026-11-21T13:00:01.TIMEZ a 192.0.2.1:5 192.0.2.2:80 0 0 0 200 200 0 5")),
        ("IIS", "#Fields: date time cs-uri-stem cs-method cs-uri-query sc-status\n2026-11-21 13:00:01.TIME /x GET y=1 200".to_owned()),
        ("CloudFront", "#Version: 1.0\n#Fields: date time x-edge-location cs-method cs-uri-stem cs-uri-query\n2026-11-21\t13:00:01.TIME\tX\tGET\t/x\ty=1".to_owned()),
        ("Caddy", r#"{"ts":1795266001.TIME,"request":{"method":"GET","uri":"/x?y=1","headers":{"A":["b"]}},"status":200}"#.to_owned()),
        ("Traefik JSON", r#"{"RequestMethod":"GET","RequestPath":"/x?y=1","StartUTC":"2026-11-21T13:00:01.TIMEZ","time":"2026-11-21T13:00:09Z"}"#.to_owned()),
        ("Envoy JSON", r#"{"path":"/x?y=1","method":"GET","start_time":"2026-11-21T13:00:01.TIMEZ"}"#.to_owned()),
        ("Google", r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"http://a.test/x?y=1"},"timestamp":"2026-11-21T13:00:01.TIMEZ"}"#.to_owned()),
        ("Azure", r#"{"timeStamp":"2026-11-21T13:00:01.TIME+00:00","properties":{"httpMethod":"GET","requestUri":"/x","requestQuery":"y=1"}}"#.to_owned()),
        ("Cloudflare", r#"{"ClientRequestMethod":"GET","ClientRequestURI":"/x?y=1","EdgeStartTimestamp":1795266001TIME000000}"#.to_owned()),
    ];
    let pairs = rows.map(|(writer, line)| {
        (writer, ["000", "250"].map(|ms| line.replace("TIME", ms) + "\n").concat())
    });
    let entries = [
        ("01.00", "data:x"),
        ("01.00", "http://a/x?y=1#z"),
        ("01.1", "http://b/"),
        ("01.2", "http://a/x y"),
        ("01.25", "http://A:1/x?y=1"),
    ]
    .map(|(time, url)| {
        format!(
            "{{\"startedDateTime\":\"2026-11-21T13:00:{time}Z\",\"request\":{{\"method\":\"GET\",\"url\":\"{url}\"}}}}"
        )
    });
    let har = format!("\u{feff}{{ \"log\": {{\"entries\":[{}]}}}}", entries.join(",\n"));
    let [first, second] = ["01.00", "01.25"].map(|time| {
        format!("{{\n\"path\":\"/x?y=1\", \"start_time\":\"2026-11-21T13:00:{time}Z\"}}")
    });
    let array = format!("[\n {first},\n{second}]\n");
    for (writer, text) in pairs.into_iter().chain([("HAR", har), ("array", array)]) {
        let trace = read(&text).unwrap_or_else(|error| panic!("{writer}: {error}"));
        assert_eq!(*trace.times, [0, 250 * MS], "{writer}");
        assert_eq!(trace.requests, [("GET".into(), "/x?y=1".into())], "{writer}");
        let (_, kinds) = LeftOut::told(&trace.left_out);
        let in_har = "1 not over HTTP (`data:`, `blob:`, `ws:`, an extension's) (first: 1); 1 to another host (first: 3); \
                      1 with a URL that has spaces, characters not in ASCII, or no host (first: 4)";
        assert_eq!(kinds, if writer == "HAR" { in_har } else { "" }, "{writer}");
    }
}

fn format_aws(front: &str) -> String {
    format!("{front} \"GET https://a.test:443/x?y=1 HTTP/1.1\" \"-\" -")
}

#[test]
fn gzip_is_unpacked_and_must_be_whole() {
    // Rotated files that were put together.
    let members = [pack("1\n2\n"), pack("3\n4\n")].concat();
    assert_eq!(read_at_most(1024, &members).unwrap().times.len(), 4);
    for cut in [3, members.len() - 5] {
        let error = read_at_most(1024, &members[..cut]).unwrap_err().to_string();
        assert!(error.starts_with("cannot read `f.gz`: gzip that was cut"), "{error}");
    }
    // What follows the last member, as on a tape.
    for behind in [&[0; 512][..], b"garbage"] {
        let padded = [&members, behind].concat();
        assert_eq!(read_at_most(1024, &padded).unwrap().times.len(), 4);
    }
    for (first, words) in [
        (&b"BZh91AY"[..], "it is compressed by bzip2: bzcat f.gz | weir load --trace - …"),
        (b"\xfd7zXZ\0\0", "it is compressed by xz: xzcat f.gz |"),
        (b"\xff\xfe1\0", "it is in UTF-16: iconv -f UTF-16 -t UTF-8 f.gz |"),
    ] {
        let error = read_at_most(1024, first).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let large = read_at_most(1024, &pack(&"# nothing\n".repeat(1000))).unwrap_err();
    assert!(matches!(large, TraceError::Large { .. }));
}

fn pack(text: &str) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

fn read_at_most(most: u64, bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::of_at_most(most, bytes, "f.gz", 1.0)
}

#[test]
fn a_bad_line_is_named_with_its_place() {
    assert_eq!(
        message("1.5\n2.5\n  soon\n"),
        "day.log:3:3: expected a time in seconds (1732194001.25) or of RFC 3339 \
         (2026-11-21T13:00:01.25Z), found `soon`"
    );
    let odd = "- - - [today] \"GET / HTTP/1.1\" 200 and much more of it\n";
    assert_eq!(
        message(&(log(1, "GET /") + odd)),
        "day.log:2:7: expected a time such as [21/Nov/2026:13:00:01 +0000], \
         found `[today] \"GET / HTTP/1.1\" 200 and much mo…`"
    );
    let array = message("[\n{\"time\":1,\"path\":\"/\"},\n {\n\"time\":2}]");
    assert!(array.starts_with("day.log:3:1: expected a key `request`"), "{array}");
    assert!(array.ends_with("found `{`"), "{array}");
    assert!(message("{\"time\":1,\"path\":\"/\"").ends_with("found the end of the line"));
    // A line without an end does not fill the memory.
    let endless = "1".repeat(3 << 20);
    assert!(message(&endless).starts_with("day.log:1:1: expected a time"));
}

#[test]
fn a_speed_shortens_the_gaps() {
    assert_eq!(*read_at_speed(2.0).unwrap().times, [0, S / 2, 1750 * MS]);
    assert_eq!(*read_at_speed(0.5).unwrap().times, [0, 2 * S, 7 * S]);
    for speed in [0.0, -1.0, 1e-300, f64::NAN, f64::INFINITY] {
        assert!(matches!(read_at_speed(speed), Err(TraceError::Speed(_))), "{speed}");
    }
}

fn read_at_speed(speed: f64) -> Result<Trace, TraceError> {
    Trace::from_reader(&b"0\n1\n3.5\n"[..], "t", speed)
}

#[test]
fn a_file_is_read_and_one_that_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let lines = (0..50_000).map(|i| log(i / 1000 % 60, &format!("GET /{}", i % 7)));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let trace = Trace::read(&path, 1.0).unwrap();
    assert_eq!((trace.times.len(), trace.requests.len()), (50_000, 7));
    assert_eq!(trace.times[12_345], 12_345 * MS);
    let missing = Trace::read(&folder.path().join("none"), 1.0).unwrap_err().to_string();
    assert!(missing.contains("none`: No such file"), "{missing}");
}

#[test]
fn a_file_is_read_as_far_as_its_limit() {
    let times = "1\n".repeat(64);
    assert_eq!(read_at_most(1024, times.as_bytes()).unwrap().times.len(), 64);
    assert!(is_too_large(1024, &(times + "1\n")), "too many requests");
    assert!(is_too_large(1024, &"# nothing is asked for\n".repeat(50)), "too many bytes");
    // What never ends does: here a line at a time.
    let endless = std::iter::repeat_n("1\n", 1 << 20).collect::<String>();
    assert!(is_too_large(4096, &endless));
}

fn is_too_large(most: u64, text: &str) -> bool {
    let error = read_at_most(most, text.as_bytes()).unwrap_err();
    matches!(error, TraceError::Large { .. })
}
