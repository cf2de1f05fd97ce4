//! Tests of round trips through a real folder, and of the state after a kill or a kernel error.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use weir_model::fixture;
use weir_model::load::{ErrorCount, ErrorKind};
use weir_model::record::*;
use weir_model::study::*;

use super::*;

mod histograms;

fn header() -> RunHeader {
    let arms = ["baseline", "keepalive"].map(|name| fixture::arm(name, ArmRole::Change, &[]));
    let study = Study {
        loads: vec![fixture::load("closed", StudyArrivals::Closed)],
        ..fixture::study(arms.into())
    };
    RunHeader {
        remarks: vec![Remark::of_run("one \"quoted\" line\nand another")],
        ..fixture::header(study)
    }
}

fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
    let mut histogram = empty_histogram();
    values.into_iter().for_each(|value| histogram.saturating_record(value));
    histogram
}

fn begun() -> (tempfile::TempDir, RunWriter) {
    let folder = tempfile::tempdir().unwrap();
    let writer = RunWriter::create(folder.path(), &header(), "").unwrap();
    (folder, writer)
}

/// Appends a histogram with one value.
fn append(writer: &mut RunWriter, tag: &str, value: u64) -> Result<(), RecordError> {
    writer.append_histogram(tag, Duration::ZERO, Duration::ZERO, &histogram([value]))
}

fn trial(arm: &str, block: u32) -> TrialRecord {
    TrialRecord {
        slices: vec![SliceRecord { index: 3, start_ns: u64::MAX, ..SliceRecord::default() }],
        errors: vec![ErrorCount {
            kind: ErrorKind::Connect,
            words: "Connection refused (os error 111)".to_owned(),
            errno: Some(111),
            count: 3,
        }],
        status_classes: [0, 0, 7, 0, 0, 1],
        response_time: QuantileSummary {
            // Not representable in a short decimal; must come back to the last bit.
            mean: 0.1 + 0.2 + 123_456_789.123,
            ..QuantileSummary::default()
        },
        ..fixture::trial("closed", arm, block)
    }
}

fn record(arm: &str, block: u32) -> Record {
    Record::Trial(Box::new(trial(arm, block)))
}

fn append_raw(path: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn what_was_written_reads_back_equal() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs/new");
    let mut writer = RunWriter::create(&dir, &header(), "name: s\n").unwrap();
    let (at, error, outcome) = ("now".to_owned(), String::new(), Outcome::Complete);
    let session = SessionRecord { session: 0, at: at.clone() };
    let end = EndRecord { error, ..EndRecord::new(at, outcome) };
    let trials = [("keepalive", 1), ("baseline", 1), ("baseline", 0)];
    let mut records = vec![Record::Session(session)];
    records.extend(trials.map(|(arm, block)| record(arm, block)));
    records.push(Record::End(end));
    for record in &records {
        writer.append(record).unwrap();
    }
    let written = writer.write_file("arms/a b/nginx.conf", b"events {}");
    written.unwrap();

    let run = Run::read(&dir).unwrap();
    assert_eq!(run.header, header());
    assert_eq!(run.study_text, "name: s\n");
    assert_eq!(run.records, records);
    assert_eq!(run.outcome(), Some(Outcome::Complete));
    assert!(!run.truncated);
    let file = fs::read(dir.join("arms/a b/nginx.conf")).unwrap();
    assert_eq!(file, b"events {}");

    // Blocks ascend, arms stand as in the study.
    let blocks = run.blocks("closed").into_iter();
    let arms_of_blocks: Vec<_> = blocks
        .map(|(key, trials)| {
            let arms: Vec<&str> = trials.iter().map(|trial| &*trial.arm).collect();
            (key, arms.join(" "))
        })
        .collect();
    let of_baseline = run.trials_of("closed", "baseline");
    let blocks: Vec<_> = of_baseline.iter().map(|trial| trial.block).collect();
    assert_eq!(blocks, [0, 1]);
    let want = [((0, 0), "baseline"), ((1, 0), "baseline keepalive")];
    assert_eq!(arms_of_blocks, want.map(|(key, arms)| (key, arms.to_owned())));
}

/// A trial whose response times are kept under its tag.
fn timed(arm: &str, block: u32, histogram: &Histogram<u64>) -> TrialRecord {
    let response_time_tag = tag("closed", arm, block, HistogramKind::ResponseTime);
    TrialRecord { response_time: summarize(&response_time_tag, histogram, 0), ..trial(arm, block) }
}

