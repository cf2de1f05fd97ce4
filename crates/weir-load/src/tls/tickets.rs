//! Store of resumable sessions, for one thread and one flow.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use weir_model::tls::Resumption;

/// Maximum number of tickets. Connections bring at least as many as they use, so this only bounds how many can resume
/// at one moment; a ticket holds its server's certificates, some KiB.
const KEPT: usize = 1024;

/// Decides for each new connection whether it resumes, so that of the first k exactly ⌊k·share⌋ do (Bresenham's line).
/// In millionths: floating point would occasionally lose one.
#[derive(Debug, Clone)]
pub(super) struct Share {
    millionths: u64,
    sum: u64,
}

const WHOLE: u64 = 1_000_000;

impl Share {
    pub(super) fn new(resumption: Resumption) -> Share {
        let share = match resumption {
            Resumption::Off => 0.0,
            Resumption::On => 1.0,
            Resumption::Ratio(share) => share.clamp(0.0, 1.0),
        };
        let millionths = (share * WHOLE as f64).round() as u64;
        Share { millionths, sum: 0 }
    }

    pub(super) fn next(&mut self) -> bool {
        self.sum += self.millionths;
        let due = self.sum >= WHOLE;
        if due {
            self.sum -= WHOLE;
        }
        due
    }
}

/// Ticket store. rustls requires it to be `Sync`, so there is a lock; it belongs to one thread and is taken a few times
/// per handshake, so no thread ever waits for it.
#[derive(Default)]
pub(super) struct Tickets(Mutex<TicketStore>);

#[derive(Default)]
struct TicketStore {
    /// True if the connection that begins now may resume.
    offer: bool,
    tls12: Option<Tls12ClientSessionValue>,
    /// TLS 1.3 tickets, oldest first.
    tls13: VecDeque<Tls13ClientSessionValue>,
    /// Early data allowed by the ticket taken last, in bytes.
    early_limit: u32,
}

impl Tickets {
    fn lock(&self) -> MutexGuard<'_, TicketStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets whether the connection that begins now may resume.
    pub(super) fn offer(&self, offer: bool) {
        let mut store = self.lock();
        store.offer = offer;
        store.early_limit = 0;
    }

    /// Returns the amount of early data that the last connection begun may send, in bytes.
    pub(super) fn early_limit(&self) -> usize {
        self.lock().early_limit as usize
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Tickets {
    // A full handshake is that of a newcomer, who does not know which group the server wants.
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.lock().tls12 = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let store = self.lock();
        store.tls12.as_ref().filter(|_| store.offer).cloned()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.lock().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut store = self.lock();
        if store.tls13.len() == KEPT {
            store.tls13.pop_front();
        }
        store.tls13.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut store = self.lock();
        if !store.offer {
            return None;
        }
        let ticket = store.tls13.pop_back()?;
        store.early_limit = ticket.max_early_data_size();
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_met_exactly_at_every_moment() {
        for millionths in [0_u64, 1, 290_000, 333_333, 500_000, 700_000, 999_999, WHOLE] {
            let mut share = Share::new(Resumption::Ratio(millionths as f64 / WHOLE as f64));
            let mut resumed = 0;
            for k in 1..=10_000_u64 {
                resumed += u64::from(share.next());
                assert_eq!(resumed, k * millionths / WHOLE, "{millionths} millionths after {k}");
            }
        }
    }
}
