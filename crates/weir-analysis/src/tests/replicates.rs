//! Groups of neighbouring blocks.

use weir_model::study::Metric;

use crate::analyze;
use crate::findings::{Caveat, Verdict};
use crate::fixture::{build_header, build_trials, normal, part, run_with_records, three_arms};
use crate::replicates::{group_size, groups};

/// One to three instances do not show their own spread, so that of other proxies is assumed: a difference of one per
/// cent is then no effect.
#[test]
fn few_instances_claim_what_is_larger_than_instances_differ_by() {
    for (instances, ratio, verdict) in [
        (1, 3.0, Verdict::Better),
        (1, 1.1, Verdict::Better),
        (1, 1.015, Verdict::Inconclusive),
        (1, 1.0, Verdict::Inconclusive),
        (3, 1.015, Verdict::Inconclusive),
        (3, 1.06, Verdict::Better),
        (8, 1.06, Verdict::Better),
        (8, 1.0, Verdict::Equivalent),
    ] {
        let header = build_header(three_arms());
        let all = build_trials(&header, "closed", 24, |moment| {
            let faster = if moment.arm == 2 { ratio } else { 1.0 };
            1e4 * faster * (1.0 + 0.002 * normal(moment.rng))
        });
        let of_instance = 24 / instances;
        let parts: Vec<_> = (0..instances)
            .map(|instance| instance * of_instance)
            .map(|first| part("closed", first..first + of_instance))
            .collect();
        let (_folder, run) = run_with_records(&header, all, |_, _| Vec::new(), &parts);
        let findings = analyze(&run);
        let change = findings.loads[0].comparison("keepalive", Metric::Rate).unwrap();
        assert_eq!(change.verdict, verdict, "{instances} {ratio}: {change:?}");
        let has_few = change.because.caveats.contains(&Caveat::FewInstances);
        assert_eq!(has_few, instances < 4, "{change:?}");
    }
}

#[test]
fn groups_are_neighbours_and_leave_nobody_out() {
    let blocks: Vec<usize> = (0..11).collect();
    for size in 1..=12 {
        let groups: Vec<&[usize]> = groups(&blocks, size).collect();
        assert_eq!(groups.concat(), blocks, "size {size}");
        let least = groups.iter().map(|group| group.len()).min();
        assert!(least >= Some(size.min(11)), "size {size}: {groups:?}");
    }
    assert_eq!(groups(&[], 1).count(), 0);
}

#[test]
fn groups_grow_until_the_quantile_has_its_samples_but_stay_as_many_as_a_test_needs() {
    let table = [
        (1_000_000, 100, 6, 1),
        (100_000, 100, 6, 1),
        (40_000, 100, 6, 3),
        (6_400, 100, 6, 16),
        (6_000, 100, 6, 16),
        (6_000, 100, 8, 12),
        (4_000, 4, 6, 1),
        (0, 0, 6, 1),
    ];
    for (requests, blocks, replicates, want) in table {
        let size = group_size(requests, blocks, 1_000, replicates);
        assert_eq!(size, want, "{requests} requests in {blocks} blocks");
    }
}
