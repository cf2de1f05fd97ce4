//! Forest plot: one row per compared arm, the estimate as a mark, the interval as a whisker, on a
//! logarithmic axis, because a ratio of 2 and one of 0.5 are equally large effects.
//!
//! The verdict is a shape and a word beside its colour. The equivalence band is shaded: an interval
//! inside it is an effect too small to matter.

use weir_analysis::findings::Verdict;
use weir_model::study::ArmRole;

use super::scale::{RATIOS, Scale};
use super::{Anchor, Canvas, Width, fit};
use crate::view::{Effect, MetricView, RowView, words};

/// Effects beyond this, either way, are drawn at the axis' end with an arrow.
const FARTHEST: f64 = 1e3;

/// An effect within this, either way, is shown in the close-up.
const NEAR: f64 = 1.25;
/// A close-up is worth its place when it spreads what it shows at least so many times.
const WORTH: f64 = 2.5;

/// Which part of the axis a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// Everything.
    Whole,
    /// What is near 1; nothing is drawn when that is (nearly) everything.
    CloseUp,
}

/// Where things are, per width.
struct Layout {
    row: f64,
    plot: (f64, f64),
    label_px: f64,
    top: f64,
    /// Part of a row, from its top, that band and grid lines cross: not where text stands.
    strip: (f64, f64),
}

const WIDE: Layout = Layout {
    row: 30.0,
    plot: (236.0, 640.0),
    label_px: 218.0,
    top: 26.0,
    strip: (0.0, 30.0),
};
const NARROW: Layout = Layout {
    row: 48.0,
    plot: (8.0, 334.0),
    label_px: 176.0,
    top: 26.0,
    strip: (22.0, 44.0),
};

/// Draws the forest of one metric; empty when there is nothing to show.
pub(crate) fn forest(id: &str, metric: &MetricView, width: Width, range: Range) -> String {
    let rows: Vec<&RowView> = metric.rows.iter().filter(|r| r.verdict.is_some()).collect();
    let whole = domain(rows.iter().filter_map(|row| row.effect), metric.band);
    let shown = match range {
        _ if rows.iter().all(|row| row.effect.is_none()) => None,
        Range::Whole => Some(whole),
        Range::CloseUp => close_up(&rows, metric.band, whole),
    };
    let Some(shown) = shown else {
        return String::new();
    };
    let layout = match width {
        Width::Wide => WIDE,
        Width::Narrow => NARROW,
    };
    let bottom = layout.top + layout.row * rows.len() as f64;
    let size = (width.px(), bottom + 30.0);
    let title = format!(
        "Effect of each arm on the {}: ratio and interval",
        words::metric(metric.metric)
    );
    let mut canvas = Canvas::new(id, width.class(), size, &title, &description(&rows));
    let scale = Scale::log(shown, layout.plot);
    axis(&mut canvas, &scale, metric, &layout, rows.len());
    for (index, row) in rows.iter().enumerate() {
        let top = layout.top + layout.row * index as f64;
        one_row(&mut canvas, &scale, row, &layout, top, width);
    }
    canvas.finish()
}

fn description(rows: &[&RowView]) -> String {
    let each = rows.iter().map(|row| {
        let verdict = row.verdict_words().map_or("", |(_, word)| word);
        format!("{}: {} ({}), {verdict}", row.arm, row.ratio, row.interval)
    });
    each.collect::<Vec<_>>().join("; ")
}

/// All estimates and bounds that can be drawn, the band, and a little air.
fn domain(effects: impl Iterator<Item = Effect>, band: f64) -> (f64, f64) {
    let band = if band.is_finite() {
        band.clamp(0.0, 9.0)
    } else {
        0.0
    };
    let around = (1.0 + band).max(1.03);
    let (mut low, mut high) = (1.0 / around, around);
    for value in effects.flat_map(|e| [e.low, e.ratio, e.high]) {
        if value > 0.0 && value.is_finite() {
            let value = value.clamp(1.0 / FARTHEST, FARTHEST);
            low = low.min(value);
            high = high.max(value);
        }
    }
    let air = (high / low).powf(0.05);
    (low / air, high * air)
}

/// The domain of what is near 1, if that is more than one effect and gains room by itself.
fn close_up(rows: &[&RowView], band: f64, whole: (f64, f64)) -> Option<(f64, f64)> {
    let near = |effect: &Effect| effect.low > 1.0 / NEAR && effect.high < NEAR;
    let effects: Vec<Effect> = rows
        .iter()
        .filter_map(|row| row.effect)
        .filter(near)
        .collect();
    let shown = domain(effects.iter().copied(), band);
    let gain = (whole.1 / whole.0).ln() / (shown.1 / shown.0).ln();
    (effects.len() > 1 && gain >= WORTH).then_some(shown)
}

