//! Slices whose figures are still incomplete, by number.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender};

use crate::ledger::SliceData;

/// Figures of one slice, one entry for each flow of its arm.
pub(crate) type FlowsData = Box<[SliceData]>;

/// Data of a slice sent by a thread: thread, slice, data.
pub(crate) type Delivery = (usize, usize, FlowsData);

/// Creates empty data for `flows` flows.
pub(crate) fn empty(flows: usize) -> FlowsData {
    std::iter::repeat_with(SliceData::new).take(flows).collect()
}

/// Channels for finished data and for empty data to be reused.
pub(crate) struct Outlet {
    /// Number of the thread.
    pub(crate) thread: usize,
    /// Channel to the thread that merges the threads' data.
    pub(crate) full: SyncSender<Delivery>,
    /// Channel with cleared data to be reused.
    pub(crate) empty: Receiver<FlowsData>,
}

/// Data of slices that have begun and still have requests in flight or to come.
pub(crate) struct OpenSlices {
    outlet: Outlet,
    /// Largest number of flows in an arm.
    width: usize,
    /// Number of the slice at the front of `open`.
    first: usize,
    open: VecDeque<Option<Slot>>,
}

struct Slot {
    data: FlowsData,
    /// Number of requests in flight, plus 1 as long as more can come.
    holds: u32,
}

impl OpenSlices {
    pub(crate) fn new(outlet: Outlet, width: usize) -> OpenSlices {
        OpenSlices { outlet, width, first: 0, open: VecDeque::with_capacity(64) }
    }

    /// Opens the next slice, held until [`OpenSlices::release`].
    pub(crate) fn open(&mut self) -> usize {
        // Only when slices outlast each other more than ever before is there nothing to use again.
        let again = self.outlet.empty.try_recv();
        let data = again.unwrap_or_else(|_| empty(self.width));
        self.open.push_back(Some(Slot { data, holds: 1 }));
        self.first + self.open.len() - 1
    }

    /// Returns the figures of an open slice for a flow, given by the flow's index in its arm; `None` if the slice is
    /// closed.
    #[inline]
    pub(crate) fn data(&mut self, slice: usize, place: usize) -> Option<&mut SliceData> {
        let slot = self.open.get_mut(slice.checked_sub(self.first)?)?;
        slot.as_mut().map(|slot| &mut slot.data[place])
    }

    /// Keeps a slice open for one more request in flight.
    #[inline]
    pub(crate) fn hold(&mut self, slice: usize) {
        if let Some(Some(slot)) = self.open.get_mut(slice - self.first) {
            slot.holds += 1;
        }
    }

    /// Releases one hold on a slice; the last release sends its data.
    #[inline]
    pub(crate) fn release(&mut self, slice: usize) {
        if let Some(slot) = &mut self.open[slice - self.first] {
            slot.holds -= 1;
            if slot.holds == 0 {
                self.send(slice);
            }
        }
    }

    fn send(&mut self, slice: usize) {
        if let Some(slot) = self.open[slice - self.first].take() {
            // Nobody listens any more only when the trial is being torn down.
            let delivery = (self.outlet.thread, slice, slot.data);
            let _ = self.outlet.full.send(delivery);
        }
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.first += 1;
        }
    }
}
