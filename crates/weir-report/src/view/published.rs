//! What others published beside what was measured here.
//!
//! Absolute figures of another machine mean nothing here; ratios between the same steps do. So the
//! published ratio of an arm to the arm it is compared with stands beside the measured ratio.

use std::collections::BTreeMap;

use weir_analysis::findings::{Comparison, InertArm, LimitFindings, LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{Metric, Published, Study};

use super::gains::{self, GainView};
use super::limit;
use super::published_times::{self, TimesRow};
use crate::tree::{
    Block, Cell, Column, Heading, Kind, Outputs, Row, Style, Table, Text, Tone, clause, labelled,
};
use crate::{ReportInput, number, words};

/// Published figures beside ours.
#[derive(Debug, Clone)]
pub struct PublishedView {
    /// Who published them.
    pub source: String,
    /// What the published figures are.
    pub metric: String,
    /// A table for each load with figures of its own, or one for all. Empty where response times are
    /// all that was published.
    pub tables: Vec<PublishedTable>,
    /// Response times by quantile.
    pub times: Vec<TimesRow>,
    /// Gains by metric.
    pub gains: Vec<GainView>,
}

/// The figures published for one load.
#[derive(Debug, Clone)]
pub struct PublishedTable {
    /// What ours are: metric, load and its validity.
    pub ours: String,
    /// One row for each arm with a published figure, those that this machine has no room for last.
    pub rows: Vec<PublishedRow>,
}

/// One step, theirs and ours.
#[derive(Debug, Clone)]
pub struct PublishedRow {
    /// The arm; where it is alone, the load.
    pub arm: String,
    /// What it is compared with; empty for the first.
    pub against: String,
    /// The published figure.
    pub figure: String,
    /// The published ratio to `against`.
    pub ratio: String,
    /// The measured ratio.
    pub measured: String,
    /// Its interval.
    pub interval: String,
    /// What that says; `None` for the first step, which is compared with nothing.
    pub verdict: Option<PublishedVerdict>,
    /// Why, where the figures do not say it.
    pub because: String,
}

/// What a measurement says about a published effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedVerdict {
    /// Same direction, and the published size lies in the interval.
    Confirmed,
    /// Same direction, but clearly smaller here.
    ConfirmedSmaller,
    /// Same direction, but clearly larger here.
    ConfirmedLarger,
    /// Neither they nor we see an effect.
    NoneEither,
    /// They saw an effect; here it lies inside the equivalence band.
    NoEffectHere,
    /// They saw none; there is one here.
    EffectHere,
    /// The effect has the other direction here.
    Opposite,
    /// The measurement cannot tell.
    Inconclusive,
    /// They saw an effect, here there is none, and what has changed since is known.
    Obsolete,
    /// What was asked for is not in force here.
    Inert,
    /// There is no valid figure to set beside it.
    NotMeasured,
}

impl PublishedVerdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            PublishedVerdict::Confirmed => "confirmed",
            PublishedVerdict::ConfirmedSmaller => "confirmed, but smaller here",
            PublishedVerdict::ConfirmedLarger => "confirmed, and larger here",
            PublishedVerdict::NoneEither => "confirmed: no effect",
            PublishedVerdict::NoEffectHere => "no effect here",
            PublishedVerdict::EffectHere => "an effect here that was not published",
            PublishedVerdict::Opposite => "the opposite here",
            PublishedVerdict::Inconclusive => "inconclusive",
            PublishedVerdict::Obsolete => "obsolete",
            PublishedVerdict::Inert => "inert here",
            PublishedVerdict::NotMeasured => "not measured",
        }
    }

    /// How it is coloured.
    pub(super) fn tone(self) -> Tone {
        match self {
            PublishedVerdict::Confirmed
            | PublishedVerdict::ConfirmedSmaller
            | PublishedVerdict::ConfirmedLarger
            | PublishedVerdict::NoneEither => Tone::Better,
            PublishedVerdict::NoEffectHere | PublishedVerdict::Obsolete => Tone::Equivalent,
            PublishedVerdict::Inert => Tone::Inert,
            PublishedVerdict::Opposite | PublishedVerdict::EffectHere => Tone::Worse,
            PublishedVerdict::Inconclusive | PublishedVerdict::NotMeasured => Tone::Inconclusive,
        }
    }
}

