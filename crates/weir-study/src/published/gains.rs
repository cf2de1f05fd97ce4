//! Published gains: the key `gains` of `published`.

use weir_model::study::{GainOf, PublishedGain};

use super::Names;
use crate::check::{Checker, Fields, short};
use crate::sections::METRICS;
use crate::tree::{Node, Value};

const KEYS: [&str; 6] = ["load", "arms", "level", "metric", "mean", "peak"];

pub(crate) fn read(node: &Node, names: &Names<'_>, check: &mut Checker) -> Vec<PublishedGain> {
    let wanted = "a list of gains such as `{level: transport=sockmap, metric: rate, mean: 178%}`";
    let nodes = check.list(node, wanted);
    nodes.unwrap_or_default().iter().filter_map(|node| read_gain(node, names, check)).collect()
}

fn read_gain(node: &Node, names: &Names<'_>, check: &mut Checker) -> Option<PublishedGain> {
    let fields = Fields::known(node, "a published gain", &KEYS, check)?;
    let metric = fields.required("metric", check).and_then(|node| check.choice(node, &METRICS));
    let load = fields.get("load").and_then(|node| {
        let name = check.text(node)?;
        Some(names.load(&name, &node.span, check))
    });
    let [mean, peak] =
        ["mean", "peak"].map(|key| fields.get(key).and_then(|node| change(node, check)));
    if fields.get("mean").is_none() && fields.get("peak").is_none() {
        check
            .error(fields.span(), "a published gain needs a `mean` or a `peak`")
            .hint("such as `mean: 280%`, or `mean: -30%` where the metric fell");
    }
    Some(PublishedGain { load, of: of(&fields, names, check)?, metric: metric?, mean, peak })
}

/// Reads the cause of a gain: arms or a level.
fn of(fields: &Fields<'_>, names: &Names<'_>, check: &mut Checker) -> Option<GainOf> {
    match (fields.get("arms"), fields.get("level")) {
        (Some(node), None) => arms(node, names, check).map(GainOf::Arms),
        (None, Some(node)) => level(node, names, check),
        _ => {
            check
                .error(fields.span(), "a published gain needs either `arms` or a `level`")
                .hint("such as `arms: [onload]` or `level: transport=sockmap`");
            None
        }
    }
}

/// Reads a name of an arm, or a list of names.
fn arms(node: &Node, names: &Names<'_>, check: &mut Checker) -> Option<Vec<String>> {
    let nodes = match &node.value {
        Value::List(_) => check.list(node, "a list of arms")?,
        _ => std::slice::from_ref(node),
    };
    if nodes.is_empty() {
        check.error(node.span.clone(), "expected at least one arm");
    }
    let arms = nodes.iter().filter_map(|node| {
        let name = check.text(node)?;
        names.check_arm(&name, &node.span, check);
        Some(name)
    });
    Some(arms.collect())
}

/// Reads a level such as `transport=sockmap`, which some arm must have.
fn level(node: &Node, names: &Names<'_>, check: &mut Checker) -> Option<GainOf> {
    let text = check.text(node)?;
    let Some((id, level)) = text.split_once('=') else {
        let message = format!("`{}` is not a level of a parameter", short(&text));
        check
            .error(node.span.clone(), message)
            .hint("write the parameter, `=` and the level: `transport=sockmap`");
        return None;
    };
    let (id, level) = (id.trim().to_owned(), level.trim().to_owned());
    let drafts = &names.arms.drafts;
    let mut of_arms = drafts.iter().filter_map(|draft| draft.arm.settings.get(&id));
    let is_known = of_arms.any(|own| *own == level) || names.arms.would_be(&text);
    if !drafts.is_empty() && !is_known {
        let mut levels: Vec<&str> =
            drafts.iter().filter_map(|draft| Some(draft.arm.settings.get(&id)?.as_str())).collect();
        levels.sort_unstable();
        levels.dedup();
        let hint = if levels.is_empty() {
            format!("no arm sets `{}`", short(&id))
        } else {
            format!("the arms have {}", levels.join(", "))
        };
        let message = format!("no arm has `{}`", short(&text));
        check.error(node.span.clone(), message).hint(hint);
    }
    Some(GainOf::Level { id, level })
}

/// Reads a change in per cent: `280%`, `+280%`, `-30%`.
fn change(node: &Node, check: &mut Checker) -> Option<f64> {
    let text = check.text(node)?;
    // A metric can fall by no more than all of it, and a change of 0 is no gain.
    let change = text
        .trim()
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok())
        .filter(|change| change.is_finite() && *change > -100.0 && *change != 0.0)
        .map(|percent| percent / 100.0);
    if change.is_none() {
        let message = format!("`{}` is not a change in percent", short(&text));
        check
            .error(node.span.clone(), message)
            .hint("write `280%`, or `-30%` where the metric fell");
    }
    change
}
