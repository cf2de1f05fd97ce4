//! Interim looks at a load that is measured until all comparisons are decided.

use weir_analysis::findings::LoadFindings;
use weir_model::record::LookRecord;
use weir_model::study::Study;

use crate::number;
use crate::tree::{Block, Style, labelled};

/// Describes the looks: their number, their confidence, and the decision at each.
pub(super) fn blocks(study: &Study, load: &LoadFindings) -> Vec<Block> {
    load.looks
        .last()
        .map(|last| labelled("looks", Style::Soft, sentence(study, load, last)))
        .into_iter()
        .collect()
}

fn sentence(study: &Study, load: &LoadFindings, last: &LookRecord) -> String {
    let blocks: Vec<String> = load.looks.iter().map(|look| look.blocks.to_string()).collect();
    let confidences: Vec<String> =
        load.looks.iter().map(|look| number::level(look.confidence)).collect();
    let most = last.planned.last().copied().unwrap_or(last.blocks);
    let decided = load.looks.iter().flat_map(|look| {
        look.decided.iter().map(|one| {
            if one.is_given_up {
                format!("{} given up at look {}", one.arm, look.look)
            } else {
                format!("{} {} at look {}", one.arm, one.verdict, look.look)
            }
        })
    });
    let decided: Vec<String> = decided.collect();
    let decided = if decided.is_empty() {
        "nothing is decided yet".to_owned()
    } else {
        weir_sentences::join_names(&decided)
    };
    format!(
        "{} of {} planned, after {} of at most {most} blocks; their intervals have {}, so all of them together hold {} \
         wherever the run ended; {decided}",
        load.looks.len(),
        last.planned.len(),
        weir_sentences::join_names(&blocks),
        weir_sentences::join_names(&confidences),
        number::level(study.objective.confidence),
    )
}
