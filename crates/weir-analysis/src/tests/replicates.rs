//! Groups of neighbouring blocks.

use crate::compare::{group_size, groups};

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
fn groups_grow_until_the_quantile_has_its_samples() {
    let of = |requests, blocks| {
        let size = group_size(requests, blocks, 10_000);
        (size.blocks, size.samples)
    };
    assert_eq!(of(1_000_000, 100), (1, 10_000));
    assert_eq!(of(400_000, 100), (3, 12_000));
    assert_eq!(
        of(40_000, 100),
        (16, 6_400),
        "too short: six replicates are worth more"
    );
    assert_eq!(of(40_000, 4), (1, 10_000));
    assert_eq!(of(0, 0), (1, 0));
}
