//! Sentences about the growth of a metric with a factor.

use weir_analysis::findings::{
    ApartBy, Ceiling, CeilingCause, CeilingEvidence, Findings, ScalingAnswer, ScalingCurve,
    ScalingFactor, ScalingFindings, ScalingForm, ScalingResponse,
};
use weir_analysis::scaling::NoFactor;
use weir_limits::Role;
use weir_model::study::{CPU_COUNT, Metric};
use weir_stats::scaling::{FARTHEST, Factor, Form, LEAST_LEVELS, Parameter, Refusal};

use crate::limiter::limiter_name;
use crate::names::join_names;
use crate::numbers::{self, percent, with_unit};

/// Maximum number of growths that the answer of a study begins with.
const ANSWERED: usize = 3;

/// Returns the sentences that a study's answer begins with; empty if it has no factor that matters.
pub(crate) fn lead(findings: &Findings) -> Vec<String> {
    let telling = findings.scaling.iter().filter(|found| {
        match found.measured.answer {
            // That a buffer's size changes nothing is what most studies find, and is said below.
            ScalingAnswer::Refused(Refusal::TooFewLevels { .. }) => false,
            ScalingAnswer::Refused(_) => found.kind == Factor::Servers,
            ScalingAnswer::Named(_) | ScalingAnswer::Undecided { .. } => true,
        }
    });
    telling.take(ANSWERED).map(describe).collect()
}

