//! A request on its way through Caddy, and what handlers make of it (`modules/caddyhttp/rewrite/rewrite.go`).

use serde_json::Value as Json;

use super::pointer::Pointer;
use crate::asked::Request;

/// A request as the handlers before have made it. What cannot be told is `None`.
#[derive(Debug, Clone)]
pub(super) struct Passage<'a> {
    /// The request as the load sends it.
    pub(super) request: &'a Request<'a>,
    pub(super) is_tls: bool,
    pub(super) host: Option<String>,
    /// The path, or the route behind which it cannot be told.
    pub(super) path: Result<String, Pointer>,
    has_own_method: bool,
    has_own_query: bool,
    has_own_headers: bool,
}

impl<'a> Passage<'a> {
    pub(super) fn of(request: &'a Request<'a>) -> Passage<'a> {
        Passage {
            request,
            is_tls: request.is_tls(),
            host: Some(request.host.to_owned()),
            path: Ok(request.path.to_owned()),
            has_own_method: true,
            has_own_query: true,
            has_own_headers: true,
        }
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.has_own_method.then_some(self.request.method)
    }

    pub(super) fn query(&self) -> Option<&str> {
        self.has_own_query.then_some(self.request.query())
    }

    /// The value of a header, empty where there is none.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        if name.eq_ignore_ascii_case("host") {
            return self.host.as_deref();
        }
        self.request.field(name).filter(|_| self.has_own_headers)
    }

    /// Leaves what is the same in another request, which this one may be behind a route.
    pub(super) fn joined(self, other: &Passage<'_>, route: &Pointer) -> Passage<'a> {
        Passage {
            host: self.host.filter(|host| other.host.as_ref() == Some(host)),
            path: if self.path == other.path {
                self.path
            } else {
                Err(route.clone())
            },
            has_own_method: self.has_own_method && other.has_own_method,
            has_own_query: self.has_own_query && other.has_own_query,
            has_own_headers: self.has_own_headers && other.has_own_headers,
            ..self
        }
    }

    /// Follows a handler of a route that changes requests.
    pub(super) fn changed(mut self, handler: &Json, route: &Pointer) -> Passage<'a> {
        if handler.get("request").is_some() {
            self.has_own_headers = false;
        }
        if let Some(host) = handler.pointer("/request/set/Host/0") {
            self.host = host.as_str().and_then(literal).map(str::to_owned);
        }
        self.has_own_method &= handler.get("method").is_none();
        let uri = handler
            .get("uri")
            .and_then(Json::as_str)
            .unwrap_or_default();
        let has_own_query = !uri.contains('?') && handler.get("query").is_none();
        self.has_own_query &= has_own_query && handler.get("uri_substring").is_none();
        let known = self.path.as_deref().ok();
        if let Some(path) = rewritten(known, self.request, handler) {
            self.path = Ok(path);
        } else if known.is_some() {
            self.path = Err(route.clone());
        }
        self
    }

    /// The request that a `reverse_proxy` makes of this one.
    pub(super) fn passed_on(&self, handler: &Json, at: &Pointer) -> Passage<'a> {
        let part = |name| handler.get(name).unwrap_or(&Json::Null);
        let changed = self.clone().changed(part("rewrite"), at);
        Passage {
            is_tls: handler.pointer("/transport/tls").is_some(),
            ..changed.changed(part("headers"), at)
        }
    }
}

/// The path behind a `rewrite`, whose parts Caddy does in this order.
fn rewritten(path: Option<&str>, request: &Request<'_>, handler: &Json) -> Option<String> {
    let text = |name| handler.get(name).and_then(Json::as_str).unwrap_or_default();
    let uri = text("uri").split('?').next().unwrap_or_default();
    let mut path = match uri {
        "" => path?.to_owned(),
        uri => filled(uri, path, request)?,
    };
    let prefix = literal(text("strip_path_prefix"))?;
    let begin = path.get(..prefix.len());
    if begin.is_some_and(|begin| begin.eq_ignore_ascii_case(prefix)) {
        path.drain(..prefix.len());
    }
    let suffix = literal(text("strip_path_suffix"))?;
    path.truncate(path.strip_suffix(suffix).map_or(path.len(), str::len));
    let parts = handler.get("uri_substring").and_then(Json::as_array);
    for part in parts.into_iter().flatten() {
        let text = |name| literal(part.get(name).map_or(Some(""), Json::as_str)?);
        let is_limited = part.get("limit").is_some_and(|limit| *limit != 0);
        path = (!is_limited).then(|| Some(path.replace(text("find")?, text("replace")?)))??;
    }
    // Versions differ about what does not begin with a slash.
    let is_known = path.starts_with('/') && handler.get("path_regexp").is_none();
    is_known.then_some(path)
}

/// A path with what its placeholders stand for; a query that they bring along is cut off.
fn filled(uri: &str, path: Option<&str>, request: &Request<'_>) -> Option<String> {
    let mut uri = uri.to_owned();
    for (placeholder, value) in [
        ("{http.request.uri}", path),
        ("{http.request.uri.path}", path),
        ("{http.request.orig_uri}", Some(request.path)),
        ("{http.request.orig_uri.path}", Some(request.path)),
    ] {
        if uri.contains(placeholder) {
            uri = uri.replace(placeholder, value?);
        }
    }
    literal(&uri).map(str::to_owned)
}

/// A text without placeholders and fragments.
fn literal(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.contains(['{', '#']))
}
