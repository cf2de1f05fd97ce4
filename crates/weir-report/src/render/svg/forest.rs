//! Forest plot: one row per compared arm, the estimate as a mark, the interval as a whisker, on a
//! logarithmic axis, because a ratio of 2 and one of 0.5 are equally large effects.
//!
//! The verdict is a shape and a word beside its colour. The equivalence band is shaded: an interval
//! inside it is an effect too small to matter.

use super::canvas::{Anchor, Canvas, Px, Width, fit, polyline};
use super::scale::{RATIOS, Scale};
use crate::tree::{Effect, Forest, ForestRow, Mark, Part};

/// Largest effect in either direction that the axis covers. Larger effects are drawn at its end with an arrow.
const FARTHEST: f64 = 1e3;

/// Largest effect in either direction that the close-up shows.
const NEAR: f64 = 1.25;
/// Minimum magnification that justifies a close-up.
const WORTH: f64 = 2.5;

/// Positions of the parts of a chart, for one width.
struct Layout {
    width: Width,
    row: f64,
    plot: (f64, f64),
    label_px: f64,
    top: f64,
    /// Part of a row, as offsets from its top, that is free of text. The band and grid lines cross it.
    strip: (f64, f64),
}

const WIDE: Layout = Layout {
    width: Width::Wide,
    row: 30.0,
    plot: (236.0, 640.0),
    label_px: 218.0,
    top: 26.0,
    strip: (0.0, 30.0),
};
const NARROW: Layout = Layout {
    width: Width::Narrow,
    row: 48.0,
    plot: (8.0, 334.0),
    label_px: 176.0,
    top: 26.0,
    strip: (22.0, 44.0),
};

/// Draws a forest. Returns an empty text if there is nothing to show.
pub(crate) fn forest(id: &str, forest: &Forest, width: Width) -> String {
    let rows = &forest.rows;
    let effects: Vec<Effect> = rows.iter().filter_map(|row| row.effect).collect();
    if effects.is_empty() {
        return String::new();
    }
    let domain = span_effects(effects.iter().copied(), forest.band);
    let shown = if forest.close_up {
        close_up(effects.into_iter(), forest.band, domain)
    } else {
        Some(domain)
    };
    let Some(shown) = shown else {
        return String::new();
    };
    let layout = match width {
        Width::Wide => WIDE,
        Width::Narrow => NARROW,
    };
    let bottom = layout.top + layout.row * rows.len() as f64;
    let description = rows
        .iter()
        .map(|row| format!("{}: {}, {}", row.label, row.figures, row.word))
        .collect::<Vec<_>>()
        .join("; ");
    let size = (width.px(), bottom + 30.0);
    let mut chart = Chart {
        canvas: Canvas::new(id, width.class(), size, &forest.title, &description),
        scale: Scale::log(shown, layout.plot),
        layout,
    };
    chart.axis(forest);
    for (index, row) in rows.iter().enumerate() {
        chart.row(row, chart.layout.top + chart.layout.row * index as f64);
    }
    chart.canvas.finish()
}

/// Returns the range of all drawable estimates and bounds and the band, with a small margin.
fn span_effects(effects: impl Iterator<Item = Effect>, band: f64) -> (f64, f64) {
    let band = if band.is_finite() { band.clamp(0.0, 9.0) } else { 0.0 };
    let around = (1.0 + band).max(1.03);
    let (mut low, mut high) = (1.0 / around, around);
    for value in effects.flat_map(|e| [e.low, e.ratio, e.high]) {
        if value > 0.0 && value.is_finite() {
            let clamped = value.clamp(1.0 / FARTHEST, FARTHEST);
            low = low.min(clamped);
            high = high.max(clamped);
        }
    }
    let air = (high / low).powf(0.05);
    (low / air, high * air)
}

/// Returns the range of the effects near 1. `None` if there is only one or the magnification is too small.
fn close_up(
    effects: impl Iterator<Item = Effect>,
    band: f64,
    whole: (f64, f64),
) -> Option<(f64, f64)> {
    let effects: Vec<Effect> =
        effects.filter(|effect| effect.low > 1.0 / NEAR && effect.high < NEAR).collect();
    let shown = span_effects(effects.iter().copied(), band);
    let gain = (whole.1 / whole.0).ln() / (shown.1 / shown.0).ln();
    (effects.len() > 1 && gain >= WORTH).then_some(shown)
}

struct Chart {
    canvas: Canvas,
    scale: Scale,
    layout: Layout,
}

