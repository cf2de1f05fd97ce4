//! An interval of rates that narrows over time, as a band of the rates that are still possible.

use super::canvas::{Anchor, Canvas, Width, polyline};
use super::dots::dot;
use super::scale::{Scale, round_steps, tick_rate};
use crate::number;
use crate::tree::Closing;

/// Margins at the left (for rates), above the plot, and below it (for seconds).
const MARGINS: (f64, f64, f64) = (62.0, 14.0, 48.0);
/// Margin at the right.
const RIGHT: f64 = 14.0;

/// Draws a closing interval. Returns an empty text for fewer than two steps.
pub(crate) fn closing(id: &str, plot: &Closing, width: Width) -> String {
    let steps: Vec<(f64, f64, f64)> = plot
        .steps
        .iter()
        .copied()
        .filter(|(s, low, high)| s.is_finite() && low.is_finite() && high.is_finite())
        .collect();
    let [(begin, ..), .., (end, low, high)] = steps[..] else {
        return String::new();
    };
    let height = match width {
        Width::Wide => 240.0,
        Width::Narrow => 220.0,
    };
    let desc =
        format!("from {} to {} requests/s in the end", number::rate(low), number::rate(high));
    let size = (width.px(), height);
    let mut canvas = Canvas::new(id, width.class(), size, &plot.title, &desc);
    let rates = steps
        .iter()
        .flat_map(|(_, low, high)| [*low, *high])
        .chain(plot.dots.iter().map(|(_, dot)| dot.rate));
    let (x, y) = axes(&mut canvas, (width, height), end, rates.fold(0.0, f64::max));
    let (left, right, bottom) = (MARGINS.0, width.px() - RIGHT, height - MARGINS.2);
    let middle = ((left + right) / 2.0, bottom + 40.0);
    canvas.text("hint", middle, Anchor::Middle, plot.over);
    // What is known holds until the next step.
    let edge = |of: fn(&(f64, f64, f64)) -> f64| -> Vec<(f64, f64)> {
        let all = steps
            .iter()
            .zip(steps.iter().skip(1))
            .flat_map(|(step, next)| [(step.0, of(step)), (next.0, of(step))])
            .chain([(end, if begin < end { of(&steps[steps.len() - 1]) } else { of(&steps[0]) })]);
        all.map(|(s, rate)| (x.at(s), y.at(rate))).collect()
    };
    let (lower, upper) = (edge(|step| step.1), edge(|step| step.2));
    let around = lower.iter().chain(upper.iter().rev());
    canvas.path("band strong", &polyline(around.copied()));
    for line in [lower, upper] {
        canvas.path("ln thin s0", &polyline(line.into_iter()));
    }
    for (s, one) in &plot.dots {
        dot(&mut canvas, (x.at(*s), y.at(one.rate)), one);
    }
    canvas.finish()
}

/// Draws the axes: seconds up to `end`, rates up to `most`.
fn axes(canvas: &mut Canvas, (width, height): (Width, f64), end: f64, most: f64) -> (Scale, Scale) {
    let (left, top, below) = MARGINS;
    let (right, bottom) = (width.px() - RIGHT, height - below);
    let ticks = round_steps(most, 4);
    let end_y = ticks.last().copied().unwrap_or(1.0);
    let y = Scale::linear((0.0, end_y), (bottom, top));
    for tick in ticks {
        let at = y.at(tick);
        canvas.line("grid", (left, at), (right, at));
        canvas.text("tick", (left - 8.0, at + 4.0), Anchor::End, &tick_rate(tick, end_y));
    }
    let x = Scale::linear((0.0, end), (left, right));
    let many = if width == Width::Wide { 8 } else { 4 };
    let ticks = round_steps(end, many).into_iter();
    for tick in ticks.filter(|tick| *tick <= end) {
        let anchor = match x.at(tick) {
            at if at > right - 18.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        let words = number::asked(tick);
        canvas.text("tick", (x.at(tick), bottom + 20.0), anchor, &words);
    }
    canvas.line("axis", (left, bottom), (right, bottom));
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(steps: &[(f64, f64, f64)]) -> Closing {
        Closing { title: "t".to_owned(), over: "seconds", steps: steps.to_vec(), dots: Vec::new() }
    }

    #[test]
    fn what_closes_is_drawn_as_a_band_between_two_lines() {
        let svg = closing("c", &plot(&[(2.0, 0.0, 900.0), (9.0, 400.0, 500.0)]), Width::Wide);
        assert_eq!(svg.matches("class=\"ln ").count(), 2);
        assert!(svg.contains("from 400 to 500 requests/s"), "{svg}");
        for few in [&[][..], &[(2.0, 0.0, 9.0)], &[(2.0, 0.0, f64::NAN), (3.0, 1.0, 2.0)]] {
            assert_eq!(closing("c", &plot(few), Width::Narrow), "");
        }
    }
}