/// Appends a histogram, then its trial.
fn append_timed(writer: &mut RunWriter, trial: &TrialRecord, histogram: &Histogram<u64>) {
    let tag = &trial.response_time.tag;
    writer.append_histogram(tag, Duration::ZERO, Duration::ZERO, histogram).unwrap();
    let record = Record::Trial(Box::new(trial.clone()));
    writer.append(&record).unwrap();
}

#[test]
fn a_kill_in_mid_line_costs_that_line_alone() {
    let line = serde_json::to_vec(&record("keepalive", 0)).unwrap();
    for kept in [1, 10, line.len() / 2, line.len()] {
        let (folder, mut writer) = begun();
        writer.append(&record("baseline", 0)).unwrap();
        drop(writer);
        append_raw(&folder.path().join(RECORDS_FILE), &line[..kept]);
        append_raw(&folder.path().join(HISTOGRAMS_FILE), b"Tag=x,0.0,0.");

        let run = Run::read(folder.path()).unwrap();
        assert!(run.truncated, "{kept} bytes of the last line");
        assert_eq!(run.records, [record("baseline", 0)]);

        let (mut writer, run) = RunWriter::resume(folder.path()).unwrap();
        assert!(!run.truncated, "resuming cut the half lines off");
        let times = histogram([5]);
        let next = timed("keepalive", 0, &times);
        append_timed(&mut writer, &next, &times);
        let run = Run::read(folder.path()).unwrap();
        assert_eq!(run.histogram(&next.response_time), [(5, 1)]);
        let next = Record::Trial(Box::new(next));
        assert_eq!(run.records, [record("baseline", 0), next]);
    }
}

#[test]
fn one_run_has_one_writer() {
    let (folder, writer) = begun();
    let second = RunWriter::resume(folder.path());
    assert!(matches!(second, Err(RecordError::Busy { .. })));
    drop(writer);
    RunWriter::resume(folder.path()).unwrap();
}

#[test]
fn a_damaged_line_is_named() {
    let (folder, mut writer) = begun();
    writer.append(&record("baseline", 0)).unwrap();
    let records = folder.path().join(RECORDS_FILE);
    append_raw(&records, b"{\"record\":\"trial\",\n");
    writer.append(&record("baseline", 1)).unwrap();
    let error = Run::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("records.jsonl:2: "), "{error}");

    let folder = begun().0;
    let log = folder.path().join(HISTOGRAMS_FILE);
    append_raw(&log, b"rubbish\n");
    let error = Run::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("histograms.hlog:4: "), "{error}");
}

fn refuse(dir: &Path) -> RecordError {
    RunWriter::create(dir, &header(), "").err().unwrap()
}

#[test]
fn refusals_name_the_path_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let error = Run::read(folder.path()).unwrap_err();
    assert!(matches!(error, RecordError::NotARun { .. }), "{error}");
    assert!(RunWriter::resume(folder.path()).is_err());
    let file_count = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(file_count, 0, "a folder that is no run stays as it is");

    fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
    let error = refuse(folder.path());
    assert!(matches!(error, RecordError::NotEmpty(_)), "{error}");
    assert!(error.hint().is_some());

    let file = folder.path().join("thesis.tex/run");
    let error = refuse(&file).to_string();
    assert!(error.contains("thesis.tex is not a folder"), "{error}");

    // Others may write in it, or it is where a link of another user's leads: nothing is made.
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    symlink(&open, folder.path().join("link")).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let is_root = lchown(folder.path().join("link"), Some(12_345), None).is_ok();
    for (dir, mode) in [("open", 0o777), ("open/run", 0o777), ("link", 0o700), ("link/run", 0o700)]
    {
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        if mode == 0o700 && !is_root {
            continue;
        }
        let error = refuse(&folder.path().join(dir));
        assert!(matches!(error, RecordError::OpenToOthers(_)), "{dir}: {error}");
        assert_eq!(fs::read_dir(&open).unwrap().count(), 0, "{dir}");
    }
}

fn begin_in(dir: &Path) -> RunWriter {
    let mut writer = RunWriter::create(dir, &header(), "").unwrap();
    writer.append(&record("baseline", 0)).unwrap();
    writer.write_file("arms/baseline/conf/a", b"").unwrap();
    writer
}

