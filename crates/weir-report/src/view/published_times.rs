//! Published response times beside ours, quantile by quantile.
//!
//! Times of another machine mean little here; whether a change made them shorter does. An arm's
//! published time over that of the arm it is compared with is a ratio, or a range of ratios where a
//! range of times was published, and stands beside the measured one.

use std::time::Duration;

use weir_analysis::findings::{ArmFindings, Comparison, InertArm, LoadFindings, Verdict};
use weir_model::record::Validity;
use weir_model::study::{
    LoadSpec, Metric, Published, PublishedQuantile, PublishedTimes, Study, StudyArrivals,
};

use super::published::{PublishedVerdict, said};
use crate::tree::{Block, Cell, Column, Kind, Outputs, Row, Style, Table, clause};
use crate::{number, words};

/// One published quantile beside ours.
#[derive(Debug, Clone)]
pub struct TimesRow {
    /// The arm.
    pub arm: String,
    /// What it was published for: `900 to 1000 connections`; empty: anything.
    pub published_for: String,
    /// The load that ours is from, with its validity; a dash when there is none.
    pub load: String,
    /// `p99`.
    pub quantile: String,
    /// Published time, a range of them, or `unchanged`.
    pub figure: String,
    /// Ours.
    pub measured: String,
    /// Published ratio to the arm it is compared with.
    pub ratio: String,
    /// Ours; empty for the baseline.
    pub measured_ratio: String,
    /// Its interval.
    pub interval: String,
    /// What that says; none where nothing is compared.
    pub verdict: Option<PublishedVerdict>,
    /// Why, where the verdict alone does not say it.
    pub because: String,
}

/// The table of all published response times.
pub(super) fn blocks(times: &[TimesRow]) -> Vec<Block> {
    if times.is_empty() {
        return Vec::new();
    }
    let ours = "ours are of one load each; where several are meant, of the one with most connections and the highest rate \
                in which the arm could be compared";
    let columns = [
        Column::new("quantile"),
        Column::new("published"),
        Column::new("published ratio").short("ratio"),
        Column::new("here"),
        Column::new("ratio here").small("interval").whole(),
        Column::left("load here").below(),
        Column::left("verdict").below(),
    ];
    let rows = times.iter().map(|row| {
        let cells = [
            Cell::from(&*row.quantile),
            Cell::from(&*row.figure),
            Cell::from(&*row.ratio),
            Cell::from(&*row.measured),
            Cell::from(&*row.measured_ratio).small(&*row.interval),
            Cell::from(&*row.load),
            said(row.verdict, &row.because),
        ];
        Row::new(&*row.arm, cells).about(&*row.published_for)
    });
    let table = Table {
        about: "published for",
        ..Table::new(
            Kind::Plain,
            "Published response times beside measured ones",
            "arm",
        )
    };
    vec![
        Block::Only(Outputs::FILES, vec![clause(Style::Soft, ours)]),
        Block::Table(table.columns(columns).rows(rows)),
    ]
}

/// All published response times.
pub(super) fn rows(
    study: &Study,
    published: &Published,
    loads: &[LoadFindings],
    inert: &[InertArm],
) -> Vec<TimesRow> {
    let maker = Maker {
        study,
        published,
        loads,
        inert,
    };
    let entries = published.times.iter();
    entries.flat_map(|entry| maker.of(entry)).collect()
}

struct Maker<'a> {
    study: &'a Study,
    published: &'a Published,
    loads: &'a [LoadFindings],
    inert: &'a [InertArm],
}

/// A range of ratios.
type Ratios = (f64, f64);

impl<'a> Maker<'a> {
    fn of(&self, entry: &PublishedTimes) -> Vec<TimesRow> {
        let quantiles: Vec<(f64, Option<PublishedQuantile>)> = match entry.unchanged {
            true => vec![(0.5, None), (0.99, None)],
            false => entry
                .quantiles
                .iter()
                .map(|published| (published.quantile, Some(*published)))
                .collect(),
        };
        quantiles
            .into_iter()
            .map(|(quantile, published)| self.row(entry, quantile, published))
            .collect()
    }

