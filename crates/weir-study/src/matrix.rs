//! Loads as a matrix: every combination of connections and rates is its own load.

use std::ops::RangeInclusive;

use weir_model::flow::{ArrivalsSpec, LoadSpec};
use weir_model::load::Spacing;
use weir_model::quantity::parse_rate;
use weir_model::study::MatrixCell;

use crate::check::{Checker, Fields, short};
use crate::scale::Scale;
use crate::tree::{Node, Value};

/// Maximum number of loads of a study, counting all cells of matrices. Each takes its own trial.
pub(crate) const MAX_LOADS: usize = 400;

/// Kind of an axis.
struct Kind {
    /// Description for errors, to be followed by the bounds.
    noun: &'static str,
    bounds: RangeInclusive<u64>,
    parse: fn(&str) -> Option<u64>,
}

impl Kind {
    fn parse_level(&self, text: &str) -> Option<u64> {
        (self.parse)(text.trim()).filter(|level| self.bounds.contains(level))
    }
}

const CONNECTIONS: Kind = Kind {
    noun: "a whole number of connections",
    bounds: 1..=1_000_000,
    parse: |text| text.parse().ok(),
};

/// Kind of the axis of rates. A rate is a whole number, because names contain it.
const RATE: Kind = Kind {
    noun: "a whole number of requests per second",
    bounds: 1..=1_000_000_000,
    parse: |text| {
        let rate = parse_rate(text).ok()?;
        (rate.fract() == 0.0 && rate < 1e18).then_some(rate as u64)
    },
};

/// Levels of a matrix. An axis for which the load has a single number is empty.
#[derive(Debug, Default)]
pub(crate) struct Axes {
    connections: Vec<u64>,
    rates: Vec<u64>,
    /// True if an error was reported, in which case there are no levels.
    broken: bool,
}

/// Returns true if the rates of `node` are levels of a matrix. `100..1000` without a step is a growing rate.
pub(crate) fn is_axis_of_rates(node: &Node) -> bool {
    match &node.value {
        Value::List(_) => true,
        Value::Scalar(text) => text.contains("..") && text.contains("step"),
        _ => false,
    }
}

/// Returns true if `node` has several levels: a list, or a range such as `100..1000 step 100`.
pub(crate) fn is_axis(node: &Node) -> bool {
    match &node.value {
        Value::List(_) => true,
        Value::Scalar(text) => text.contains(".."),
        _ => false,
    }
}

/// Reads both axes of a load. `None` if the load has no axis.
pub(crate) fn axes(fields: &Fields<'_>, check: &mut Checker) -> Option<Axes> {
    let connections = fields.get("connections").filter(|node| is_axis(node));
    let rates = fields.get("rate").filter(|node| is_axis_of_rates(node));
    let first = connections.or(rates)?;
    let before = check.count();
    let axes = Axes {
        connections: connections.map_or_else(Vec::new, |node| read(node, &CONNECTIONS, check)),
        rates: rates.map_or_else(Vec::new, |node| read(node, &RATE, check)),
        broken: false,
    };
    if axes.cells() > MAX_LOADS {
        let message =
            format!("{} loads are too many: at most {MAX_LOADS} are allowed", axes.cells());
        check.error(first.span.clone(), message).hint("use larger steps");
    }
    if check.count() == before {
        Some(axes)
    } else {
        Some(Axes { broken: true, ..Axes::default() })
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
                check.error(item.span.clone(), format!("`{}` is listed twice", short(text)));
            }
            Some(level) => levels.push(level),
        }
    }
    Some(levels)
}

/// Reads `FROM..TO step STEP`. Both ends are levels.
fn range(node: &Node, text: &str, kind: &Kind, check: &mut Checker) -> Option<Vec<u64>> {
    let parts = text.split_once("..").and_then(|(from, tail)| {
        let (to, step) = tail.split_once("step")?;
        Some((kind.parse_level(from)?, kind.parse_level(to)?, kind.parse_level(step)?))
    });
    let Some((from, to, step)) = parts.filter(|(from, to, _)| from < to) else {
        check.error(node.span.clone(), format!("`{}` is not a range of levels", short(text))).hint(
            format!(
                "write `100..1000 step 100`, or a list such as `[100, 300, 1000]`; each is {}",
                kind.noun
            ),
        );
        return None;
    };
    if (to - from) % step != 0 {
        let last = to - (to - from) % step;
        check
            .error(node.span.clone(), format!("the steps of `{}` do not reach {to}", short(text)))
            .hint(format!("the last level is {last}: end the range there, or use another step"));
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
    /// Load of the cell.
    pub(crate) spec: LoadSpec,
    /// Name of the cell without a scale.
    pub(crate) written: String,
}

impl Axes {
    fn cells(&self) -> usize {
        self.connections.len().max(1) * self.rates.len().max(1)
    }

    /// Returns all combinations, by connections and then by rate. `template` is their common part: it has the matrix's
    /// name, and the (unscaled) numbers that are not an axis.
    pub(crate) fn loads(&self, template: &LoadSpec, scale: Scale) -> Vec<Cell> {
        // Without a name it equals no other load by name.
        if self.broken {
            return vec![Cell { spec: template.clone(), written: String::new() }];
        }
        let template_level = [u64::from(template.connections)];
        let connections =
            if self.connections.is_empty() { &template_level[..] } else { &self.connections };
        let rates: Vec<Option<f64>> = if self.rates.is_empty() {
            vec![template.main.rate()]
        } else {
            self.rates.iter().map(|rate| Some(*rate as f64)).collect()
        };
        connections
            .iter()
            .flat_map(|connections| rates.iter().map(move |rate| (*connections as u32, *rate)))
            .map(|(connections, rate)| cell(template, connections, rate, scale))
            .collect()
    }
}

fn cell(template: &LoadSpec, connections: u32, rate: Option<f64>, scale: Scale) -> Cell {
    let scaled = (scale.connections(connections), rate.map(|rate| scale.rate(rate)));
    let mut spec = LoadSpec {
        name: name(&template.name, scaled.0, scaled.1),
        cell: Some(MatrixCell { matrix: template.name.clone(), connections, rate }),
        ..template.clone()
    };
    spec.main.connections = scaled.0;
    if let Some(rate) = scaled.1 {
        spec.main.arrivals = ArrivalsSpec::Constant(rate);
    }
    if let Spacing::Burst { size } = &mut spec.main.spacing {
        *size = scale.connections(*size);
    }
    Cell { spec, written: name(&template.name, connections, rate) }
}

/// Formats the name of a cell: `c100-r300`, or `c100` without a rate, after the matrix's name if it has one.
fn name(matrix: &str, connections: u32, rate: Option<f64>) -> String {
    let dash = if matrix.is_empty() { "" } else { "-" };
    let suffix = rate.map_or(String::new(), |rate| format!("-r{}", rate.round()));
    format!("{matrix}{dash}c{connections}{suffix}")
}
