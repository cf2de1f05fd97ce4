//! Growth of CPU, memory, network and connections with the rate, from windows of weir-limits at many rates.
//!
//! A search has times of several seconds at each rate in which its arm is alone, so samples cover everything. In a
//! matrix of rates arms take turns, and a sample falls into an arbitrary slice. There the only sources are the lab's
//! own readings when the load comes and goes: the CPU time of the arm's own processes, the bytes of its responses, the
//! sockets of its network namespace.

use weir_limits::{Derivation, Evidence, Grown, Quantities, Resource, Trial, Window};
use weir_model::record::{SearchStage, TrialRecord, Validity};
use weir_model::sample::Counters;
use weir_model::study::{Arm, ArmRole, LoadSpec, StudyArrivals};
use weir_record::Run;

use super::stretches::{self, Span, is_carried};
use super::{Judge, trial};
use crate::blocks::LoadData;
use crate::findings::{Bends, GrowthFindings, ResourceGrowth, Shape, UnknownGrowth};

/// Minimum number of times of an arm alone that are used instead of its turns.
const LEAST_ALONE: usize = 5;
/// Minimum number of different rates in a matrix for findings about growth.
const LEAST_RATES: usize = 3;
/// Maximum number of windows into which the blocks at one rate are grouped: neighbouring blocks resemble each other.
const WINDOWS: usize = 12;
/// Share of their mean within which values count as the same.
const SAME_SHARE: f64 = 0.02;
/// Seed of the tests' random draws; fixed, so that a report is reproducible.
const SEED: u64 = 15;
/// Resources in the order of the report.
const RESOURCES: [Resource; 4] =
    [Resource::Cpu, Resource::Memory, Resource::Network, Resource::Connections];
/// Requests per second to which slopes refer.
const REQUESTS_PER_S: f64 = 1000.0;

/// Finds the growth of resources, by arm and by loads that differ only in their rate.
pub(crate) fn find(run: &Run) -> Vec<GrowthFindings> {
    let study = &run.header.study;
    let is_search = !study.capacity.is_empty();
    let mut findings = Vec::new();
    for loads in groups(&study.loads, is_search) {
        let arms = study.arms.iter();
        for arm in arms.filter(|arm| arm.role != ArmRole::SameAsBaseline) {
            let alone = spans_alone(run, &loads, &arm.name);
            let in_turns = !is_search && rates(&alone) < LEAST_RATES;
            let spans = if in_turns { turns(run, &loads, &arm.name) } else { alone };
            findings.extend(Grower { run, arm, in_turns }.of(&loads, &spans));
        }
    }
    findings
}

/// A time in which an arm carried an open load.
pub(crate) struct CarriedWindow {
    /// Quantities of the time.
    pub(crate) evidence: Evidence,
    /// Connections to the proxy: those that were counted, else those of the load.
    pub(crate) connections: f64,
}

/// Returns the times in which an arm carried an open load, whatever its rate and connections: those in which it was
/// alone, if there are enough, else its turns.
pub(crate) fn windows(run: &Run, arm: &Arm) -> Vec<CarriedWindow> {
    let is_search = !run.header.study.capacity.is_empty();
    let loads: Vec<&LoadSpec> =
        run.header.study.loads.iter().filter(|load| is_search || load.is_open()).collect();
    let alone = spans_alone(run, &loads, &arm.name);
    let in_turns = !is_search && alone.len() < LEAST_ALONE;
    let spans = if in_turns { turns(run, &loads, &arm.name) } else { alone };
    let grower = Grower { run, arm, in_turns };
    spans
        .iter()
        .map(|span| {
            let evidence = grower.evidence(span);
            let load = loads.iter().find(|load| load.name == span.load);
            let of_load = load.map_or(0, |load| load.asking() + load.held()) as f64;
            let connections = evidence.value("connections").unwrap_or(of_load);
            CarriedWindow { evidence, connections }
        })
        .collect()
}

