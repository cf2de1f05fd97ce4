//! What becomes of a run when something goes wrong.

use weir_analysis::findings::Verdict;
use weir_model::record::Validity;
use weir_model::study::Metric;
use weir_simulation::{ArmModel, Model};

use super::bench::Bench;

#[test]
fn a_slower_arm_is_found_and_an_equal_one_is_not() {
    let mut model = Model::default();
    let slow = ArmModel::default().slower(1.1);
    model.arms.insert("slow".to_owned(), slow);
    let findings = Bench::new(&["stock", "same", "slow"], 20, model).findings();
    let load = &findings.loads[0];
    assert_eq!(load.validity, Validity::Valid, "{:?}", load.reasons);
    let rate: Vec<_> = load
        .comparisons
        .iter()
        .filter(|comparison| comparison.metric == Metric::Rate)
        .map(|comparison| (comparison.arm.as_str(), comparison.verdict))
        .collect();
    assert_eq!(
        rate,
        [("same", Verdict::Equivalent), ("slow", Verdict::Worse)]
    );
}
