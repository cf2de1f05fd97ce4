//! Loads that are measured until everything is decided: the decisions at a look, and the conclusion from all looks for
//! a reader of the records. Both use the same functions on the same blocks, so they agree.

use weir_model::record::{DecidedRecord, LookRecord};
use weir_model::study::{ArmRole, LoadSpec, Study, Until};
use weir_record::Run;
use weir_stats::{SignedRank, chance_to_decide, critical_of};

use crate::blocks::LoadData;
use crate::compare::{Compared, Comparer};
use crate::findings::{Basis, Caveat, Comparison, Verdict};
use crate::{equal, idle::Idle};

/// Chance of a decision at the last look below which a comparison is given up.
const HOPELESS: f64 = 0.05;
/// Chance of a decision at a look from which on it is expected to be the last one of a comparison.
const LIKELY: f64 = 0.5;

/// Makes all comparisons and withdraws the verdicts that do not stand.
pub(crate) fn held(comparer: &mut Comparer<'_>, idle: Option<&Idle>) -> Compared {
    let mut compared = comparer.compare();
    if let Some(idle) = idle {
        compared
            .comparisons
            .iter_mut()
            .chain(&mut compared.pairs)
            .for_each(|comparison| idle.doubt(comparer.data, comparison));
    }
    equal::withdraw_within_equal_arms(&mut compared.comparisons, comparer.data.study);
    compared
}

/// Makes all comparisons from the blocks before a look.
fn at(run: &Run, load: &LoadSpec, look: &LookRecord, tests: &mut SignedRank) -> Compared {
    let data = LoadData::up_to(run, load, look.next_block);
    let mut comparer = Comparer::new(run, (&data, load), tests);
    comparer.look = Some(look);
    held(&mut comparer, Idle::of(&data, load).as_ref())
}

/// Decides at a look whose number and levels are set: fills in the decided comparisons, the arms that go on, and the
/// expected number of blocks. The decision is about the load's first metric, which is the objective's if the load gives
/// it.
pub fn decide(run: &Run, load: &LoadSpec, look: LookRecord) -> LookRecord {
    let study = &run.header.study;
    let mut tests = SignedRank::new();
    let compared = at(run, load, &look, &mut tests);
    let all: Vec<&Comparison> = compared.comparisons.iter().chain(&compared.pairs).collect();
    let metric = all.first().map(|first| first.metric);
    let earlier = run.looks(&load.name);
    let mut open = Vec::new();
    let mut look = LookRecord { expected: look.blocks, ..look };
    for (arm, against) in study.questions() {
        let names = [arm, against].map(|index| &*study.arms[index].name);
        if earlier.iter().any(|look| decides(look, names)) {
            continue;
        }
        let comparison = all
            .iter()
            .copied()
            .find(|c| Some(c.metric) == metric && [&*c.arm, &*c.against] == names);
        let verdict = comparison.map_or(Verdict::Invalid, |comparison| comparison.verdict);
        let foreseen = comparison.map_or(1.0, |comparison| chance(comparison, study, &look, None));
        let is_open = matches!(verdict, Verdict::Inconclusive | Verdict::Invalid);
        let is_given_up = is_open && foreseen < HOPELESS && !look.is_last;
        if is_open && !is_given_up && !look.is_last {
            look.expected = look.expected.max(expected(comparison, study, &look));
            open.push((arm, against));
            continue;
        }
        look.decided.push(DecidedRecord {
            arm: names[0].to_owned(),
            against: names[1].to_owned(),
            verdict: verdict.word().to_owned(),
            is_given_up,
        });
    }
    look.open = arms_of(study, &open);
    look
}

/// Returns the arms of these questions, together with the A/A arm and the arm that it is compared with, which show the
/// differences that the machine alone makes.
fn arms_of(study: &Study, open: &[(usize, usize)]) -> Vec<String> {
    if open.is_empty() {
        return Vec::new();
    }
    let controls = study.arms.iter().enumerate().filter_map(|(index, arm)| {
        (arm.role == ArmRole::SameAsBaseline).then_some((index, arm.against))
    });
    let going_on: Vec<(usize, usize)> = controls.chain(open.iter().copied()).collect();
    (0..study.arms.len())
        .filter(|index| going_on.iter().any(|(arm, against)| index == arm || index == against))
        .map(|index| study.arms[index].name.clone())
        .collect()
}

