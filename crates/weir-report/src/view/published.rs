//! What others published beside what was measured here.

use weir_analysis::findings::{
    FigureFindings, FiguresFindings, Findings, Measured, PublishedVerdict,
};
use weir_model::study::Study;

use super::gains::GainView;
use super::published_times::TimesRow;
use super::{number, words};

/// Published figures beside ours.
#[derive(Debug, Clone)]
pub struct PublishedView {
    /// Who published them.
    pub source: String,
    /// What the published figures are.
    pub metric: String,
    /// A table for each load with figures of its own, or one for all. Empty where response times are
    /// all that was published.
    pub tables: Vec<PublishedTable>,
    /// Response times by quantile.
    pub times: Vec<TimesRow>,
    /// Gains by metric.
    pub gains: Vec<GainView>,
}

/// The figures published for one load.
#[derive(Debug, Clone)]
pub struct PublishedTable {
    /// What ours are: metric, load and its validity.
    pub ours: String,
    /// One row for each arm with a published figure, those that this machine has no room for last.
    pub rows: Vec<PublishedRow>,
}

/// One step, theirs and ours.
#[derive(Debug, Clone)]
pub struct PublishedRow {
    /// The arm; where it is alone, the load.
    pub arm: String,
    /// What it is compared with; empty for the first.
    pub against: String,
    /// The published figure.
    pub figure: String,
    /// The published ratio to `against`.
    pub ratio: String,
    /// The measured ratio.
    pub measured: String,
    /// Its interval.
    pub interval: String,
    /// What that says; `None` for the first step, which is compared with nothing.
    pub verdict: Option<PublishedVerdict>,
    /// Why, where the figures do not say it.
    pub because: String,
}

pub(super) fn view(study: &Study, findings: &Findings) -> Option<PublishedView> {
    let (published, found) = (study.published.as_ref()?, findings.published.as_ref()?);
    let (times, gains) = (found.times.iter(), found.gains.iter());
    Some(PublishedView {
        source: published.source.clone(),
        metric: published.metric.clone(),
        tables: found.figures.iter().map(|t| table(t, findings)).collect(),
        times: times.map(|time| TimesRow::new(time, findings)).collect(),
        gains: gains.map(|gain| GainView::new(gain, findings)).collect(),
    })
}

/// `closed (VALID)`; a dash for none.
pub(super) fn load_words(load: Option<&str>, findings: &Findings) -> String {
    let mut loads = findings.loads.iter();
    match load.and_then(|name| loads.find(|load| load.load == name)) {
        Some(load) => format!("{} ({})", load.load, words::validity(load.validity)),
        None => number::NONE.to_owned(),
    }
}

fn table(found: &FiguresFindings, findings: &Findings) -> PublishedTable {
    let metric = found.metric.map(words::metric);
    let under_each = found.load.is_none();
    let rows = found.rows.iter();
    PublishedTable {
        ours: match (metric, found.load.as_deref()) {
            (None, _) => "nothing was measured".to_owned(),
            (Some(metric), None) => format!("{metric} under each load"),
            (Some(metric), load) => format!("{metric} under load {}", load_words(load, findings)),
        },
        rows: rows.map(|row| figure(row, under_each)).collect(),
    }
}

/// Where an arm is alone, ours is a time and no ratio.
fn figure(found: &FigureFindings, is_time: bool) -> PublishedRow {
    let none = number::NONE.to_owned();
    let (measured, interval) = match found.measured {
        None => (none.clone(), String::new()),
        Some(Measured { value, interval }) if is_time => {
            (number::time(value), number::time_interval(interval))
        }
        Some(Measured { value, interval }) => (
            number::ratio(value),
            number::ratio_interval(value, interval),
        ),
    };
    PublishedRow {
        arm: found.arm.clone(),
        against: found.against.clone().unwrap_or_default(),
        figure: number::rate(found.figure),
        ratio: found.ratio.map_or(none, number::ratio),
        measured,
        interval,
        verdict: found.verdict,
        because: found.because.clone(),
    }
}
