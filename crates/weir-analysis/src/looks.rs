//! Loads that are measured until everything is decided: what is decided at a look, and what a reader who has the
//! records alone makes of all looks. Both ask the same functions about the same blocks, so they say the same.

use weir_model::record::{DecidedRecord, LookRecord};
use weir_model::study::{ArmRole, LoadSpec, Study, Until};
use weir_record::Run;
use weir_stats::{SignedRank, chance_to_decide, critical_of};

use crate::blocks::LoadData;
use crate::compare::{Compared, Comparer};
use crate::findings::{Comparison, LoadFindings, Verdict};
use crate::{equal, idle::Idle, names};

/// A comparison is given up when the last look will decide it with a smaller chance than this.
const HOPELESS: f64 = 0.05;
/// A look is expected to be the last one of a comparison when it will decide it with this chance.
const LIKELY: f64 = 0.5;

/// Everything that is compared, with all that takes a verdict back again.
pub(crate) fn held(comparer: &mut Comparer<'_>, idle: Option<&Idle>) -> Compared {
    let mut compared = comparer.compare();
    if let Some(idle) = idle {
        let all = compared.comparisons.iter_mut().chain(&mut compared.pairs);
        all.for_each(|comparison| idle.doubt(comparer.data, comparison));
    }
    equal::hold_against_the_same(&mut compared.comparisons, comparer.data.study);
    compared
}

/// The same of what a look has seen.
fn at(run: &Run, load: &LoadSpec, look: &LookRecord, tests: &mut SignedRank) -> Compared {
    let data = LoadData::up_to(run, load, look.next_block);
    let mut comparer = Comparer::new(run, (&data, load), tests);
    comparer.look = Some(look);
    held(&mut comparer, Idle::of(&data, load).as_ref())
}