fn axis(canvas: &mut Canvas, scale: &Scale, metric: &MetricView, layout: &Layout, rows: usize) {
    let (left, right) = layout.plot;
    let one = scale.at(1.0);
    let bottom = layout.top + layout.row * rows as f64;
    let strips: Vec<(f64, f64)> = (0..rows)
        .map(|row| layout.top + layout.row * row as f64)
        .map(|top| (top + layout.strip.0, top + layout.strip.1))
        .collect();
    if metric.band > 0.0 {
        let (from, to) = (
            scale.at(1.0 / (1.0 + metric.band)),
            scale.at(1.0 + metric.band),
        );
        for (top, end) in &strips {
            canvas.rect("band", (from, *top), (to - from, end - top));
        }
    }
    for tick in scale.pick(RATIOS, 44.0) {
        let x = scale.at(tick);
        let class = if tick == 1.0 { "one" } else { "grid" };
        for (top, end) in &strips {
            canvas.line(class, (x, *top), (x, *end));
        }
        canvas.line(class, (x, bottom), (x, bottom + 4.0));
        let anchor = match x {
            x if x < left + 10.0 => Anchor::Start,
            x if x > right - 10.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.text("tick", (x, bottom + 20.0), anchor, &format!("{tick}×"));
    }
    let (low, high) = match metric.metric.higher_is_better() {
        true => ("← worse", "better →"),
        false => ("← better", "worse →"),
    };
    // A word that has no room on its side is left out: the other one says enough.
    if one - left > 60.0 || layout.label_px < left {
        canvas.text("hint", (one - 8.0, layout.top - 9.0), Anchor::End, low);
    }
    if right - one > 60.0 || layout.label_px < left {
        canvas.text("hint", (one + 8.0, layout.top - 9.0), Anchor::Start, high);
    }
}

fn one_row(
    canvas: &mut Canvas,
    scale: &Scale,
    row: &RowView,
    layout: &Layout,
    top: f64,
    width: Width,
) {
    let verdict = row.verdict.unwrap_or(Verdict::Invalid);
    let word = row.verdict_words().map_or("", |(_, word)| word);
    let tooltip = format!(
        "{}: {} ({}), {word}. {}",
        row.arm, row.ratio, row.interval, row.because
    );
    canvas.open(&format!("{word} {}", row.part()), None, tooltip.trim_end());
    let full = (layout.plot.1, layout.row);
    let y = match width {
        Width::Wide => {
            canvas.rect("hit", (0.0, top), (Width::Wide.px(), layout.row));
            let y = top + layout.row / 2.0;
            let label = fit(&label(row), layout.label_px);
            canvas.text(
                "label",
                (layout.plot.0 - 14.0, y + 4.0),
                Anchor::End,
                &label,
            );
            let figures = match row.effect {
                Some(_) => format!("{} ({})", row.ratio, row.interval),
                None => "no figure".to_owned(),
            };
            canvas.text("value", (852.0, y + 4.0), Anchor::End, &figures);
            shape(canvas, verdict, (874.0, y));
            canvas.text("word", (888.0, y + 4.0), Anchor::Start, word);
            y
        }
        Width::Narrow => {
            canvas.rect("hit", (0.0, top), full);
            let label = fit(&label(row), layout.label_px);
            canvas.text("label", (0.0, top + 16.0), Anchor::Start, &label);
            let figures = format!("{} {word}", row.ratio);
            canvas.text("word", (layout.plot.1, top + 16.0), Anchor::End, &figures);
            top + 33.0
        }
    };
    if let Some(effect) = row.effect {
        mark(canvas, scale, effect, verdict, layout, y);
    }
    canvas.close();
}

/// The arm's name; an A/A arm is called one, whatever its name is.
fn label(row: &RowView) -> String {
    match row.role {
        ArmRole::SameAsBaseline if !row.arm.contains("A/A") => format!("{} (A/A)", row.arm),
        _ => row.arm.clone(),
    }
}

fn mark(
    canvas: &mut Canvas,
    scale: &Scale,
    effect: Effect,
    verdict: Verdict,
    layout: &Layout,
    y: f64,
) {
    let (left, right) = layout.plot;
    if !scale.holds(effect.ratio) {
        let (x, back) = if effect.ratio > 1.0 {
            (right, -6.0)
        } else {
            (left, 6.0)
        };
        arrow(canvas, (x, y), back);
        return;
    }
    let (low, high) = (scale.at(effect.low), scale.at(effect.high));
    canvas.line("whisker", (low, y), (high, y));
    if scale.holds(effect.low) {
        canvas.line("whisker", (low, y - 5.0), (low, y + 5.0));
    } else {
        arrow(canvas, (left, y), 6.0);
    }
    if scale.holds(effect.high) {
        canvas.line("whisker", (high, y - 5.0), (high, y + 5.0));
    } else {
        arrow(canvas, (right, y), -6.0);
    }
    shape(canvas, verdict, (scale.at(effect.ratio), y));
}

/// The interval goes on beyond the axis.
fn arrow(canvas: &mut Canvas, (x, y): (f64, f64), back: f64) {
    let points = [(x + back, y - 5.0), (x, y), (x + back, y + 5.0)];
    canvas.path("whisker", &super::polyline(points.into_iter()));
}

/// A shape for each verdict, so that colour is never alone.
fn shape(canvas: &mut Canvas, verdict: Verdict, (x, y): (f64, f64)) {
    let corners: &[(f64, f64)] = match verdict {
        Verdict::Better => &[(-5.5, 4.5), (0.0, -5.5), (5.5, 4.5)],
        Verdict::Worse => &[(-5.5, -4.5), (0.0, 5.5), (5.5, -4.5)],
        Verdict::Equivalent => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
        Verdict::Inconclusive => {
            canvas.put(format_args!(
                "<circle class=\"mark hollow\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/>",
                super::Px(x),
                super::Px(y)
            ));
            return;
        }
        Verdict::Invalid => {
            for (dx, dy) in [(4.0, 4.0), (4.0, -4.0)] {
                canvas.line("whisker", (x - dx, y - dy), (x + dx, y + dy));
            }
            return;
        }
    };
    let d = super::polyline(corners.iter().map(|(dx, dy)| (x + dx, y + dy)));
    canvas.path("mark", &format!("{d}Z"));
}
