//! Arrivals of a flow: the keys `closed`, `rate`, `trace` and `burst`.

use weir_model::arrivals::length_of_steps;
use weir_model::flow::words::Key;
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::load::Spacing;

use crate::check::{Checker, Fields, fraction, short};
use crate::matrix;
use crate::tree::{Node, Value};
use crate::words::{Slices, Words};

/// Reads `closed`, `rate` and `burst`. Returns true if they are consistent with each other.
pub(crate) fn read(
    fields: &Fields<'_>,
    slices: Slices,
    base: &mut FlowSpec,
    words: &mut Words,
    check: &mut Checker,
) -> bool {
    let held = fields
        .get("connection")
        .is_some_and(|node| matches!(&node.value, Value::Scalar(text) if text.starts_with("hold")));
    let before = check.count();
    let closed = fields.entry("closed").filter(|entry| check.flag(&entry.value) != Some(false));
    let timed = fields.entry("rate").or(fields.entry("trace"));
    match (closed, timed) {
        (Some(_), Some(timed)) => {
            check
                .error(timed.span.clone(), "a load is either closed or has a rate")
                .hint("leave one of the two out, or make two loads of it");
        }
        (None, Some(_)) if fields.get("rate").is_some() && fields.get("trace").is_some() => {
            let message = "a load has either a `rate` or a `trace`";
            check.error(fields.span(), message).hint("leave one of the two out");
        }
        (None, None) if !held => {
            check
                .error(fields.span(), "a load needs `closed: true` or a `rate`")
                .hint("`closed: true`: each connection sends the next request as soon as it has the response; `rate: 5000`: requests per second, however fast responses come");
        }
        _ => {}
    }
    let is_sound = check.count() == before;
    match fields.get("rate") {
        // The levels of a matrix are read by it.
        Some(rate) if matrix::is_axis_of_rates(rate) => {
            base.arrivals = ArrivalsSpec::Constant(1.0);
        }
        Some(rate) => read_rate(rate, slices, base, words, check),
        None => {}
    }
    burst(fields, base, words, check);
    is_sound
}

fn read_rate(
    node: &Node,
    slices: Slices,
    base: &mut FlowSpec,
    words: &mut Words,
    check: &mut Checker,
) {
    let Some(text) = check.text(node) else { return };
    // What is wrong with it leaves an open loop.
    base.arrivals = ArrivalsSpec::Constant(1.0);
    let (may_fall, share) =
        text.strip_prefix("up to ").map_or((false, &*text), |share| (true, share));
    let Some((percent, of)) = share.split_once('%') else {
        // A rate that changes needs a slice, which is told with better words than of its length.
        match length_of_steps(&text) {
            Ok(_) => words.say(Key::Rate, text, node),
            Err(error) => {
                check
                    .error(node.span.clone(), error.to_string())
                    .hint("write requests per second such as 5000, or a share of the slowest arm's rate: `60% of slowest`");
            }
        }
        return;
    };
    let share = fraction(&format!("{percent}%")).filter(|share| *share > 0.0 && *share <= 1.0);
    let Some(share) = share.filter(|_| of.trim() == "of slowest") else {
        check.error(node.span.clone(), format!("`{}` is not a rate", short(&text))).hint(
            "write `60% of slowest` or `up to 60% of slowest`, from above 0 % to 100 %, or requests per second such as 5000",
        );
        return;
    };
    base.arrivals = if may_fall {
        ArrivalsSpec::UpToShareOfSlowest(share)
    } else {
        ArrivalsSpec::ShareOfSlowest(share)
    };
    if !slices.closed_before {
        check
            .error(node.span.clone(), "no closed load comes before this one")
            .hint("the slowest arm's rate is measured in a closed load: put one before this load, or give requests per second");
    }
}

/// Reads `burst: 50`, which is a short form of `arrivals: burst:50`.
fn burst(fields: &Fields<'_>, base: &FlowSpec, words: &mut Words, check: &mut Checker) {
    let Some(entry) = fields.entry("burst") else {
        return;
    };
    let Some(size) = check.whole(&entry.value, 2..=1_000_000) else {
        return;
    };
    if let Some(arrivals) = fields.entry("arrivals") {
        let message = "`burst` and `arrivals` both say how arrivals are spread";
        check.error(arrivals.span.clone(), message).hint("leave one of the two out");
    } else if base.is_open() {
        words.say(Key::Arrivals, format!("burst:{size}"), &entry.value);
    } else if fields.get("closed").is_some() {
        check.error(entry.span.clone(), "a closed load has no bursts").hint(
            "write a `rate` instead of `closed`: in a closed load each connection sends its next request as soon as it has the response",
        );
    }
}

/// Checks that every slice can have the same load. Arms take turns in slices, and changing arrivals begin anew in each,
/// so the length of a slice must be known, and so must the rate of bursts.
pub(crate) fn check_slices(
    spec: &FlowSpec,
    fields: &Fields<'_>,
    slices: Slices,
    check: &mut Checker,
) {
    if spec.changes() && slices.length.is_none() {
        let message = "a load whose rate changes needs a slice";
        check
            .error(fields.entry_span("rate").or(fields.entry_span("trace")).unwrap_or(fields.span()), message)
            .hint("it starts again in every slice, so that all arms get the same load: write `blocks: {slice: 10s}`");
    }
    let of_bursts =
        fields.entry_span("burst").or(fields.entry_span("arrivals")).unwrap_or(fields.span());
    if matches!(spec.spacing, Spacing::Burst { .. }) && spec.is_open() && spec.rate().is_none() {
        check.error(of_bursts, "a load with bursts needs its rate in requests per second").hint(
            "each slice holds whole bursts, so the rate must be known before anything is measured",
        );
    }
}