impl Chart {
    fn axis(&mut self, forest: &Forest) {
        let Layout { top, row, strip, .. } = self.layout;
        let bottom = top + row * forest.rows.len() as f64;
        let strips: Vec<(f64, f64)> = (0..forest.rows.len())
            .map(|place| top + row * place as f64)
            .map(|top| (top + strip.0, top + strip.1))
            .collect();
        let canvas = &mut self.canvas;
        if forest.band > 0.0 {
            let (from, to) =
                (self.scale.at(1.0 / (1.0 + forest.band)), self.scale.at(1.0 + forest.band));
            for (top, end) in &strips {
                canvas.rect("band", (from, *top), (to - from, end - top));
            }
        }
        let (left, right) = self.layout.plot;
        for tick in self.scale.pick(RATIOS, 44.0) {
            let x = self.scale.at(tick);
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
        let neutral_x = self.scale.at(1.0);
        let [low, high] = forest.sides;
        let (low, high) = (format!("← {low}"), format!("{high} →"));
        // A word that has no room on its side is left out: the other one says enough.
        if neutral_x - left > 60.0 || self.layout.label_px < left {
            canvas.text("hint", (neutral_x - 8.0, top - 9.0), Anchor::End, &low);
        }
        if right - neutral_x > 60.0 || self.layout.label_px < left {
            canvas.text("hint", (neutral_x + 8.0, top - 9.0), Anchor::Start, &high);
        }
    }

    fn row(&mut self, row: &ForestRow, top: f64) {
        let tooltip = format!("{}: {}, {}. {}", row.label, row.figures, row.word, row.because);
        let class = format!("{} {}", row.tone.class(), part(row.part));
        self.canvas.open(&class, None, tooltip.trim_end());
        let y = match self.layout.width {
            Width::Wide => self.wide(row, top),
            Width::Narrow => self.narrow(row, top),
        };
        if let Some(effect) = row.effect {
            self.effect(effect, row.mark, y);
        }
        self.canvas.close();
    }

    /// Writes the words of a row beside the plot, and returns the y coordinate of its middle.
    fn wide(&mut self, row: &ForestRow, top: f64) -> f64 {
        let Layout { row: height, plot, label_px, .. } = self.layout;
        let canvas = &mut self.canvas;
        canvas.rect("hit", (0.0, top), (Width::Wide.px(), height));
        let y = top + height / 2.0;
        let label = fit(&row.label, label_px);
        canvas.text("label", (plot.0 - 14.0, y + 4.0), Anchor::End, &label);
        let figures = match row.effect {
            Some(_) => &row.figures,
            None => "no figure",
        };
        canvas.text("value", (852.0, y + 4.0), Anchor::End, figures);
        shape(canvas, row.mark, (874.0, y));
        canvas.text("word", (888.0, y + 4.0), Anchor::Start, row.word);
        y
    }

    /// Writes the words of a row above its line, and returns the y coordinate of the line.
    fn narrow(&mut self, row: &ForestRow, top: f64) -> f64 {
        let Layout { row: height, plot, label_px, .. } = self.layout;
        let canvas = &mut self.canvas;
        canvas.rect("hit", (0.0, top), (plot.1, height));
        let label = fit(&row.label, label_px);
        canvas.text("label", (0.0, top + 16.0), Anchor::Start, &label);
        let figures = format!("{} {}", row.ratio, row.word);
        canvas.text("word", (plot.1, top + 16.0), Anchor::End, &figures);
        top + 33.0
    }

    fn effect(&mut self, effect: Effect, mark: Mark, y: f64) {
        let (left, right) = self.layout.plot;
        let (canvas, scale) = (&mut self.canvas, &self.scale);
        if !scale.holds(effect.ratio) {
            if effect.ratio > 1.0 {
                arrow(canvas, (right, y), -6.0);
            } else {
                arrow(canvas, (left, y), 6.0);
            }
            return;
        }
        let (low, high) = (scale.at(effect.low), scale.at(effect.high));
        canvas.line("whisker", (low, y), (high, y));
        for (bound, x, edge, back) in
            [(effect.low, low, left, 6.0), (effect.high, high, right, -6.0)]
        {
            if scale.holds(bound) {
                canvas.line("whisker", (x, y - 5.0), (x, y + 5.0));
            } else {
                arrow(canvas, (edge, y), back);
            }
        }
        shape(canvas, mark, (scale.at(effect.ratio), y));
    }
}

/// Returns the style class of a part.
fn part(part: Part) -> &'static str {
    match part {
        Part::Control => "control",
        _ => "change",
    }
}

/// Draws an arrow for an interval that continues beyond the axis.
fn arrow(canvas: &mut Canvas, (x, y): (f64, f64), back: f64) {
    let points = [(x + back, y - 5.0), (x, y), (x + back, y + 5.0)];
    canvas.path("whisker", &polyline(points.into_iter()));
}

/// Draws the shape of a verdict, so that colour is never the only sign.
fn shape(canvas: &mut Canvas, mark: Mark, (x, y): (f64, f64)) {
    let corners: &[(f64, f64)] = match mark {
        Mark::Up => &[(-5.5, 4.5), (0.0, -5.5), (5.5, 4.5)],
        Mark::Down => &[(-5.5, -4.5), (0.0, 5.5), (5.5, -4.5)],
        Mark::Square => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
        Mark::Ring => {
            canvas.put(format_args!(
                "<circle class=\"mark hollow\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/>",
                Px(x),
                Px(y)
            ));
            return;
        }
        Mark::Cross => {
            for (dx, dy) in [(4.0, 4.0), (4.0, -4.0)] {
                canvas.line("whisker", (x - dx, y - dy), (x + dx, y + dy));
            }
            return;
        }
    };
    let d = polyline(corners.iter().map(|(dx, dy)| (x + dx, y + dy)));
    canvas.path("mark", &format!("{d}Z"));
}
