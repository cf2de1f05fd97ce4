//! The macro-benchmark: checks that CPU, memory, network and connections grow linearly with the load.

use weir_stats::growth::{Growth, growth_of};

use crate::evidence::Evidence;
use crate::quantities::{Quantities, Resource};

/// Growth of a resource with the rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// The measured resource.
    pub resource: Resource,
    /// Name of the quantity that measures it.
    pub quantity: String,
    /// Unit of the quantity; the slope is in this unit per request per second.
    pub unit: String,
    /// Requests per second and value, for each window in which the quantity is known.
    pub points: Vec<(f64, f64)>,
    /// Fitted growth; `None` if known at too few rates.
    pub growth: Option<Growth>,
}

/// Computes the growth of every resource with the rate of completed requests. Each [`Evidence`] comes from a separate
/// window: the windows are the replicates, because samples within one resemble each other. `seed` fixes the draws of
/// the test for a bend.
pub fn growth(quantities: &Quantities, windows: &[Evidence], seed: u64) -> Vec<Grown> {
    let grown = quantities.all().iter().filter_map(|one| Some((one, one.resource?))).map(
        |(quantity, resource)| {
            let name = &quantity.name.value;
            let points: Vec<(f64, f64)> = windows
                .iter()
                .filter_map(|window| Some((window.value("rate")?, window.value(name)?)))
                .collect();
            Grown {
                resource,
                quantity: name.clone(),
                unit: quantity.unit.clone(),
                growth: growth_of(&points, seed),
                points,
            }
        },
    );
    grown.collect()
}
