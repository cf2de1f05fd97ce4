//! Data of charts.

use super::table::Part;
use super::text::{Text, Tone};

/// A chart with its caption. Outputs without charts have the same data in tables.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) caption: Text,
    pub(crate) chart: Chart,
}

/// Data of a chart.
#[derive(Debug)]
pub(crate) enum Chart {
    Forest(Forest),
    Lines(Lines),
    Panels(Panels),
    Closing(Closing),
    Bars(Bars),
    Multiples(Vec<Multiple>),
    RunSeries(RunSeries),
}

/// Ratios with their intervals around 1, one per row.
#[derive(Debug, Clone)]
pub(crate) struct Forest {
    pub(crate) title: String,
    /// Half-width of the band in which ratios count as equal.
    pub(crate) band: f64,
    /// Descriptions of the sides below and above 1.
    pub(crate) sides: [&'static str; 2],
    /// True if only the effects near 1 are shown. Nothing is drawn if these are (nearly) all.
    pub(crate) close_up: bool,
    pub(crate) rows: Vec<ForestRow>,
}

/// A ratio with its verdict.
#[derive(Debug, Clone)]
pub(crate) struct ForestRow {
    pub(crate) label: String,
    pub(crate) part: Part,
    pub(crate) mark: Mark,
    pub(crate) tone: Tone,
    /// Verdict in one word.
    pub(crate) word: &'static str,
    pub(crate) ratio: String,
    /// Ratio and interval as text.
    pub(crate) figures: String,
    pub(crate) because: String,
    pub(crate) effect: Option<Effect>,
}

/// Shape of a verdict, so that colour is never the only sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Up,
    Down,
    Square,
    Ring,
    Cross,
}

/// A ratio to draw. All three values are above zero; the bounds may be infinite or zero.
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
    /// Kind of thing that each line represents: `arm`.
    pub(crate) each: &'static str,
    pub(crate) axis: Axis,
    pub(crate) lines: Vec<Line>,
    /// Ranges of the axes, at least those of the lines.
    pub(crate) extent: Extent,
    /// Marks besides the lines, if these are over the rate.
    pub(crate) marks: Option<Marks>,
}

/// Marks that a curve over the rate is compared with.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Range of rates and its name.
    pub(crate) band: Option<((f64, f64), String)>,
    /// Time in nanoseconds and its name.
    pub(crate) level: Option<(f64, String)>,
    /// Rate and its name.
    pub(crate) at: Option<(f64, String)>,
    /// Measurements that the lines result from.
    pub(crate) dots: Vec<Dot>,
}

/// A single measurement beside a line.
#[derive(Debug)]
pub(crate) struct Dot {
    pub(crate) rate: f64,
    /// Time in nanoseconds. `None`, infinite, is drawn at the upper edge.
    pub(crate) ns: Option<f64>,
    /// True if the rate did not hold. The dot is drawn hollow.
    pub(crate) is_hollow: bool,
    /// True if the measurement was long. The dot is drawn larger.
    pub(crate) is_long: bool,
    pub(crate) tooltip: String,
}

/// Horizontal axis of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// 1/(1-quantile), logarithmic, so that each further nine takes the same space.
    Nines,
    /// Requests per second from 0.
    Rate,
}

#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Figures of the line in words.
    pub(crate) tooltip: String,
    /// Style classes for colour and dash.
    pub(crate) class: String,
    /// Index among the series, which selects the legend entry to highlight.
    pub(crate) series: usize,
    /// True if the line is drawn over the others, because these are compared with it.
    pub(crate) front: bool,
    /// Points in ascending order. An infinite time is drawn at the upper edge.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Ranges of axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    pub(crate) right: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Extent {
    /// Ratio of the largest to the smallest time above which the axis is logarithmic.
    const LINEAR_UP_TO: f64 = 12.0;

    pub(crate) fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Extent {
        let none = Extent { right: 0.0, low: f64::INFINITY, high: 1.0 };
        lines.into_iter().flat_map(|line| &line.points).filter(|(_, ns)| ns.is_finite()).fold(
            none,
            |extent, &(x, ns)| Extent {
                right: extent.right.max(x),
                low: extent.low.min(ns.max(1.0)),
                high: extent.high.max(ns),
            },
        )
    }

    /// Extends the range to include some more times.
    pub(crate) fn with(self, times: impl IntoIterator<Item = f64>) -> Extent {
        times.into_iter().fold(self, |extent, ns| Extent {
            low: extent.low.min(ns.max(1.0)),
            high: extent.high.max(ns),
            ..extent
        })
    }

    /// Returns true if times are drawn on a logarithmic axis.
    pub(crate) fn is_log(&self) -> bool {
        self.high / self.low > Extent::LINEAR_UP_TO
    }
}

