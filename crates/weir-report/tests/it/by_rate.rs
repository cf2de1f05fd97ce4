//! Tests of loads that differ only in their rate, in all outputs.

use weir_model::record::Validity;
use weir_model::study::StudyArrivals;
use weir_report::{html, markdown, terminal};

use crate::fixture::{self, Fixture};
use crate::markup;

const SHARES: [f64; 4] = [0.8, 0.2, 0.4, 0.6];

/// Returns the fixture's open load at four rates, out of order: the slowest is INVALID, another SUSPECT.
pub(crate) fn make_run() -> Fixture {
    let mut run = fixture::run();
    let spec = run.header.study.loads.remove(1);
    let findings = run.findings.loads.remove(1);
    for share in SHARES {
        let name = format!("tail-{}", share * 100.0);
        let mut spec_at_rate = spec.clone();
        spec_at_rate.name.clone_from(&name);
        spec_at_rate.arrivals = StudyArrivals::ShareOfSlowest(share);
        run.header.study.loads.push(spec_at_rate);
        let mut findings_at_rate = findings.clone();
        findings_at_rate.load = name;
        findings_at_rate.rate_intended = Some(share * 10_000.0);
        for arm in &mut findings_at_rate.arms {
            arm.response_ns = arm.response_ns.map(|ns| (ns as f64 * share) as u64);
        }
        findings_at_rate.validity = match share {
            0.2 => Validity::Invalid,
            0.6 => Validity::Suspect,
            _ => Validity::Valid,
        };
        run.findings.loads.push(findings_at_rate);
    }
    run
}

#[test]
fn they_stand_beside_each_other_in_the_order_of_their_rates() {
    let run = make_run();
    let input = run.input();
    let page = html(&input);
    markup::check(&page);
    let text = terminal(&input, false, 120);
    for output in [&text, &markdown(&input), &page] {
        let heads = ["2,000/s", "4,000/s", "6,000/s", "8,000/s"];
        let places: Vec<_> = heads.iter().map(|head| output.find(head)).collect();
        assert!(places.iter().all(Option::is_some), "{places:?}: {output}");
        assert!(places.is_sorted(), "{places:?}");
        markup::has_all(output, &["esponse times by rate"]);
        markup::has_none(output, &["NaN"]);
    }
    let part = text.split("Response times by rate").nth(1).expect("a part");
    insta::assert_snapshot!("by_rate_terminal", part.split("Published").next().unwrap());
}

#[test]
fn what_is_invalid_is_not_drawn_and_nothing_is_where_all_is() {
    let mut run = make_run();
    let title = "of the response time by rate</title>";
    let page = html(&run.input());
    // Two quantiles, two widths.
    assert_eq!(page.matches(title).count(), 4);
    let part = page.split("id=\"by-rate-1\"").nth(1).expect("a section");
    assert!(part.contains("title=\"tail-20, INVALID\""), "{part}");
    assert!(part.contains("title=\"tail-60, SUSPECT: "), "{part}");
    for load in &mut run.findings.loads {
        load.validity = Validity::Invalid;
    }
    assert_eq!(html(&run.input()).matches(title).count(), 0);
}

#[test]
fn two_rates_or_loads_that_differ_in_more_are_no_curve() {
    let title = "esponse times by rate";
    let mut few = make_run();
    few.findings.loads.truncate(3);
    assert!(!markdown(&few.input()).contains(title));
    let mut unlike = make_run();
    for load in &mut unlike.header.study.loads {
        load.connections += u32::from(load.name == "tail-40" || load.name == "tail-80");
    }
    assert!(!markdown(&unlike.input()).contains(title));
}
