//! Colours and shapes of verdicts.

use weir_analysis::findings::{PublishedVerdict, Verdict};

use crate::tree::{Mark, Tone};

/// Returns the colour of a verdict.
pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Better,
        Verdict::Worse => Tone::Worse,
        Verdict::Equivalent => Tone::Equivalent,
        Verdict::Inconclusive => Tone::Inconclusive,
        Verdict::Invalid => Tone::Invalid,
    }
}

/// Returns the shape of a verdict in a chart.
pub(super) fn mark(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Better => Mark::Up,
        Verdict::Worse => Mark::Down,
        Verdict::Equivalent => Mark::Square,
        Verdict::Inconclusive => Mark::Ring,
        Verdict::Invalid => Mark::Cross,
    }
}

/// Returns the colour of a verdict on a published result.
pub(super) fn published(verdict: PublishedVerdict) -> Tone {
    match verdict {
        PublishedVerdict::Confirmed
        | PublishedVerdict::ConfirmedSmaller
        | PublishedVerdict::ConfirmedLarger
        | PublishedVerdict::NoneEither => Tone::Better,
        PublishedVerdict::NoEffectHere | PublishedVerdict::Obsolete => Tone::Equivalent,
        PublishedVerdict::Inert => Tone::Inert,
        PublishedVerdict::Opposite | PublishedVerdict::EffectHere => Tone::Worse,
        PublishedVerdict::Inconclusive | PublishedVerdict::NotMeasured => Tone::Inconclusive,
    }
}
