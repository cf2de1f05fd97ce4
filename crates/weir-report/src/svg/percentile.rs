//! Percentile plot on the axis of HdrHistogram's plotter: x is 1/(1-quantile), logarithmic, so each
//! further nine of the quantile takes the same room and the tail can be read.

use weir_model::study::ArmRole;

use super::scale::{Scale, decades, round_steps, tick_time};
use super::{Anchor, Canvas, Width, fit, polyline, series_class};
use crate::view::ArmView;

/// With more lines than this, names beside the lines cannot be told apart; the legend remains.
const DIRECT_LABELS: usize = 12;
/// Room for them at the right.
const LABELS: f64 = 214.0;
/// Between neighbouring labels.
const LABEL_GAP: f64 = 16.0;
/// Response times that differ by more than this factor are drawn on a logarithmic axis.
const LINEAR_UP_TO: f64 = 12.0;

/// Draws the curves of all arms; empty when there is none. `series` holds each arm's place among
/// the series.
pub(crate) fn percentile(id: &str, arms: &[ArmView], series: &[usize], width: Width) -> String {
    let drawn: Vec<(&ArmView, usize)> = arms
        .iter()
        .zip(series.iter().copied())
        .filter(|(arm, _)| !arm.percentile_curve.is_empty())
        .collect();
    if drawn.is_empty() {
        return String::new();
    }
    let labels = width == Width::Wide && drawn.len() <= DIRECT_LABELS;
    let (height, right) = match (width, labels) {
        (Width::Wide, true) => (400.0, LABELS),
        (Width::Wide, false) => (400.0, 24.0),
        (Width::Narrow, _) => (300.0, 12.0),
    };
    let plot_x = (62.0, width.px() - right);
    let plot_y = (height - 48.0, 14.0);
    let names: Vec<&str> = drawn.iter().map(|(arm, _)| arm.name.as_str()).collect();
    let class = format!("{}{}", width.class(), if labels { " labelled" } else { "" });
    let mut canvas = Canvas::new(
        id,
        &class,
        (width.px(), height),
        "Response time by percentile",
        &format!("One line for each arm: {}", names.join(", ")),
    );
    let x = Scale::log((1.0, reach(&drawn)), plot_x);
    let y = y_axis(&mut canvas, &drawn, plot_x, plot_y);
    x_axis(&mut canvas, &x, plot_x, plot_y, width);
    // Baseline and A/A last: they are what everything is compared with.
    let (front, back): (Vec<_>, Vec<_>) = drawn
        .iter()
        .partition(|(arm, _)| arm.role != ArmRole::Change);
    for (arm, index) in back.into_iter().chain(front) {
        curve(&mut canvas, arm, index, &x, &y);
    }
    if labels {
        direct_labels(&mut canvas, &drawn, &x, &y, plot_x.1, plot_y);
    }
    canvas.finish()
}

/// How far to the right the longest curve goes, at least to quantile 0.9.
fn reach(drawn: &[(&ArmView, usize)]) -> f64 {
    let points = drawn.iter().flat_map(|(arm, _)| &arm.percentile_curve);
    points.map(|(x, _)| *x).fold(10.0, f64::max).min(1e9)
}

fn extent(drawn: &[(&ArmView, usize)]) -> (f64, f64) {
    let points = drawn.iter().flat_map(|(arm, _)| &arm.percentile_curve);
    points
        .map(|(_, ns)| ns.max(1.0))
        .fold((f64::INFINITY, 1.0), |(low, high), ns| {
            (low.min(ns), high.max(ns))
        })
}

/// Whether the response times are drawn on a logarithmic axis.
pub(crate) fn uses_log_axis(arms: &[ArmView]) -> bool {
    let all: Vec<(&ArmView, usize)> = arms.iter().map(|arm| (arm, 0)).collect();
    let (low, high) = extent(&all);
    high / low > LINEAR_UP_TO
}

fn y_axis(
    canvas: &mut Canvas,
    drawn: &[(&ArmView, usize)],
    plot_x: (f64, f64),
    plot_y: (f64, f64),
) -> Scale {
    let (low, high) = extent(drawn);
    let (scale, ticks) = if high / low > LINEAR_UP_TO {
        let scale = Scale::log((low / 1.15, high * 1.15), plot_y);
        (scale, scale.pick(decades(low, high), 26.0))
    } else {
        let steps = round_steps(high, 6);
        let top = steps.last().copied().unwrap_or(1.0);
        (Scale::linear((0.0, top), plot_y), steps)
    };
    for tick in ticks {
        let y = scale.at(tick);
        canvas.line("grid", (plot_x.0, y), (plot_x.1, y));
        let text = tick_time(tick);
        canvas.text("tick", (plot_x.0 - 8.0, y + 4.0), Anchor::End, &text);
    }
    scale
}