/// What is decided at a look that has its place and its levels, which arms go on, and how long it will probably
/// take. The question is about the load's first metric: the objective's, where the load gives it.
pub fn decide(run: &Run, load: &LoadSpec, look: LookRecord) -> LookRecord {
    let study = &run.header.study;
    let mut tests = SignedRank::new();
    let compared = at(run, load, &look, &mut tests);
    let all = || compared.comparisons.iter().chain(&compared.pairs);
    let metric = all().next().map(|first| first.metric);
    let earlier = run.looks(&load.name);
    let mut open = Vec::new();
    let mut look = LookRecord {
        expected: look.blocks,
        ..look
    };
    for (arm, against) in study.questions() {
        let names = [arm, against].map(|place| &*study.arms[place].name);
        if earlier.iter().any(|look| decides(look, names)) {
            continue;
        }
        let of_both = |found: &&Comparison| {
            Some(found.metric) == metric && [&*found.arm, &*found.against] == names
        };
        let found = all().find(of_both);
        let verdict = found.map_or(Verdict::Invalid, |found| found.verdict);
        let foreseen = found.map_or(1.0, |found| chance(found, study, &look, None));
        let is_open = matches!(verdict, Verdict::Inconclusive | Verdict::Invalid);
        let is_given_up = is_open && foreseen < HOPELESS && !look.is_last;
        if is_open && !is_given_up && !look.is_last {
            look.expected = look.expected.max(expected(found, study, &look));
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

/// The arms of these questions, and with them the A/A arm and what it is compared with, which show what the machine
/// makes of no difference.
fn arms_of(study: &Study, open: &[(usize, usize)]) -> Vec<String> {
    let is_control = |arm: usize| study.arms[arm].role == ArmRole::SameAsBaseline;
    let goes_on = |place: usize| {
        let asked = open
            .iter()
            .any(|(arm, against)| place == *arm || place == *against);
        let mut arms = 0..study.arms.len();
        asked
            || is_control(place)
            || arms.any(|arm| is_control(arm) && study.arms[arm].against == place)
    };
    let arms = (0..study.arms.len()).filter(|place| !open.is_empty() && goes_on(*place));
    arms.map(|place| study.arms[place].name.clone()).collect()
}

/// The chance that a look after so many blocks decides a comparison; `None`: the last one that is planned.
fn chance(found: &Comparison, study: &Study, look: &LookRecord, blocks: Option<u32>) -> f64 {
    let (Some(at), estimate) = (&found.look, found.ratio.ln()) else {
        return 1.0;
    };
    if !estimate.is_finite() || !at.error.is_finite() {
        return 1.0;
    }
    let then = blocks
        .or(look.planned.last().copied())
        .unwrap_or(look.blocks);
    let share = f64::from(look.blocks) / f64::from(then.max(look.blocks).max(1));
    let (confidence, level) = look.at_end;
    let critical = (critical_of(1.0 - confidence), critical_of(level));
    let band = study.objective.band.ln_1p();
    chance_to_decide((estimate, at.error), share, band, critical)
}

/// After how many blocks a comparison is probably decided.
fn expected(found: Option<&Comparison>, study: &Study, look: &LookRecord) -> u32 {
    let later = || {
        look.planned
            .iter()
            .copied()
            .filter(|end| *end > look.blocks)
    };
    let is_likely =
        |end: &u32| found.is_some_and(|found| chance(found, study, look, Some(*end)) >= LIKELY);
    let last = later().next_back();
    later().find(is_likely).or(last).unwrap_or(look.blocks)
}

fn decides(look: &LookRecord, [arm, against]: [&str; 2]) -> bool {
    let mut decided = look.decided.iter();
    decided.any(|one| one.arm == arm && one.against == against)
}

/// What the looks at a load come to: each comparison as it was at the look that decided it, the others as at the last
/// look. `None` in a study of the usual kind. Between looks nothing is claimed.
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
    let mut found = at(run, load, last, comparer.tests);
    given_up(&mut found, last);
    for look in before.iter().filter(|look| !look.decided.is_empty()) {
        let mut then = at(run, load, look, comparer.tests);
        given_up(&mut then, look);
        let both = [
            (&mut found.comparisons, then.comparisons),
            (&mut found.pairs, then.pairs),
        ];
        for (now, then) in both {
            let then = then.into_iter();
            for own in then.filter(|own| decides(look, [&own.arm, &own.against])) {
                let is_it = |known: &&mut Comparison| {
                    (known.metric, &known.arm, &known.against)
                        == (own.metric, &own.arm, &own.against)
                };
                if let Some(known) = now.iter_mut().find(is_it) {
                    *known = own;
                }
            }
        }
    }
    Some(found)
}

/// Says of what a look has given up that it did.
fn given_up(found: &mut Compared, look: &LookRecord) {
    let all = found.comparisons.iter_mut().chain(&mut found.pairs);
    for comparison in all.filter(|found| found.verdict == Verdict::Inconclusive) {
        let names = [&*comparison.arm, &*comparison.against];
        let mut decided = look.decided.iter();
        if decided.any(|one| one.is_given_up && [&*one.arm, &*one.against] == names) {
            comparison.because +=
                "; given up, because the remaining looks would probably not have decided it";
        }
    }
}

/// Before the first look nothing is claimed, whatever was seen.
fn unclaimed(mut compared: Compared) -> Compared {
    let all = compared.comparisons.iter_mut().chain(&mut compared.pairs);
    for comparison in all.filter(|found| found.verdict != Verdict::Invalid) {
        comparison.verdict = Verdict::Inconclusive;
        "the run was cut short before its first look".clone_into(&mut comparison.because);
    }
    compared
}

/// When it was known what the answer says; empty where there was one look, at the end.
pub(crate) fn early(load: &LoadFindings) -> String {
    let Some((last, most)) = load
        .looks
        .last()
        .and_then(|last| Some((last, last.planned.last()?)))
    else {
        return String::new();
    };
    match last.open.is_empty() && last.blocks < *most && !last.is_last {
        true => format!(
            "This was decided after {} of at most {} blocks; the intervals allow for such an early end.",
            names::count(last.blocks.into()),
            names::count((*most).into())
        ),
        false => String::new(),
    }
}
