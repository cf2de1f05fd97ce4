//! The section `published`: results that others published for the same arms.

mod gains;
mod times;

use std::collections::BTreeMap;
use std::ops::Range;

use weir_model::study::Published;

use crate::arms::Arms;
use crate::check::{Checker, Fields, nearest, short};
use crate::load::Loads;
use crate::tree::{Entry, Node, Value};

#[rustfmt::skip]
const KEYS: [&str; 6] = [
    "source", "metric", "figures", "response-times", "gains", "dated",
];

pub(crate) fn read(
    node: Option<&Node>,
    arms: &Arms,
    loads: &Loads,
    check: &mut Checker,
) -> Option<Published> {
    let fields = Fields::known(node?, "`published`", &KEYS, check)?;
    let source = fields.required("source", check).and_then(|node| check.text(node));
    let (times, gains) = (fields.get("response-times"), fields.get("gains"));
    // Each gain has a metric of weir's; what figures are only the file can say.
    let only_gains = gains.is_some() && times.is_none() && fields.get("figures").is_none();
    let metric = if only_gains { fields.get("metric") } else { fields.required("metric", check) };
    let metric = match metric {
        Some(node) => check.text(node),
        None => only_gains.then(String::new),
    };
    let names = Names {
        arms,
        of_arms: named(arms.drafts.iter().map(|draft| &*draft.arm.name)),
        of_loads: named(loads.drafts.iter().map(|draft| &*draft.written)),
        loads,
    };
    // Response times or gains may be all that was published.
    let figures = match times.or(gains) {
        Some(_) => fields.get("figures"),
        None => fields.required("figures", check),
    };
    let entries = figures.and_then(|node| check.entries(node, "an arm and its figure"));
    let mut published = Published {
        source: source.unwrap_or_default(),
        metric: metric.unwrap_or_default(),
        figures: BTreeMap::new(),
        by_load: BTreeMap::new(),
        times: Vec::new(),
        gains: Vec::new(),
        dated: BTreeMap::new(),
    };
    for entry in entries.unwrap_or_default() {
        // A load's own figures are a mapping, an arm's figure is a number.
        if matches!(entry.value.value, Value::Mapping(_)) {
            let load = names.load(&entry.key, &entry.span, check);
            let wanted = "an arm and its figure";
            let figures = check
                .entries(&entry.value, wanted)
                .unwrap_or_default()
                .iter()
                .filter_map(|entry| names.figure(entry, check));
            published.by_load.insert(load, figures.collect());
        } else {
            published.figures.extend(names.figure(entry, check));
        }
    }
    if let Some(node) = times {
        published.times = times::read(node, &names, check);
    }
    if let Some(node) = gains {
        published.gains = gains::read(node, &names, check);
    }
    if let Some(node) = fields.get("dated") {
        published.dated = dated(node, &names, check);
    }
    Some(published)
}

/// Reads what has changed since the publication, by arm.
fn dated(node: &Node, names: &Names<'_>, check: &mut Checker) -> BTreeMap<String, String> {
    let entries = check.entries(node, "an arm and what has changed since");
    let dates = entries.unwrap_or_default().iter().filter_map(|entry| {
        names.check_arm(&entry.key, &entry.span, check);
        Some((entry.key.clone(), check.text(&entry.value)?))
    });
    dates.collect()
}

/// Returns the names without those that were refused, which are empty.
fn named<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    names.filter(|name| !name.is_empty()).collect()
}

/// Names of arms and loads that published figures can be for.
pub(crate) struct Names<'a> {
    arms: &'a Arms,
    of_arms: Vec<&'a str>,
    /// Names of loads in the file.
    of_loads: Vec<&'a str>,
    loads: &'a Loads,
}

impl Names<'_> {
    /// Reads an arm and its figure.
    fn figure(&self, entry: &Entry, check: &mut Checker) -> Option<(String, f64)> {
        self.check_arm(&entry.key, &entry.span, check);
        Some((entry.key.clone(), figure(&entry.value, check)?))
    }

    pub(crate) fn check_arm(&self, name: &str, at: &Range<usize>, check: &mut Checker) {
        let names = &self.of_arms;
        let is_known = names.contains(&name) || self.arms.would_be(name);
        if !names.is_empty() && !is_known {
            check
                .error(at.clone(), format!("no arm is named `{}`", short(name)))
                .hint(format!("the arms are {}", names.join(", ")))
                .nearest(nearest(name, names));
        }
    }

    /// Returns the name in this study of the load that the file calls `name`. They differ if the study is scaled.
    pub(crate) fn load(&self, name: &str, at: &Range<usize>, check: &mut Checker) -> String {
        let names = &self.of_loads;
        let written = self.loads.drafts.iter().find(|draft| draft.written == name);
        let is_merged = self.loads.merged.iter().any(|merged| merged == name);
        if written.is_none() && !names.is_empty() && !is_merged {
            let listed = match names.len() {
                ..=MOST_LISTED => names.join(", "),
                more => {
                    format!("{} and {} more", names[..MOST_LISTED].join(", "), more - MOST_LISTED)
                }
            };
            check
                .error(at.clone(), format!("no load is named `{}`", short(name)))
                .hint(format!("the loads are {listed}"))
                .nearest(nearest(name, names));
        }
        written.map_or_else(|| name.to_owned(), |draft| draft.spec.name.clone())
    }
}

/// Maximum number of loads that a hint lists.
const MOST_LISTED: usize = 12;

fn figure(node: &Node, check: &mut Checker) -> Option<f64> {
    let text = check.text(node)?;
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    if number.is_none() {
        let message = format!("`{}` is not a number above 0", short(&text));
        check.error(node.span.clone(), message);
    }
    number
}