    fn row(
        &self,
        entry: &PublishedTimes,
        quantile: f64,
        published: Option<PublishedQuantile>,
    ) -> TimesRow {
        let metric = metric_of(quantile);
        let load = self.load(entry, metric);
        let found = load.and_then(|(_, load)| load.arms.iter().find(|arm| arm.arm == entry.arm));
        let comparison = load.and_then(|(_, load)| {
            let mut all = load.comparisons.iter();
            all.find(|c| c.arm == entry.arm && Some(c.metric) == metric)
        });
        let valid = comparison.filter(|c| c.verdict != Verdict::Invalid);
        let theirs = self.ratio(entry, quantile, published);
        let (verdict, because) = match theirs {
            Some(theirs) => self.judge(&entry.arm, theirs, comparison),
            None => (None, String::new()),
        };
        TimesRow {
            arm: entry.arm.clone(),
            published_for: published_for(entry),
            load: load.map_or(number::NONE.to_owned(), |(spec, load)| {
                format!("{} ({})", spec.name, words::validity(load.validity))
            }),
            quantile: quantile_name(quantile),
            figure: published.map_or("unchanged".to_owned(), times),
            measured: found
                .and_then(|arm| measured(arm, quantile))
                .map_or(number::NONE.to_owned(), number::time),
            ratio: theirs.map_or(number::NONE.to_owned(), ratios),
            measured_ratio: comparison.map_or(String::new(), |c| match c.verdict {
                Verdict::Invalid => number::NONE.to_owned(),
                _ => number::ratio(c.ratio),
            }),
            interval: valid.map_or(String::new(), |c| {
                number::ratio_interval(c.ratio, c.interval)
            }),
            verdict,
            because,
        }
    }

    /// The load that is set beside an entry: of those that it is for and that may be used, one in which
    /// the arm could be compared, and the hardest of these.
    fn load(
        &self,
        entry: &PublishedTimes,
        metric: Option<Metric>,
    ) -> Option<(&'a LoadSpec, &'a LoadFindings)> {
        let pairs = self.loads.iter().filter_map(|found| {
            let spec = self
                .study
                .loads
                .iter()
                .find(|spec| spec.name == found.load)?;
            (is_for(entry, spec) && found.blocks > 0).then_some((spec, found))
        });
        pairs.max_by(|a, b| {
            let rank = |(spec, found): &(&LoadSpec, &LoadFindings)| {
                let compared = found.comparisons.iter().any(|c| {
                    c.arm == entry.arm && Some(c.metric) == metric && c.verdict != Verdict::Invalid
                });
                (
                    found.validity != Validity::Invalid,
                    compared,
                    place(spec).0,
                    place(spec).1.unwrap_or(0.0) as u64,
                )
            };
            rank(a).cmp(&rank(b))
        })
    }

    /// The published ratio to the arm that this one is compared with; none for the baseline, and where
    /// nothing was published for the other.
    fn ratio(
        &self,
        entry: &PublishedTimes,
        quantile: f64,
        published: Option<PublishedQuantile>,
    ) -> Option<Ratios> {
        let arm = self.study.arms.iter().find(|arm| arm.name == entry.arm)?;
        let against = &self.study.arms.get(arm.against)?.name;
        if *against == entry.arm {
            return None;
        }
        let Some(own) = published else {
            return Some((1.0, 1.0));
        };
        let base = self.published.times.iter().find_map(|other| {
            let same = other.arm == *against
                && other.load == entry.load
                && other.connections == entry.connections
                && other.rate == entry.rate;
            let mut quantiles = other.quantiles.iter().filter(|_| same);
            quantiles.find(|base| base.quantile == quantile)
        })?;
        let over = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64().max(1e-12);
        Some((over(own.low, base.high), over(own.high, base.low)))
    }

