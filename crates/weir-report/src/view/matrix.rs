//! A matrix of loads: what all cells come to, then the response times of each arm over all of them.
//!
//! In a matrix an arm is called a *suite*, as in published ones: all loads under one configuration.

mod heat;

use std::collections::BTreeMap;

use weir_analysis::findings::{
    ArmFindings, Findings, InertArm, LoadFindings, MatrixFindings, Verdict,
};
use weir_model::record::Validity;
use weir_model::study::{ArmRole, LoadSpec, Metric, Study};

use super::compare::{MetricView, RowView, changes, metric_view};
use super::load::{manner, quantiles};
use super::{number, words};
pub use heat::{HeatCell, HeatRow, HeatView};

/// A matrix of loads, formatted.
#[derive(Debug, Clone)]
pub struct MatrixView {
    /// Its name; empty when the study gives it none.
    pub name: String,
    /// What it is: `100 loads: 100 to 1000 connections to each arm, 100 to 1000 requests/s, ...`.
    pub summary: String,
    /// How many cells may be used: `97 of 100 loads`.
    pub measured: String,
    /// INVALID when more than half of the cells are; SUSPECT when more than one in twenty are SUSPECT or
    /// INVALID; else VALID.
    pub validity: Validity,
    /// Reasons for doubt over all cells.
    pub reasons: Vec<MatrixReason>,
    /// Verdicts counted over the cells, by metric and arm.
    pub tallies: Vec<TallyView>,
    /// What must be known of counts over so many cells.
    pub caveat: String,
    /// One for each arm.
    pub suites: Vec<SuiteView>,
    /// Each cell by itself.
    pub cells: Vec<CellView>,
}

/// One reason for doubt over all cells.
#[derive(Debug, Clone)]
pub struct MatrixReason {
    /// How grave it is.
    pub validity: Validity,
    /// Short name of the rule.
    pub rule: String,
    /// How often: `in 12 of 100 loads`.
    pub how_often: String,
    /// What was seen in one of them: `c900-r1000: ...`.
    pub example: String,
}

/// How often an arm came out how, on one metric.
#[derive(Debug, Clone)]
pub struct TallyView {
    /// The metric.
    pub metric: Metric,
    /// The arm.
    pub arm: String,
    /// What it changes.
    pub changes: String,
    /// Why none of it can have an effect; empty when it can.
    pub inert: String,
    /// Better, worse, equivalent, inconclusive, invalid.
    pub counts: [String; 5],
    /// Ratios of the cells that are better or worse: `0.91×–1.20×`; a dash when there are none.
    pub ratios: String,
}

/// All cells under one arm.
#[derive(Debug, Clone)]
pub struct SuiteView {
    /// The arm.
    pub arm: String,
    /// What it changes.
    pub changes: String,
    /// Why none of it can have an effect; empty when it can.
    pub inert: String,
    /// At which rate the lines are: `1000 requests/s`; empty when the matrix has connections alone.
    pub at: String,
    /// One line for each number of connections, ascending.
    pub lines: Vec<LineView>,
    /// One for each quantile.
    pub heats: Vec<HeatView>,
}

/// The percentile curve of one cell.
#[derive(Debug, Clone)]
pub struct LineView {
    /// `300 connections`, and its validity where it is not VALID.
    pub name: String,
    /// Place among the numbers of connections, 0..1: few to many.
    pub place: f64,
    /// Response time at 0.5, 0.9, 0.99, 0.999 and 1.
    pub response: [String; 5],
    /// (1/(1-quantile), nanoseconds), finite, ascending.
    pub curve: Vec<(f64, f64)>,
}

/// One cell by itself.
#[derive(Debug, Clone)]
pub struct CellView {
    /// Name of the load.
    pub load: String,
    /// Its validity.
    pub validity: Validity,
    /// Its arms.
    pub rows: Vec<CellRow>,
}

/// One arm in one cell.
#[derive(Debug, Clone)]
pub struct CellRow {
    /// The arm.
    pub arm: String,
    /// Completed per second.
    pub rate: String,
    /// For each metric but the CPU's: figure, ratio with its interval, and verdict.
    pub metrics: Vec<[String; 3]>,
    /// Errors and responses outside 1xx..3xx.
    pub failures: String,
    /// Requests that never ended.
    pub censored: String,
}

/// A load of the matrix with what was found under it.
#[derive(Clone, Copy)]
struct Cell<'a> {
    spec: &'a LoadSpec,
    found: &'a LoadFindings,
}

impl Cell<'_> {
    fn rate(&self) -> Option<f64> {
        self.found.rate_intended
    }

    fn usable(&self) -> bool {
        self.found.is_usable()
    }

    fn arm(&self, name: &str) -> Option<&ArmFindings> {
        self.found.arms.iter().find(|arm| arm.arm == name)
    }
}

/// All matrices of a study, in its order.
pub(super) fn all(study: &Study, findings: &Findings) -> Vec<MatrixView> {
    let matrices = findings.matrices.iter();
    matrices
        .map(|matrix| {
            let cells = findings.loads.iter().filter_map(|found| {
                let spec = study.loads.iter().find(|spec| spec.name == found.load)?;
                let place = spec.cell.as_ref()?;
                (place.matrix == matrix.name).then_some(Cell { spec, found })
            });
            view(study, matrix, &cells.collect::<Vec<_>>(), &findings.inert)
        })
        .collect()
}

