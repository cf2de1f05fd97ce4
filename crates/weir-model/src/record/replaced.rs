//! Replacements in a copy of a user's configuration.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::SpotRecord;

/// A feature of a user's configuration that the requests of a load use and that the copy replaces, so that its cost is
/// not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplacedRecord {
    /// Kind of the replaced feature.
    pub part: ReplacedPart,
    /// The original in the words of the configuration, without names and addresses of servers: `proxy_pass https://`,
    /// `64 servers`.
    pub original: SpotRecord,
}

/// A part of a configuration that copies replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplacedPart {
    /// Certificate that clients are shown, if its kind is unknown.
    Certificate,
    /// TLS to origin servers, and its settings.
    OriginTls,
    /// Several origin servers, or one without a TCP port.
    Servers,
    /// Names of origin servers that are resolved while the proxy runs.
    Names,
    /// A proxy in the same configuration that passes connections on to the listener.
    Before,
    /// TCP port of the configuration itself to which its own proxy connects.
    OwnListener,
    /// Traffic of the proxy other than requests, which is removed: OCSP responses of certificate authorities, log lines
    /// and metrics sent over the network; also local addresses to connect from.
    LeftOut,
    /// The PROXY protocol with clients or origin servers.
    ProxyProtocol,
    /// Agents and peers that the proxy communicates with beside requests.
    Peers,
    /// Service that the proxy consults about requests, or sends a second copy of them.
    Service,
    /// Work that depends on the content and headers of responses.
    Content,
    /// A limit whose state outlasts a slice.
    Limit,
    /// Decisions that depend on the client's address.
    ClientAddress,
    /// Log lines that are sent over the network.
    Log,
}

impl ReplacedPart {
    /// Returns true if nothing of the original is left in the copy, so that configurations that differ in nothing else
    /// have the same copies.
    pub fn is_lost(self) -> bool {
        use ReplacedPart::{
            Before, Certificate, LeftOut, Names, OriginTls, Peers, ProxyProtocol, Servers,
        };
        matches!(
            self,
            Certificate | OriginTls | Servers | Names | Before | LeftOut | ProxyProtocol | Peers
        )
    }

    /// Clause that describes the replacement in the copy.
    pub fn in_copy(self) -> &'static str {
        match self {
            ReplacedPart::Certificate => {
                "the copy shows a certificate of the run's, with an RSA key of 2,048 bits"
            }
            ReplacedPart::OriginTls => "the copy asks its origin server in clear",
            ReplacedPart::Servers => "the copy has one origin server, at one TCP port",
            ReplacedPart::Names => "the copy has a fixed address",
            ReplacedPart::Before | ReplacedPart::LeftOut => "left out of the copy",
            ReplacedPart::OwnListener => "the copy asks it at a Unix socket",
            ReplacedPart::ProxyProtocol => "the copy does without the PROXY protocol",
            ReplacedPart::Peers => "the copy talks to none of them",
            ReplacedPart::Service => "the study's origin server answers in place of that service",
            ReplacedPart::Content => {
                "it works on responses of the study's `origin`, not on those of your servers"
            }
            ReplacedPart::Limit => {
                "it fills up again while other arms have the load, so short slices carry more than a steady load would"
            }
            ReplacedPart::ClientAddress => "all clients of the run have one address",
            ReplacedPart::Log => "the copy writes the lines to a local socket that nobody reads",
        }
    }
}

/// Returns sentences about what copies replace, one for each part: `proxy_pass https:// (/etc/nginx/nginx.conf:12): the
/// copy asks its origin server in clear`.
pub fn replaced_sentences<'r>(all: impl IntoIterator<Item = &'r ReplacedRecord>) -> Vec<String> {
    let mut all: Vec<&ReplacedRecord> = all.into_iter().collect();
    all.sort_by_key(|record| record.place());
    all.dedup();
    all.chunk_by(|a, b| a.part == b.part)
        .map(|of_one| {
            let originals: Vec<String> = of_one.iter().take(SHOWN).map(|it| it.shown()).collect();
            let more = match of_one.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{}{more}: {}", originals.join(", "), of_one[0].part.in_copy())
        })
        .collect()
}

/// Maximum number of originals of one kind that a sentence names.
const SHOWN: usize = 3;

/// Maximum number of characters of an original that a sentence shows.
const LONGEST: usize = 60;

impl ReplacedRecord {
    /// Sort key of records: kind, file, line, and name.
    pub fn place(&self) -> (ReplacedPart, &Path, usize, &str) {
        let SpotRecord { name, file, line } = &self.original;
        (self.part, file, *line, name)
    }

    /// Original with its position as text, shortened for reading.
    fn shown(&self) -> String {
        let name = &self.original.name;
        let short = match name.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &name[..end]),
            None => name.clone(),
        };
        let short = SpotRecord { name: short, ..self.original.clone() };
        short.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(part: ReplacedPart, name: &str, line: usize) -> ReplacedRecord {
        let file = "/a.conf".into();
        let original = SpotRecord { name: name.to_owned(), file, line };
        ReplacedRecord { part, original }
    }

    #[test]
    fn a_sentence_has_all_of_a_part_once() {
        let long = "x".repeat(LONGEST + 1);
        let all = [
            record(ReplacedPart::Servers, "64 servers", 3),
            record(ReplacedPart::OriginTls, "proxy_pass https://", 9),
            record(ReplacedPart::OriginTls, "proxy_ssl_session_reuse off", 10),
            record(ReplacedPart::OriginTls, "proxy_pass https://", 9),
            record(ReplacedPart::Content, &long, 4),
        ];
        let shortened = format!("{}…", "x".repeat(LONGEST));
        let expected = [
            "proxy_pass https:// (/a.conf:9), proxy_ssl_session_reuse off (/a.conf:10): the copy asks its origin \
             server in clear"
                .to_owned(),
            "64 servers (/a.conf:3): the copy has one origin server, at one TCP port".to_owned(),
            format!(
                "{shortened} (/a.conf:4): it works on responses of the study's `origin`, not on those of your servers"
            ),
        ];
        assert_eq!(replaced_sentences(&all), expected);
        let many: Vec<ReplacedRecord> =
            (1..=5).map(|line| record(ReplacedPart::Limit, "limit_req", line)).collect();
        assert!(replaced_sentences(&many)[0].contains("(/a.conf:3) and 2 more: it fills up"));
    }
}
