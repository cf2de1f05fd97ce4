//! Factors: parameters and their levels, as `one-at-a-time` and `factorial` list them.

use std::ops::Range;

use weir_model::study::{CPU_COUNT, Settings};

use crate::check::{Checker, short};
use crate::machine::Growing;
use crate::proxy::Levels;
use crate::tree::{Entry, Node, Value};

/// A factor: its parameter, and its levels with their positions.
pub(crate) struct Factor<'n> {
    pub(crate) entry: &'n Entry,
    pub(crate) levels: Vec<(String, Range<usize>)>,
    /// True if some levels are left to the machine.
    pub(crate) growing: bool,
}

impl Levels<'_> {
    /// Reads a mapping of parameters to lists of levels.
    pub(crate) fn factors<'n>(&self, entry: &'n Entry, check: &mut Checker) -> Vec<Factor<'n>> {
        let wanted = "a factor and its levels such as `gzip: [on, off]`";
        let mut factors = Vec::new();
        for entry in check.entries(&entry.value, wanted).unwrap_or_default() {
            if self.catalog.get(self.kind, &entry.key).is_none() {
                self.report_unknown(entry, check);
                continue;
            }
            let nodes: &[Node] = match &entry.value.value {
                Value::List(_) => check.list(&entry.value, "a level").unwrap_or_default(),
                _ => std::slice::from_ref(&entry.value),
            };
            let mut factor = Factor { entry, levels: Vec::new(), growing: false };
            for node in nodes {
                self.add(&mut factor, node, check);
            }
            factors.push(factor);
        }
        factors
    }

    /// Adds the level or levels that `node` defines.
    fn add(&self, factor: &mut Factor<'_>, node: &Node, check: &mut Checker) {
        let written = match &node.value {
            Value::Scalar(text) => Growing::parse(text),
            _ => None,
        };
        let Some(growing) = written else {
            self.add_one(factor, node, check);
            return;
        };
        factor.growing |= growing.to.is_none();
        let of_machine =
            if factor.entry.key == CPU_COUNT { self.proxy_cpus } else { self.context.cpus() };
        let Some(last) = growing.to.or(of_machine) else {
            check
                .error(node.span.clone(), "the number of CPUs that weir may use is not known")
                .hint("list the levels");
            return;
        };
        for level in growing.levels(last) {
            let node = Node { value: Value::Scalar(level.to_string()), span: node.span.clone() };
            let errors_before = check.count();
            self.add_one(factor, &node, check);
            // A parameter that takes no such number takes none of the others.
            if check.count() > errors_before {
                return;
            }
        }
    }

    fn add_one(&self, factor: &mut Factor<'_>, node: &Node, check: &mut Checker) {
        let Some(level) = self.read(factor.entry, node, check) else {
            return;
        };
        if factor.levels.iter().any(|(other, _)| *other == level) {
            let message = format!("the level `{}` is listed twice", short(&level));
            check.error(node.span.clone(), message);
            return;
        }
        factor.levels.push((level, node.span.clone()));
    }
}

/// Returns the parameters of `factors` with levels that are left to the machine.
pub(crate) fn find_growing(factors: &[Factor<'_>]) -> Vec<String> {
    factors.iter().filter(|factor| factor.growing).map(|factor| factor.entry.key.clone()).collect()
}

/// Returns the levels of combination number `cell`. The last factor changes fastest.
pub(crate) fn combination(factors: &[Factor<'_>], mut cell: usize) -> Settings {
    let mut settings = Settings::new();
    for factor in factors.iter().rev() {
        let count = factor.levels.len();
        settings.insert(factor.entry.key.clone(), factor.levels[cell % count].0.clone());
        cell /= count;
    }
    settings
}
