//! Hosts on which something goes wrong, one thing each: what everything that decides is tried on.

use crate::model::{
    ArmModel, Bursts, Correlated, Distribution, Errors, Fault, Generator, Machine, Model, Noise,
    SlowStart,
};

/// The arm of a scenario that something happens to; arms of other names are all alike.
pub const SICK: &str = "sick";

/// Every scenario by its name. The seed is the model's.
pub fn scenarios(seed: u64) -> Vec<(&'static str, Model)> {
    let base = || Model {
        seed,
        ..Model::default()
    };
    let machine = |noise: Noise| Model {
        machine: Machine {
            noise,
            ..Machine::default()
        },
        ..base()
    };
    let generator = |generator: Generator| Model {
        generator,
        ..base()
    };
    let all = |others: ArmModel| Model { others, ..base() };
    let sick = |arm: ArmModel| Model {
        arms: [(SICK.to_owned(), arm)].into(),
        ..base()
    };
    let arm = ArmModel::default;
    let fault = |fault: Fault| {
        sick(ArmModel {
            faults: vec![fault],
            ..arm()
        })
    };
    vec![
        ("quiet", base()),
        ("slower", sick(arm().slower(1.1))),
        ("white noise", machine(noise(|noise| noise.white = 0.05))),
        ("drift", machine(noise(|noise| noise.drift_per_s = 0.02))),
        (
            "bursts",
            machine(noise(|noise| noise.bursts = Some(SHORT_BURSTS))),
        ),
        (
            "step",
            machine(noise(|noise| noise.steps = vec![(6.0, 1.5)])),
        ),
        (
            "correlated noise",
            machine(noise(|noise| noise.correlated = Some(SECONDS_LONG))),
        ),
        (
            "an arm with noise of its own",
            sick(ArmModel {
                noise: noise(|noise| noise.correlated = Some(SECONDS_LONG)),
                ..arm()
            }),
        ),
        (
            "instances that differ",
            all(ArmModel {
                instance_sd: 0.01,
                ..arm()
            }),
        ),
        (
            "slow start",
            sick(ArmModel {
                slow_start: Some(SlowStart {
                    factor: 3.0,
                    time_s: 1.0,
                }),
                ..arm()
            }),
        ),
        (
            "leak",
            sick(ArmModel {
                leak_per_s: 0.02,
                ..arm()
            }),
        ),
        (
            "errors in runs",
            sick(ArmModel {
                errors: Errors {
                    share: 0.02,
                    run: 20.0,
                },
                ..arm()
            }),
        ),
        (
            "two modes",
            all(ArmModel {
                service: Distribution::Bimodal {
                    quick_ns: 400e3,
                    slow_ns: 4e6,
                    slow_share: 0.03,
                },
                ..arm()
            }),
        ),
        ("stall", fault(Fault::Stall(5.0..5.5))),
        ("refusal", fault(Fault::Refuse(4.0..8.0))),
        ("crash", fault(Fault::Crash { at_s: 5.0 })),
        (
            "does not start",
            fault(Fault::DoesNotStart("no such directive".to_owned())),
        ),
        (
            "generator held up",
            generator(Generator {
                held_up: (0..20).map(|number| (f64::from(number), 0.004)).collect(),
                ..Generator::default()
            }),
        ),
        (
            "generator late",
            generator(Generator {
                lag: Distribution::Exponential { mean_ns: 500e3 },
                ..Generator::default()
            }),
        ),
        (
            "counters late",
            generator(Generator {
                late_ns: 10_000_000,
                ..Generator::default()
            }),
        ),
        (
            "steal",
            Model {
                machine: Machine {
                    steal: 0.1,
                    ..Machine::default()
                },
                ..base()
            },
        ),
        (
            "two generators",
            Model {
                generators: 2,
                ..base()
            },
        ),
    ]
}

/// Now and then everything takes three times as long for a fraction of a second.
const SHORT_BURSTS: Bursts = Bursts {
    every_s: 1.0,
    length_s: 0.1,
    factor: 3.0,
};

/// Everything takes longer or shorter for some seconds.
const SECONDS_LONG: Correlated = Correlated {
    sd: 0.1,
    time_s: 2.0,
};

fn noise(set: impl FnOnce(&mut Noise)) -> Noise {
    let mut noise = Noise::default();
    set(&mut noise);
    noise
}