/// Published figures beside ours; nothing where none were.
pub(super) fn section(input: &ReportInput<'_>, validity: Validity) -> Vec<Block> {
    let (study, findings) = (&input.header.study, input.findings);
    let Some(published) = view(study, &findings.loads, &findings.inert) else {
        return Vec::new();
    };
    let heading = Heading::section("published", "Published beside measured").badge(validity);
    let source = match published.metric.as_str() {
        "" => published.source.clone(),
        metric => format!("{} ({metric})", published.source),
    };
    let mut blocks = vec![
        Block::Heading(heading),
        labelled("published", Style::Soft, source),
    ];
    for table in published.tables {
        blocks.push(labelled("measured", Style::Soft, table.ours.as_str()));
        blocks.push(Block::Table(drawn(table)));
        let caution =
            "figures of different machines cannot be compared; ratios between the same steps can";
        blocks.push(Block::Only(
            Outputs::FILES,
            vec![clause(Style::Soft, caution)],
        ));
    }
    blocks.extend(published_times::blocks(&published.times));
    blocks.extend(gains::blocks(&published.gains));
    blocks
}

fn drawn(table: PublishedTable) -> Table {
    let columns = [
        Column::new("published"),
        Column::new("published ratio").short("ratio"),
        Column::new("measured ratio")
            .short("here")
            .small("interval"),
        Column::left("verdict"),
        Column::left("against").only(Outputs::FILES),
    ];
    let rows = table.rows.into_iter().map(|row| {
        let cells = [
            Cell::from(row.figure),
            Cell::from(row.ratio),
            Cell::from(row.measured).small(row.interval),
            said(row.verdict, &row.because),
            Cell::from(row.against),
        ];
        Row::new(row.arm, cells)
    });
    Table::new(Kind::Plain, "Published figures beside measured ones", "arm")
        .columns(columns)
        .rows(rows)
}

/// A verdict and, where there is more to say, why.
pub(super) fn said(verdict: Option<PublishedVerdict>, because: &str) -> Cell {
    let cell = verdict.map_or(Cell::from(Text::default()), |verdict| {
        Cell::tone(verdict.tone(), verdict.words())
    });
    cell.detail(because)
}

fn view(study: &Study, loads: &[LoadFindings], inert: &[InertArm]) -> Option<PublishedView> {
    let published = study.published.as_ref()?;
    let mut tables: Vec<PublishedTable> = Vec::new();
    for spec in &study.loads {
        if let Some(figures) = published.by_load.get(&spec.name) {
            let own = loads.iter().find(|load| load.load == spec.name);
            let measured = own.and_then(|load| Some((load, metric_of(study, load)?)));
            tables.push(table(study, figures, measured));
        }
    }
    let limited = limited(study, loads);
    if let ([alone], false) = (&study.arms[..], limited.is_empty())
        && let Some(&figure) = published.figures.get(&alone.name)
    {
        tables.push(beside_limits(study, figure, &limited));
    } else if !published.figures.is_empty()
        || (tables.is_empty() && published.times.is_empty() && published.gains.is_empty())
    {
        let measured = matching_load(study, loads);
        tables.push(table(study, &published.figures, measured));
    }
    Some(PublishedView {
        source: published.source.clone(),
        metric: published.metric.clone(),
        tables: tables
            .into_iter()
            .map(|table| noted(table, published, inert))
            .collect(),
        times: published_times::rows(study, published, loads, inert),
        gains: gains::all(study, loads),
    })
}

/// Verdicts that something else than the figures decides: a level that is not in force, or one whose
/// advice is known to be dated.
fn noted(mut table: PublishedTable, published: &Published, inert: &[InertArm]) -> PublishedTable {
    for row in &mut table.rows {
        let whole = inert
            .iter()
            .any(|inert| inert.arm == row.arm && inert.whole);
        row.verdict = match (row.verdict, published.dated.get(&row.arm)) {
            (Some(_), _) if whole => Some(PublishedVerdict::Inert),
            (Some(PublishedVerdict::NoEffectHere), Some(since)) => {
                row.because.clone_from(since);
                Some(PublishedVerdict::Obsolete)
            }
            (verdict, _) => verdict,
        };
    }
    table
}

