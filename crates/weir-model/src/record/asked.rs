//! Which listener, server and location of a user's configuration a load has asked.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What some loads ask of a configuration of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRecord {
    /// The loads, by name; a flow beside a load's own as `LOAD, flow FLOW`.
    pub loads: Vec<String>,
    /// Whether they ask over TLS.
    pub tls: bool,
    /// The listener, by its address in the user's configuration.
    pub listener: SpotRecord,
    /// What answers each different request, in their order.
    pub requests: Vec<RequestRecord>,
}

/// The answer of a part that has files of its own, as records have it.
pub const FROM_FILES: &str = "answers from files";

/// What answers a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Its Host field.
    pub host: String,
    /// Its target.
    pub target: String,
    /// The virtual server; `None`: the proxy's language has none, or none was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SpotRecord>,
    /// The location, route or backend in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<SpotRecord>,
    /// What it does with the request, as a clause: `passes it on`.
    pub answer: String,
}

/// A part of the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// `server shop.example (/etc/nginx/nginx.conf:10), location /api/ (/etc/nginx/nginx.conf:14), passes it on`.
impl fmt::Display for RequestRecord {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for spot in [&self.server, &self.location].into_iter().flatten() {
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
