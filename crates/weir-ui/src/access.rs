//! Access to the page: who has the token, from which page, under which name.
//!
//! A page elsewhere on the web can make a browser send requests to loopback, and a name that its owner resolves to
//! loopback (DNS rebinding) makes these requests look like those of one's own page. So every request must be for the
//! address that the server listens on, come from the server's own page or none, and have the token.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Length of the token, bytes.
const LENGTH: usize = 32;

/// Headers of every response. The policy lets the page load its own script, style and answers, and nothing else; inline
/// scripts are refused, so markup in a name cannot run.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// A secret that whoever uses the page must have.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Makes a token of 256 random bits.
    ///
    /// # Errors
    /// The system has no random bits.
    pub fn random() -> std::io::Result<Token> {
        let mut bytes = [0; LENGTH];
        aws_lc_rs::rand::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(Token(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the token as it stands in the URL.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Shows that there is a token, not which.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Checks of every request.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    token: Token,
    scheme: &'static str,
    /// Names under which the server may be addressed, with the port; the first is that of its URL.
    hosts: Vec<String>,
}

impl Guard {
    /// Creates the guard of a server that listens on `address`.
    pub(crate) fn new(token: &Token, address: SocketAddr, is_encrypted: bool) -> Guard {
        let (port, mut hosts) = (address.port(), vec![address.to_string()]);
        if address.ip().is_loopback() {
            hosts.push(format!("localhost:{port}"));
        }
        Guard { token: token.clone(), scheme: if is_encrypted { "https" } else { "http" }, hosts }
    }

    /// Returns the origin of the page: scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.hosts[0])
    }

    /// Returns the status of a refusal, and why; `None` if the request is allowed. `is_secret`: only for those who have
    /// the token.
    fn refusal(&self, headers: &HeaderMap, is_secret: bool) -> Option<(StatusCode, &'static str)> {
        if !text_of(headers, &header::HOST).is_some_and(|host| self.is_host(host)) {
            return Some((StatusCode::MISDIRECTED_REQUEST, "this server has another name"));
        }
        if headers.contains_key(header::ORIGIN) && !self.is_own_page(headers) {
            return Some((StatusCode::FORBIDDEN, "the request is from another page"));
        }
        if is_secret && !self.has_token(headers) {
            let why = "open the page by the URL that weir ui printed";
            return Some((StatusCode::UNAUTHORIZED, why));
        }
        None
    }

    fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|allowed| allowed == host)
    }

    fn is_own_page(&self, headers: &HeaderMap) -> bool {
        text_of(headers, &header::ORIGIN)
            .and_then(|origin| origin.split_once("://"))
            .is_some_and(|(scheme, host)| scheme == self.scheme && self.is_host(host))
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let (expected, value) = (self.token.text(), text_of(headers, &header::AUTHORIZATION));
        value.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|token| {
            verify_slices_are_equal(token.as_bytes(), expected.as_bytes()).is_ok()
        })
    }
}

fn text_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Refuses requests that the guard does not allow, and adds the headers of every response.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let is_secret = request.uri().path().starts_with("/api/");
    let mut response = match guard.refusal(request.headers(), is_secret) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
