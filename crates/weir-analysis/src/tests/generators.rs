//! Tests that reasons name the generator that they are about.

use weir_model::record::{GeneratorShare, Observation};

use crate::fixture::{SLICE_NS, build_header, build_trial, slice, three_arms};
use crate::validity;

#[test]
fn the_generator_that_is_short_or_busy_is_named() {
    let mut header = build_header(three_arms());
    header.places.generator = Some("h1".to_owned());
    header.places.more_generators = vec!["h2".to_owned()];
    let slices = vec![slice(0, 10_000.0), slice(1, 10_000.0)];
    let mut trial = build_trial("open", "stock", 0, slices);
    for slice in &mut trial.slices {
        (slice.due, slice.sent) = (800, 796);
    }
    trial.generators = [("h1", 800, 96), ("h2", 792, 50)]
        .map(|(host, sent, percent)| GeneratorShare {
            host: host.to_owned(),
            due: 800,
            sent,
            cpu_ns: 2 * SLICE_NS * percent / 100,
            ..GeneratorShare::default()
        })
        .to_vec();
    let reasons = validity(&trial, &header);
    let observations: Vec<_> =
        reasons.into_iter().map(|reason| (reason.subject, reason.observation)).collect();
    assert_eq!(
        observations,
        [
            (None, Observation::OfferedRate { offered: 1_592, due: 1_600 }),
            (Some("h1".to_owned()), Observation::GeneratorBusy { share: 0.96, is_open: true }),
            (Some("h2".to_owned()), Observation::OfferedRate { offered: 792, due: 800 }),
        ]
    );
    trial.generators.clear();
    assert_eq!(validity(&trial, &header).len(), 1, "of all together");
}
