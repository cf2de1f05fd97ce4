//! Listeners, servers and locations of a user's configuration that a load uses.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ReplacedRecord;

/// Parts of a user's configuration that serve certain loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedRecord {
    /// Names of the loads; a flow beside a load's own is named `LOAD, flow FLOW`.
    pub loads: Vec<String>,
    /// True if the loads use TLS.
    pub tls: bool,
    /// Listener, named by its address in the user's configuration.
    pub listener: SpotRecord,
    /// Parts that answer each different request, in the order of the requests.
    pub requests: Vec<RequestRecord>,
    /// Replacements in the copy that affect these requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ReplacedRecord>,
}

/// Value of `answer` for a part that serves its own files.
pub const FROM_FILES: &str = "answers from files";

/// Parts of a user's configuration that answer a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestRecord {
    /// Host field of the request.
    pub host: String,
    /// Target of the request.
    pub target: String,
    /// Parts that pass client connections on to the listener; these are left out of the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<SpotRecord>,
    /// Parts that pass the connection on before it reaches the server, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<SpotRecord>,
    /// Virtual server; `None` if the proxy's language has none, or none was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SpotRecord>,
    /// Location, route or backend in the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<SpotRecord>,
    /// Action on the request, as a clause: `passes it on`.
    pub answer: String,
    /// Directive that compresses responses here for clients that accept compression, if this request does not: `gzip
    /// on`. Compression from a stock configuration is not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<SpotRecord>,
}

/// A part of the user's configuration and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpotRecord {
    /// Name of the part: `server shop.example`, `location /api/`, `*:443`.
    pub name: String,
    /// Path of the user's file.
    pub file: PathBuf,
    /// Line number in the file, from 1; 0 if the file is translated before it is read, as a Caddyfile is.
    pub line: usize,
}

impl AskedRecord {
    /// Listener as text: `*:443 over TLS (/etc/nginx/nginx.conf:12)`.
    pub fn at(&self) -> String {
        let how = if self.tls { "over TLS" } else { "in clear" };
        format!("{} {how} ({})", self.listener.name, self.listener.place())
    }

    /// Parts that answer the requests, as text without duplicates.
    pub fn places(&self) -> Vec<String> {
        let mut places: Vec<String> = Vec::new();
        for request in &self.requests {
            let text = request.to_string();
            if !places.contains(&text) {
                places.push(text);
            }
        }
        places
    }
}

impl RequestRecord {
    /// Virtual server as text, with the parts that the connection passes before it and those in front of the listener:
    /// `through frontend in (/etc/a.cfg:3): frontend web (/etc/a.cfg:9)`.
    pub fn server(&self) -> Option<String> {
        let past = match &self.past[..] {
            [] => String::new(),
            spots => format!("past {}, which clients may come through: ", join_spots(spots)),
        };
        let through = match &self.through[..] {
            [] => String::new(),
            spots => format!("through {}: ", join_spots(spots)),
        };
        let server = self.server.as_ref()?;
        Some(format!("{past}{through}{server}"))
    }
}

fn join_spots(spots: &[SpotRecord]) -> String {
    spots.iter().map(SpotRecord::to_string).collect::<Vec<_>>().join(", ")
}

/// Writes for example `server shop.example (/etc/nginx/nginx.conf:10), location /api/ (/etc/nginx/nginx.conf:14),
/// passes it on`.
impl fmt::Display for RequestRecord {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.location.as_ref().map(SpotRecord::to_string);
        for spot in [self.server(), location].into_iter().flatten() {
            write!(to, "{spot}, ")?;
        }
        to.write_str(&self.answer)
    }
}

impl fmt::Display for SpotRecord {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.name, self.place())
    }
}

impl SpotRecord {
    /// Position as text: `/etc/nginx/nginx.conf:12`.
    fn place(&self) -> String {
        match self.line {
            0 => self.file.display().to_string(),
            line => format!("{}:{line}", self.file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_server_is_said_before_it() {
        let spot =
            |name: &str, line| SpotRecord { name: name.to_owned(), file: "/a.cfg".into(), line };
        let mut request = RequestRecord {
            host: String::new(),
            target: String::new(),
            past: Vec::new(),
            through: Vec::new(),
            server: Some(spot("frontend web", 9)),
            location: None,
            answer: "passes it on".to_owned(),
            compressed: None,
        };
        assert_eq!(request.to_string(), "frontend web (/a.cfg:9), passes it on");
        request.through = vec![spot("frontend a", 1), spot("frontend b", 2)];
        let through = "through frontend a (/a.cfg:1), frontend b (/a.cfg:2): frontend web (/a.cfg:9), passes it on";
        assert_eq!(request.to_string(), through);
        request.past = vec![spot("stream server 443", 3)];
        let past = "past stream server 443 (/a.cfg:3), which clients may come through: ";
        assert_eq!(request.to_string(), format!("{past}{through}"));
    }
}