    fn judge(
        &self,
        arm: &str,
        theirs: Ratios,
        ours: Option<&Comparison>,
    ) -> (Option<PublishedVerdict>, String) {
        let band = self.study.objective.band.ln_1p();
        let says_none = theirs.0.ln() <= band && theirs.1.ln() >= -band;
        let whole = self
            .inert
            .iter()
            .find(|inert| inert.arm == arm && inert.whole);
        if let Some(inert) = whole {
            let why: Vec<&str> = inert.levels.iter().map(|level| &*level.why).collect();
            return (Some(PublishedVerdict::Inert), why.join("; "));
        }
        let (verdict, because) = compare(theirs, says_none, ours);
        match (verdict, self.published.dated.get(arm)) {
            (PublishedVerdict::NoEffectHere, Some(since)) => {
                (Some(PublishedVerdict::Obsolete), since.clone())
            }
            _ => (Some(verdict), because),
        }
    }
}

/// Sets a published range of ratios beside a measured one.
fn compare(
    theirs: Ratios,
    says_none: bool,
    ours: Option<&Comparison>,
) -> (PublishedVerdict, String) {
    let measured = ours.filter(|c| c.verdict != Verdict::Invalid && c.ratio.is_finite());
    let Some(ours) = measured else {
        let because = ours.map_or(String::new(), |c| c.because.clone());
        return (PublishedVerdict::NotMeasured, because);
    };
    let (low, high) = ours.interval;
    let overlap = low <= theirs.1 && theirs.0 <= high;
    let larger = theirs.0 > 1.0;
    let verdict = match (ours.verdict, says_none) {
        (Verdict::Equivalent, true) => PublishedVerdict::NoneEither,
        (Verdict::Equivalent, false) => PublishedVerdict::NoEffectHere,
        (Verdict::Better | Verdict::Worse, true) => PublishedVerdict::EffectHere,
        (Verdict::Better | Verdict::Worse, false) => match (ours.ratio > 1.0) == larger {
            false => PublishedVerdict::Opposite,
            true if overlap => PublishedVerdict::Confirmed,
            true if (ours.ratio > theirs.1) == larger => PublishedVerdict::ConfirmedLarger,
            true => PublishedVerdict::ConfirmedSmaller,
        },
        (Verdict::Inconclusive | Verdict::Invalid, _) if says_none || overlap => {
            PublishedVerdict::Inconclusive
        }
        (Verdict::Inconclusive | Verdict::Invalid, _) => {
            let because = "the interval rules the published size out".to_owned();
            return (PublishedVerdict::NoEffectHere, because);
        }
    };
    (verdict, String::new())
}

/// Connections and rate of a load: of a matrix, those that the study was written with.
fn place(spec: &LoadSpec) -> (u32, Option<f64>) {
    match (&spec.cell, spec.arrivals) {
        (Some(cell), _) => (cell.connections, cell.rate),
        (None, StudyArrivals::Constant(rate)) => (spec.connections, Some(rate)),
        (None, _) => (spec.connections, None),
    }
}

fn is_for(entry: &PublishedTimes, spec: &LoadSpec) -> bool {
    let (connections, rate) = place(spec);
    let named = entry.load.as_ref().is_none_or(|load| *load == spec.name);
    let connected = entry
        .connections
        .is_none_or(|(low, high)| (low..=high).contains(&connections));
    let timed = entry
        .rate
        .is_none_or(|(low, high)| rate.is_some_and(|rate| (low..=high).contains(&rate)));
    named && connected && timed
}

/// The metric that a quantile is, where it is compared.
fn metric_of(quantile: f64) -> Option<Metric> {
    let metrics = [Metric::ResponseP50, Metric::ResponseP99];
    let mut metrics = metrics.into_iter();
    metrics.find(|metric| metric.response_quantile() == Some(quantile))
}

/// An arm's quantile in nanoseconds. Those that have no figure of their own are read off the curve.
fn measured(arm: &ArmFindings, quantile: f64) -> Option<f64> {
    if arm.samples == 0 {
        return None;
    }
    let places = [0.5, 0.9, 0.99, 0.999, 1.0];
    if let Some(place) = places.iter().position(|known| *known == quantile) {
        return Some(arm.response_ns[place] as f64);
    }
    let x = 1.0 / (1.0 - quantile) - 1e-9;
    let mut curve = arm.percentile_curve.iter();
    curve.find(|(at, _)| *at >= x).map(|(_, ns)| *ns as f64)
}

