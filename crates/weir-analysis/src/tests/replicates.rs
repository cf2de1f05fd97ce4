//! Groups of neighbouring blocks.

use crate::replicates::{group_size, groups, together};

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

#[test]
fn short_clusters_are_taken_together_at_their_edges() {
    let twos = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6];
    assert_eq!(together(&twos, 5), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(together(&[3; 4], 5), [0; 4]);
    let long = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1];
    assert_eq!(together(&long, 5), long);
}
