//! How much each arm carries within the study's objective: what the search wrote down, beside what its trials show.
//!
//! The search's own records give the intervals ([`CapacityRecord`]); everything else is read from the trials: the
//! response times against the rate (`curve`), what grew with the load (`growth`), and how the arms compare
//! (`ratios`). `words` says it in sentences.

use serde::{Deserialize, Serialize};
use weir_model::limit::Limit;
use weir_model::record::{
    BracketRecord, BurstRecord, CapacityEnd, CapacityRecord, CeilingRecord, Record, SearchStage,
    Validity,
};
use weir_record::Run;

use crate::blocks::LoadData;
use crate::findings::{CountedReason, LeftOut, Verdict};
use crate::headline;

mod curve;
mod growth;
mod ratios;
mod words;

pub(crate) use words::summary;
pub use words::{carries, sentence};

/// What capacities are counted in.
pub const UNIT: &str = "requests/s";

/// How much the arms of a run carry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityFindings {
    /// In the order of the study.
    pub arms: Vec<Capacity>,
    /// Each arm's capacity against that of the arm that it is compared with, in the order of the study; empty where
    /// there is one arm alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// SUSPECT when more than one in twenty of an arm's trials that were used are, INVALID when none could be used.
    pub validity: Validity,
    /// Reasons, each with how many of the trials it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<CountedReason>,
    /// Trials that no figure rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// How much one arm carries within the objective. Rates are requests per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// Whether `low` to `high` may be taken for the capacity: a long trial near `low` has held. If not, they are what
    /// the search had come to, and 0 where it had come to nothing.
    pub claimed: bool,
    /// Lower end of the interval of the capacity.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// What rates are counted in: [`UNIT`].
    pub unit: String,
    /// Confidence of the interval, 0..1.
    pub confidence: f64,
    /// The objective, in the words of the study: `p99 < 30ms`.
    #[serde(with = "texts")]
    pub limits: Vec<Limit>,
    /// Place among the limits of the one that breaks first.
    pub decides: usize,
    /// The rate that a long trial has held; 0: none has.
    pub verified: f64,
    /// How long that trial lasted, seconds.
    pub held_s: f64,
    /// The interval of what short trials on a rested arm held, where a long one did not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<(f64, f64)>,
    /// What it carries in a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstRecord>,
    /// Responses per second of the arm when it has more to do than it can.
    pub saturated: f64,
    /// Share of the responses (0..1) that break the deciding limit at any rate.
    pub floor: f64,
    /// A limit of the measurement itself that the answer is within reach of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingRecord>,
    /// Seconds of trials, without and with the long ones.
    pub seconds: (f64, f64),
    /// Why the search has ended; `None`: it has not.
    pub end: Option<CapacityEnd>,
    /// Response times against the rate, ascending: short trials whose rates differ by less than 1 % are one point.
    pub curve: Vec<CurvePoint>,
    /// Long trials, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<CurvePoint>,
    /// The trials that the curve is made of, one by one, in order of time.
    pub trials: Vec<CurvePoint>,
    /// The rate from which on the p99 stays above twice that of low rates; `None` where it does not get there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<f64>,
    /// What was counted at low rates, at the edge and above it; empty where there is no edge.
    pub grows: Vec<Growth>,
    /// What ran out first as far as the counters tell, in a sentence; empty where they do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ran_out: String,
    /// What was known after each step of the search, in order of time.
    pub bracket: Vec<BracketPoint>,
    /// The answer for this arm, in sentences; the first one is what it carries.
    pub words: Vec<String>,
}

impl Capacity {
    /// The limit that breaks first.
    pub fn deciding(&self) -> Option<&Limit> {
        self.limits.get(self.decides)
    }
}

/// What requests met at a rate. Quantiles are those of all requests that were due, taken together and never averaged;
/// `None`: of a request that was not answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Requests per second that were asked for.
    pub rate: f64,
    /// Quantile 0.5 of the response time, nanoseconds.
    pub p50: Option<u64>,
    /// Quantile 0.9.
    pub p90: Option<u64>,
    /// Quantile 0.99.
    pub p99: Option<u64>,
    /// Quantile 0.999.
    pub p999: Option<u64>,
    /// Place among the limits of the one that was broken most, or was nearest to that.
    pub limit: usize,
    /// Share of the requests that broke it, 0..1; as [`weir_model::record::TrialRecord::bad`] for a limit on the mean.
    pub bad: f64,
    /// Whether every limit of the objective held.
    pub holds: bool,
    /// Trials behind it.
    pub trials: u32,
    /// Their measured seconds.
    pub seconds: f64,
    /// Requests that were due.
    pub requests: u64,
    /// What the trials were for; `None` where they were for several things, or that was not written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<SearchStage>,
}

impl CurvePoint {
    /// Its four quantiles, ascending.
    pub fn quantiles(&self) -> [Option<u64>; 4] {
        [self.p50, self.p90, self.p99, self.p999]
    }
}

/// What was known after a step of the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BracketPoint {
    /// What the step was for.
    pub stage: SearchStage,
    /// Seconds of measured load of this arm until then.
    pub seconds: f64,
    /// Requests per second between which the capacity was thought to be; `None`: nothing was known yet.
    pub between: Option<(f64, f64)>,
}

/// Something that was counted, at three loads: low ones, the edge, and more than is carried. `None`: not measured there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// What.
    pub what: Counted,
    /// At rates of at most half the capacity, or at the lowest ones that were tried.
    pub low: Option<f64>,
    /// Within the capacity's interval and 1 % around it.
    pub edge: Option<f64>,
    /// Above that.
    pub above: Option<f64>,
}

