//! What becomes of a run when something goes wrong, on every scenario of the simulated host.

use weir_model::record::{Outcome, Record};
use weir_simulation::{SICK, scenarios};

use super::bench::Bench;

#[test]
fn every_scenario_print() {
    for (name, model) in scenarios(1) {
        let bench = Bench::new(&["stock", "same", SICK], 12, model);
        let begun = std::time::Instant::now();
        let summary = bench.run(&mut |_, _| {});
        match summary {
            Err(error) => println!("{name}: ERROR {error} / {:?}", error.hint()),
            Ok(_) => {
                let findings = weir_analysis::analyze(&bench.read());
                let load = &findings.loads[0];
                let rules: Vec<String> = load
                    .reasons
                    .iter()
                    .map(|r| {
                        format!(
                            "{:?} {} {}/{}",
                            r.reason.validity, r.reason.rule, r.trials, r.of
                        )
                    })
                    .collect();
                let found: Vec<String> = load
                    .comparisons
                    .iter()
                    .map(|c| format!("{:?} {} {:?} {:.3}", c.metric, c.arm, c.verdict, c.ratio))
                    .collect();
                println!(
                    "{name}: {:?} {}/{} {rules:?} {found:?} {:?}",
                    load.validity,
                    load.blocks_used,
                    load.blocks,
                    begun.elapsed()
                );
            }
        }
    }
    let _ = (Outcome::Complete, |record: Record| drop(record));
}
