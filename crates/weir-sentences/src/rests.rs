//! Arms that were active while another arm had the load.

use weir_analysis::findings::{RestingActivity, RestingArm};

use crate::numbers;

/// Returns a sentence about what an arm did while it rested.
pub fn describe_resting_arm(resting: &RestingArm) -> String {
    let other_arms = match resting.others {
        0 => String::new(),
        1 => "; so did another arm".to_owned(),
        count => format!("; so did {count} other arms"),
    };
    let arm = &resting.arm;
    match &resting.activity {
        RestingActivity::UsedCpu { cpus } => format!(
            "The arm {arm} used {:.1} % of a CPU while it rested, beside the arm that was measured{other_arms}.",
            cpus * 100.0
        ),
        RestingActivity::ClosedConnections { connections, longest_rest_ns, timeout } => {
            let they_were = if *connections == 1 { "it was" } else { "they were" };
            let timeout = match timeout {
                Some((id, value)) => format!(" (its {id} is {value})"),
                None => String::new(),
            };
            format!(
                "The arm {arm} closed {} while it rested, for up to {:.1} s{timeout}, and \
                 {they_were} opened again at once{other_arms}.",
                numbers::counted(*connections, "connection"),
                *longest_rest_ns as f64 / 1e9
            )
        }
    }
}