/// Returns the chance that a look after so many blocks decides a comparison. `None` stands for the last look that is
/// planned.
fn chance(found: &Comparison, study: &Study, look: &LookRecord, blocks: Option<u32>) -> f64 {
    let (Some(at), estimate) = (&found.look, found.ratio.ln()) else {
        return 1.0;
    };
    if !estimate.is_finite() || !at.error.is_finite() {
        return 1.0;
    }
    let then = blocks.or(look.planned.last().copied()).unwrap_or(look.blocks);
    let share = f64::from(look.blocks) / f64::from(then.max(look.blocks).max(1));
    let (confidence, level) = look.at_end;
    let critical = (critical_of(1.0 - confidence), critical_of(level));
    let band = study.objective.band.ln_1p();
    chance_to_decide((estimate, at.error), share, band, critical)
}

/// Returns the number of blocks after which a comparison is probably decided.
fn expected(found: Option<&Comparison>, study: &Study, look: &LookRecord) -> u32 {
    let mut later = look.planned.iter().copied().filter(|end| *end > look.blocks);
    let last = later.clone().next_back();
    later
        .find(|end| found.is_some_and(|found| chance(found, study, look, Some(*end)) >= LIKELY))
        .or(last)
        .unwrap_or(look.blocks)
}

fn decides(look: &LookRecord, [arm, against]: [&str; 2]) -> bool {
    let mut decided = look.decided.iter();
    decided.any(|decision| decision.arm == arm && decision.against == against)
}

/// Combines the looks at a load: each comparison as it was at the look that decided it, the others as at the last look.
/// `None` in a study without looks. Between looks nothing is claimed.
pub(crate) fn compared(
    run: &Run,
    load: &LoadSpec,
    comparer: &mut Comparer<'_>,
) -> Option<Compared> {
    if run.header.study.until != Until::Decided {
        return None;
    }
    let looks = run.looks(&load.name);
    let Some((last, before)) = looks.split_last() else {
        return Some(unclaimed(comparer.compare()));
    };
    let mut combined = at(run, load, last, comparer.tests);
    given_up(&mut combined, last);
    for look in before.iter().filter(|look| !look.decided.is_empty()) {
        let mut earlier = at(run, load, look, comparer.tests);
        given_up(&mut earlier, look);
        let both = [
            (&mut combined.comparisons, earlier.comparisons),
            (&mut combined.pairs, earlier.pairs),
        ];
        for (now, earlier) in both {
            for decided in earlier.into_iter().filter(|c| decides(look, [&c.arm, &c.against])) {
                if let Some(known) = now.iter_mut().find(|known| {
                    (known.metric, &known.arm, &known.against)
                        == (decided.metric, &decided.arm, &decided.against)
                }) {
                    *known = decided;
                }
            }
        }
    }
    Some(combined)
}

/// Adds to the reasons of comparisons that a look gave up that it did so.
fn given_up(found: &mut Compared, look: &LookRecord) {
    let all = found.comparisons.iter_mut().chain(&mut found.pairs);
    for comparison in all.filter(|found| found.verdict == Verdict::Inconclusive) {
        let names = [&*comparison.arm, &*comparison.against];
        let mut decided = look.decided.iter();
        if decided
            .any(|decision| decision.is_given_up && [&*decision.arm, &*decision.against] == names)
        {
            comparison.because.caveats.push(Caveat::GivenUp);
        }
    }
}

/// Withdraws all verdicts: before the first look nothing is claimed.
fn unclaimed(mut compared: Compared) -> Compared {
    let all = compared.comparisons.iter_mut().chain(&mut compared.pairs);
    for comparison in all.filter(|found| found.verdict != Verdict::Invalid) {
        comparison.verdict = Verdict::Inconclusive;
        comparison.because = Basis::CutShort.into();
    }
    compared
}