/// What is counted beside the response times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Requests per second that were asked for.
    Rate,
    /// Responses per second.
    Completed,
    /// Share of the requests without a right answer, 0..1.
    Unanswered,
    /// CPU time of the proxy per request, nanoseconds.
    ProxyCpu,
    /// Share of the proxy's CPUs that the proxy itself used, 0..1.
    ProxyCpuShare,
    /// CPU time of the origin per request, nanoseconds.
    OriginCpu,
    /// Connections to the origin per request.
    OriginConnects,
    /// Connections from the generator that were opened again, per request.
    Reconnects,
    /// The most sockets in TIME_WAIT.
    TimeWait,
    /// The most sockets in any other state.
    Sockets,
}

/// The capacity of an arm against that of another.
///
/// With [`Verdict::Invalid`] there is nothing to show: ratio and interval are not numbers (null in JSON).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// Capacity of the arm / that of the other.
    pub ratio: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// Two-sided p of there being no difference.
    pub p: f64,
    /// The same after Holm's correction over all changes.
    pub p_holm: f64,
    /// Comparisons that p is corrected for.
    pub family: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in half a sentence.
    pub because: String,
}

/// What a run says about capacities; `None` where its study does not ask for them.
pub(crate) fn find(run: &Run) -> Option<CapacityFindings> {
    let study = &run.header.study;
    if study.capacity.is_empty() {
        return None;
    }
    let spec = study.loads.first()?;
    let data = LoadData::gather(run, spec);
    let arms: Vec<Capacity> = (0..study.arms.len())
        .map(|arm| of_arm(run, &data, arm))
        .collect();
    let ratios = ratios::of(study, &arms);
    let (validity, reasons) = headline::search(&data);
    Some(CapacityFindings {
        arms,
        ratios,
        validity,
        reasons,
        left_out: headline::left_out(&data),
    })
}

fn of_arm(run: &Run, data: &LoadData<'_>, arm: usize) -> Capacity {
    let study = data.study;
    let name = &study.arms[arm].name;
    // A resumed run may write a second one; the last one counts.
    let record = run.records.iter().rev().find_map(|record| match record {
        Record::Capacity(found) if found.arm == *name && found.load == data.load => Some(found),
        _ => None,
    });
    let steps: Vec<&BracketRecord> = run
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Bracket(step) if step.arm == *name && step.load == data.load => Some(step),
            _ => None,
        })
        .collect();
    let mut found = match record {
        Some(record) => ended(record),
        None => Capacity {
            arm: name.clone(),
            load: data.load.to_owned(),
            limits: study.capacity.clone(),
            confidence: study.objective.confidence,
            ..so_far(&steps)
        },
    };
    let bracket = steps.iter().map(|step| BracketPoint {
        stage: step.stage,
        seconds: step.seconds,
        between: step.between,
    });
    found.bracket = bracket.collect();
    let trials = curve::Trials::of((run, data, arm), &steps, &found);
    found.curve = trials.curve();
    found.holds = trials.holds();
    found.trials = trials.singly();
    found.knee = curve::knee(&trials, &found);
    found.held_s = curve::held(&found);
    found.grows = growth::of(data, arm, &trials, &found);
    found.ran_out = growth::ran_out(&found);
    found.words = words::answer(&found);
    found
}

/// What the search's last record says.
fn ended(record: &CapacityRecord) -> Capacity {
    let ended_well = matches!(record.end, CapacityEnd::Found | CapacityEnd::Budget);
    Capacity {
        arm: record.arm.clone(),
        load: record.load.clone(),
        claimed: ended_well && record.verified > 0.0 && is_narrow(record.low, record.high),
        low: record.low,
        high: record.high,
        limits: record.limits.clone(),
        decides: record.decides.min(record.limits.len().saturating_sub(1)),
        confidence: record.confidence,
        verified: record.verified,
        fresh: record.fresh,
        burst: record.burst,
        saturated: record.saturated,
        floor: record.floor,
        ceiling: record.ceiling,
        seconds: record.seconds,
        end: Some(record.end),
        ..so_far(&[])
    }
}

/// Whether an interval says anything: from next to nothing to something is no answer.
fn is_narrow(low: f64, high: f64) -> bool {
    high >= low && high <= 10.0 * low
}

/// What a search that has not ended had come to; arm, load and objective are for the caller to fill in.
fn so_far(steps: &[&BracketRecord]) -> Capacity {
    let between = steps.iter().rev().find_map(|step| step.between);
    let (low, high) = between.unwrap_or_default();
    let seconds = steps.last().map_or(0.0, |step| step.seconds);
    Capacity {
        arm: String::new(),
        load: String::new(),
        claimed: false,
        low,
        high,
        unit: UNIT.to_owned(),
        confidence: 0.0,
        limits: Vec::new(),
        decides: 0,
        verified: 0.0,
        held_s: 0.0,
        fresh: None,
        burst: None,
        saturated: 0.0,
        floor: 0.0,
        ceiling: None,
        seconds: (seconds, seconds),
        end: None,
        curve: Vec::new(),
        holds: Vec::new(),
        trials: Vec::new(),
        knee: None,
        grows: Vec::new(),
        ran_out: String::new(),
        bracket: Vec::new(),
        words: Vec::new(),
    }
}

/// Limits in the words of their users.
mod texts {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use weir_model::limit::Limit;

    pub(super) fn serialize<S: Serializer>(limits: &[Limit], to: S) -> Result<S::Ok, S::Error> {
        let texts: Vec<String> = limits.iter().map(Limit::to_string).collect();
        texts.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Limit>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Limit::parse_all(&texts.join(",")).map_err(D::Error::custom)
    }
}