fn view(
    study: &Study,
    matrix: &MatrixFindings,
    cells: &[Cell<'_>],
    inert: &[InertArm],
) -> MatrixView {
    let metrics: Vec<Metric> = cells.first().map_or_else(Vec::new, |cell| {
        let all = cell.found.metrics.iter().copied();
        all.filter(|metric| *metric != Metric::CpuPerRequest)
            .collect()
    });
    MatrixView {
        name: matrix.name.clone(),
        summary: summary(cells),
        measured: format!(
            "{} of {} can be used",
            matrix.used,
            number::plural(u64::from(matrix.loads), "load")
        ),
        validity: matrix.validity,
        reasons: reasons(cells),
        tallies: tallies(study, cells, inert, &metrics),
        caveat: format!(
            "every p is corrected for the arms of its load, not for all {} loads: where nothing differs, up to {} of \
             them may still seem to",
            cells.len(),
            ((1.0 - study.objective.confidence) * cells.len() as f64).ceil()
        ),
        suites: suites(study, cells, inert),
        cells: cells
            .iter()
            .map(|cell| cell_view(study, cell, inert, &metrics))
            .collect(),
    }
}

/// Numbers of connections and rates, ascending, as they were sent.
fn axes(cells: &[Cell<'_>]) -> (Vec<u32>, Vec<Option<f64>>) {
    let mut connections: Vec<u32> = cells.iter().map(|cell| cell.spec.connections).collect();
    connections.sort_unstable();
    connections.dedup();
    let mut rates: Vec<Option<f64>> = cells.iter().map(Cell::rate).collect();
    rates.sort_by(|a, b| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
    rates.dedup();
    (connections, rates)
}

/// `100 to 1,000 connections`.
fn span(values: &[f64], noun: &str) -> String {
    match values {
        [] => String::new(),
        [one] => format!("{} {noun}", number::asked(*one)),
        [first, .., last] => format!(
            "{} to {} {noun}",
            number::asked(*first),
            number::asked(*last)
        ),
    }
}

fn summary(cells: &[Cell<'_>]) -> String {
    let (connections, rates) = axes(cells);
    let connections: Vec<f64> = connections.into_iter().map(f64::from).collect();
    let rates: Vec<f64> = rates.into_iter().flatten().collect();
    let mut parts = vec![span(&connections, "connections to each arm")];
    parts.push(match rates.is_empty() {
        true => "closed loop or a rate of its own".to_owned(),
        false => format!("open loop at {}", span(&rates, "requests/s")),
    });
    parts.extend(
        cells
            .first()
            .map(|cell| manner(cell.spec))
            .unwrap_or_default(),
    );
    format!(
        "{}: {}",
        number::plural(cells.len() as u64, "load"),
        parts.join(", ")
    )
}

/// Reasons by rule and gravity, the gravest first, each with the cell in which most trials had it.
fn reasons(cells: &[Cell<'_>]) -> Vec<MatrixReason> {
    type Seen<'a> = (usize, u32, String);
    let mut all: BTreeMap<(std::cmp::Reverse<Validity>, &str), Seen<'_>> = BTreeMap::new();
    for cell in cells {
        for counted in &cell.found.reasons {
            let key = (
                std::cmp::Reverse(counted.reason.validity),
                &*counted.reason.rule,
            );
            let (loads, most, example) = all.entry(key).or_default();
            *loads += 1;
            if counted.trials > *most {
                *most = counted.trials;
                *example = format!("{}: {}", cell.spec.name, counted.reason.seen);
            }
        }
    }
    let each = all.into_iter();
    each.map(|((validity, rule), (loads, _, example))| MatrixReason {
        validity: validity.0,
        rule: rule.to_owned(),
        how_often: format!(
            "trials of {loads} of {}",
            number::plural(cells.len() as u64, "load")
        ),
        example,
    })
    .collect()
}

/// Why an arm is inert as a whole; empty when it is not.
fn inert_words(inert: &[InertArm], arm: &str) -> String {
    let found = inert.iter().find(|inert| inert.arm == arm && inert.whole);
    found.map_or_else(String::new, InertArm::why)
}

fn tallies(
    study: &Study,
    cells: &[Cell<'_>],
    inert: &[InertArm],
    metrics: &[Metric],
) -> Vec<TallyView> {
    let arms = || {
        study
            .arms
            .iter()
            .filter(|arm| arm.role != ArmRole::Baseline)
    };
    let pairs = metrics
        .iter()
        .flat_map(|metric| arms().map(move |arm| (*metric, arm)));
    pairs
        .map(|(metric, arm)| {
            // A load that is INVALID as a whole has no verdict, whatever single blocks say.
            let (usable, unusable): (Vec<&Cell<'_>>, Vec<_>) =
                cells.iter().partition(|cell| cell.usable());
            let found = usable.iter().flat_map(|cell| &cell.found.comparisons);
            let found: Vec<_> = found
                .filter(|c| c.arm == arm.name && c.metric == metric)
                .collect();
            let count = |verdict| {
                let such = found.iter().filter(|c| c.verdict == verdict).count() as u64;
                match verdict {
                    Verdict::Invalid => such + unusable.len() as u64,
                    _ => such,
                }
            };
            let shown = found
                .iter()
                .filter(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse));
            let mut ratios: Vec<f64> = shown.map(|c| c.ratio).collect();
            ratios.sort_by(f64::total_cmp);
            TallyView {
                metric,
                arm: arm.name.clone(),
                changes: changes(study, Some(arm), arm.role),
                inert: inert_words(inert, &arm.name),
                counts: [
                    Verdict::Better,
                    Verdict::Worse,
                    Verdict::Equivalent,
                    Verdict::Inconclusive,
                    Verdict::Invalid,
                ]
                .map(|verdict| number::count(count(verdict))),
                ratios: match &ratios[..] {
                    [] => number::NONE.to_owned(),
                    [one] => number::ratio(*one),
                    [low, .., high] => format!("{}–{}", number::ratio(*low), number::ratio(*high)),
                },
            }
        })
        .collect()
}

fn suites(study: &Study, cells: &[Cell<'_>], inert: &[InertArm]) -> Vec<SuiteView> {
    let rate = rate_of_lines(cells);
    let heats = heat::of_all_arms(study, cells);
    let arms = study.arms.iter().zip(heats);
    arms.map(|(arm, heats)| SuiteView {
        arm: arm.name.clone(),
        changes: changes(study, Some(arm), arm.role),
        inert: inert_words(inert, &arm.name),
        at: rate.map_or(String::new(), |rate| {
            format!("{} requests/s", number::asked(rate))
        }),
        lines: lines(cells, &arm.name, rate),
        heats,
    })
    .collect()
}

/// The rate at which most numbers of connections have figures; the highest of several.
fn rate_of_lines(cells: &[Cell<'_>]) -> Option<f64> {
    let (_, rates) = axes(cells);
    let usable = |rate: &Option<f64>| {
        let such = cells
            .iter()
            .filter(|cell| cell.rate() == *rate && cell.usable());
        such.count()
    };
    // Of equal ones max_by_key takes the last, which is the highest.
    rates.into_iter().max_by_key(usable).flatten()
}

fn lines(cells: &[Cell<'_>], arm: &str, rate: Option<f64>) -> Vec<LineView> {
    let mut row: Vec<&Cell<'_>> = cells
        .iter()
        .filter(|cell| cell.rate() == rate && cell.usable())
        .collect();
    row.sort_by_key(|cell| cell.spec.connections);
    let (all, _) = axes(cells);
    let place = |connections: u32| {
        let place = all.iter().position(|other| *other == connections);
        place.unwrap_or(0) as f64 / (all.len().max(2) - 1) as f64
    };
    let drawn = row.iter().filter_map(|cell| {
        let found = cell.arm(arm)?;
        let points = found.percentile_curve.iter();
        let curve = points.map(|&(x, ns)| (x, ns as f64));
        let name = number::plural(u64::from(cell.spec.connections), "connection");
        Some(LineView {
            name: match cell.found.validity {
                Validity::Valid => name,
                doubtful => format!("{name}, {}", words::validity(doubtful)),
            },
            place: place(cell.spec.connections),
            response: quantiles(&found.response_ns, found.samples),
            curve: curve.filter(|(x, _)| x.is_finite() && *x >= 1.0).collect(),
        })
    });
    drawn.collect()
}

fn cell_view(study: &Study, cell: &Cell<'_>, inert: &[InertArm], metrics: &[Metric]) -> CellView {
    let views: Vec<MetricView> = metrics
        .iter()
        .map(|metric| metric_view(study, cell.found, inert, *metric))
        .collect();
    let figures = |arm: &ArmFindings| -> Vec<[String; 3]> {
        let rows = views.iter().filter_map(|view| {
            let row = view.rows.iter().find(|row| row.arm == arm.arm)?;
            Some(short(row))
        });
        rows.collect()
    };
    let arms = cell.found.arms.iter();
    CellView {
        load: cell.spec.name.clone(),
        validity: cell.found.validity,
        rows: arms
            .map(|arm| CellRow {
                arm: arm.arm.clone(),
                rate: number::rate(arm.rate_completed),
                metrics: figures(arm),
                failures: number::count(arm.failures),
                censored: number::count(arm.censored),
            })
            .collect(),
    }
}

/// Figure, ratio with its interval, and verdict.
fn short(row: &RowView) -> [String; 3] {
    let ratio = match (row.verdict, row.interval.as_str()) {
        (None, _) => String::new(),
        (Some(_), number::NONE) => row.ratio.clone(),
        (Some(_), interval) => format!("{} ({interval})", row.ratio),
    };
    let verdict = row.verdict_words();
    let verdict = verdict.map_or(String::new(), |(sign, word)| format!("{sign} {word}"));
    [row.value.clone(), ratio, verdict]
}