/// Loads that were held against the study's limit, each with what came out for the first arm.
fn limited<'a>(
    study: &Study,
    loads: &'a [LoadFindings],
) -> Vec<(&'a LoadFindings, &'a LimitFindings)> {
    let first = study.arms.first().map_or("", |arm| &arm.name);
    let found = |load: &'a LoadFindings| load.limits.iter().find(|limit| limit.arm == first);
    let each = loads.iter();
    each.filter_map(|load| Some((load, found(load)?))).collect()
}

/// The figure published for an arm that is alone beside its figures under each load: there is no
/// ratio, but for both there is a limit.
fn beside_limits(
    study: &Study,
    figure: f64,
    limited: &[(&LoadFindings, &LimitFindings)],
) -> PublishedTable {
    let rows = limited.iter().map(|(load, limit)| PublishedRow {
        arm: load.load.clone(),
        against: String::new(),
        figure: number::rate(figure),
        ratio: number::NONE.to_owned(),
        measured: number::time(limit.value_ns),
        interval: limit::interval(limit),
        verdict: None,
        because: String::new(),
    });
    PublishedTable {
        ours: format!("{} under each load", words::metric(study.objective.metric)),
        rows: rows.collect(),
    }
}

/// Published figures beside what was measured under a load, if anything was.
fn table(
    study: &Study,
    figures: &BTreeMap<String, f64>,
    measured: Option<(&LoadFindings, Metric)>,
) -> PublishedTable {
    let baseline = study.arms.first().map_or("", |arm| &arm.name);
    let here = study.arms.iter().map(|arm| {
        let against = study.arms.get(arm.against).map_or("", |arm| &arm.name);
        (&*arm.name, against)
    });
    // Arms of a larger machine: in the order of the numbers in their names.
    let mut elsewhere: Vec<(&str, &str)> = figures
        .keys()
        .filter(|name| study.arms.iter().all(|arm| arm.name != **name))
        .map(|name| (&**name, baseline))
        .collect();
    elsewhere.sort_by_key(|(name, _)| (name.len(), *name));
    let rows = here.chain(elsewhere).filter_map(|(arm, against)| {
        let figure = *figures.get(arm)?;
        Some(row(study, figures, measured, (arm, against), figure))
    });
    PublishedTable {
        ours: measured.map_or_else(
            || "nothing was measured".to_owned(),
            |(load, metric)| {
                let validity = words::validity(load.validity);
                format!(
                    "{} under load {} ({validity})",
                    words::metric(metric),
                    load.load
                )
            },
        ),
        rows: rows.collect(),
    }
}

fn row(
    study: &Study,
    figures: &BTreeMap<String, f64>,
    measured: Option<(&LoadFindings, Metric)>,
    (arm, against): (&str, &str),
    figure: f64,
) -> PublishedRow {
    let against = Some(against).filter(|against| *against != arm);
    let ratio = against
        .and_then(|against| figures.get(against))
        .map(|base| figure / base);
    let ours = measured.and_then(|(load, metric)| {
        let mut all = load.comparisons.iter();
        all.find(|c| c.arm == arm && c.metric == metric)
    });
    let none = || number::NONE.to_owned();
    PublishedRow {
        arm: arm.to_owned(),
        against: against.unwrap_or_default().to_owned(),
        figure: number::rate(figure),
        ratio: ratio.map_or_else(none, number::ratio),
        measured: ours.map_or_else(none, |c| number::ratio(c.ratio)),
        interval: ours.map_or_else(String::new, |c| number::ratio_interval(c.ratio, c.interval)),
        verdict: ratio.map(|ratio| judge(ratio, ours, study.objective.band)),
        because: String::new(),
    }
}

/// The objective's metric where a load gives it, else the first that it gives.
fn metric_of(study: &Study, load: &LoadFindings) -> Option<Metric> {
    let wanted = study.objective.metric;
    let given = load.metrics.contains(&wanted).then_some(wanted);
    given.or_else(|| load.metrics.first().copied())
}

