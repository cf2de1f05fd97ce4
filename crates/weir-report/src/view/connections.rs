//! What became of connections and handshakes under one load.

use weir_analysis::findings::{ArmFindings, LoadFindings};
use weir_model::load::Lifetime;
use weir_model::load_report::{NameCount, TlsReport};
use weir_model::record::ArmConnections;
use weir_model::study::LoadSpec;

use super::{number, words};

/// Connections of all arms under one load, formatted.
#[derive(Debug, Clone)]
pub struct ConnectionsView {
    /// Whether connections are held beside those that ask.
    pub held: bool,
    /// Whether they speak TLS.
    pub tls: bool,
    /// Whether it is known how many found an arm's listen queue full.
    pub listen_overflows: bool,
    /// In the order of the study.
    pub rows: Vec<ConnectionsRow>,
    /// What is worth saying without the table, one clause each; nothing where connections are kept
    /// and in clear.
    pub sentences: Vec<String>,
}

/// Connections to one arm.
#[derive(Debug, Clone)]
pub struct ConnectionsRow {
    /// The arm.
    pub arm: String,
    /// Connections opened, the first time or again.
    pub opened: String,
    /// The same for each request that was answered.
    pub per_request: String,
    /// Held when the trial began, of as many as the study wants.
    pub held_at_start: String,
    /// Held when it ended.
    pub held_at_end: String,
    /// Held ones that had to be opened again.
    pub held_again: String,
    /// Handshakes.
    pub handshakes: String,
    /// Of these, resumed.
    pub resumed: String,
    /// That found the arm's own listen queue full.
    pub listen_overflows: String,
    /// Memory of the proxy with all connections open.
    pub memory: String,
}

impl ConnectionsView {
    /// [`ConnectionsView::sentences`] as they stand by themselves.
    pub fn notes(&self) -> Vec<String> {
        let whole = |clause: &String| format!("{}.", words::capital(clause));
        self.sentences.iter().map(whole).collect()
    }

    /// `None` where the run did not keep it.
    pub(super) fn new(spec: Option<&LoadSpec>, load: &LoadFindings) -> Option<ConnectionsView> {
        let with = |arm: &ArmFindings| Some((arm.arm.clone(), arm.connections.clone()?));
        let arms: Vec<(String, ArmConnections)> = load.arms.iter().filter_map(with).collect();
        if arms.is_empty() {
            return None;
        }
        let kept = spec.is_none_or(|spec| spec.lifetime == Lifetime::Kept);
        let connections = || arms.iter().map(|(_, connections)| connections);
        let handshakes: Vec<&TlsReport> = connections().filter_map(|c| c.tls.as_ref()).collect();
        let mut sentences = Vec::new();
        sentences.extend(held(connections()));
        sentences.extend(agreed(&handshakes));
        if !kept {
            let opened: u64 = connections().map(|c| c.asking.opened).sum();
            let answered: u64 = connections().map(|c| c.answered).sum();
            let share = number::share(opened as f64 / answered as f64);
            sentences.push(format!("{share} connections opened for each request"));
        }
        sentences.extend(overflowed(&arms));
        Some(ConnectionsView {
            held: connections().any(|c| c.held.wanted > 0),
            tls: !handshakes.is_empty(),
            listen_overflows: connections().any(|c| c.listen_overflows.is_some()),
            rows: arms.iter().map(|(arm, c)| row(arm, c)).collect(),
            sentences,
        })
    }
}

fn row(arm: &str, connections: &ArmConnections) -> ConnectionsRow {
    let (asking, held) = (&connections.asking, &connections.held);
    let tls = connections.tls.as_ref();
    let of_tls = |field: fn(&TlsReport) -> u64| {
        tls.map_or_else(|| number::NONE.to_owned(), |tls| number::count(field(tls)))
    };
    ConnectionsRow {
        arm: arm.to_owned(),
        opened: number::count(asking.opened),
        per_request: number::share(asking.opened as f64 / connections.answered as f64),
        held_at_start: format!(
            "{} of {}",
            number::count(held.open_at_start),
            number::count(held.wanted)
        ),
        held_at_end: number::count(held.open_at_end),
        held_again: number::count(held.opened),
        handshakes: of_tls(|tls| tls.handshakes),
        resumed: of_tls(|tls| tls.resumed),
        listen_overflows: connections
            .listen_overflows
            .map_or_else(|| number::NONE.to_owned(), number::count),
        memory: match connections.proxy_memory_bytes {
            0 => number::NONE.to_owned(),
            bytes => number::bytes(bytes),
        },
    }
}