/// Returns the times in which an arm alone carried one of the loads.
fn spans_alone<'r>(run: &'r Run, loads: &[&'r LoadSpec], arm: &str) -> Vec<Span<'r>> {
    let is_search = !run.header.study.capacity.is_empty();
    loads
        .iter()
        .flat_map(|load| stretches::of(run, load, arm))
        .filter(|span| is_search || span.part.phase.counts())
        .filter(|span| span.stage != Some(SearchStage::Burst) && is_fit(run, span))
        .collect()
}

/// Groups loads that differ only in rate and duration; in a search each load is a group of its own.
fn groups(loads: &[LoadSpec], is_search: bool) -> Vec<Vec<&LoadSpec>> {
    let mut groups: Vec<Vec<&LoadSpec>> = Vec::new();
    for load in loads.iter().filter(|load| is_search || load.is_open()) {
        match groups
            .iter_mut()
            .find(|group| !is_search && without_rate(group[0]) == without_rate(load))
        {
            Some(group) => group.push(load),
            None => groups.push(vec![load]),
        }
    }
    groups.retain(|group| is_search || group.len() >= LEAST_RATES);
    groups
}

fn without_rate(spec: &LoadSpec) -> LoadSpec {
    let mut base = spec.clone();
    base.name.clear();
    base.main.arrivals = StudyArrivals::Closed;
    base.duration = std::time::Duration::ZERO;
    base.cell.iter_mut().for_each(|cell| cell.rate = None);
    base
}

/// Returns true if a time can be used: an open load that was carried, without INVALID trials.
fn is_fit(run: &Run, span: &Span<'_>) -> bool {
    let is_open = span.rate.is_some();
    is_open
        && is_carried(&span.trials, &run.header.study)
        && span.trials.iter().all(|trial| {
            let reasons = crate::validity(trial, &run.header);
            reasons.iter().all(|reason| reason.validity != Validity::Invalid)
        })
}

fn rates(spans: &[Span<'_>]) -> usize {
    let mut rates: Vec<f64> = spans.iter().filter_map(|span| span.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates.len()
}

/// Returns the blocks of an arm that takes turns with others, neighbours at one rate as one time.
fn turns<'r>(run: &'r Run, loads: &[&'r LoadSpec], arm: &str) -> Vec<Span<'r>> {
    let arms = &run.header.study.arms;
    let Some(index) = arms.iter().position(|known| known.name == arm) else {
        return Vec::new();
    };
    let spans = loads.iter().flat_map(|load| {
        let trials: Vec<&TrialRecord> = LoadData::gather(run, load).usable_of(index).collect();
        let together = trials.len().div_ceil(WINDOWS).max(1);
        trials
            .chunks(together)
            .filter_map(|trials| stretches::turns(run, load, trials))
            .filter(|span| !span.saturated)
            .collect::<Vec<_>>()
    });
    spans.collect()
}

/// Evaluator of an arm's resources.
struct Grower<'r> {
    run: &'r Run,
    arm: &'r Arm,
    in_turns: bool,
}

impl Grower<'_> {
    /// Evaluates the windows; `None` if there are none.
    fn of(&self, loads: &[&LoadSpec], spans: &[Span<'_>]) -> Option<GrowthFindings> {
        let windows: Vec<Evidence> = spans.iter().map(|span| self.evidence(span)).collect();
        let rates = windows.iter().filter_map(|window| window.value("rate"));
        let (lowest, highest) = (rates.clone().reduce(f64::min)?, rates.reduce(f64::max)?);
        let quantities = Quantities::builtin();
        let grown = weir_limits::growth(quantities, &windows, SEED);
        let resources = grown.into_iter().map(|growth| self.describe(growth, &windows));
        let mut findings = GrowthFindings {
            arm: self.arm.name.clone(),
            loads: loads.iter().map(|load| load.name.clone()).collect(),
            windows: spans.len() as u32,
            rates: (lowest, highest),
            in_turns: self.in_turns,
            resources: sorted(resources.collect()),
        };
        let missed: Vec<String> =
            find_missed(&findings).iter().map(|growth| growth.quantity.clone()).collect();
        findings
            .resources
            .retain(|growth| growth.shape != Shape::Unknown || missed.contains(&growth.quantity));
        Some(findings)
    }

    fn evidence(&self, span: &Span<'_>) -> Evidence {
        let judge = Judge::of(self.run, self.arm);
        let (figures, hosts) = if self.in_turns {
            (trial::figures_of_turns(self.run, span, &judge.settings), Vec::new())
        } else {
            (trial::figures(self.run, span, &judge.settings), judge.hosts(span))
        };
        let trial = Trial { figures, ..Trial::default() };
        let window = Window {
            hosts: &hosts,
            from_ns: span.from_ns,
            until_ns: span.until_ns,
            arm: &self.arm.name,
            trial: &trial,
        };
        let mut evidence = Evidence::of(Quantities::builtin(), Counters::builtin(), &window, None);
        // What of it is the trial's is not known.
        if evidence.value("cpu_others").is_none() {
            evidence.quantities.remove("cpu");
        }
        evidence
    }

    fn describe(&self, grown: Grown, windows: &[Evidence]) -> ResourceGrowth {
        let growth = grown.growth;
        let shape = classify(&grown);
        let why_unknown = (shape == Shape::Unknown).then(|| self.why_unknown(&grown, windows));
        let bend =
            growth.and_then(|growth| Some((growth, growth.bend?))).filter(|_| shape == Shape::Bend);
        let mut points = grown.points;
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        ResourceGrowth {
            resource: grown.resource,
            quantity: grown.quantity,
            unit: grown.unit,
            shape,
            linear: shape.is_linear(),
            slope: growth.map(|growth| {
                let slope = growth.slope;
                (
                    REQUESTS_PER_S * slope.value,
                    (REQUESTS_PER_S * slope.low, REQUESTS_PER_S * slope.high),
                )
            }),
            intercept: growth.map(|growth| growth.intercept),
            bend: bend.map(|(_, bend)| Bends {
                at: (bend.at.value, (bend.at.low, bend.at.high)),
                before: REQUESTS_PER_S * bend.before,
                after: REQUESTS_PER_S * bend.after,
                value: at_bend(&points, &bend),
            }),
            points,
            why_unknown,
        }
    }

    /// Returns the reason why the shape of a quantity is unknown.
    fn why_unknown(&self, grown: &Grown, windows: &[Evidence]) -> UnknownGrowth {
        let quantity = Quantities::builtin().get(&grown.quantity);
        let is_sampled =
            quantity.is_some_and(|quantity| matches!(quantity.from, Derivation::Samples(_)));
        let absent = windows.iter().find_map(|window| window.absent.get(&grown.quantity));
        match (grown.points.len(), absent) {
            (0, _) if is_sampled && self.in_turns => UnknownGrowth::InTurns,
            (0, Some(absent)) => UnknownGrowth::Absent(absent.clone()),
            (known, _) if grown.growth.is_none() => UnknownGrowth::TooFewWindows(known as u32),
            _ => UnknownGrowth::Varies,
        }
    }
}

fn classify(grown: &Grown) -> Shape {
    let Some(growth) = grown.growth else {
        return Shape::Unknown;
    };
    let values = grown.points.iter().map(|(_, value)| *value);
    let mean = values.clone().sum::<f64>() / grown.points.len() as f64;
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let most = values.fold(f64::NEG_INFINITY, f64::max);
    let no_slope = growth.slope.low <= 0.0 && growth.slope.high >= 0.0;
    match growth.bend {
        _ if most - least <= SAME_SHARE * mean.abs() => Shape::Constant,
        Some(_) => Shape::Bend,
        None if !growth.is_linear() => Shape::Curve,
        None if no_slope => Shape::Unknown,
        None => Shape::Linear,
    }
}

/// Returns the value at which two lines with these slopes meet, fitted to the points.
fn at_bend(points: &[(f64, f64)], bend: &weir_stats::growth::Bend) -> f64 {
    let at = bend.at.value;
    points
        .iter()
        .map(|&(x, y)| if x < at { y - bend.before * (x - at) } else { y - bend.after * (x - at) })
        .sum::<f64>()
        / points.len() as f64
}

fn sorted(mut resources: Vec<ResourceGrowth>) -> Vec<ResourceGrowth> {
    resources.sort_by_key(|growth| RESOURCES.iter().position(|of| *of == growth.resource));
    resources
}

/// Returns, for each resource without a known quantity, the quantity that is known in most windows.
fn find_missed(found: &GrowthFindings) -> Vec<&ResourceGrowth> {
    let missed = RESOURCES.into_iter().filter_map(|resource| {
        let mut quantities = found.resources.iter().filter(|growth| growth.resource == resource);
        let most = quantities.clone().rev().max_by_key(|growth| growth.points.len());
        let is_known = quantities.any(|growth| growth.shape != Shape::Unknown);
        most.filter(|_| !is_known)
    });
    missed.collect()
}
