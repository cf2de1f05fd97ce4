//! Published response times: the key `response-times` of `published`.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use weir_model::quantity::parse_rate;
use weir_model::study::{PublishedQuantile, PublishedTimes};

use super::Names;
use crate::check::{Checker, Fields, short};
use crate::tree::{Node, Value};

/// Keys for quantiles, ascending.
const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];
#[rustfmt::skip]
const KEYS: [&str; 12] = [
    "arm", "load", "connections", "rate", "unchanged", "p50", "p75", "p90", "p95", "p99", "p99.9",
    "max",
];
const BOUNDS: RangeInclusive<Duration> = Duration::from_nanos(1)..=Duration::from_secs(3600);

pub(crate) fn read(node: &Node, names: &Names<'_>, check: &mut Checker) -> Vec<PublishedTimes> {
    let nodes = check.list(node, "a list of an arm's response times");
    nodes.unwrap_or_default().iter().filter_map(|node| read_times(node, names, check)).collect()
}

fn read_times(node: &Node, names: &Names<'_>, check: &mut Checker) -> Option<PublishedTimes> {
    let fields = Fields::known(node, "an entry of `response-times`", &KEYS, check)?;
    let arm = fields.required("arm", check)?;
    let name = check.text(arm)?;
    names.check_arm(&name, &arm.span, check);
    let load = fields.get("load").and_then(|node| {
        let name = check.text(node)?;
        Some(names.load(&name, &node.span, check))
    });
    let connections =
        fields.get("connections").and_then(|node| bounds(node, |text| text.parse().ok(), check));
    let rate =
        fields.get("rate").and_then(|node| bounds(node, |text| parse_rate(text).ok(), check));
    let unchanged = fields.get("unchanged").and_then(|node| check.flag(node)).unwrap_or(false);
    let quantiles: Vec<PublishedQuantile> = QUANTILES
        .iter()
        .filter_map(|(key, quantile)| published(fields.get(key)?, *quantile, check))
        .collect();
    complain(&fields, unchanged, &quantiles, check);
    Some(PublishedTimes { arm: name, load, connections, rate, unchanged, quantiles })
}

/// Reports an entry that has no content, or impossible quantiles.
fn complain(
    fields: &Fields<'_>,
    unchanged: bool,
    quantiles: &[PublishedQuantile],
    check: &mut Checker,
) {
    let is_any = QUANTILES.iter().any(|(key, _)| fields.get(key).is_some());
    if is_any == unchanged {
        check
            .error(fields.span(), "an entry needs quantiles or `unchanged: true`")
            .hint("such as `{arm: tuned, p50: 200ms..250ms, p99: 1s}`");
    }
    let falls = quantiles.windows(2).find(|pair| pair[1].high < pair[0].low);
    if let Some(pair) = falls
        && let Some((key, _)) = QUANTILES.iter().find(|(_, q)| *q == pair[1].quantile)
        && let Some(entry) = fields.entry(key)
    {
        check.error(
            entry.span.clone(),
            format!("`{key}` is shorter than the time of a lower quantile"),
        );
    }
}

/// Reads `1s`, or `200ms..300ms` if a range was published.
fn published(node: &Node, quantile: f64, check: &mut Checker) -> Option<PublishedQuantile> {
    let Value::Scalar(text) = &node.value else {
        check.duration(node, BOUNDS)?;
        return None;
    };
    let Some((low, high)) = text.split_once("..") else {
        let time = check.duration(node, BOUNDS)?;
        return Some(PublishedQuantile { quantile, low: time, high: time });
    };
    let low = check.duration(&part(node, text, low), BOUNDS)?;
    let high = check.duration(&part(node, text, high), BOUNDS)?;
    if low > high {
        check.error(node.span.clone(), "the shorter time must come first");
    }
    Some(PublishedQuantile { quantile, low, high })
}

/// Returns a part of a scalar as its own node. If the scalar is not quoted, errors point at the part alone.
fn part(node: &Node, whole: &str, part: &str) -> Node {
    let offset = part.as_ptr() as usize - whole.as_ptr() as usize;
    let tail = part.trim_start();
    let begin = node.span.start + offset + part.len() - tail.len();
    let trimmed = tail.trim_end();
    let span: Range<usize> = if node.span.len() == whole.len() {
        begin..begin + trimmed.len()
    } else {
        node.span.clone()
    };
    Node { span, value: Value::Scalar(trimmed.to_owned()) }
}

/// Reads one number or `FROM..TO`.
fn bounds<T: Copy + PartialOrd>(
    node: &Node,
    parse: impl Fn(&str) -> Option<T>,
    check: &mut Checker,
) -> Option<(T, T)> {
    let text = check.text(node)?;
    let (low, high) = text.split_once("..").unwrap_or((&text, &text));
    let bounds = parse(low.trim()).zip(parse(high.trim())).filter(|(low, high)| low <= high);
    if bounds.is_none() {
        check
            .error(node.span.clone(), format!("`{}` is neither a number nor a range", short(&text)))
            .hint("write `100`, or `900..1000`");
    }
    bounds
}
