//! The macro-benchmark: do CPU, memory, network and connections grow linearly with the load?

use weir_stats::growth::{Growth, growth_of};

use crate::evidence::Evidence;
use crate::quantities::{Quantities, Resource};

/// How a resource grew.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// The resource.
    pub resource: Resource,
    /// The quantity that tells of it.
    pub quantity: String,
    /// Its unit; the slope is this for each request per second.
    pub unit: String,
    /// Each window that knows it: requests per second, and its value.
    pub points: Vec<(f64, f64)>,
    /// Where it is known at too few rates, `None`.
    pub growth: Option<Growth>,
}

/// How every resource grew with the rate of completed requests. Each piece of evidence is of one window of its own: the
/// windows are the replicates, because samples within one resemble each other. `seed` fixes the draws of the test for
/// a bend.
pub fn growth(quantities: &Quantities, windows: &[Evidence], seed: u64) -> Vec<Grown> {
    let asked = quantities
        .all()
        .iter()
        .filter_map(|one| Some((one, one.resource?)));
    let grown = asked.map(|(quantity, resource)| {
        let name = &quantity.name.value;
        let point = |window: &Evidence| Some((window.value("rate")?, window.value(name)?));
        let points: Vec<(f64, f64)> = windows.iter().filter_map(point).collect();
        Grown {
            resource,
            quantity: name.clone(),
            unit: quantity.unit.clone(),
            growth: growth_of(&points, seed),
            points,
        }
    });
    grown.collect()
}
