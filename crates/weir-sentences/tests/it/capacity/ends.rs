use super::*;

type Change = fn(&mut CapacityRecord);

const fn ceiling(of: CeilingOf) -> Option<CeilingRecord> {
    Some(CeilingRecord { of, rate: 5_000.0 })
}

/// Changes a record to one in which no hold has held, but a dwell has.
fn unclaimed(found: &mut CapacityRecord, end: CapacityEnd) {
    (found.answer.low, found.answer.high, found.answer.verified) = (0.0, 0.0, 0.0);
    found.answer.carried = Some(ObservedRecord { rate: 4_600.0, seconds: 8.0 });
    found.end = end;
}

/// Changes to the last record, and words of the answer.
const ENDS: [(Change, &str); 22] = [
    (|found| found.end = CapacityEnd::Budget, "A longer search (--budget) would narrow this."),
    (
        |found| found.answer.fresh = Some((4_950.0, 5_050.0)),
        "For some seconds after a fresh start it carries 4,950 to 5,050/s",
    ),
    (
        |found| {
            found.answer.burst = Some(BurstRecord {
                seconds: 5.0,
                low: 6_000.0,
                high: 6_200.0,
                confidence: 0.96875,
            });
        },
        "In a burst of 5 s after a rest it carries 6,000 to 6,200/s (96.9 %).",
    ),
    (
        |found| found.answer.ceiling = ceiling(CeilingOf::Generator),
        "at least 4,750 requests/s within p99 < 30ms and errors < 1%: 4,750/s held for 65 s, 4,900/s broke after 4.0 s. \
             The load generator reaches its own limit at 5,000/s, so the upper end is not the proxy's limit.",
    ),
    (
        |found| found.answer.ceiling = ceiling(CeilingOf::Connections),
        ". All 50 connections were busy, and half as many carried half as much, so the upper end is not the server's limit. Try again with -c 200.",
    ),
    (
        |found| found.answer.ceiling = ceiling(CeilingOf::Time),
        ". 5,000/s held when it was tried again, so the upper end is not known.",
    ),
    (
        |found| {
            found.answer.is_bracket = true;
            (found.answer.low, found.answer.high) = (4_000.0, 4_900.0);
        },
        "stock carries 4,000 to 4,900 requests/s within p99 < 30ms and errors < 1%: 4,750/s held for 65 s, 4,900/s broke after 4.0 s.",
    ),
    (|found| found.answer.scatter = Some(0.055), "Its limit moved by ±5.5 % in these 2 minutes."),
    (
        |found| found.answer.stalls = 2,
        "It stood still for a moment in 2 trials, which broke by that alone:",
    ),
    (|found| found.end = CapacityEnd::Settled, "A longer search would not narrow this."),
    (
        |found| found.end = CapacityEnd::Broken(5_100.0),
        "Above 5,100 requests/s it stopped answering, and did not recover",
    ),
    (
        |found| (found.answer.low, found.answer.verified) = (0.001, 0.001),
        "is not claimed: no long trial held.",
    ),
    (|found| unclaimed(found, CapacityEnd::Found), "is not claimed: no long trial held."),
    (
        |found| {
            unclaimed(found, CapacityEnd::TooShort(240.0));
            found.answer.enough_s = Some(290.0);
        },
        "is not claimed: no rate was held for long enough in 125 s of trials. 4,600/s was carried for 8.0 s, 4,900/s broke \
             after 4.0 s. Give it more time: at least --budget 290s.",
    ),
    (
        |found| unclaimed(found, CapacityEnd::TooShort(240.0)),
        "Repeat the search while nothing else runs, or with a shorter --hold.",
    ),
    (
        |found| unclaimed(found, CapacityEnd::Broken(5_100.0)),
        "stock stopped answering above 5,100 requests/s and did not recover",
    ),
    (
        |found| unclaimed(found, CapacityEnd::NotSent(5_100.0)),
        "the load generator did not send 5,100 requests/s in time",
    ),
    (
        |found| unclaimed(found, CapacityEnd::Spoilt),
        "the machine stood still or was busy with other work in most trials.",
    ),
    (
        |found| {
            unclaimed(found, CapacityEnd::Never);
        },
        "at none of the rates that were tried: at 500/s, the lowest, its p99 was 1 ms. An objective within reach is p99 < \
             1.5ms",
    ),
    (
        |found| {
            unclaimed(found, CapacityEnd::Never);
            found.answer.floor = 0.02;
        },
        "; fewer requests do not help. An objective",
    ),
    (
        |found| {
            unclaimed(found, CapacityEnd::Never);
            found.answer.limits = Limit::parse_all("p99.99 < 2us").expect("limits");
        },
        "at 500/s, the lowest, 0 % of the requests broke p99.99 < 2us.",
    ),
    (
        |found| {
            unclaimed(found, CapacityEnd::Never);
            found.answer.limits = vec![Limit::Mean(Duration::from_millis(1))];
        },
        "at 500/s, the lowest, its mean was",
    ),
];

#[test]
fn each_end_has_its_words() {
    let (_folder, mut run) = searched(ended(|_| {}));
    for (change, words) in ENDS {
        let index =
            run.records.iter().position(|record| matches!(record, Record::Capacity(_))).unwrap();
        run.records[index] = ended(change).remove(0);
        let findings = AnalyzedRun::of(&run);
        let arm = findings.capacity.as_ref().unwrap().arms[0].clone();
        let all = format!("{} {}", carries(&arm), details(&arm, &findings.limiters).join(" "));
        assert!(all.contains(words), "{words}: {all}");
        assert!(!all.contains("NaN") && !all.contains(".."), "{all}");
        assert!(findings.answer().starts_with(&carries(&arm)), "{}", findings.answer());
        assert_eq!(arm.claimed, arm.answer.verified > 1.0, "{words}");
    }
}
