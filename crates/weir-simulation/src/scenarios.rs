//! Hosts with one fault each, on which everything that decides is tested.

use crate::model::{ArmModel, Bursts, Correlated, Distribution, Errors, Fault, Model, SlowStart};

/// Name of the faulty arm of a scenario; arms with other names are all alike.
pub const SICK: &str = "sick";

/// Returns every scenario by its name. The seed is the model's.
pub fn scenarios(seed: u64) -> Vec<(&'static str, Model)> {
    SCENARIOS
        .iter()
        .map(|(name, change)| {
            let mut model = Model { seed, ..Model::default() };
            change(&mut model);
            (*name, model)
        })
        .collect()
}

/// A name, and the change to a host without faults.
type Row = (&'static str, fn(&mut Model));

#[rustfmt::skip]
static SCENARIOS: [Row; 23] = [
    ("quiet", |_| {}),
    ("slower", |host| *sick(host) = ArmModel::default().slower(1.1)),
    ("white noise", |host| host.machine.noise.white = 0.05),
    ("drift", |host| host.machine.noise.drift_per_s = 0.02),
    ("bursts", |host| host.machine.noise.bursts = Some(SHORT_BURSTS)),
    ("step", |host| host.machine.noise.steps = vec![(6.0, 1.5)]),
    ("correlated noise", |host| host.machine.noise.correlated = Some(SECONDS_LONG)),
    ("an arm with noise of its own", |host| sick(host).noise.correlated = Some(SECONDS_LONG)),
    ("instances that differ", |host| host.others.instance_sd = 0.01),
    ("slow start", |host| sick(host).slow_start = Some(SlowStart { factor: 3.0, time_s: 1.0 })),
    ("leak", |host| sick(host).leak_per_s = 0.02),
    ("errors in runs", |host| sick(host).errors = Errors { share: 0.02, run: 20.0 }),
    ("two modes", |host| host.others.service = TWO_MODES),
    ("stall", |host| sick(host).faults = vec![Fault::Stall(5.0..5.5)]),
    ("refusal", |host| sick(host).faults = vec![Fault::Refuse(4.0..8.0)]),
    ("crash", |host| sick(host).faults = vec![Fault::Crash { at_s: 5.0 }]),
    ("does not start", |host| {
        sick(host).faults = vec![Fault::DoesNotStart("no such directive".to_owned())];
    }),
    ("generator held up", |host| {
        host.generator.held_up = (0..20).map(|number| (f64::from(number), 0.004)).collect();
    }),
    ("generator late", |host| host.generator.lag = Distribution::Exponential { mean_ns: 500e3 }),
    ("counters late", |host| host.generator.late_ns = 10_000_000),
    ("steal", |host| host.machine.steal = 0.1),
    ("two generators", |host| host.generators = 2),
    ("generators that start apart", |host| {
        host.generators = 2;
        host.generator.apart_ns = 6_000_000;
    }),
];

/// Returns the faulty arm.
fn sick(host: &mut Model) -> &mut ArmModel {
    host.arms.entry(SICK.to_owned()).or_default()
}

/// Bursts in which everything takes three times as long for a fraction of a second.
const SHORT_BURSTS: Bursts = Bursts { every_s: 1.0, length_s: 0.1, factor: 3.0 };

/// Noise that makes everything take longer or shorter for some seconds.
const SECONDS_LONG: Correlated = Correlated { sd: 0.1, time_s: 2.0 };

/// Service times that are mostly quick, and sometimes ten times as long.
const TWO_MODES: Distribution =
    Distribution::Bimodal { quick_ns: 400e3, slow_ns: 4e6, slow_share: 0.03 };
