//! Gate at which the threads of a trial wait for each other before the start.

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::trial::Control;

/// Gate that opens when all threads have arrived.
pub(crate) struct Gate<'a> {
    control: &'a Control,
    arrivals: Mutex<Arrivals>,
    opened: Condvar,
}

/// State of the gate: arrivals so far and the start.
struct Arrivals {
    /// Number of threads that have not arrived yet.
    awaited: usize,
    connections: usize,
    connected: usize,
    /// True if a thread cannot take part, so that there is no start.
    given_up: bool,
    /// Common start, once it is known, CLOCK_MONOTONIC nanoseconds; 0 if there is none.
    start: Option<u64>,
}

impl Arrivals {
    /// Returns true if connections were to be opened and none is open.
    fn none_connected(&self) -> bool {
        self.connections > 0 && self.connected == 0
    }
}

impl Gate<'_> {
    pub(crate) fn new(threads: usize, control: &Control) -> Gate<'_> {
        Gate {
            control,
            arrivals: Mutex::new(Arrivals {
                awaited: threads,
                connections: 0,
                connected: 0,
                given_up: false,
                start: None,
            }),
            opened: Condvar::new(),
        }
    }

    /// Locks the state. Poisoning is ignored, since a panic ends the process.
    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the other threads and returns the common start. It is 0 if connections were to be opened and none is
    /// open on any thread, if a thread cannot take part, or if the trial was stopped while it waited for other
    /// generators.
    pub(crate) fn pass(&self, connections: usize, connected: usize) -> u64 {
        let mut arrivals = self.arrivals();
        arrivals.connections += connections;
        arrivals.connected += connected;
        let arrivals = self.arrive(arrivals, 1);
        let opened = self
            .opened
            .wait_while(arrivals, |it| it.start.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        opened.start.unwrap_or(0)
    }

    /// Counts `threads` arrivals; the last one fixes the start and wakes all.
    fn arrive<'a>(
        &'a self,
        mut arrivals: MutexGuard<'a, Arrivals>,
        threads: usize,
    ) -> MutexGuard<'a, Arrivals> {
        arrivals.awaited -= threads;
        if arrivals.awaited > 0 {
            return arrivals;
        }
        let is_hopeless = arrivals.given_up || arrivals.none_connected();
        let start = if is_hopeless { 0 } else { self.control.agreed_start() };
        self.control.started_at.store(start, Ordering::Relaxed);
        arrivals.start = Some(start);
        self.opened.notify_all();
        arrivals
    }

    /// Reports that `threads` threads cannot take part: lets the others through without a start.
    pub(crate) fn give_up(&self, threads: usize) {
        let mut arrivals = self.arrivals();
        arrivals.given_up = true;
        drop(self.arrive(arrivals, threads));
    }

    /// Reports that `threads` threads were never started; also stops the others from opening more connections.
    pub(crate) fn abandon(&self, threads: usize) {
        self.control.stop.store(true, Ordering::Relaxed);
        self.give_up(threads);
    }

    /// Returns true if connections were to be opened and none is open.
    pub(crate) fn none_connected(&self) -> bool {
        self.arrivals().none_connected()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn threads_that_were_never_started_hold_nobody_up() {
        let control = Control::new(4, Arc::new(AtomicBool::new(false)));
        let gate = &Gate::new(4, &control);
        let starts = std::thread::scope(|scope| {
            let there = [1, 0].map(|connected| scope.spawn(move || gate.pass(1, connected)));
            gate.abandon(2);
            there.map(|thread| thread.join().unwrap())
        });
        assert_eq!(starts, [0; 2]);
        assert!(control.stop.load(Ordering::Relaxed));
    }
}
