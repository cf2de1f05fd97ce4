//! Times as stacked bars with one axis.

use super::canvas::{Anchor, Canvas, Escaped, Width, fit};
use super::scale::{Scale, round_steps, tick_time};
use crate::number;
use crate::tree::Bars;

/// Width at the left for names. The next constants are the height of a bar with its gap, and the height below the plot.
const LEFT: f64 = 92.0;
const PITCH: f64 = 30.0;
const BAR: f64 = 20.0;
const BELOW: f64 = 26.0;
/// Margin at the right and at the top.
const MARGIN: f64 = 14.0;

/// Draws all bars. Returns an empty text if no bar has a time.
pub(crate) fn bars(id: &str, plot: &Bars, width: Width) -> String {
    let most = plot
        .bars
        .iter()
        .map(|bar| bar.parts.iter().map(|(_, _, ns)| ns).sum::<f64>())
        .fold(0.0, f64::max);
    if !most.is_finite() || most <= 0.0 {
        return String::new();
    }
    let bottom = MARGIN + PITCH * plot.bars.len() as f64;
    let size = (width.px(), bottom + BELOW);
    let desc = format!("the longest is {}", number::time(most));
    let mut canvas = Canvas::new(id, width.class(), size, &plot.title, &desc);
    let ticks = round_steps(most, if width == Width::Wide { 8 } else { 4 });
    let end = ticks.last().copied().unwrap_or(most);
    let x = Scale::linear((0.0, end), (LEFT, width.px() - MARGIN));
    for tick in ticks {
        let at = x.at(tick);
        canvas.line("grid", (at, MARGIN - 6.0), (at, bottom));
        canvas.text("tick", (at, bottom + 18.0), Anchor::Middle, &tick_time(tick));
    }
    for (place, bar) in plot.bars.iter().enumerate() {
        let top = MARGIN + PITCH * place as f64;
        let name = fit(&bar.name, LEFT - 10.0);
        canvas.text("name", (LEFT - 10.0, top + 15.0), Anchor::End, &name);
        let mut passed = 0.0;
        for (name, hue, ns) in &bar.parts {
            let from = x.at(passed);
            passed += ns;
            let wide = x.at(passed) - from;
            let tooltip = format!("{}: {name} {}", bar.name, number::time(*ns));
            canvas.open(&format!("s{hue}"), None, &tooltip);
            canvas.rect("part", (from, top), (wide, BAR));
            canvas.close();
        }
    }
    canvas.finish()
}

/// Returns the legend below the bars. Empty if there are no parts.
pub(crate) fn bar_parts(plot: &Bars) -> String {
    let mut parts: Vec<(&str, usize)> = Vec::new();
    for (name, hue, _) in plot.bars.iter().flat_map(|bar| &bar.parts) {
        if !parts.contains(&(name, *hue)) {
            parts.push((name, *hue));
        }
    }
    let keys: String = parts.iter().map(|(name, hue)| {
        let swatch = "<svg viewBox=\"0 0 28 8\" aria-hidden=\"true\"><rect class=\"part\" width=\"28\" height=\"8\"/></svg>";
        format!("<li class=\"s{hue}\">{swatch}{}</li>", Escaped(name))
    }).collect();
    if keys.is_empty() { keys } else { format!("<ul class=\"legend\">{keys}</ul>") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Bar;

    fn plot(parts: Vec<(&'static str, usize, f64)>) -> Bars {
        Bars { title: "times".to_owned(), bars: vec![Bar { name: "p99".to_owned(), parts }] }
    }

    #[test]
    fn parts_follow_one_another() {
        let svg = bars("b", &plot(vec![("a", 1, 1e6), ("b", 2, 3e6)]), Width::Wide);
        assert_eq!(svg.matches("class=\"part\"").count(), 2);
        assert!(svg.contains("p99: b 3.00 ms"), "{svg}");
        // The second begins where the first ends: a quarter of the way to the end of the axis.
        let quarter = LEFT + (Width::Wide.px() - MARGIN - LEFT) / 4.0;
        assert!(svg.contains(&format!("x=\"{quarter:.1}\"")), "{svg}");
    }

    #[test]
    fn without_any_time_nothing_is_drawn() {
        for parts in [vec![], vec![("a", 1, 0.0)], vec![("a", 1, f64::NAN)]] {
            assert_eq!(bars("b", &plot(parts), Width::Narrow), "");
        }
    }
}
