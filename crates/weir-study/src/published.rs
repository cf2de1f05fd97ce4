//! The section `published`: what others saw, for the same arms.

use std::collections::BTreeMap;

use weir_model::study::Published;

use crate::arms::Arms;
use crate::check::{Checker, Fields, nearest, short};
use crate::load;
use crate::tree::{Entry, Node, Value};

pub(crate) fn read(
    node: Option<&Node>,
    arms: &Arms,
    loads: &[load::Draft],
    check: &mut Checker,
) -> Option<Published> {
    let known = ["source", "metric", "figures"];
    let fields = Fields::known(node?, "`published`", &known, check)?;
    let source = fields
        .required("source", check)
        .and_then(|node| check.text(node));
    let metric = fields
        .required("metric", check)
        .and_then(|node| check.text(node));
    let figures = fields.required("figures", check);
    let entries = figures.and_then(|node| check.entries(node, "an arm and its figure"));
    let names = Names {
        arms,
        of_arms: named(arms.drafts.iter().map(|draft| &*draft.arm.name)),
        of_loads: named(loads.iter().map(|draft| &*draft.spec.name)),
    };
    let mut published = Published {
        source: source?,
        metric: metric?,
        figures: BTreeMap::new(),
        by_load: BTreeMap::new(),
    };
    for entry in entries.unwrap_or_default() {
        // A load's own figures are a mapping, an arm's figure is a number.
        if matches!(entry.value.value, Value::Mapping(_)) {
            names.check_load(entry, check);
            let wanted = "an arm and its figure";
            let own = check.entries(&entry.value, wanted).unwrap_or_default();
            let own = own.iter().filter_map(|entry| names.figure(entry, check));
            published.by_load.insert(entry.key.clone(), own.collect());
        } else {
            published.figures.extend(names.figure(entry, check));
        }
    }
    Some(published)
}

/// Names but for those that were refused, which are empty.
fn named<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    names.filter(|name| !name.is_empty()).collect()
}

/// What figures can be for.
struct Names<'a> {
    arms: &'a Arms,
    of_arms: Vec<&'a str>,
    of_loads: Vec<&'a str>,
}

impl Names<'_> {
    /// An arm and its figure.
    fn figure(&self, entry: &Entry, check: &mut Checker) -> Option<(String, f64)> {
        let names = &self.of_arms;
        let is_known = names.contains(&&*entry.key) || self.arms.would_be(&entry.key);
        if !names.is_empty() && !is_known {
            check
                .error(
                    entry.span.clone(),
                    format!("no arm is named `{}`", short(&entry.key)),
                )
                .hint(format!("the arms are {}", names.join(", ")))
                .nearest(nearest(&entry.key, names));
        }
        Some((entry.key.clone(), figure(&entry.value, check)?))
    }

    fn check_load(&self, entry: &Entry, check: &mut Checker) {
        let names = &self.of_loads;
        if !names.is_empty() && !names.contains(&&*entry.key) {
            check
                .error(
                    entry.span.clone(),
                    format!("no load is named `{}`", short(&entry.key)),
                )
                .hint(format!("the loads are {}", names.join(", ")))
                .nearest(nearest(&entry.key, names));
        }
    }
}

fn figure(node: &Node, check: &mut Checker) -> Option<f64> {
    let text = check.text(node)?;
    let number = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0);
    if number.is_none() {
        let message = format!("`{}` is not a number above 0", short(&text));
        check.error(node.span.clone(), message);
    }
    number
}
