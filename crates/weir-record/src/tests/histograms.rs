//! Tests of histograms in the log, and of runs whose log does not match their records.

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

use super::*;

fn buckets(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let buckets = histogram.iter_recorded();
    buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect()
}

#[test]
fn histograms_come_back_exactly() {
    let (folder, mut writer) = begun();
    let cases = [
        histogram([]),
        histogram([1]),
        histogram((0..20_000).map(|k| 1_000 + k * k * 37)),
        histogram([0, 5, 3_600_000_000_000, u64::MAX]),
    ];
    for (block, histogram) in (0..).zip(&cases) {
        append_timed(&mut writer, &timed("a", block, histogram), histogram);
    }
    let run = Run::read(folder.path()).unwrap();
    for (trial, histogram) in run.trials().zip(&cases) {
        let back = run.histogram(&trial.response_time);
        assert_eq!(back, buckets(histogram), "block {}", trial.block);
    }
    assert_eq!(run.histogram(&QuantileSummary::default()), []);
}

#[test]
fn the_histogram_log_is_one_that_others_read() {
    let (folder, mut writer) = begun();
    let [start, length] = [1500, 80].map(Duration::from_millis);
    let appended = writer.append_histogram("t", start, length, &histogram([9]));
    appended.unwrap();
    let bytes = fs::read(folder.path().join(HISTOGRAMS_FILE)).unwrap();
    let entries = IntervalLogIterator::new(&bytes).collect::<Result<Vec<_>, _>>().unwrap();
    let [LogEntry::Interval(interval)] = &entries[..] else {
        panic!("one interval, not {entries:?}");
    };
    assert_eq!(interval.tag().map(|tag| tag.as_str()), Some("t"));
    let times = (interval.start_timestamp(), interval.duration());
    assert_eq!(times, (start, length));
}

#[test]
fn each_record_has_its_own_of_equal_tags() {
    let (folder, mut writer) = begun();
    let times = [10, 20].map(|ns| histogram([ns]));
    let trials = times.each_ref().map(|times| timed("a", 0, times));
    for (trial, times) in trials.iter().zip(&times) {
        append_timed(&mut writer, trial, times);
    }
    append(&mut writer, &trials[0].response_time.tag, 30).unwrap();
    let run = Run::read(folder.path()).unwrap();
    for (trial, ns) in trials.iter().zip([10, 20]) {
        assert_eq!(run.histogram(&trial.response_time), [(ns, 1)]);
    }
}

/// A trial of two slices, in one of which the machine stood still.
fn split(times: &Histogram<u64>) -> TrialRecord {
    let slices = [false, true].map(|stood_still| SliceRecord {
        due: 2,
        stood_still,
        ..SliceRecord::default()
    });
    TrialRecord { slices: slices.into(), ..timed("a", 7, times) }
}

/// A log with all response times of [`split`], and with those outside the slice in which the machine stood still.
fn write_log(all: &Histogram<u64>, undisturbed: &Histogram<u64>) -> String {
    let (folder, mut writer) = begun();
    let kinds = [HistogramKind::ResponseTime, HistogramKind::Undisturbed];
    for (kind, histogram) in kinds.into_iter().zip([all, undisturbed]) {
        let log_tag = tag("closed", "a", 7, kind);
        writer.append_histogram(&log_tag, Duration::ZERO, Duration::ZERO, histogram).unwrap();
    }
    fs::read_to_string(folder.path().join(HISTOGRAMS_FILE)).unwrap()
}

/// Results of reading and of resuming a run of one trial with this log.
fn read_with(log: &str, trial: &TrialRecord) -> [Result<Run, RecordError>; 2] {
    let (folder, mut writer) = begun();
    let record = Record::Trial(Box::new(trial.clone()));
    writer.append(&record).unwrap();
    drop(writer);
    fs::write(folder.path().join(HISTOGRAMS_FILE), log).unwrap();
    let read = Run::read(folder.path());
    [read, RunWriter::resume(folder.path()).map(|(_, run)| run)]
}