/// The first load that gives the objective's metric, else the first load with any.
fn matching_load<'a>(
    study: &Study,
    loads: &'a [LoadFindings],
) -> Option<(&'a LoadFindings, Metric)> {
    let wanted = study.objective.metric;
    let with_objective = loads.iter().find(|load| load.metrics.contains(&wanted));
    with_objective
        .into_iter()
        .chain(loads)
        .find_map(|load| Some((load, metric_of(study, load)?)))
}

/// Sets a published ratio beside a measured one. Published ratios are of the metric's own
/// direction; whether that is good or bad does not matter for whether it is confirmed.
fn judge(published: f64, ours: Option<&Comparison>, band: f64) -> PublishedVerdict {
    let Some(ours) = ours.filter(|c| c.verdict != Verdict::Invalid && c.ratio.is_finite()) else {
        return PublishedVerdict::NotMeasured;
    };
    if !published.is_finite() || published <= 0.0 {
        return PublishedVerdict::Inconclusive;
    }
    let they_saw_none = published.ln().abs() <= band.ln_1p();
    match (ours.verdict, they_saw_none) {
        (Verdict::Equivalent, true) => PublishedVerdict::NoneEither,
        (Verdict::Equivalent, false) => PublishedVerdict::NoEffectHere,
        (Verdict::Better | Verdict::Worse, true) => PublishedVerdict::EffectHere,
        (Verdict::Better | Verdict::Worse, false) => {
            let (low, high) = ours.interval;
            let larger = published > 1.0;
            if (ours.ratio > 1.0) != larger {
                PublishedVerdict::Opposite
            } else if low <= published && published <= high {
                PublishedVerdict::Confirmed
            } else if (ours.ratio > published) == larger {
                PublishedVerdict::ConfirmedLarger
            } else {
                PublishedVerdict::ConfirmedSmaller
            }
        }
        (Verdict::Inconclusive | Verdict::Invalid, _) => PublishedVerdict::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ratio: f64, interval: (f64, f64), verdict: Verdict) -> Comparison {
        Comparison {
            metric: Metric::Rate,
            arm: "b".into(),
            against: "a".into(),
            n: 20,
            merged: 1,
            autocorrelation: 0.0,
            ratio,
            interval,
            confidence: 0.95,
            p: 0.01,
            p_holm: 0.01,
            minimum_detectable: 0.02,
            verdict,
            because: String::new(),
        }
    }

    #[test]
    fn a_published_effect_is_judged_by_direction_and_size() {
        use PublishedVerdict as P;
        use Verdict as V;
        let cases = [
            (2.05, 2.0, (1.9, 2.1), V::Better, P::Confirmed),
            (2.05, 1.2, (1.1, 1.3), V::Better, P::ConfirmedSmaller),
            (2.05, 3.0, (2.9, 3.1), V::Better, P::ConfirmedLarger),
            (2.05, 1.0, (0.99, 1.01), V::Equivalent, P::NoEffectHere),
            (2.05, 0.8, (0.7, 0.9), V::Worse, P::Opposite),
            (2.05, 1.1, (0.9, 1.3), V::Inconclusive, P::Inconclusive),
            (1.01, 1.0, (0.99, 1.01), V::Equivalent, P::NoneEither),
            (1.01, 1.5, (1.4, 1.6), V::Better, P::EffectHere),
            (0.5, 0.4, (0.35, 0.45), V::Worse, P::ConfirmedLarger),
            (0.5, 0.8, (0.75, 0.85), V::Better, P::ConfirmedSmaller),
            (
                2.0,
                f64::NAN,
                (f64::NAN, f64::NAN),
                V::Invalid,
                P::NotMeasured,
            ),
            (f64::NAN, 2.0, (1.9, 2.1), V::Better, P::Inconclusive),
        ];
        for (published, ratio, interval, verdict, expected) in cases {
            let ours = measured(ratio, interval, verdict);
            let judged = judge(published, Some(&ours), 0.02);
            assert_eq!(judged, expected, "{published} beside {ratio} {verdict:?}");
        }
        assert_eq!(judge(2.0, None, 0.02), P::NotMeasured);
    }
}
