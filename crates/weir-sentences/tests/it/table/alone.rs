//! The check if a ratio holds when the arms run one at a time.

use weir_analysis::findings::{
    AloneChoice, AloneFindings, AloneReason,
    Holding::{self, DoesNotHold, Holds, Invalid, NotShown},
};
use weir_analysis::fixture::three_arms;
use weir_model::fixture;
use weir_model::record::Validity;
use weir_model::study::Metric;

use weir_sentences::{describe_alone, explain_alone, explain_choice};

use super::Row;

/// Returns findings about a ratio that is the same alone.
pub(super) fn holding() -> AloneFindings {
    AloneFindings {
        load: "closed".to_owned(),
        metric: Metric::Rate,
        arm: "keepalive".to_owned(),
        against: "stock".to_owned(),
        chosen: Some(AloneChoice::Best),
        n: 8,
        together: (1.25, (1.24, 1.26)),
        alone: (1.251, (1.243, 1.259)),
        change: (1.001, (0.992, 1.009)),
        tolerance: 0.057,
        validity: Validity::Valid,
        verdict: Holds,
        because: AloneReason::WithinBand,
        changed_side_by_side: false,
    }
}

/// Returns the sentences about such findings, and the reason that is shown beside the verdict.
fn describe(found: &AloneFindings) -> String {
    let study = fixture::study(three_arms());
    format!("{}\n{}", describe_alone(&study, found), explain_alone(&study, found))
}

fn of(verdict: Holding, because: AloneReason) -> String {
    describe(&AloneFindings { verdict, because, ..holding() })
}

pub(super) fn rows() -> Vec<Row> {
    let nobody = AloneFindings {
        arm: String::new(),
        verdict: Invalid,
        because: AloneReason::NoRatio,
        ..holding()
    };
    let doubtful = AloneFindings { change: (1.03, (0.96, 1.1)), ..holding() };
    let beyond = AloneFindings {
        verdict: NotShown,
        because: AloneReason::BeyondTolerance,
        ..doubtful.clone()
    };
    vec![
        ("A ratio within the band", of(Holds, AloneReason::WithinBand)),
        (
            "A ratio within a quarter of its effect",
            describe(&AloneFindings {
                change: (1.01, (0.97, 1.05)),
                because: AloneReason::WithinTolerance,
                ..holding()
            }),
        ),
        (
            "A ratio that is another one alone",
            describe(&AloneFindings {
                change: (1.1, (1.08, 1.12)),
                verdict: DoesNotHold,
                because: AloneReason::Changed,
                ..holding()
            }),
        ),
        ("A ratio that may be another one alone", describe(&beyond)),
        (
            "A small effect that may be another one alone",
            describe(&AloneFindings { tolerance: 0.02, ..beyond }),
        ),
        (
            "An arm that changed during the run",
            describe(&AloneFindings { changed_side_by_side: true, ..holding() }),
        ),
        (
            "Too few pairs",
            describe(&AloneFindings {
                n: 4,
                verdict: NotShown,
                because: AloneReason::FewPairs,
                ..holding()
            }),
        ),
        ("Too few pairs for the confidence", of(NotShown, AloneReason::LowConfidence)),
        ("No pair of stretches", of(Invalid, AloneReason::NoPairs)),
        ("A run that ended before the check", of(Invalid, AloneReason::NotReached)),
        ("Nothing to check", describe(&nobody)),
        (
            "The reason to choose an arm that is better",
            explain_choice(AloneChoice::Best, Metric::Rate),
        ),
        ("The reason if none is better", explain_choice(AloneChoice::DiffersMost, Metric::Rate)),
        ("The reason if none differs", explain_choice(AloneChoice::First, Metric::Rate)),
    ]
}
