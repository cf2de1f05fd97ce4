//! An SVG element during rendering, and the parts that all charts share.

use std::fmt::{self, Display, Write};

use crate::secrets::{commands, masked};

/// The width that a chart is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::render) enum Width {
    /// Desktop and print.
    Wide,
    /// Phone.
    Narrow,
}

impl Width {
    /// Returns the width in CSS pixels.
    pub(super) fn px(self) -> f64 {
        match self {
            Width::Wide => 992.0,
            Width::Narrow => 342.0,
        }
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Width::Wide => "wide",
            Width::Narrow => "narrow",
        }
    }
}

/// Mean width of a character at the charts' text size, CSS pixels. Estimated generously, because fonts differ.
const CHAR_PX: f64 = 7.6;

/// A coordinate that is formatted with one decimal. Non-finite values become 0.
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 10.0).round() / 10.0;
        if rounded.is_finite() && rounded != 0.0 {
            write!(f, "{rounded}")
        } else {
            f.write_str("0")
        }
    }
}

/// Text that is formatted for HTML and XML, with secrets masked. Control characters, which XML 1.0 §2.2 forbids, become
/// spaces.
pub(in crate::render) struct Escaped<'a>(pub(in crate::render) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in masked(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(' ')?,
                c if commands(c) => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Cuts a label to `px` and appends an ellipsis. The caller puts the whole name into a `<title>`.
pub(super) fn fit(label: &str, px: f64) -> String {
    let room = (px / CHAR_PX).max(4.0) as usize;
    if label.chars().count() <= room {
        return label.to_owned();
    }
    let mut cut: String = label.chars().take(room - 1).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

/// Horizontal anchor of a text.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An SVG element being written.
pub(super) struct Canvas(String);

impl Canvas {
    /// Opens a chart. `id` must be unique in the page. Title and description name it for screen readers.
    pub(super) fn new(
        id: &str,
        class: &str,
        (width, height): (f64, f64),
        title: &str,
        desc: &str,
    ) -> Canvas {
        let (w, h) = (Px(width), Px(height));
        Canvas(format!(
            "<svg class=\"chart {class}\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
             role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title>\
             <desc id=\"{id}-d\">{}</desc>",
            Escaped(title),
            Escaped(desc)
        ))
    }

    /// Writes to the element. Writing to a String cannot fail.
    pub(super) fn put(&mut self, what: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(what);
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            Px(x1),
            Px(y1),
            Px(x2),
            Px(y2)
        ));
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            Px(x),
            Px(y),
            Px(width.max(0.0)),
            Px(height.max(0.0))
        ));
    }

    /// Draws an unseen rectangle that tells the script of the page where the plot is, and what its axes are.
    pub(super) fn plot(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        axes: [&str; 2],
    ) {
        let [across, upward] = axes;
        self.put(format_args!(
            "<rect class=\"plot\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" data-x=\"{across}\" data-y=\"{upward}\"/>",
            Px(x),
            Px(y),
            Px(width),
            Px(height)
        ));
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            Px(x),
            Px(y),
            Escaped(text)
        ));
    }

    pub(super) fn path(&mut self, class: &str, d: &str) {
        self.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>"));
    }

    /// Opens a group with a tooltip. `series` highlights it together with its legend entry.
    pub(super) fn open(&mut self, class: &str, series: Option<usize>, tooltip: &str) {
        self.put(format_args!("<g class=\"{class}\""));
        if let Some(series) = series {
            self.put(format_args!(" data-s=\"{series}\""));
        }
        self.put(format_args!("><title>{}</title>", Escaped(tooltip)));
    }

    pub(super) fn close(&mut self) {
        self.0.push_str("</g>");
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>");
        self.0
    }
}

/// Returns a path through points. Points that move less than half a pixel are dropped. A non-finite point leaves a gap.
pub(super) fn polyline(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    let mut last: Option<(f64, f64)> = None;
    let mut is_dot = false;
    for (x, y) in points {
        if !(x.is_finite() && y.is_finite()) {
            end(&mut d, is_dot);
            (last, is_dot) = (None, false);
            continue;
        }
        if last.is_some_and(|(a, b)| (x - a).abs() < 0.5 && (y - b).abs() < 0.5) {
            continue;
        }
        is_dot = last.is_none();
        let command = if is_dot { 'M' } else { 'L' };
        let _ = write!(d, "{command}{} {}", Px(x), Px(y));
        last = Some((x, y));
    }
    end(&mut d, is_dot);
    d
}

/// Ends a path. A single point becomes a dot by its round cap.
fn end(d: &mut String, is_dot: bool) {
    if is_dot {
        d.push_str("h0.1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_finite_and_short() {
        let cases =
            [(1.25, "1.3"), (100.0, "100"), (-0.01, "0"), (f64::NAN, "0"), (f64::INFINITY, "0")];
        for (value, text) in cases {
            assert_eq!(Px(value).to_string(), text);
        }
    }

    #[test]
    fn text_cannot_leave_its_element() {
        let text = Escaped("<b a='\"'>&\u{1}").to_string();
        assert_eq!(text, "&lt;b a=&#39;&quot;&#39;&gt;&amp; ");
    }

    #[test]
    fn a_cut_label_says_so() {
        assert_eq!(fit("short", 200.0), "short");
        assert_eq!(fit("a rather long name of an arm", 76.0), "a rather…");
    }

    #[test]
    fn a_line_skips_what_cannot_be_seen_and_leaves_a_gap_where_there_is_no_point() {
        let points = [(0.0, 0.0), (0.1, 0.1), (5.0, 5.0)];
        assert_eq!(polyline(points.into_iter()), "M0 0L5 5");
        let points = [(1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0), (4.0, 4.0)];
        assert_eq!(polyline(points.into_iter()), "M1 1h0.1M3 3L4 4");
        assert_eq!(polyline([(1.0, 2.0)].into_iter()), "M1 2h0.1");
        assert_eq!(polyline(std::iter::empty()), "");
    }
}
