//! Small charts beside each other, one per quantity: values by rate with the fitted line, or values over time.

use weir_sentences::with_unit;

use super::canvas::{Anchor, Canvas, Escaped, Px, polyline};
use super::scale::{Scale, round_steps, to_pixels};
use crate::tree::Multiple;

/// Size of a chart before the page's grid scales it.
const SIZE: (f64, f64) = (294.0, 120.0);
const PLOT_X: (f64, f64) = (66.0, 288.0);
const PLOT_Y: (f64, f64) = (98.0, 8.0);

/// Draws all charts that have a value. Returns an empty text if none has.
pub(crate) fn multiples(id: &str, all: &[Multiple]) -> String {
    let drawn = all
        .iter()
        .filter(|one| one.dots.iter().chain(&one.line).any(is_finite))
        .enumerate()
        .map(|(place, one)| {
            let name = Escaped(&one.name);
            let canvas = Canvas::new(&format!("{id}-{place}"), "panel", SIZE, &one.name, &one.said);
            format!("<div><p>{name}</p>{}</div>", draw(canvas, one))
        });
    let drawn: String = drawn.collect();
    if drawn.is_empty() { drawn } else { format!("<div class=\"panels\">{drawn}</div>") }
}

fn is_finite((x, y): &(f64, f64)) -> bool {
    x.is_finite() && y.is_finite()
}

fn draw(mut canvas: Canvas, one: &Multiple) -> String {
    let most = one
        .dots
        .iter()
        .chain(&one.line)
        .filter(|at| is_finite(at))
        .map(|(_, value)| *value)
        .fold(0.0, f64::max);
    let steps = round_steps(most, 3);
    let top = steps.last().copied().unwrap_or(1.0);
    let (ends, (left, right)) = &one.across;
    let x = Scale::linear(*ends, PLOT_X);
    let y = Scale::linear((0.0, top), PLOT_Y);
    if let Some((at, (low, high))) = one.bend {
        let (low, high) = (x.at(low), x.at(high));
        canvas.rect("band", (low, PLOT_Y.1), (high - low, PLOT_Y.0 - PLOT_Y.1));
        canvas.line("one", (x.at(at), PLOT_Y.1), (x.at(at), PLOT_Y.0));
    }
    for tick in steps {
        let at = y.at(tick);
        canvas.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        let label = if tick == 0.0 { "0".to_owned() } else { with_unit(tick, &one.unit) };
        canvas.text("tick", (PLOT_X.0 - 6.0, at + 4.0), Anchor::End, &label);
    }
    canvas.text("tick", (PLOT_X.0, SIZE.1 - 5.0), Anchor::Start, left);
    canvas.text("tick", (PLOT_X.1, SIZE.1 - 5.0), Anchor::End, right);
    let ahead = one.around.iter().map(|(at, (low, _))| (*at, *low));
    let back = one.around.iter().rev().map(|(at, (_, high))| (*at, *high));
    let outline: Vec<(f64, f64)> = ahead.chain(back).filter(is_finite).collect();
    if !outline.is_empty() {
        canvas.path("band", &polyline(outline.iter().map(|point| to_pixels(point, &x, &y))));
    }
    for (at, (low, high)) in &one.whiskers {
        canvas.line("axis", (x.at(*at), y.at(*low)), (x.at(*at), y.at(*high)));
    }
    for (cx, cy) in one.dots.iter().filter(|at| is_finite(at)).map(|point| to_pixels(point, &x, &y))
    {
        let (cx, cy) = (Px(cx), Px(cy));
        canvas.put(format_args!("<circle class=\"dot s1\" cx=\"{cx}\" cy=\"{cy}\" r=\"2.5\"/>"));
    }
    canvas.path("ln thin s0", &polyline(one.line.iter().map(|point| to_pixels(point, &x, &y))));
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(dots: &[(f64, f64)], bend: Option<(f64, (f64, f64))>) -> Multiple {
        Multiple {
            name: "CPU <1>".to_owned(),
            said: "it bends".to_owned(),
            unit: "CPUs".to_owned(),
            across: ((0.0, 10.0), ("0".to_owned(), "10/s".to_owned())),
            dots: dots.to_vec(),
            whiskers: dots.iter().map(|(at, value)| (*at, (value * 0.9, value * 1.1))).collect(),
            around: vec![(0.0, (0.0, 0.1)), (10.0, (3.0, 5.0))],
            line: vec![(0.0, 0.0), (5.0, 1.0), (10.0, 4.0)],
            bend,
        }
    }

    #[test]
    fn values_a_line_and_its_bend_are_drawn_and_said() {
        let svg = multiples("m", &[one(&[(1.0, 0.2), (9.0, f64::NAN)], Some((5.0, (4.0, 6.0))))]);
        assert_eq!(svg.matches("<circle").count(), 1, "{svg}");
        assert_eq!(svg.matches("class=\"axis\"").count(), 2, "{svg}");
        assert!(svg.contains("class=\"band\"") && svg.contains("<desc id=\"m-0-d\">it bends<"));
        assert!(svg.contains("CPU &lt;1&gt;") && !svg.contains("NaN"), "{svg}");
        let bare = Multiple { around: Vec::new(), ..one(&[], None) };
        let straight = multiples("m", &[bare]);
        assert!(!straight.contains("class=\"band\""));
    }

    #[test]
    fn nothing_known_draws_nothing() {
        let none = Multiple { line: vec![(1.0, f64::NAN)], ..one(&[], None) };
        assert_eq!(multiples("m", &[none]), "");
    }
}
