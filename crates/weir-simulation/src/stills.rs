//! Standstills of the machine's CPUs, and the meters' view of them.

use std::ops::Range;

use weir_load::Slice;
use weir_model::record::{HeldUp, HoldUps};

use crate::chance::Chance;
use crate::model::Machine;
use crate::noise::NS_PER_S;

/// Minimum lateness of an interrupt that a meter counts, nanoseconds.
const LEAST_NS: u64 = 200_000;

/// Times in which CPUs stand still in a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stills {
    pub(crate) proxy: Vec<Range<u64>>,
    pub(crate) generator: Vec<Range<u64>>,
}

impl Stills {
    /// Draws the standstills of a slice, and the meters' record of them.
    pub(crate) fn of(machine: &Machine, slice: Slice, chance: &mut Chance) -> (Stills, HoldUps) {
        let mut all = Stills::default();
        let Some(of) = machine.hold_ups else {
            return (all, HoldUps::default());
        };
        let (shortest, longest) = of.length_ns;
        let mut sides = [HeldUp::default(); 2];
        let mut at = slice.start as f64;
        loop {
            at += chance.exponential(NS_PER_S / of.per_s);
            if at >= slice.end as f64 {
                break;
            }
            let length = shortest + (longest - shortest) * chance.unit();
            let still = at as u64..(at + length) as u64;
            let is_proxy = chance.happens(0.5);
            // An interrupt is as late as the rest of the hold-up when it is due.
            let late_ns = (length - of.meter_ns * chance.unit()).max(0.0) as u64;
            let side = &mut sides[usize::from(is_proxy)];
            if late_ns > LEAST_NS {
                side.times += 1;
                side.late_ns += late_ns;
            }
            if is_proxy {
                all.proxy.push(still);
            } else {
                all.generator.push(still);
            }
            at += length;
        }
        let [generator, proxy] = sides.map(|side| (of.meter_ns > 0.0).then_some(side));
        (all, HoldUps { proxy, generator, origin: None })
    }
}