fn list_names(dir: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn what_is_taken_back_leaves_what_others_made() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs/mine");
    begin_in(&dir).discard().unwrap();
    assert!(!dir.exists());
    let writer = begin_in(&dir);
    fs::write(dir.join("notes"), "").unwrap();
    writer.discard().unwrap();
    assert_eq!(list_names(&dir), ["notes"]);
    fs::remove_file(dir.join("notes")).unwrap();
    begin_in(&dir).discard().unwrap();
    assert_eq!(list_names(&dir), [""; 0], "the folder was there before");
}

#[test]
fn a_folder_that_may_not_be_written_is_said_so() {
    // /proc refuses new entries to everybody, root included, so this holds in containers and CI.
    let created = RunWriter::create(Path::new("/proc/weir"), &header(), "");
    let text = created.err().unwrap().to_string();
    assert!(text.starts_with("cannot create /proc/weir: "), "{text}");
}

#[test]
fn a_full_disk_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::open(folder.path()).unwrap();
    writer.fill_the_disk();
    let error = writer.append(&record("baseline", 0)).unwrap_err();
    let (text, words) = (error.to_string(), "records.jsonl: No space left on device");
    assert!(text.contains(words), "{text}");
    assert!(error.hint().is_some());
}

#[test]
fn a_format_of_the_future_is_named() {
    let folder = begun().0;
    let path = folder.path().join(HEADER_FILE);
    let header = r#"{"format": "weir-run/7", "all": "else is different"}"#;
    fs::write(&path, header).unwrap();
    let error = Run::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("weir-run/7"), "{error}");
    fs::write(&path, r#"{"format": "#).unwrap();
    let error = Run::read(folder.path()).unwrap_err();
    assert!(error.to_string().contains("run.json:1: "), "{error}");
}

#[test]
fn a_figure_that_is_no_number_is_refused() {
    let (folder, mut writer) = begun();
    let mut bad = trial("baseline", 0);
    bad.response_time.mean = f64::NAN;
    let error = writer.append(&Record::Trial(Box::new(bad))).unwrap_err();
    assert!(matches!(error, RecordError::Unreadable { .. }), "{error}");
    assert_eq!(Run::read(folder.path()).unwrap().records, []);
}

#[test]
fn files_stay_inside_the_folder() {
    let (_folder, mut writer) = begun();
    for relative in ["../x", "/tmp/x", "a/../../x", ""] {
        let refused = writer.write_file(relative, b"");
        let outside = matches!(refused, Err(RecordError::Outside(_)));
        assert!(outside, "{relative}: {refused:?}");
    }
}

#[test]
fn tags_are_unambiguous_and_loggable() {
    let kind = HistogramKind::ServiceTime;
    let plain = tag("closed", "gzip-6", 12, kind);
    assert_eq!(plain, "closed/gzip-6/12/service_time");
    assert_ne!(tag("a/b", "c", 1, kind), tag("a", "b/c", 1, kind));
    let odd = tag("a, b\n", "ä%2C", 1, kind);
    assert!(odd.is_ascii() && !odd.contains([',', ' ', '\n']), "{odd}");

    let (_folder, mut writer) = begun();
    for tag in ["a,b", "a b", "a\nb", ""] {
        let refused = append(&mut writer, tag, 1);
        assert!(matches!(refused, Err(RecordError::BadTag(_))), "{tag:?}");
    }
}

#[test]
fn a_summary_has_the_histograms_quantiles() {
    let summary = summarize("t", &histogram((1..=1000).map(|k| k * 1_000_000)), 4);
    assert_eq!((summary.count, summary.overflow), (1000, 4));
    assert_eq!(summary.tag, "t");
    for (value, want) in
        [(summary.p50, 500_000_000), (summary.p99, 990_000_000), (summary.max, 1_000_000_000)]
    {
        assert!(value.abs_diff(want) * 1000 <= want, "{summary:?}");
    }
    assert_eq!(summarize("", &histogram([]), 0), QuantileSummary::default());
}

/// Lists the folder and every file and folder below it.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    let mut at = 0;
    while let Some(path) = all.get(at).cloned() {
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            all.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    all
}

