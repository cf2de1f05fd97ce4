//! Programs whose configuration can be a document.

use std::path::Path;

use super::tree::Format;

/// Program that a document configures; it defines what the names of contexts mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Envoy's bootstrap, in JSON or YAML. Contexts: `bootstrap` (the whole), `listener` (each in
    /// `static_resources`), `hcm` (each HttpConnectionManager), `route` (each action `route` of
    /// their virtual hosts), `cluster` (each in `static_resources`).
    Envoy,
    /// Caddy's JSON. Contexts: `root` (the whole), `admin`, `server` (each of the app `http`),
    /// `reverse_proxy` (each such handler, also inside `subroute`), `transport` (each such
    /// handler's, unless it speaks something else than HTTP).
    Caddy,
}

impl Dialect {
    /// Returns the format of a file. Envoy decides by the name (`.json`, otherwise YAML here); Caddy's own is always
    /// JSON.
    pub fn format(self, path: &Path) -> Format {
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        match self {
            Dialect::Envoy if !is_json => Format::Yaml,
            Dialect::Envoy | Dialect::Caddy => Format::Json,
        }
    }
}
