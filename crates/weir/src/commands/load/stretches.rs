//! Combination of one-second slices to longer stretches of time, without loss: histograms are added.

use std::collections::VecDeque;
use std::ops::Range;

use weir_load::SliceData;

/// Division of slices into stretches: each of the first `single` slices is one, and then every `step` slices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    /// The first slice that is measured.
    pub(super) first: usize,
    /// Number of slices from there on that are a stretch each.
    pub(super) single: usize,
    /// Number of slices in every later stretch; at least 1.
    pub(super) step: usize,
    /// Number of slices in the plan.
    pub(super) slices: usize,
}

impl Grid {
    /// Returns the slices of the stretch that contains a slice.
    pub(super) fn around(&self, slice: usize) -> Range<usize> {
        let coarse = self.first + self.single;
        if slice < coarse {
            slice..slice + 1
        } else {
            let begin = slice - (slice - coarse) % self.step;
            begin..(begin + self.step).min(self.slices)
        }
    }
}

/// A stretch that still lacks slices.
struct Open {
    slices: Range<usize>,
    seen: usize,
    data: SliceData,
}

/// Stretches of a running load. Only those that have begun and not ended are kept.
pub(super) struct Stretches {
    grid: Grid,
    /// First slice of the next stretch to pass on.
    next: usize,
    /// Incomplete stretches, in order of time.
    open: VecDeque<Open>,
    spare: Vec<SliceData>,
}

impl Stretches {
    pub(super) fn new(grid: Grid) -> Stretches {
        Stretches { grid, next: grid.first, open: VecDeque::new(), spare: Vec::new() }
    }

    /// Takes a slice, and passes the stretches that are complete to `whole`, in order of time.
    pub(super) fn take(
        &mut self,
        slice: usize,
        data: &SliceData,
        mut whole: impl FnMut(Range<usize>, &SliceData),
    ) {
        let slices = self.grid.around(slice);
        if slices == (self.next..self.next + 1) && self.open.is_empty() {
            self.next = slices.end;
            return whole(slices, data);
        }
        let index = self.open.partition_point(|open| open.slices.start < slices.start);
        if !self.open.get(index).is_some_and(|open| open.slices == slices) {
            let data = self.spare.pop().unwrap_or_default();
            let open = Open { slices, seen: 0, data };
            self.open.insert(index, open);
        }
        self.open[index].data.add(data);
        self.open[index].seen += 1;
        while let Some(open) = self.open.front()
            && open.slices.start == self.next
            && open.seen == open.slices.len()
        {
            self.hand_on(&mut whole);
        }
    }

    /// Passes the incomplete stretches to `whole`, when no slice will come any more.
    pub(super) fn end(&mut self, mut whole: impl FnMut(Range<usize>, &SliceData)) {
        while !self.open.is_empty() {
            self.hand_on(&mut whole);
        }
    }

    fn hand_on(&mut self, whole: &mut impl FnMut(Range<usize>, &SliceData)) {
        if let Some(mut open) = self.open.pop_front() {
            self.next = open.slices.end;
            whole(open.slices, &open.data);
            open.data.clear();
            self.spare.push(open.data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(completed: u64) -> SliceData {
        let mut data = SliceData::new();
        data.completed = completed;
        data
    }

    #[test]
    fn stretches_are_whole_and_in_order_whenever_their_slices_come() {
        let grid = Grid { first: 1, single: 2, step: 3, slices: 8 };
        let mut stretches = Stretches::new(grid);
        let mut finished = Vec::new();
        for (slice, expected) in [
            (2, &[][..]),
            (1, &[(1..2, 1), (2..3, 2)]),
            (6, &[]),
            (7, &[]),
            (4, &[]),
            (3, &[]),
            (5, &[(3..6, 12), (6..8, 13)]),
        ] {
            stretches.take(slice, &counted(slice as u64), |slices, data| {
                finished.push((slices, data.completed));
            });
            assert_eq!(finished, expected, "slice {slice}");
            finished.clear();
        }
        assert_eq!(stretches.spare.len(), 2, "used again, and no more than were open");
    }

    #[test]
    fn what_has_not_ended_is_handed_on_at_the_end() {
        let grid = Grid { first: 0, single: 0, step: 10, slices: 86_400 };
        let mut stretches = Stretches::new(grid);
        for slice in (0..25).filter(|slice| *slice != 3) {
            stretches.take(slice, &counted(1), |slices, _| panic!("{slices:?}"));
        }
        let mut finished = Vec::new();
        stretches.end(|slices, data| finished.push((slices.start, data.completed)));
        assert_eq!(finished, [(0, 9), (10, 10), (20, 5)]);
    }
}
