//! Reasons why an answer is not VALID.

use weir_analysis::findings::{Findings, HeadlineReason};
use weir_model::study::Study;

use crate::comparison::explain_verdict;
use crate::numbers::count;
use crate::validity::describe_counted;

/// Describes why the answer of a run is not VALID, without a full stop; `None` if it is, or if no reason is known.
pub fn describe_doubt(study: &Study, findings: &Findings) -> Option<String> {
    let reason = findings.headline.reason.as_ref()?;
    Some(match reason {
        HeadlineReason::NothingMeasured { load } => {
            format!("nothing was measured under the load {load}")
        }
        HeadlineReason::Trials { load, reason, lost_blocks, blocks } => {
            let reason = match reason {
                Some(counted) => describe_counted(counted),
                None => "no block has a trial of every arm".to_owned(),
            };
            format!("under the load {load}, {reason}{}", describe_lost(*lost_blocks, *blocks))
        }
        HeadlineReason::Search(counted) => describe_counted(counted),
        HeadlineReason::Comparison { load, arm, metric } => {
            let of_load = findings.loads.iter().find(|found| found.load == *load)?;
            let comparison = of_load.comparison(arm, *metric)?;
            format!("under the load {load}, {}", explain_verdict(comparison, &study.objective))
        }
    })
}

fn describe_lost(lost: u32, blocks: u32) -> String {
    if lost == 0 {
        return String::new();
    }
    let [lost, blocks] = [lost, blocks].map(|blocks| count(blocks.into()));
    format!("; {lost} of {blocks} blocks were left out")
}
