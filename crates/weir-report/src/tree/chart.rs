//! Charts as data.

use super::table::Part;
use super::text::{Text, Tone};

/// A chart with its caption. Outputs that cannot draw have the tables beside it.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) caption: Text,
    pub(crate) chart: Chart,
}

/// A chart as data.
#[derive(Debug)]
pub(crate) enum Chart {
    Forest(Forest),
    Lines(Lines),
    Panels(Panels),
    Closing(Closing),
    Bars(Bars),
    Multiples(Vec<Multiple>),
}

/// Ratios with their intervals, a row each, around 1.
#[derive(Debug, Clone)]
pub(crate) struct Forest {
    pub(crate) title: String,
    /// Half-width of the band in which ratios count as equal.
    pub(crate) band: f64,
    /// What lies to the left of 1 and to the right.
    pub(crate) sides: [&'static str; 2],
    /// Whether what is near 1 alone is shown; nothing is drawn when that is (nearly) everything.
    pub(crate) close_up: bool,
    pub(crate) rows: Vec<ForestRow>,
}

/// A ratio and what is said of it.
#[derive(Debug, Clone)]
pub(crate) struct ForestRow {
    pub(crate) label: String,
    pub(crate) part: Part,
    pub(crate) mark: Mark,
    pub(crate) tone: Tone,
    /// The verdict in one word.
    pub(crate) word: &'static str,
    pub(crate) ratio: String,
    /// The ratio and its interval.
    pub(crate) figures: String,
    pub(crate) because: String,
    pub(crate) effect: Option<Effect>,
}

/// A shape for each verdict, so that colour is never alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Up,
    Down,
    Square,
    Ring,
    Cross,
}

/// A ratio as a chart draws it. All three are above zero; the bounds may be infinite or zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Times in nanoseconds as lines over one axis.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) title: String,
    /// What a line stands for: `arm`.
    pub(crate) each: &'static str,
    pub(crate) axis: Axis,
    pub(crate) lines: Vec<Line>,
    /// What the axes cover: at least the lines.
    pub(crate) extent: Extent,
    /// What else is shown, where lines are over the rate.
    pub(crate) marks: Option<Marks>,
}

/// What a curve over the rate is held against.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// From one rate to another, and what that is.
    pub(crate) band: Option<((f64, f64), String)>,
    /// A time in nanoseconds, and what that is.
    pub(crate) level: Option<(f64, String)>,
    /// A rate, and what that is.
    pub(crate) at: Option<(f64, String)>,
    /// What lines were made of.
    pub(crate) dots: Vec<Dot>,
}

/// A single measurement beside a line.
#[derive(Debug)]
pub(crate) struct Dot {
    pub(crate) rate: f64,
    /// Nanoseconds; `None`, without end, is drawn at the upper edge.
    pub(crate) ns: Option<f64>,
    /// Whether it is drawn hollow: it did not hold.
    pub(crate) is_hollow: bool,
    /// Whether it is drawn larger: it lasted long.
    pub(crate) is_long: bool,
    pub(crate) tooltip: String,
}

/// What lines are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// 1/(1-quantile), logarithmic, so that each further nine takes the same room.
    Nines,
    /// Requests per second from 0.
    Rate,
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Its figures in words.
    pub(crate) tooltip: String,
    /// Colour and dash, as names of styles.
    pub(crate) class: String,
    /// Its place among the series.
    pub(crate) series: usize,
    /// Whether it is drawn over the others: what everything is compared with.
    pub(crate) front: bool,
    /// Ascending; a time without end is drawn at the upper edge.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What axes cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    pub(crate) right: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Extent {
    /// Times that differ by more than this factor are drawn on a logarithmic axis.
    const LINEAR_UP_TO: f64 = 12.0;

    pub(crate) fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Extent {
        let none = Extent {
            right: 0.0,
            low: f64::INFINITY,
            high: 1.0,
        };
        let points = lines.into_iter().flat_map(|line| &line.points);
        let seen = points.filter(|(_, ns)| ns.is_finite());
        seen.fold(none, |extent, &(x, ns)| Extent {
            right: extent.right.max(x),
            low: extent.low.min(ns.max(1.0)),
            high: extent.high.max(ns),
        })
    }

    /// The same with room for some more times.
    pub(crate) fn with(self, times: impl IntoIterator<Item = f64>) -> Extent {
        times.into_iter().fold(self, |extent, ns| Extent {
            low: extent.low.min(ns.max(1.0)),
            high: extent.high.max(ns),
            ..extent
        })
    }

    /// Whether times are drawn on a logarithmic axis.
    pub(crate) fn is_log(&self) -> bool {
        self.high / self.low > Extent::LINEAR_UP_TO
    }
}

/// An interval of rates that closes over time.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) title: String,
    /// What the axis below counts: `seconds of measured load`.
    pub(crate) over: &'static str,
    /// (second from which on, from this rate, to that one), in order of time; the last one is the end.
    pub(crate) steps: Vec<(f64, f64, f64)>,
    /// (second, rate): what was tried for long.
    pub(crate) dots: Vec<(f64, Dot)>,
}

/// Small multiples over time: all with the same axes, the first behind each.
#[derive(Debug)]
pub(crate) struct Panels {
    /// What is shown: `completed requests per second`.
    pub(crate) what: &'static str,
    /// Whether values are times in nanoseconds, and not rates.
    pub(crate) times: bool,
    pub(crate) panels: Vec<Panel>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// Number of its colour.
    pub(crate) hue: usize,
    /// Whether it is what the others are compared with.
    pub(crate) is_baseline: bool,
    /// (seconds, value): seconds finite, the value not where there is none.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Times as bars, each made of parts that follow one another; all with one axis from 0.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Name, number of its colour, nanoseconds.
    pub(crate) parts: Vec<(&'static str, usize, f64)>,
}

/// One of several small charts, each with axes of its own, the value from 0 up.
#[derive(Debug)]
pub(crate) struct Multiple {
    /// Stands above it.
    pub(crate) name: String,
    /// What it shows, for those who cannot see it.
    pub(crate) said: String,
    /// Of its values, as quantities have it: `share`, `bytes/s`.
    pub(crate) unit: String,
    /// From where to where it goes, and how both ends are labelled.
    pub(crate) across: ((f64, f64), (String, String)),
    /// Single values.
    pub(crate) dots: Vec<(f64, f64)>,
    /// A line through these.
    pub(crate) line: Vec<(f64, f64)>,
    /// Where something changes, and from where to where that may be.
    pub(crate) bend: Option<(f64, (f64, f64))>,
}