fn quantile_name(quantile: f64) -> String {
    match quantile {
        1.0 => "max".to_owned(),
        // Multiplication by 100 leaves digits behind: 99.9 is not 99.90000000000001.
        q => format!("p{}", (q * 1e5).round() / 1e3),
    }
}

fn published_for(entry: &PublishedTimes) -> String {
    let span = |low: f64, high: f64, noun: &str| match low == high {
        true => format!("{} {noun}", number::rate(low)),
        false => format!("{} to {} {noun}", number::rate(low), number::rate(high)),
    };
    let connections = entry
        .connections
        .map(|(low, high)| span(f64::from(low), f64::from(high), "connections"));
    let rate = entry.rate.map(|(low, high)| span(low, high, "requests/s"));
    let parts = [entry.load.clone(), connections, rate];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn times(published: PublishedQuantile) -> String {
    // As it was published: rounding is for figures of ours.
    let time = weir_model::quantity::format_duration;
    match published.low == published.high {
        true => time(published.low),
        false => format!("{} to {}", time(published.low), time(published.high)),
    }
}

fn ratios((low, high): Ratios) -> String {
    match low == high {
        true => number::ratio(low),
        false => format!("{} to {}", number::ratio(low), number::ratio(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(ratio: f64, interval: (f64, f64), verdict: Verdict) -> Comparison {
        Comparison {
            metric: Metric::ResponseP99,
            arm: "b".into(),
            against: "a".into(),
            n: 6,
            merged: 1,
            autocorrelation: 0.0,
            ratio,
            interval,
            confidence: 0.96,
            p: 0.03,
            p_holm: 0.03,
            minimum_detectable: 0.02,
            verdict,
            because: "because".into(),
        }
    }

    #[test]
    fn published_ranges_are_judged_by_direction_and_overlap() {
        use PublishedVerdict as P;
        use Verdict as V;
        let fell = (0.2, 0.25);
        let cases = [
            (fell, false, 0.22, (0.15, 0.3), V::Better, P::Confirmed),
            (fell, false, 0.6, (0.5, 0.7), V::Better, P::ConfirmedSmaller),
            (
                fell,
                false,
                0.1,
                (0.05, 0.15),
                V::Better,
                P::ConfirmedLarger,
            ),
            (fell, false, 1.5, (1.2, 1.9), V::Worse, P::Opposite),
            (
                fell,
                false,
                1.0,
                (0.99, 1.01),
                V::Equivalent,
                P::NoEffectHere,
            ),
            (
                fell,
                false,
                1.0,
                (0.8, 1.3),
                V::Inconclusive,
                P::NoEffectHere,
            ),
            (
                fell,
                false,
                0.7,
                (0.22, 1.3),
                V::Inconclusive,
                P::Inconclusive,
            ),
            (
                (1.0, 1.0),
                true,
                1.0,
                (0.99, 1.01),
                V::Equivalent,
                P::NoneEither,
            ),
            (
                (1.0, 1.0),
                true,
                0.9,
                (0.85, 0.95),
                V::Better,
                P::EffectHere,
            ),
            (
                (0.7, 1.3),
                true,
                1.0,
                (0.8, 1.2),
                V::Inconclusive,
                P::Inconclusive,
            ),
            (
                fell,
                false,
                f64::NAN,
                (f64::NAN, f64::NAN),
                V::Invalid,
                P::NotMeasured,
            ),
        ];
        for (theirs, none, ratio, interval, verdict, expected) in cases {
            let (judged, _) = compare(theirs, none, Some(&ours(ratio, interval, verdict)));
            assert_eq!(judged, expected, "{theirs:?} beside {ratio} {verdict:?}");
        }
        assert_eq!(compare(fell, false, None).0, P::NotMeasured);
    }

    #[test]
    fn quantiles_have_their_usual_names() {
        let names: Vec<String> = [0.5, 0.75, 0.95, 0.99, 0.999, 1.0]
            .map(quantile_name)
            .into();
        assert_eq!(names, ["p50", "p75", "p95", "p99", "p99.9", "max"]);
    }
}