#[test]
fn histograms_of_a_trial_are_found_whatever_else_a_kill_has_left() {
    let (all, undisturbed) = (histogram([10, 20, 30]), histogram([10, 20]));
    let (trial, good) = (split(&all), write_log(&all, &undisturbed));
    let killed = write_log(&undisturbed, &undisturbed);
    for log in [&good, &(good.clone() + "Tag=x,0."), &(killed + &good)] {
        for run in read_with(log, &trial).into_iter().map(Result::unwrap) {
            assert_eq!(run.histogram(&trial.response_time), buckets(&all));
            assert_eq!(run.undisturbed(&trial), Some(&*buckets(&undisturbed)));
            let undivided = timed("a", 7, &all);
            assert_eq!(run.undisturbed(&undivided), None);
        }
    }
}

#[test]
fn histograms_that_are_not_those_of_the_records_are_refused() {
    let (all, undisturbed) = (histogram([10, 20, 30]), histogram([10, 20]));
    let (trial, good) = (split(&all), write_log(&all, &undisturbed));
    let tag = &trial.response_time.tag;
    let wanted = format!(":1: the histogram `{tag}` must have 3 values up to 30 ns, but ");
    let other_values =
        |values: &str| format!("{wanted}the one in histograms.hlog:4 has {values} ns");
    let lacks = format!(":1: histograms.hlog lacks the response times of `{tag}` without");
    let cut = good.rfind("Tag=").unwrap();
    let foreign = histogram([1, 2, 40]);
    let rubbish = good.replacen("HISTF", "!ISTF", 1);
    for (log, error) in [
        ("", wanted.clone() + "histograms.hlog does not have it"),
        (&write_log(&undisturbed, &undisturbed), other_values("2 values up to 20")),
        (&write_log(&foreign, &undisturbed), other_values("3 values up to 40")),
        (&good[..cut], lacks.clone()),
        (&good[..cut + 40], lacks.clone()),
        (&write_log(&all, &histogram([1; 4])), lacks.clone()),
        (&rubbish, format!("histograms.hlog:4: the histogram `{tag}` cannot")),
    ] {
        for refused in read_with(log, &trial).into_iter().map(Result::unwrap_err) {
            let text = refused.to_string();
            assert!(text.contains(&error), "{text}");
            let hint = refused.hint().unwrap();
            assert!(hint.contains("damaged"), "{hint}");
        }
    }
}

/// Trials of a loaded machine: a block in which an arm answered nothing, and the same block again after a kill.
#[test]
fn trials_without_an_answer_are_read_back() {
    let none = histogram([]);
    let (trial, again) = (split(&none), timed("a", 7, &none));
    let (folder, mut writer) = begun();
    for trial in [&trial, &again] {
        writer.append(&Record::Trial(Box::new(trial.clone()))).unwrap();
    }
    drop(writer);
    // The machine stood still in the first one alone.
    let mut log = write_log(&none, &none);
    let line = log.lines().rev().nth(1).unwrap().to_owned();
    log.push_str(&(line + "\n"));
    fs::write(folder.path().join(HISTOGRAMS_FILE), log).unwrap();
    let run = Run::read(folder.path()).unwrap();
    assert_eq!(run.histogram(&again.response_time), []);
    assert_eq!(run.undisturbed(&trial), Some(&[][..]));
}

/// The log of a few kilobytes would become a gigabyte.
#[test]
fn a_log_cannot_hold_more_than_its_length_allows() {
    let full = histogram((0..42).flat_map(|power: u32| {
        let unit = (1_u64 << power) / 1024;
        (0..1024).map(move |part| (1 << power) + part * unit.max(1))
    }));
    let line = write_log(&full, &full).lines().last().unwrap().to_owned() + "\n";
    let lines = 4 * (16 << 20) / buckets(&full).len();
    assert!(line.len() < 2000, "{} bytes", line.len());
    let refused = histogram_log::read(line.repeat(lines).as_bytes()).unwrap_err();
    assert!(refused.1.contains("more than a log"), "{refused:?}");
    assert!(histogram_log::read(line.repeat(9).as_bytes()).is_ok());
}