#[test]
fn a_run_folder_is_its_user_s_alone() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("runs/mine");
    let mut writer = RunWriter::create(&dir, &header(), "").unwrap();
    writer.append(&record("baseline", 0)).unwrap();
    writer.write_file("arms/a/conf/nginx.conf", b"").unwrap();
    let all = all_below(&folder.path().join("runs"));
    assert_eq!(all.len(), 11, "{all:?}");
    for path in all {
        let metadata = fs::metadata(&path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
    }
}

#[test]
fn a_run_that_others_could_have_written_is_read_and_never_resumed() {
    use std::os::unix::fs::chown;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    drop(RunWriter::create(&dir, &header(), "").unwrap());
    for (path, mode, expected) in [
        (dir.clone(), 0o777, Some("can be written by others")),
        (dir.clone(), 0o755, None),
        (dir.join(HEADER_FILE), 0o666, Some("can be written by others")),
        (dir.join(HEADER_FILE), 0o644, None),
    ] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(Run::read(&dir).is_ok());
        let refused = RunWriter::resume(&dir).map(drop).err().map(|error| error.to_string());
        let is_expected = match expected {
            None => refused.is_none(),
            Some(why) => refused.as_ref().is_some_and(|it| it.contains(why)),
        };
        assert!(is_expected, "{}: {refused:?}", path.display());
    }
    symlink(&dir, folder.path().join("latest")).unwrap();
    RunWriter::resume(&folder.path().join("latest")).unwrap();
    // As root alone.
    if chown(dir.join(HEADER_FILE), Some(12_345), None).is_ok() {
        assert!(Run::read(&dir).is_ok());
        let refused = RunWriter::resume(&dir).map(drop).unwrap_err().to_string();
        assert!(refused.contains("belongs to another user"), "{refused}");
    }
}

#[test]
fn a_header_that_was_copied_or_replaced_is_not_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, moved, copied) = ("run", "moved", "copied");
    let [dir, moved, copied] = [dir, moved, copied].map(|name| folder.path().join(name));
    drop(RunWriter::create(&dir, &header(), "").unwrap());
    assert!(has_original_header(&dir));
    fs::rename(&dir, &moved).unwrap();
    assert!(has_original_header(&moved));
    fs::create_dir(&copied).unwrap();
    for entry in fs::read_dir(&moved).unwrap().flatten() {
        fs::copy(entry.path(), copied.join(entry.file_name())).unwrap();
    }
    assert!(!has_original_header(&copied));
    fs::remove_file(moved.join("run.identity")).unwrap();
    assert!(!has_original_header(&moved), "a run of an older weir");
}

#[test]
fn nothing_is_written_through_a_link_in_a_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, victim) = (folder.path().join("run"), folder.path().join("victim"));
    drop(RunWriter::create(&dir, &header(), "").unwrap());
    fs::write(&victim, "").unwrap();
    let (mut writer, _) = RunWriter::resume(&dir).unwrap();
    for name in ["kept", "kept.tmp"] {
        symlink(&victim, dir.join(name)).unwrap();
    }
    writer.write_file("kept", b"x").unwrap();
    symlink(folder.path(), dir.join("arms")).unwrap();
    let refused = writer.write_file("arms/victim", b"x");
    assert!(matches!(refused, Err(RecordError::Outside(_))), "{refused:?}");
    drop(writer);
    fs::remove_file(dir.join(RECORDS_FILE)).unwrap();
    symlink(&victim, dir.join(RECORDS_FILE)).unwrap();
    assert!(RunWriter::resume(&dir).is_err());
    assert_eq!(fs::read(&victim).unwrap(), b"");
}

/// A folder may come from anywhere.
#[test]
fn a_study_that_nobody_could_have_checked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let changes: [fn(&mut Study); 5] = [
        |study| study.arms[0].against = 7,
        |study| study.arms.clear(),
        |study| study.objective.confidence = -1.0,
        |study| study.objective.band = f64::MAX,
        |study| study.blocks.discard = 2.0,
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let dir = folder.path().join(place.to_string());
        let mut header =
            fixture::header(fixture::study(vec![fixture::arm("a", ArmRole::Baseline, &[])]));
        change(&mut header.study);
        drop(RunWriter::create(&dir, &header, "").unwrap());
        let refused = Run::read(&dir).unwrap_err();
        assert!(matches!(refused, RecordError::Corrupt { line: 1, .. }), "{place}: {refused}");
    }
}
