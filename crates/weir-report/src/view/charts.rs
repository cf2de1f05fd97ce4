//! Data of the charts of a load.

use weir_analysis::findings::ArmFindings;
use weir_model::study::ArmRole;

use crate::number;
use crate::tree::{Axis, Chart, Extent, Line, Lines, Panel, Panels};

/// Returns the series index of each arm. Changes come first, so that they alone use the hues. Baseline and A/A come
/// after them.
pub(super) fn series(roles: &[ArmRole]) -> Vec<usize> {
    let changes = roles.iter().filter(|role| **role == ArmRole::Change);
    let (mut change, mut other) = (0, changes.count());
    roles
        .iter()
        .map(|role| {
            let next = match role {
                ArmRole::Change => &mut change,
                ArmRole::Baseline | ArmRole::SameAsBaseline => &mut other,
            };
            *next += 1;
            *next - 1
        })
        .collect()
}

/// Returns the colour of a series: black for the baseline and the A/A arm, one of seven hues for the others.
fn hue(series: usize, role: ArmRole) -> usize {
    match role {
        ArmRole::Baseline | ArmRole::SameAsBaseline => 0,
        ArmRole::Change => series % 7 + 1,
    }
}

/// Returns the style classes for colour and dash of a series. The A/A arm is dashed. Each hue has six dashes before
/// anything repeats.
pub(super) fn class(series: usize, role: ArmRole) -> String {
    let dash = match role {
        ArmRole::Baseline => 0,
        ArmRole::SameAsBaseline => 1,
        ArmRole::Change => series / 7 % 6,
    };
    format!("s{} d{dash}", hue(series, role))
}

/// Formats the times of an arm as the tooltip of its line.
pub(super) fn tooltip(name: &str, arm: &ArmFindings) -> String {
    let [p50, _, p99, p999, max] = number::quantiles(&arm.response_ns, arm.samples);
    format!("{name}: 50 % {p50}, 99 % {p99}, 99.9 % {p999}, slowest {max}")
}

/// Returns the part of an arm's curve that can be drawn: finite, from quantile 0 on.
pub(super) fn curve(arm: &ArmFindings) -> Vec<(f64, f64)> {
    arm.percentile_curve
        .iter()
        .filter(|(x, _)| x.is_finite() && *x >= 1.0)
        .map(|&(x, ns)| (x, ns as f64))
        .collect()
}

/// Returns the percentile curves of all arms. `None` if no arm has one.
pub(super) fn percentiles(arms: &[ArmFindings]) -> Option<Lines> {
    let roles: Vec<ArmRole> = arms.iter().map(|arm| arm.role).collect();
    let lines = arms.iter().zip(series(&roles)).map(|(arm, series)| Line {
        name: arm.arm.clone(),
        tooltip: tooltip(&arm.arm, arm),
        class: class(series, arm.role),
        series,
        front: arm.role != ArmRole::Change,
        points: curve(arm),
    });
    let lines: Vec<Line> = lines.collect();
    let is_any = lines.iter().any(|line| !line.points.is_empty());
    is_any.then(|| Lines {
        title: "Response time by percentile".to_owned(),
        each: "arm",
        axis: Axis::Nines,
        extent: Extent::of(&lines),
        lines,
        marks: None,
    })
}

/// Returns a figure of all arms over time: median response times if `times` is true, else completed rates.
pub(super) fn over_time(arms: &[ArmFindings], times: bool) -> Chart {
    let roles: Vec<ArmRole> = arms.iter().map(|arm| arm.role).collect();
    let panels = arms.iter().zip(series(&roles)).map(|(arm, series)| {
        let points = arm.over_time.iter().map(|&(s, rate, ns)| {
            if times { (s, ns.map_or(f64::NAN, |ns| ns as f64)) } else { (s, rate) }
        });
        Panel {
            name: arm.arm.clone(),
            hue: hue(series, arm.role),
            is_baseline: arm.role == ArmRole::Baseline,
            points: points.filter(|(s, _)| s.is_finite()).collect(),
        }
    });
    Chart::Panels(Panels {
        what: if times { "median response time" } else { "completed requests per second" },
        times,
        panels: panels.collect(),
    })
}
