//! Loads as a matrix: every combination of connections and rates is a load of its own.

use std::ops::RangeInclusive;

use weir_model::flow::{ArrivalsSpec, LoadSpec};
use weir_model::load::Spacing;
use weir_model::quantity::parse_rate;
use weir_model::study::MatrixCell;

use crate::check::{Checker, Fields, short};
use crate::scale::Scale;
use crate::tree::{Node, Value};

/// Loads of a study at most; matrices count with all of their cells. Each takes a trial of its own.
pub(crate) const MAX_LOADS: usize = 400;

/// What can be an axis.
struct Kind {
    /// In an error, with its bounds behind it.
    noun: &'static str,
    bounds: RangeInclusive<u64>,
    parse: fn(&str) -> Option<u64>,
}

const CONNECTIONS: Kind = Kind {
    noun: "a whole number of connections",
    bounds: 1..=1_000_000,
    parse: |text| text.parse().ok(),
};

/// Names hold the rate, so it is a whole number.
const RATE: Kind = Kind {
    noun: "a whole number of requests per second",
    bounds: 1..=1_000_000_000,
    parse: |text| {
        let rate = parse_rate(text).ok()?;
        (rate.fract() == 0.0 && rate < 1e18).then_some(rate as u64)
    },
};

/// The levels of a matrix. An axis that the load gives as one number is empty.
#[derive(Debug, Default)]
pub(crate) struct Axes {
    connections: Vec<u64>,
    rates: Vec<u64>,
    /// Whether something is wrong with them, which was reported.
    broken: bool,
}

/// Whether the rates of `node` are levels of a matrix; `100..1000` without a step is a rate that grows.
pub(crate) fn is_axis_of_rates(node: &Node) -> bool {
    match &node.value {
        Value::List(_) => true,
        Value::Scalar(text) => text.contains("..") && text.contains("step"),
        _ => false,
    }
}

/// Whether `node` has several levels: a list, or a range such as `100..1000 step 100`.
pub(crate) fn is_axis(node: &Node) -> bool {
    match &node.value {
        Value::List(_) => true,
        Value::Scalar(text) => text.contains(".."),
        _ => false,
    }
}

/// Reads both axes of a load; `None` when neither is one.
pub(crate) fn axes(fields: &Fields<'_>, check: &mut Checker) -> Option<Axes> {
    let connections = fields.get("connections").filter(|node| is_axis(node));
    let rates = fields.get("rate").filter(|node| is_axis_of_rates(node));
    let first = connections.or(rates)?;
    let before = check.count();
    let mut levels = |node: Option<&Node>, kind| -> Vec<u64> {
        node.map_or_else(Vec::new, |node| read(node, kind, check))
    };
    let axes = Axes {
        connections: levels(connections, &CONNECTIONS),
        rates: levels(rates, &RATE),
        broken: false,
    };
    if axes.cells() > MAX_LOADS {
        let message = format!(
            "{} loads are too many: at most {MAX_LOADS} are allowed",
            axes.cells()
        );
        check
            .error(first.span.clone(), message)
            .hint("use larger steps");
    }
    match check.count() == before {
        true => Some(axes),
        false => Some(Axes {
            broken: true,
            ..Axes::default()
        }),
    }
}

fn read(node: &Node, kind: &Kind, check: &mut Checker) -> Vec<u64> {
    let levels = match &node.value {
        Value::Scalar(text) => range(node, text, kind, check),
        _ => list(node, kind, check),
    };
    levels.unwrap_or_default()
}

fn list(node: &Node, kind: &Kind, check: &mut Checker) -> Option<Vec<u64>> {
    let mut levels = Vec::new();
    for item in check.list(node, kind.noun)? {
        let Some(text) = check.scalar(item, kind.noun) else {
            continue;
        };
        match (kind.parse)(text).filter(|level| kind.bounds.contains(level)) {
            None => {
                let (noun, from, to) = (kind.noun, kind.bounds.start(), kind.bounds.end());
                let message = format!("`{}` is not {noun} from {from} to {to}", short(text));
                check.error(item.span.clone(), message);
            }
            Some(level) if levels.contains(&level) => {
                check.error(
                    item.span.clone(),
                    format!("`{}` is listed twice", short(text)),
                );
            }
            Some(level) => levels.push(level),
        }
    }
    Some(levels)
}

