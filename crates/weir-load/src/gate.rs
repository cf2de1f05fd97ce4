//! Where the threads of a trial wait for each other before the start.

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::trial::Control;

/// A gate that opens when all threads are there.
pub(crate) struct Gate<'a> {
    control: &'a Control,
    arrivals: Mutex<Arrivals>,
    opened: Condvar,
}

/// Who has come to a gate.
struct Arrivals {
    /// Threads that have not come yet.
    awaited: usize,
    connections: usize,
    connected: usize,
    /// A thread cannot take part, so nobody does.
    given_up: bool,
    /// The common start, once it is known; 0: there is none.
    start: Option<u64>,
}

impl Arrivals {
    /// Whether connections were to be opened, and none is.
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

    /// Whoever panics has ended the process.
    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The common start; 0 when connections were to be opened and none is, anywhere, when a thread cannot take part, or
    /// when the trial was stopped while it waited for other generators.
    pub(crate) fn pass(&self, connections: usize, connected: usize) -> u64 {
        let mut arrivals = self.arrivals();
        arrivals.connections += connections;
        arrivals.connected += connected;
        let arrivals = self.arrive(arrivals, 1);
        let opened = self.opened.wait_while(arrivals, |it| it.start.is_none());
        let opened = opened.unwrap_or_else(PoisonError::into_inner);
        opened.start.unwrap_or(0)
    }

    /// So many threads have come; with the last of them the start is agreed upon.
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
        let start = if is_hopeless {
            0
        } else {
            self.control.agreed_start()
        };
        self.control.started_at.store(start, Ordering::Relaxed);
        arrivals.start = Some(start);
        self.opened.notify_all();
        arrivals
    }

    /// So many threads cannot take part: lets the others through without a start.
    pub(crate) fn give_up(&self, threads: usize) {
        let mut arrivals = self.arrivals();
        arrivals.given_up = true;
        drop(self.arrive(arrivals, threads));
    }

    /// So many threads were never started: has the others open no more connections.
    pub(crate) fn abandon(&self, threads: usize) {
        self.control.stop.store(true, Ordering::Relaxed);
        self.give_up(threads);
    }

    /// Whether connections were to be opened, and none is.
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
