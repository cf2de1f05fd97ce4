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

/// Lines of a log, each given as a digit for its second and its request.
fn logs(lines: &[&str]) -> String {
    let line = |line: &&str| log(line[..1].parse().unwrap(), &line[1..]);
    lines.iter().map(line).collect()
}

fn message(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn times_count_from_the_first_and_keep_their_gaps() {
    let trace = read("# seconds\n10.5\n10.500000001\n\n12\r\n10.75").unwrap();
    assert_eq!(*trace.times, [0, 1, 250 * MS, 1500 * MS]);
    assert_eq!((trace.which.clone(), trace.skipped), (None, 0));
    assert!(trace.requests.is_empty());
    assert_eq!(
        trace.arrivals("day.log"),
        Arrivals::Trace {
            file: "day.log".to_owned(),
            arrivals: 4,
            length_ns: 1500 * MS,
            every_ns: None,
        }
    );
    // Whole numbers are numbers: three at once are three at once.
    assert_eq!(*read("5\n5\n5\n6").unwrap().times, [0, 0, 0, S]);
}

#[test]
fn lines_of_one_second_of_a_log_are_spread_over_it() {
    let lines = [
        "1GET /a", "1GET /b", "3POST /a", "3GET /a", "3GET /b", "3GET /a",
    ];
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
    let line = |(time, path)| format!("{{\"time\":{time},\"path\":\"/{path}\"}}\n");
    let trace = read(&lines.map(line).concat()).unwrap();
    assert_eq!(*trace.times, [0, 0, 300 * MS, 300 * MS]);
    let which = trace.which.unwrap();
    let order = which.iter().map(|&i| &*trace.requests[i as usize].1);
    assert_eq!(order.collect::<Vec<_>>(), ["/b", "/d", "/a", "/c"]);
}

#[test]
fn junk_of_real_logs_is_counted_and_left_out() {
    let lines = ["1GET /", "1-", r"1\x16\x03\x01", "2GET /"];
    let trace = read(&logs(&lines)).unwrap();
    assert_eq!((trace.skipped, &*trace.times), (2, &[0, S][..]));
    let nothing = message(&log(1, "-"));
    let words = "`day.log` has no request that can be sent (lines skipped: 1)";
    assert!(nothing.contains(words), "{nothing}");
    assert!(message("").contains("a trace needs at least one line"));
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
    assert!(message("{\"time\":1,\"path\":\"/\"").ends_with("found the end of the line"));
    // A line without an end does not fill the memory.
    let endless = "1".repeat(3 << 20);
    assert!(message(&endless).starts_with("day.log:1:1: expected a time"));
}

#[test]
fn a_speed_shortens_the_gaps() {
    let at = |speed| Trace::from_reader(&b"0\n1\n3.5\n"[..], "t", speed);
    assert_eq!(*at(2.0).unwrap().times, [0, S / 2, 1750 * MS]);
    assert_eq!(*at(0.5).unwrap().times, [0, 2 * S, 7 * S]);
    for speed in [0.0, -1.0, 1e-300, f64::NAN, f64::INFINITY] {
        assert!(matches!(at(speed), Err(TraceError::Speed(_))), "{speed}");
    }
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
    let missing = Trace::read(&folder.path().join("none"), 1.0).unwrap_err();
    let missing = missing.to_string();
    assert!(missing.contains("none`: No such file"), "{missing}");
}

#[test]
fn a_file_is_read_as_far_as_its_limit() {
    let within = |most: u64, text: &str| Trace::of_at_most(most, text.as_bytes(), "f", 1.0);
    let times = "1\n".repeat(64);
    assert_eq!(within(1024, &times).unwrap().times.len(), 64);
    let too_large = |most: u64, text: &str| {
        let error = within(most, text).unwrap_err();
        matches!(error, TraceError::Large { .. })
    };
    assert!(too_large(1024, &(times + "1\n")), "too many requests");
    assert!(
        too_large(1024, &"# nothing is asked for\n".repeat(50)),
        "too many bytes"
    );
    // What never ends does: here a line at a time.
    let endless = std::iter::repeat_n("1\n", 1 << 20).collect::<String>();
    assert!(too_large(4096, &endless));
}