/// An interval of rates that narrows over time.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) title: String,
    /// Caption of the horizontal axis: `seconds of measured load`.
    pub(crate) over: &'static str,
    /// Steps in order of time: second, low rate and high rate from then on. The last step is the end.
    pub(crate) steps: Vec<(f64, f64, f64)>,
    /// Second of each long trial, and the trial as a dot.
    pub(crate) dots: Vec<(f64, Dot)>,
}

/// Small multiples over time, all with the same axes and with the first panel in the background.
#[derive(Debug)]
pub(crate) struct Panels {
    /// Description of the values: `completed requests per second`.
    pub(crate) what: &'static str,
    /// True if values are times in nanoseconds, false if they are rates.
    pub(crate) times: bool,
    pub(crate) panels: Vec<Panel>,
}

/// A panel of [`Panels`].
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// Index of the colour.
    pub(crate) hue: usize,
    /// True if the panel is the one that others are compared with.
    pub(crate) is_baseline: bool,
    /// Pairs of seconds (finite) and value. A missing value is not finite.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Times as bars that are stacked from parts, all with one axis from 0.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

/// A bar of [`Bars`].
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Parts: name, index of the colour, nanoseconds.
    pub(crate) parts: Vec<(&'static str, usize, f64)>,
}

/// One of several small charts, each with its own axes. The vertical axis starts at 0.
#[derive(Debug, Default)]
pub(crate) struct Multiple {
    /// Name above the chart.
    pub(crate) name: String,
    /// Description for users who cannot see the chart.
    pub(crate) said: String,
    /// Unit of the values, as in quantities: `share`, `bytes/s`.
    pub(crate) unit: String,
    /// Range of the horizontal axis, and the labels of its ends.
    pub(crate) across: ((f64, f64), (String, String)),
    /// Single points.
    pub(crate) dots: Vec<(f64, f64)>,
    /// Intervals around points: position, and lower and upper end.
    pub(crate) whiskers: Vec<(f64, (f64, f64))>,
    /// Points of a line.
    pub(crate) line: Vec<(f64, f64)>,
    /// Band around the line: position, and lower and upper end.
    pub(crate) around: Vec<(f64, (f64, f64))>,
    /// Position at which the slope changes, and the interval of that position.
    pub(crate) bend: Option<(f64, (f64, f64))>,
}

/// A figure over all runs of a study, which are numbered in order of time.
#[derive(Debug)]
pub(crate) struct RunSeries {
    pub(crate) title: String,
    /// Description for users who cannot see the chart.
    pub(crate) said: String,
    /// True if values are times in nanoseconds, false if they are rates.
    pub(crate) is_time: bool,
    /// Number of runs.
    pub(crate) runs: usize,
    /// Run, its value, and its tooltip. A missing value is not finite.
    pub(crate) dots: Vec<(usize, f64, String)>,
    /// First and last run of each segment, and its level.
    pub(crate) levels: Vec<(usize, usize, f64)>,
    pub(crate) marks: Vec<RunMark>,
    /// Labels of the first and of the last run.
    pub(crate) ends: [String; 2],
}

/// An upright line before a run.
#[derive(Debug)]
pub(crate) struct RunMark {
    pub(crate) before: usize,
    /// Style class of the line.
    pub(crate) class: &'static str,
    pub(crate) label: String,
    pub(crate) tooltip: String,
}
