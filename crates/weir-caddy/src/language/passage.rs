//! A request on its way through Caddy, as handlers change it (`modules/caddyhttp/rewrite/rewrite.go`).

use serde_json::Value as Json;
use weir_configuration::asked::Request;
use weir_configuration::document::Pointer;

/// A request as changed by the handlers so far. A property that cannot be determined is None.
#[derive(Debug, Clone)]
pub(super) struct Passage<'a> {
    /// The request as the load sends it.
    pub(super) request: &'a Request<'a>,
    pub(super) is_tls: bool,
    pub(super) host: Option<String>,
    /// Path, or the route after which the path cannot be determined.
    pub(super) path: Result<String, Pointer>,
    pub(super) method: Option<&'a str>,
    /// Header changes made by handlers, as JSON in lower case.
    changes: String,
}

impl<'a> Passage<'a> {
    pub(super) fn of(request: &'a Request<'a>) -> Passage<'a> {
        Passage {
            request,
            is_tls: request.is_tls(),
            host: Some(request.host.to_owned()),
            path: Ok(request.path.to_owned()),
            method: Some(request.method),
            changes: String::new(),
        }
    }

    /// Returns the value of a header, empty if there is none; None if it cannot be determined.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        if name.eq_ignore_ascii_case("host") {
            return self.host.as_deref();
        }
        let is_changed = self.changes.contains(&name.to_ascii_lowercase());
        let value = self.request.field(name);
        value.filter(|_| !is_changed && !self.changes.contains('*'))
    }

    /// Keeps the properties that `other` has too: the request after a route that may take this one.
    pub(super) fn joined(self, other: &Passage<'_>, route: &Pointer) -> Passage<'a> {
        Passage {
            host: self.host.filter(|host| other.host.as_ref() == Some(host)),
            path: if self.path == other.path { self.path } else { Err(route.clone()) },
            method: self.method.filter(|_| other.method.is_some()),
            changes: other.changes.clone(),
            ..self
        }
    }

    /// Applies a handler of a route that changes requests.
    pub(super) fn changed(mut self, handler: &Json, route: &Pointer) -> Passage<'a> {
        self.method = self.method.filter(|_| handler["method"].is_null());
        if let Some(headers) = handler.get("request") {
            self.changes += &headers.to_string().to_ascii_lowercase();
            if let Some(host) = headers.pointer("/set/Host/0") {
                self.host = host.as_str().and_then(literal).map(str::to_owned);
            }
        }
        let old_path = self.path.as_deref().ok();
        if let Some(path) = rewritten(old_path, self.request, handler) {
            self.path = Ok(path);
        } else if old_path.is_some() {
            self.path = Err(route.clone());
        }
        self
    }

    /// Returns the request that a `reverse_proxy` makes of this one.
    pub(super) fn passed_on(&self, handler: &Json, at: &Pointer) -> Passage<'a> {
        let changed = self.clone().changed(&handler["rewrite"], at);
        Passage {
            is_tls: handler.pointer("/transport/tls").is_some(),
            ..changed.changed(&handler["headers"], at)
        }
    }
}

/// Returns the path after a `rewrite`, with its parts applied in Caddy's order; None if the path cannot be determined.
fn rewritten(path: Option<&str>, request: &Request<'_>, handler: &Json) -> Option<String> {
    let uri = text(handler, "uri").split('?').next().unwrap_or_default();
    let mut path = match uri {
        "" => path?.to_owned(),
        uri => filled(uri, path, request)?,
    };
    let prefix = literal(text(handler, "strip_path_prefix"))?;
    let begin = path.get(..prefix.len());
    if begin.is_some_and(|begin| begin.eq_ignore_ascii_case(prefix)) {
        path.drain(..prefix.len());
    }
    let suffix = literal(text(handler, "strip_path_suffix"))?;
    path.truncate(path.strip_suffix(suffix).map_or(path.len(), str::len));
    for part in handler["uri_substring"].as_array().into_iter().flatten() {
        let (find, replace) = (literal(text(part, "find"))?, literal(text(part, "replace"))?);
        if part["limit"].as_u64().unwrap_or_default() > 0 {
            return None;
        }
        path = path.replace(find, replace);
    }
    // Versions differ about what does not begin with a slash.
    let is_known = path.starts_with('/') && handler["path_regexp"].is_null();
    is_known.then_some(path)
}

/// Returns a path with its placeholders replaced, without the queries that they bring along; None if a placeholder
/// cannot be replaced.
fn filled(uri: &str, path: Option<&str>, request: &Request<'_>) -> Option<String> {
    let mut target = uri.to_owned();
    for (placeholder, value) in [
        ("{http.request.uri}", path),
        ("{http.request.uri.path}", path),
        ("{http.request.orig_uri}", Some(request.path)),
        ("{http.request.orig_uri.path}", Some(request.path)),
    ] {
        if target.contains(placeholder) {
            target = target.replace(placeholder, value?);
        }
    }
    (!target.contains(['{', '#'])).then_some(target)
}

/// Returns the text of a key; empty if there is none.
fn text<'j>(handler: &'j Json, key: &str) -> &'j str {
    handler[key].as_str().unwrap_or_default()
}

/// Returns a text if it has no placeholders or fragments.
fn literal(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.contains(['{', '#']))
}
