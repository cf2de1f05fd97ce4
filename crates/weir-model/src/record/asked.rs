//! Which listener, server and location of a user's configuration a load has asked.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ReplacedRecord;

/// What some loads ask of a configuration of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskedRecord {
    /// The loads, by name; a flow beside a load's own as `LOAD, flow FLOW`.
    pub loads: Vec<String>,
    /// Whether they ask over TLS.
    pub tls: bool,
    /// The listener, by its address in the user's configuration.
    pub listener: SpotRecord,
    /// What answers each different request, in their order.
    pub requests: Vec<RequestRecord>,
    /// Replacements in the copy, of what these requests meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<ReplacedRecord>,
}

/// The answer of a part that has files of its own, as records have it.
pub const FROM_FILES: &str = "answers from files";

/// What answers a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestRecord {
    /// Its Host field.
    pub host: String,
    /// Its target.
    pub target: String,
    /// What passes connections of clients on to the listener, and is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<SpotRecord>,
    /// What passes the connection on before the server has it, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<SpotRecord>,
    /// The virtual server; `None`: the proxy's language has none, or none was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SpotRecord>,
    /// The location, route or backend in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<SpotRecord>,
    /// What it does with the request, as a clause: `passes it on`.
    pub answer: String,
    /// What compresses answers there for clients that accept it, which this request does not: `gzip on`. What a stock
    /// configuration has is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<SpotRecord>,
}

/// A part of the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpotRecord {
    /// What it is: `server shop.example`, `location /api/`, `*:443`.
    pub name: String,
    /// The user's file.
    pub file: PathBuf,
    /// Its line, counted from 1; 0 where the file is translated before it is read, as a Caddyfile is.
    pub line: usize,
}

impl AskedRecord {
    /// The listener: `*:443 over TLS (/etc/nginx/nginx.conf:12)`.
    pub fn at(&self) -> String {
        let how = if self.tls { "over TLS" } else { "in clear" };
        format!("{} {how} ({})", self.listener.name, self.listener.place())
    }

    /// What answers, each once.
    pub fn places(&self) -> Vec<String> {
        let mut places: Vec<String> = Vec::new();
        for request in &self.requests {
            let place = request.to_string();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

impl RequestRecord {
    /// The virtual server, with what the connection comes through before, and what stands before the listener:
    /// `through frontend in (/etc/a.cfg:3): frontend web (/etc/a.cfg:9)`.
    pub fn server(&self) -> Option<String> {
        let list = |spots: &[SpotRecord]| {
            let spots: Vec<String> = spots.iter().map(SpotRecord::to_string).collect();
            spots.join(", ")
        };
        let past = match &self.past[..] {
            [] => String::new(),
            spots => format!("past {}, which clients may come through: ", list(spots)),
        };
        let through = match &self.through[..] {
            [] => String::new(),
            spots => format!("through {}: ", list(spots)),
        };
        let server = self.server.as_ref()?;
        Some(format!("{past}{through}{server}"))
    }
}

/// `server shop.example (/etc/nginx/nginx.conf:10), location /api/ (/etc/nginx/nginx.conf:14), passes it on`.
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
    /// `/etc/nginx/nginx.conf:12`.
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
        let spot = |name: &str, line| SpotRecord {
            name: name.to_owned(),
            file: "/a.cfg".into(),
            line,
        };
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
        // Records of before have neither.
        let old = r#"{"host": "a", "target": "/", "answer": "redirects"}"#;
        let old: RequestRecord = serde_json::from_str(old).unwrap();
        assert_eq!((old.past.len(), old.through.len()), (0, 0));
    }
}