fn x_axis(canvas: &mut Canvas, x: &Scale, plot_x: (f64, f64), plot_y: (f64, f64), width: Width) {
    let nines = (1..=9).map(|power| 10_f64.powi(power));
    let gap = match width {
        Width::Wide => 64.0,
        Width::Narrow => 54.0,
    };
    for tick in x.pick(nines.chain([2.0, 4.0, 1.0]), gap) {
        let px = x.at(tick);
        canvas.line("grid", (px, plot_y.1), (px, plot_y.0 + 4.0));
        let anchor = match px {
            px if px > plot_x.1 - 18.0 && width == Width::Narrow => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.text("tick", (px, plot_y.0 + 20.0), anchor, &percent(tick));
    }
    canvas.line("axis", (plot_x.0, plot_y.0), (plot_x.1, plot_y.0));
    let middle = (plot_x.0 + plot_x.1) / 2.0;
    let below = (middle, plot_y.0 + 40.0);
    canvas.text(
        "hint",
        below,
        Anchor::Middle,
        "share of requests answered at least as fast",
    );
}

/// 1/(1-quantile) as a percentage: 1000 is `99.9 %`.
fn percent(x: f64) -> String {
    let decimals = (x.log10().round() as usize).saturating_sub(2);
    format!("{:.decimals$} %", 100.0 * (1.0 - 1.0 / x))
}

fn curve(canvas: &mut Canvas, arm: &ArmView, index: usize, x: &Scale, y: &Scale) {
    let [p50, _, p99, p999, max] = &arm.response;
    let tooltip = format!(
        "{}: 50 % {p50}, 99 % {p99}, 99.9 % {p999}, slowest {max}",
        arm.name
    );
    canvas.open("series", Some(index), &tooltip);
    let points = arm.percentile_curve.iter();
    let d = polyline(points.map(|&(at, ns)| (x.at(at), y.at(ns.max(1.0)))));
    // A broad unseen line under the thin one makes it easy to point at.
    canvas.path("aim", &d);
    canvas.path(&format!("ln {}", series_class(index, arm.role)), &d);
    canvas.close();
}

fn direct_labels(
    canvas: &mut Canvas,
    drawn: &[(&ArmView, usize)],
    x: &Scale,
    y: &Scale,
    right: f64,
    plot_y: (f64, f64),
) {
    let mut ends: Vec<(f64, f64, &ArmView, usize)> = drawn
        .iter()
        .filter_map(|(arm, index)| {
            let &(at, ns) = arm.percentile_curve.last()?;
            Some((x.at(at), y.at(ns.max(1.0)), *arm, *index))
        })
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    let placed = spread(&wanted, LABEL_GAP, (plot_y.1, plot_y.0));
    for ((end_x, end_y, arm, index), label_y) in ends.into_iter().zip(placed) {
        let class = series_class(index, arm.role);
        canvas.open("series", Some(index), &arm.name);
        let leader = [
            (end_x, end_y),
            (right + 2.0, end_y),
            (right + 14.0, label_y),
        ];
        canvas.path(&format!("leader {class}"), &polyline(leader.into_iter()));
        let name = fit(&arm.name, LABELS - 20.0);
        let at = (right + 18.0, label_y + 4.0);
        canvas.text(&format!("label f {class}"), at, Anchor::Start, &name);
        canvas.close();
    }
}

/// Moves ascending positions apart so that neighbours are `gap` from each other, as near to where
/// they want to be as one pass down and one up allow.
fn spread(wanted: &[f64], gap: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let mut placed = wanted.to_vec();
    let mut least = low;
    for position in &mut placed {
        *position = position.max(least);
        least = *position + gap;
    }
    let mut most = high;
    for position in placed.iter_mut().rev() {
        *position = position.min(most);
        most = *position - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_written_with_their_nines() {
        let cases = [
            (1.0, "0 %"),
            (2.0, "50 %"),
            (4.0, "75 %"),
            (10.0, "90 %"),
            (100.0, "99 %"),
            (1e3, "99.9 %"),
            (1e5, "99.999 %"),
        ];
        for (x, text) in cases {
            assert_eq!(percent(x), text);
        }
    }

    #[test]
    fn labels_keep_their_distance_and_their_order() {
        let placed = spread(&[10.0, 11.0, 12.0, 90.0, 99.0, 100.0], 10.0, (0.0, 100.0));
        for pair in placed.windows(2) {
            assert!(pair[1] - pair[0] >= 10.0 - 1e-9, "{placed:?}");
        }
        assert!(placed[5] <= 100.0 && placed[0] >= 0.0, "{placed:?}");
        assert_eq!(spread(&[5.0, 50.0], 10.0, (0.0, 100.0)), [5.0, 50.0]);
    }
}
