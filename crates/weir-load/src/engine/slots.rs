//! The slices whose figures are still open, by number.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender};

use crate::ledger::SliceData;

/// What one slice counted, for each flow of its arm.
pub(crate) type FlowsData = Box<[SliceData]>;

/// A slice's data on its way from a thread: thread, slice, data.
pub(crate) type Delivery = (usize, usize, FlowsData);

/// Empty data for `flows` flows.
pub(crate) fn empty(flows: usize) -> FlowsData {
    std::iter::repeat_with(SliceData::new).take(flows).collect()
}

/// Where finished data goes and empty data comes from.
pub(crate) struct Outlet {
    /// Number of the thread.
    pub(crate) thread: usize,
    /// To whoever merges the threads' data.
    pub(crate) full: SyncSender<Delivery>,
    /// Cleared data to be used again.
    pub(crate) empty: Receiver<FlowsData>,
}

/// Data of the slices that have begun and not ended with all their requests.
pub(crate) struct Slots {
    outlet: Outlet,
    /// Flows of an arm, at most.
    width: usize,
    /// Number of the slice at the front of `open`.
    first: usize,
    open: VecDeque<Option<Slot>>,
}

struct Slot {
    data: FlowsData,
    /// Requests in flight, and 1 for as long as more can come.
    holds: u32,
}

impl Slots {
    pub(crate) fn new(outlet: Outlet, width: usize) -> Slots {
        Slots {
            outlet,
            width,
            first: 0,
            open: VecDeque::with_capacity(64),
        }
    }

    /// Opens the next slice, held until [`Slots::release`].
    pub(crate) fn open(&mut self) -> usize {
        // Only when slices outlast each other more than ever before is there nothing to use again.
        let again = self.outlet.empty.try_recv();
        let data = again.unwrap_or_else(|_| empty(self.width));
        self.open.push_back(Some(Slot { data, holds: 1 }));
        self.first + self.open.len() - 1
    }

    /// What an open slice counts for a flow, by the flow's place in its arm.
    #[inline]
    pub(crate) fn data(&mut self, slice: usize, place: usize) -> Option<&mut SliceData> {
        let slot = self.open.get_mut(slice.checked_sub(self.first)?)?;
        slot.as_mut().map(|slot| &mut slot.data[place])
    }

    /// One more reason not to close a slice: a request in flight.
    #[inline]
    pub(crate) fn hold(&mut self, slice: usize) {
        if let Some(Some(slot)) = self.open.get_mut(slice - self.first) {
            slot.holds += 1;
        }
    }

    /// One reason less; the last one sends the data on its way.
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
