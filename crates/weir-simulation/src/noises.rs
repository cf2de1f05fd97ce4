//! Hosts with known noise, on which the statistics are validated (docs/statistics.md).

use weir_stats::SplitMix64;

use crate::model::{
    ArmModel, Bursts, Correlated, Distribution, Fault, Grain, HoldUps, Model, Noise, Outliers,
};
use crate::scenarios::SICK;

/// A row of the table of noises.
#[derive(Debug, Clone, Copy)]
pub struct NoiseRow {
    /// Name of the noise.
    pub name: &'static str,
    /// Requests per second; `None` for a closed loop.
    pub rate: Option<f64>,
    /// True factor by which the arm [`SICK`] is faster; `None` if it differs in another way.
    pub effect: Option<f64>,
    change: fn(&mut Model),
}

impl NoiseRow {
    /// Returns the model of the host, a different one for each seed.
    pub fn model(&self, seed: u64) -> Model {
        let mut model = Model { seed, grain: Grain::Slices, ..Model::default() };
        model.machine.noise.white = 0.03;
        (self.change)(&mut model);
        if let Some(effect) = self.effect {
            let faster = model.others.slower(1.0 / effect);
            model.arms.insert(SICK.to_owned(), faster);
        }
        model
    }
}

/// Duration of a block of three arms and slices of 100 ms, seconds.
const BLOCK_S: f64 = 0.6;
/// Effect that lies beyond the band of 2 %.
const EFFECT: Option<f64> = Some(1.03);

const fn closed(name: &'static str, change: fn(&mut Model)) -> NoiseRow {
    NoiseRow { name, rate: None, effect: EFFECT, change }
}

const fn stalls(name: &'static str, change: fn(&mut Model)) -> NoiseRow {
    NoiseRow { effect: None, ..closed(name, change) }
}

const fn open(name: &'static str, rate: f64, change: fn(&mut Model)) -> NoiseRow {
    NoiseRow { name, rate: Some(rate), effect: None, change }
}

/// Every row of the table in docs/statistics.md.
#[rustfmt::skip]
pub static NOISES: [NoiseRow; 21] = [
    closed("independent", |_| {}),
    closed("independent, twice as loud", |host| host.machine.noise.white = 0.06),
    closed("instances 0.5 %", |host| host.others.instance_sd = 0.005),
    closed("instances 1.0 %", |host| host.others.instance_sd = 0.010),
    closed("instances 1.5 %", |host| host.others.instance_sd = 0.015),
    closed("AR(1) 0.2", |host| correlated(host, 0.2)),
    closed("AR(1) 0.4", |host| correlated(host, 0.4)),
    closed("AR(1) 0.6", |host| correlated(host, 0.6)),
    closed("bursts", |host| host.machine.noise.bursts = Some(SHORT_BURSTS)),
    closed("outliers 3 %", |host| host.machine.noise.outliers = Some(THREE_PER_CENT)),
    closed("drift", |host| host.machine.noise.drift_per_s = 0.02),
    closed("steps", |host| host.machine.noise.steps = vec![(6.0, 1.5), (15.0, 0.8)]),
    closed("heavy tails (t of 3)", |host| host.machine.noise.freedom = 3),
    stalls("stalls in 5 % of the blocks", |host| stalled(host, 0.05)),
    stalls("stalls in 20 % of the blocks", |host| stalled(host, 0.20)),
    stalls("stalls in 40 % of the blocks", |host| stalled(host, 0.40)),
    open("overload of one arm", 1_800.0, |host| slower(host, 1.25)),
    open("open loop", 1_500.0, |host| slower(host, 1.0)),
    open("open loop, heavy tails", 1_500.0, |host| host.others.service = HEAVY),
    open("open loop, hold-ups, no meters", 12_000.0, |host| held_up(host, 0.0)),
    open("open loop, hold-ups, meters", 12_000.0, |host| held_up(host, 2e6)),
];

/// Makes arms quick and the machine stand still now and then; `meter_ns` is the time between interrupts of its meters.
fn held_up(host: &mut Model, meter_ns: f64) {
    host.others.service = QUICK;
    host.machine.hold_ups = Some(HoldUps { meter_ns, ..HOLD_UPS });
}

/// Replaces the machine's noise by noise of 3 % in each arm, with the given correlation from one block to the next.
fn correlated(host: &mut Model, lag_1: f64) {
    host.machine.noise = Noise::default();
    host.others.noise.correlated = Some(Correlated { sd: 0.03, time_s: -BLOCK_S / f64::ln(lag_1) });
}

fn slower(host: &mut Model, factor: f64) {
    let arm = host.others.slower(factor);
    host.arms.insert(SICK.to_owned(), arm);
}

/// Makes one arm stand still for half of a block, in a share of the blocks.
fn stalled(host: &mut Model, share: f64) {
    let mut numbers = SplitMix64::new(!host.seed);
    let faults = (0..100)
        .map(|block| f64::from(block) * BLOCK_S)
        .filter(|_| numbers.unit() < share)
        .map(|from| Fault::Stall(from..from + 0.5 * BLOCK_S));
    let arm = ArmModel { faults: faults.collect(), ..host.others.clone() };
    host.arms.insert(SICK.to_owned(), arm);
}

/// Bursts in which everything takes three times as long for a fraction of a second.
const SHORT_BURSTS: Bursts = Bursts { every_s: 1.0, length_s: 0.1, factor: 3.0 };

const THREE_PER_CENT: Outliers = Outliers { share: 0.03, factor: 1.5 };

/// Service times with a p99 about ten times as long as the median.
const HEAVY: Distribution = Distribution::LogNormal { median_ns: 250e3, sigma: 1.0 };

/// Service times of a proxy that needs half of a CPU at 12,000/s.
const QUICK: Distribution = Distribution::LogNormal { median_ns: 40e3, sigma: 0.4 };

/// Hold-ups as measured on a shared virtual machine with two CPUs.
const HOLD_UPS: HoldUps = HoldUps { per_s: 1.5, length_ns: (1e6, 4e6), meter_ns: 0.0 };