/// Describes how the response grows, what holds it back, and what it would be at twice the highest level.
pub fn describe(found: &ScalingFindings) -> String {
    let scale = Words::measured(found);
    let growth = format!("{}{}.", scale.subject(found), scale.answer(&found.measured));
    let ceiling = found.ceiling.as_ref().map(|ceiling| describe_ceiling(found, ceiling));
    [Some(growth), describe_apart(found), ceiling, describe_twice(found)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Names the arms that are no part of the growth; `None` if there are none.
fn describe_apart(found: &ScalingFindings) -> Option<String> {
    let reasons: Vec<String> = [ApartBy::Threads, ApartBy::Nodes]
        .into_iter()
        .filter_map(|by| describe_arms_apart(found, by))
        .collect();
    (!reasons.is_empty()).then(|| {
        format!("Left out, since a CPU more is not the same there: {}.", reasons.join("; "))
    })
}

fn describe_arms_apart(found: &ScalingFindings, by: ApartBy) -> Option<String> {
    let arms = found.apart.iter().filter(|apart| apart.by == by);
    let names: Vec<String> = arms.map(|apart| apart.arm.clone()).collect();
    let cpus = match by {
        ApartBy::Threads => "second threads of cores",
        ApartBy::Nodes => "CPUs of several NUMA nodes",
    };
    let verb = if names.len() == 1 { "has" } else { "have" };
    (!names.is_empty()).then(|| format!("{} {verb} {cpus}", join_names(&names)))
}

/// Describes the growth of the figures that others published; `None` if there are too few.
pub fn describe_published(found: &ScalingFindings) -> Option<String> {
    let words = Words { unit: Unit::Plain, ..Words::measured(found) };
    let curve = found.published.as_ref()?;
    Some(format!("The published figure {}.", words.answer(curve)))
}

/// Describes the response at twice the highest level; `None` if nothing is known about the growth.
fn describe_twice(found: &ScalingFindings) -> Option<String> {
    let (twice, words) = (found.twice.as_ref()?, Words::measured(found));
    let (low, high) = twice.interval;
    let unless = if twice.may_meet_ceiling { ", unless a ceiling comes first" } else { "" };
    Some(format!(
        "At {}, twice the highest level, expect {} ({} to {}){unless}.",
        words.level(twice.x),
        words.response(twice.value),
        words.number(low),
        words.response(high),
    ))
}

fn describe_ceiling(found: &ScalingFindings, ceiling: &Ceiling) -> String {
    let names = join_names(&ceiling.names);
    match &ceiling.cause {
        CeilingCause::Shared(evidence) => format!(
            "What holds it back is not the proxy but what all share: {} ({names}). More {} cannot help.",
            shared_name(evidence),
            Words::measured(found).noun
        ),
        CeilingCause::Proxy(evidence) => format!(
            "What holds it back is the proxy's own: {} ({names}).",
            limiter_name(&evidence.limiter)
        ),
        CeilingCause::Different(limiters) => {
            let limiters: Vec<String> = limiters
                .iter()
                .map(|(name, limiter)| format!("{} ({name})", limiter_name(limiter)))
                .collect();
            format!("Different things hold it back: {}.", join_names(&limiters))
        }
        CeilingCause::Unknown => "The samples do not tell what holds it back.".to_owned(),
    }
}

fn shared_name(evidence: &CeilingEvidence) -> String {
    match evidence.role {
        Role::Generator => "the load generator".to_owned(),
        Role::Origin => "the origin server".to_owned(),
        Role::Proxy => limiter_name(&evidence.limiter),
    }
}

/// Unit of a response.
#[derive(Clone, Copy)]
enum Unit {
    Requests,
    Bytes,
    /// The unit of a published figure, which its source names.
    Plain,
}

/// Words for the factor and for the response.
struct Words {
    /// Plural of what the factor counts, or its ID.
    noun: String,
    unit: Unit,
    falls: bool,
}

impl Words {
    fn measured(found: &ScalingFindings) -> Words {
        let noun = match &found.factor {
            ScalingFactor::Connections { .. } => "connections".to_owned(),
            ScalingFactor::Parameter { id } if id == CPU_COUNT => "CPUs".to_owned(),
            ScalingFactor::Parameter { id } => id.clone(),
        };
        let unit = match found.response {
            ScalingResponse::Metric(Metric::ReceivedBytes) => Unit::Bytes,
            _ => Unit::Requests,
        };
        let levels = &found.measured.levels;
        let falls =
            levels.first().zip(levels.last()).is_some_and(|(first, last)| last.value < first.value);
        Words { noun, unit, falls }
    }

    /// Names the load, the arms and the response: `Under the load http, the completed rate `.
    fn subject(&self, found: &ScalingFindings) -> String {
        let response = match found.response {
            ScalingResponse::Capacity => "the capacity",
            ScalingResponse::Metric(Metric::ReceivedBytes) => "throughput",
            ScalingResponse::Metric(_) => "the completed rate",
        };
        let stratum: Vec<String> =
            found.stratum.iter().map(|(id, level)| format!("{id}={level}")).collect();
        let with = match &found.factor {
            ScalingFactor::Connections { arm } => format!(" of {arm}"),
            _ if stratum.is_empty() => String::new(),
            _ => format!(" with {}", stratum.join(", ")),
        };
        match found.load.as_str() {
            "" => format!("By {}, {response}{with} ", self.noun),
            load => format!("Under the load {load}, {response}{with} "),
        }
    }

    fn level(&self, x: f64) -> String {
        format!("{} {}", with_unit(x, ""), self.noun)
    }

    fn number(&self, value: f64) -> String {
        match self.unit {
            Unit::Requests => numbers::rate(value),
            Unit::Bytes => with_unit(value, "bytes/s"),
            Unit::Plain => with_unit(value, ""),
        }
    }

    fn response(&self, value: f64) -> String {
        match self.unit {
            Unit::Requests => format!("{} requests/s", self.number(value)),
            Unit::Bytes | Unit::Plain => self.number(value),
        }
    }

    /// Formats a response with its interval: `342,718 (334,160 to 351,494) requests/s`.
    fn responses(&self, fit: &ScalingForm, parameter: Parameter) -> String {
        let text = self.value(fit, parameter);
        match self.unit {
            Unit::Requests => format!("{text} requests/s"),
            Unit::Bytes | Unit::Plain => text,
        }
    }

    /// Formats a cost: the time of a request, or of a byte.
    fn cost(&self, value: f64) -> String {
        match self.unit {
            Unit::Requests | Unit::Bytes => with_unit(value, "s"),
            Unit::Plain => with_unit(value, ""),
        }
    }

    /// Returns the predicate of a sentence about the curve.
    fn answer(&self, curve: &ScalingCurve) -> String {
        match &curve.answer {
            ScalingAnswer::Named(_) => {
                curve.best().map_or_else(String::new, |best| self.form(best, curve))
            }
            ScalingAnswer::Undecided { forms, level, responses } => {
                let names: Vec<&str> = forms.iter().map(|form| name_form(*form)).collect();
                let there: Vec<String> = responses
                    .iter()
                    .map(|(form, value)| {
                        format!("{} ({})", self.response(*value), name_form(*form))
                    })
                    .collect();
                format!(
                    "follows one of these, and the levels do not tell which: {}. A measurement at {} would: {}",
                    names.join("; "),
                    self.level(*level),
                    there.join(", ")
                )
            }
            ScalingAnswer::Refused(refusal) => self.refusal(*refusal),
        }
    }

    fn form(&self, fit: &ScalingForm, curve: &ScalingCurve) -> String {
        match fit.form {
            Form::Linear => {
                let highest = curve.levels.last().map_or(0.0, |level| level.x);
                format!(
                    "grows in proportion up to {}, the highest level: {} for each",
                    self.level(highest),
                    self.value(fit, Parameter::PerUnit)
                )
            }
            Form::SharedCap if self.falls => format!(
                "stays at {} up to {} {} and falls in inverse proportion above",
                self.responses(fit, Parameter::Ceiling),
                self.noun,
                self.value(fit, Parameter::Knee)
            ),
            Form::SharedCap => format!(
                "grows in proportion up to {} {}, by {} for each; above, it stays at {}",
                self.noun,
                self.value(fit, Parameter::Knee),
                self.value(fit, Parameter::PerUnit),
                self.responses(fit, Parameter::Ceiling)
            ),
            Form::Amdahl => format!(
                "grows less and less: {} of the work waits for something shared, so that {} are never exceeded",
                self.value(fit, Parameter::Contention),
                self.responses(fit, Parameter::Ceiling),
            ),
            Form::Universal => format!(
                "grows less and less and is highest at {} {}; beyond that, more is less. {} of the work waits for \
                 something shared, and each pair costs {} for keeping each other up to date",
                self.noun,
                self.value(fit, Parameter::Peak),
                self.value(fit, Parameter::Contention),
                self.value(fit, Parameter::Coherence),
            ),
            Form::Amortised => format!(
                "is that of a fixed cost of {} and {} more for each unit of {}",
                self.value(fit, Parameter::FixedCost),
                self.value(fit, Parameter::UnitCost),
                self.noun
            ),
        }
    }

    /// Formats a parameter with its interval: `9.2 (8.9 to 9.5)`, `9.2 (more than 8.9)`.
    fn value(&self, fit: &ScalingForm, wanted: Parameter) -> String {
        let Some(parameter) = fit.parameter(wanted) else {
            return "unknown".to_owned();
        };
        let Some(value) = parameter.value else {
            return "more than was measured".to_owned();
        };
        let [value, low, high] = [Some(value), parameter.low, parameter.high]
            .map(|value| value.map(|value| self.parameter(wanted, value)).unwrap_or_default());
        let interval = match (parameter.low, parameter.high) {
            (Some(_), Some(_)) => format!("{low} to {high}"),
            (Some(_), None) => format!("more than {low}"),
            (None, Some(_)) => format!("less than {high}"),
            (None, None) => "any".to_owned(),
        };
        format!("{value} ({interval})")
    }

    /// Formats the value of a parameter.
    fn parameter(&self, parameter: Parameter, value: f64) -> String {
        match parameter {
            Parameter::PerUnit | Parameter::Ceiling => self.number(value),
            Parameter::Knee | Parameter::Peak => with_unit(value, ""),
            Parameter::Contention | Parameter::Coherence => small_percent(value),
            Parameter::FixedCost | Parameter::UnitCost => self.cost(value),
        }
    }

    fn refusal(&self, refusal: Refusal) -> String {
        match refusal {
            Refusal::NotPositive { x, value } => format!(
                "says nothing: at level {} there is {}, and only numbers above 0 can be fitted",
                with_unit(x, ""),
                if value.is_finite() { with_unit(value, "") } else { "no number".to_owned() }
            ),
            Refusal::TooFewLevels { levels } => format!(
                "says nothing about growth: {levels} of at least {LEAST_LEVELS} levels of {} could be used",
                self.noun
            ),
            Refusal::Flat { spread } => format!(
                "does not change with {}: the levels differ by {} at most, which chance explains",
                self.noun,
                percent(spread)
            ),
            Refusal::Falls { ratio } => format!(
                "falls from the first level on: at the highest level {} of it are left. More {} do harm, and no law of \
                 growth describes that",
                percent(ratio),
                self.noun
            ),
            Refusal::Erratic { rmse } => format!(
                "follows no curve of {}: even the best one misses the levels by {}",
                self.noun,
                percent(rmse)
            ),
            Refusal::TooFar { farthest } => format!(
                "cannot be told beyond {}, {FARTHEST} times the highest level",
                self.level(farthest)
            ),
        }
    }
}

/// Formats a share that may be far below 1 %: `0.14 %`, `0.003 %`.
fn small_percent(share: f64) -> String {
    format!("{} %", with_unit(100.0 * share, ""))
}

/// Names a form in a few words.
pub fn name_form(form: Form) -> &'static str {
    match form {
        Form::Linear => "in proportion",
        Form::SharedCap => "in proportion up to a shared ceiling",
        Form::Amdahl => "waiting for something shared (Amdahl)",
        Form::Universal => "waiting, and keeping each other up to date (universal scalability law)",
        Form::Amortised => "a fixed cost and a cost per unit",
    }
}

/// Formats the parameters of a form for a table: `knee 9.2 (8.9 to 9.5); ceiling …`.
pub fn describe_parameters(found: &ScalingFindings, form: &ScalingForm, is_ours: bool) -> String {
    let ours = Words::measured(found);
    let words = if is_ours { ours } else { Words { unit: Unit::Plain, ..ours } };
    let all = form.parameters.iter().map(|parameter| {
        let name = name_parameter(parameter.parameter);
        format!("{name} {}", words.value(form, parameter.parameter))
    });
    all.collect::<Vec<_>>().join("; ")
}

fn name_parameter(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::PerUnit => "each",
        Parameter::Knee => "knee",
        Parameter::Ceiling => "ceiling",
        Parameter::Contention => "σ",
        Parameter::Coherence => "κ",
        Parameter::Peak => "peak",
        Parameter::FixedCost => "fixed",
        Parameter::UnitCost => "per unit",
    }
}

/// Explains the two parameters of scalability once.
pub const SIGMA_AND_KAPPA: &str = "σ is the share of the work that waits for something shared, which only one can have at a \
                                   time; κ is what each pair costs for keeping each other up to date.";

/// Explains why a study has no factor whose growth could be found, and what would make one.
pub fn explain_no_factor(reason: &NoFactor) -> String {
    match reason {
        NoFactor::NothingVaried => {
            format!(
                "the study varies no parameter, and growth needs one number with {LEAST_LEVELS} levels"
            )
        }
        NoFactor::TooFewLevels(parameters) => {
            let parameters: Vec<String> = parameters
                .iter()
                .map(|(id, levels)| {
                    format!("{id} has {}", numbers::counted(*levels as u64, "level"))
                })
                .collect();
            format!(
                "no parameter of the study has {LEAST_LEVELS} levels that are numbers, with everything else the same: {}",
                join_names(&parameters)
            )
        }
    }
}
