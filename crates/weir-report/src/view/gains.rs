//! Published gains beside ours.

use weir_analysis::findings::{Comparison, Findings, GainFindings, PublishedVerdict};
use weir_model::study::GainOf;

use super::published::load_words;
use super::{number, words};

/// One published gain beside ours.
#[derive(Debug, Clone)]
pub struct GainView {
    /// What it was gained by: `transport=sockmap`, or arms.
    pub of: String,
    /// The metric in words.
    pub metric: &'static str,
    /// The load that ours are from, with its validity; a dash when there is none.
    pub load: String,
    /// Published mean change: `+280 %`; a dash where none was published.
    pub mean: String,
    /// Published peak.
    pub peak: String,
    /// Geometric mean of ours over [`GainView::arms`].
    pub mean_here: String,
    /// The largest of ours.
    pub peak_here: String,
    /// Ours, arm by arm.
    pub arms: Vec<GainArm>,
    /// What that says.
    pub verdict: PublishedVerdict,
    /// Why, where the figures do not say it.
    pub because: String,
}

/// What one arm gains.
#[derive(Debug, Clone)]
pub struct GainArm {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// Its change: `+41 %`.
    pub gain: String,
    /// The change's interval: `+38 % to +44 %`.
    pub interval: String,
}

impl GainView {
    /// What to know of all of them.
    pub const CAVEAT: &str = "Published gains are from other hardware: directions can be compared, \
                              sizes cannot. Ours are the ratio of each arm less 1, their mean is \
                              geometric.";

    pub(super) fn new(found: &GainFindings, findings: &Findings) -> GainView {
        let none = || number::NONE.to_owned();
        let published =
            |change: Option<f64>| change.map_or_else(none, |change| number::change(1.0 + change));
        GainView {
            of: match &found.of {
                GainOf::Arms(arms) => arms.join(", "),
                GainOf::Level { id, level } => format!("{id}={level}"),
            },
            metric: words::metric(found.metric),
            load: load_words(found.load.as_deref(), findings),
            mean: published(found.mean),
            peak: published(found.peak),
            mean_here: found.mean_here.map_or_else(none, number::change),
            peak_here: found.peak_here.map_or_else(none, number::change),
            arms: found.arms.iter().map(GainArm::new).collect(),
            verdict: found.verdict,
            because: found.because.clone(),
        }
    }

    /// `transport=sockmap, completed rate under load closed (VALID): published mean +280 %, peak +366 %;
    /// here mean +41 %, peak +52 %`.
    pub fn head(&self) -> String {
        let two = |mean: &str, peak: &str| {
            let each = [("mean", mean), ("peak", peak)];
            let each = each.iter().filter(|(_, figure)| *figure != number::NONE);
            let each: Vec<String> = each
                .map(|(name, figure)| format!("{name} {figure}"))
                .collect();
            match each.is_empty() {
                true => "nothing".to_owned(),
                false => each.join(", "),
            }
        };
        let load = match self.load.as_str() {
            number::NONE => String::new(),
            load => format!(" under load {load}"),
        };
        format!(
            "{}, {}{load}: published {}; here {}",
            self.of,
            self.metric,
            two(&self.mean, &self.peak),
            two(&self.mean_here, &self.peak_here)
        )
    }
}

impl GainArm {
    fn new(own: &Comparison) -> GainArm {
        let (low, high) = own.interval;
        GainArm {
            arm: own.arm.clone(),
            against: own.against.clone(),
            gain: number::change(own.ratio),
            interval: format!("{} to {}", number::change(low), number::change(high)),
        }
    }

    /// `sockmap against tcp: +41 % (+38 % to +44 %)`.
    pub fn words(&self) -> String {
        format!(
            "{} against {}: {} ({})",
            self.arm, self.against, self.gain, self.interval
        )
    }
}