/// `100,000 of 100,000 connections held to the end, none opened again, proxy memory 113 MiB`, of the
/// arm that held the fewest.
fn held<'a>(all: impl Iterator<Item = &'a ArmConnections>) -> Option<String> {
    let least = all
        .filter(|connections| connections.held.wanted > 0)
        .min_by_key(|c| c.held.open_at_end.min(c.held.open_at_start))?;
    let held = &least.held;
    let again = match held.opened {
        0 => "none opened again".to_owned(),
        again => format!("{} opened again", number::count(again)),
    };
    let memory = match least.proxy_memory_bytes {
        0 => String::new(),
        bytes => format!(", proxy memory {}", number::bytes(bytes)),
    };
    Some(format!(
        "{} of {} connections held to the end, {again}{memory}",
        number::count(held.open_at_end.min(held.open_at_start)),
        number::count(held.wanted),
    ))
}

/// `the listen queue was full 12,345 times for a, never for b`; nothing where no queue was.
fn overflowed(arms: &[(String, ArmConnections)]) -> Option<String> {
    let known = arms
        .iter()
        .filter_map(|(arm, c)| Some((arm, c.listen_overflows?)));
    let (full, never): (Vec<_>, Vec<_>) = known.partition(|(_, times)| *times > 0);
    let mut parts: Vec<String> = full
        .iter()
        .map(|(arm, times)| format!("{} for {arm}", number::plural(*times, "time")))
        .collect();
    if parts.is_empty() {
        return None;
    }
    if !never.is_empty() {
        let names: Vec<&str> = never.iter().map(|(arm, _)| arm.as_str()).collect();
        parts.push(format!("never for {}", names.join(", ")));
    }
    Some(format!(
        "the listen queue was full {} (net.core.somaxconn, `backlog`)",
        parts.join(", ")
    ))
}

/// `12,345 handshakes, none resumed: TLS 1.2, ECDHE-RSA-AES256-GCM-SHA384, x25519`.
fn agreed(all: &[&TlsReport]) -> Option<String> {
    if all.is_empty() {
        return None;
    }
    let handshakes: u64 = all.iter().map(|tls| tls.handshakes).sum();
    let resumed: u64 = all.iter().map(|tls| tls.resumed).sum();
    let resumed = match resumed {
        0 => "none resumed".to_owned(),
        n if n == handshakes => "all resumed".to_owned(),
        n => format!("{} resumed", number::count(n)),
    };
    let names = |field: fn(&TlsReport) -> &[NameCount]| {
        let mut names: Vec<&str> = Vec::new();
        for named in all.iter().flat_map(|tls| field(tls)) {
            if !names.contains(&&*named.name) {
                names.push(&named.name);
            }
        }
        names.join(" or ")
    };
    let agreed = [
        names(|tls| &tls.versions),
        names(|tls| &tls.ciphers),
        names(|tls| &tls.groups),
    ];
    let agreed: Vec<String> = agreed.into_iter().filter(|name| !name.is_empty()).collect();
    Some(format!(
        "{}, {resumed}: {}",
        number::plural(handshakes, "handshake"),
        agreed.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use weir_model::record::ConnectionCounts;

    use super::*;

    #[test]
    fn full_listen_queues_are_told_by_arm() {
        let arm = |name: &str, listen_overflows| {
            let connections = ArmConnections {
                listen_overflows,
                ..ArmConnections::default()
            };
            (name.to_owned(), connections)
        };
        let said = |arms: &[_]| overflowed(arms);
        assert_eq!(said(&[arm("a", Some(0)), arm("b", Some(0))]), None);
        assert_eq!(said(&[arm("a", None)]), None);
        assert_eq!(
            said(&[arm("a", Some(12_345)), arm("b", Some(0)), arm("c", Some(1))]).as_deref(),
            Some(
                "the listen queue was full 12,345 times for a, 1 time for c, never for b \
                 (net.core.somaxconn, `backlog`)"
            )
        );
    }

    #[test]
    fn what_was_held_and_agreed_on_is_said_in_a_clause() {
        let mut connections = ArmConnections {
            held: ConnectionCounts {
                wanted: 100_000,
                open_at_start: 100_000,
                open_at_end: 99_998,
                opened: 2,
            },
            proxy_memory_bytes: 113 << 20,
            ..ArmConnections::default()
        };
        assert_eq!(
            held([&connections].into_iter()).as_deref(),
            Some(
                "99,998 of 100,000 connections held to the end, 2 opened again, proxy memory 113 MiB"
            )
        );
        connections.held = ConnectionCounts::default();
        assert_eq!(held([&connections].into_iter()), None);
        let named = |name: &str| {
            vec![NameCount {
                name: name.to_owned(),
                count: 7,
            }]
        };
        let tls = TlsReport {
            handshakes: 7,
            versions: named("TLS 1.2"),
            ciphers: named("C"),
            ..TlsReport::default()
        };
        assert_eq!(
            agreed(&[&tls, &tls]).as_deref(),
            Some("14 handshakes, none resumed: TLS 1.2, C")
        );
        assert_eq!(agreed(&[]), None);
    }
}