/// `FROM..TO step STEP`, both ends among the levels.
fn range(node: &Node, text: &str, kind: &Kind, check: &mut Checker) -> Option<Vec<u64>> {
    let level = |text: &str| {
        let level = (kind.parse)(text.trim());
        level.filter(|level| kind.bounds.contains(level))
    };
    let parts = text.split_once("..").and_then(|(from, rest)| {
        let (to, step) = rest.split_once("step")?;
        Some((level(from)?, level(to)?, level(step)?))
    });
    let Some((from, to, step)) = parts.filter(|(from, to, _)| from < to) else {
        check
            .error(
                node.span.clone(),
                format!("`{}` is not a range of levels", short(text)),
            )
            .hint(format!(
                "write `100..1000 step 100`, or a list such as `[100, 300, 1000]`; each is {}",
                kind.noun
            ));
        return None;
    };
    if (to - from) % step != 0 {
        let last = to - (to - from) % step;
        check
            .error(
                node.span.clone(),
                format!("the steps of `{}` do not reach {to}", short(text)),
            )
            .hint(format!(
                "the last level is {last}: end the range there, or use another step"
            ));
        return None;
    }
    let count = (to - from) / step + 1;
    if count > MAX_LOADS as u64 {
        check
            .error(
                node.span.clone(),
                format!("{count} levels are too many: at most {MAX_LOADS} are allowed"),
            )
            .hint("use larger steps");
        return None;
    }
    Some((from..=to).step_by(step as usize).collect())
}

/// A cell of a matrix.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The load.
    pub(crate) spec: LoadSpec,
    /// What it would be called without a scale.
    pub(crate) written: String,
}

impl Axes {
    fn cells(&self) -> usize {
        self.connections.len().max(1) * self.rates.len().max(1)
    }

    /// All combinations, by connections and then by rate. `template` is what they have in common: it
    /// has the matrix's name, and the numbers (not scaled) of what is no axis.
    pub(crate) fn loads(&self, template: &LoadSpec, scale: Scale) -> Vec<Cell> {
        // Without a name it equals no other load by name.
        if self.broken {
            return vec![Cell {
                spec: template.clone(),
                written: String::new(),
            }];
        }
        let own = [u64::from(template.connections)];
        let connections = match self.connections.is_empty() {
            true => &own[..],
            false => &self.connections,
        };
        let rates: Vec<Option<f64>> = match self.rates.is_empty() {
            false => self.rates.iter().map(|rate| Some(*rate as f64)).collect(),
            true => vec![template.main.rate()],
        };
        let all = connections.iter().flat_map(|connections| {
            let each = rates.iter();
            each.map(move |rate| (*connections as u32, *rate))
        });
        all.map(|(connections, rate)| cell(template, connections, rate, scale))
            .collect()
    }
}

fn cell(template: &LoadSpec, connections: u32, rate: Option<f64>, scale: Scale) -> Cell {
    let scaled = (
        scale.connections(connections),
        rate.map(|rate| scale.rate(rate)),
    );
    let mut spec = LoadSpec {
        name: name(&template.name, scaled.0, scaled.1),
        cell: Some(MatrixCell {
            matrix: template.name.clone(),
            connections,
            rate,
        }),
        ..template.clone()
    };
    spec.main.connections = scaled.0;
    if let Some(rate) = scaled.1 {
        spec.main.arrivals = ArrivalsSpec::Constant(rate);
    }
    if let Spacing::Burst { size } = &mut spec.main.spacing {
        *size = scale.connections(*size);
    }
    Cell {
        spec,
        written: name(&template.name, connections, rate),
    }
}

/// `c100-r300`, `c100` without a rate, with the matrix's name before it where it has one.
fn name(matrix: &str, connections: u32, rate: Option<f64>) -> String {
    let dash = if matrix.is_empty() { "" } else { "-" };
    let rate = rate.map_or(String::new(), |rate| format!("-r{}", rate.round()));
    format!("{matrix}{dash}c{connections}{rate}")
}
