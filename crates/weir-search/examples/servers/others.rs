//! Answers of bisection and of RFC 9971 for the same servers.

use crate::world::{Server, World};

/// A bracket of rates, and its cost in seconds.
pub(crate) struct Bracket {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) seconds: f64,
}

/// Time at the beginning of each trial that is not measured, seconds.
const SETTLE_S: f64 = 0.5;

fn holds(world: &mut World, rate: f64, seconds: f64, spent: &mut f64) -> bool {
    *spent += seconds + SETTLE_S;
    world.holds(rate, seconds)
}

/// Runs a bisection with trials of 30 s down to a bracket of ± 3 %.
pub(crate) fn bisect(server: Server, seed: u64) -> Bracket {
    let mut world = World::new(server, seed);
    let most = server.workers as f64 / server.service_s;
    let (mut low, mut high, mut seconds) = (most * 0.1, most * 1.1, 0.0);
    while f64::ln(high / low) > 0.06 {
        let rate = f64::midpoint(low, high);
        if holds(&mut world, rate, 30.0, &mut seconds) {
            low = rate;
        } else {
            high = rate;
        }
    }
    Bracket { low, high, seconds }
}

/// A load of RFC 9971 with the numbers of its trials that held and that did not.
struct Load {
    rate: f64,
    good: u32,
    bad: u32,
}

/// Runs a search by RFC 9971 with trials of 1 s, a goal of 60 s at a load of which half may exceed, a width of 0.5 %,
/// and two coarser targets before.
pub(crate) fn mlrsearch(server: Server, seed: u64) -> Bracket {
    let mut world = World::new(server, seed);
    let most = server.workers as f64 / server.service_s;
    let mut seconds = 0.0;
    let mut loads: Vec<Load> = Vec::new();
    let (mut low, mut high) = (most * 0.1, most * 1.1);
    for (width, sum) in [(0.02, 3.0), (0.01, 13.4), (0.005, 60.0)] {
        let mut is_bound = |rate: f64| loop {
            let index = loads.iter().position(|load| load.rate == rate).unwrap_or_else(|| {
                let (good, bad) = (0, 0);
                loads.push(Load { rate, good, bad });
                loads.len() - 1
            });
            let load = &mut loads[index];
            if f64::from(load.good) >= sum / 2.0 {
                break true;
            }
            if f64::from(load.bad) > sum / 2.0 {
                break false;
            }
            if holds(&mut world, rate, 1.0, &mut seconds) {
                load.good += 1;
            } else {
                load.bad += 1;
            }
        };
        let mut step = width;
        while !is_bound(low) && low > 1.0 {
            high = low;
            low *= 1.0 - step;
            step *= 2.0;
        }
        step = width;
        while is_bound(high) && high < 3.0 * most {
            low = high;
            high *= 1.0 + step;
            step *= 2.0;
        }
        while f64::ln(high / low) > width {
            let rate = f64::midpoint(low, high);
            if is_bound(rate) {
                low = rate;
            } else {
                high = rate;
            }
        }
    }
    Bracket { low, high, seconds }
}
