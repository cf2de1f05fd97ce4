//! The parts of a URL that a load needs.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU16;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use http::Uri;
use http::uri::InvalidUri;
use weir_model::study::no_server_at;
use weir_sut::is_stopped;

use crate::failure::Failure;
use crate::name_lookup;

/// Time between two looks at the user's wish to end.
const POLL: Duration = Duration::from_millis(20);

/// The parts of an http or https URL.
pub(super) struct Url {
    pub(super) text: String,
    pub(super) host: String,
    port: u16,
    /// True for https.
    pub(super) secure: bool,
    /// Host and port for the Host field.
    pub(super) authority: String,
    pub(super) target: String,
}

/// Returns a URL without parts that may be secret: the text before the last `@` of its first part, and its query. The
/// text need not be a valid URL.
pub(crate) fn without_secrets(text: &str) -> String {
    const MASK: &str = "(masked)";
    let begin = text.find("//").map_or(0, |at| at + 2);
    let (scheme, rest) = text.split_at(begin);
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, format!("?{MASK}")),
        None => (rest, String::new()),
    };
    // A password may hold a slash that was not encoded.
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{MASK}@{host}{query}"),
        None => format!("{scheme}{rest}{query}"),
    }
}

/// Describes the fault of a URL that does not parse.
fn unreadable(text: &str, error: &InvalidUri) -> Failure {
    let failure = Failure::input(format!("`{}` is not a URL: {error}", without_secrets(text)));
    let after_scheme = text.split_once("://").map_or("", |(_, after)| after);
    let (host, path) =
        after_scheme.split_at(after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len()));
    if !host.is_ascii() {
        failure.hint("write the host in its ASCII form (xn--…)")
    } else if path.contains(' ') {
        failure.hint("write %20 for a space")
    } else {
        failure.hint("a URL looks like http://127.0.0.1:8080/index.html")
    }
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, Failure> {
        let bad = |message: &str| {
            Failure::input(format!("`{}` {message}", without_secrets(text)))
                .hint("a URL looks like http://127.0.0.1:8080/index.html")
        };
        // A scheme ends with a colon, and then slashes begin.
        let first_part = text.split(['/', '?', '#']).next().unwrap_or_default();
        if !text.is_empty() && !first_part.ends_with(':') {
            let address = without_secrets(text.strip_prefix("//").unwrap_or(text));
            return Err(bad("has no scheme").hint(format!("is it http://{address}?")));
        }
        let uri: Uri = text.parse().map_err(|error| unreadable(text, &error))?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            other => {
                let scheme = other.unwrap_or(first_part);
                let message = format!("has the scheme {scheme}; weir speaks http and https");
                return Err(bad(&message));
            }
        };
        let authority = uri.authority().ok_or_else(|| bad("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("has a user name in it; send it with -H 'Authorization: …'"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(bad("has no host"));
        }
        if host.contains(':') && host.contains('%') {
            return Err(bad("has a zone in its address, and weir supports none")
                .hint("use an address that is not of the link (fe80::/10)"));
        }
        // The http crate takes a port above 65535 for none.
        let after_host = authority.as_str().rsplit(']').next().unwrap_or_default();
        let port = match after_host.split_once(':') {
            None | Some((_, "")) if secure => 443,
            None | Some((_, "")) => 80,
            Some((_, port)) => port
                .parse::<NonZeroU16>()
                .map_err(|_| bad(&format!("has no port `{port}`: they go from 1 to 65535")))?
                .get(),
        };
        Ok(Url {
            text: text.to_owned(),
            host,
            port,
            secure,
            authority: authority.as_str().to_owned(),
            target: uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }

    /// Returns the addresses of the host's name.
    pub(super) fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let name_and_port = if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        };
        let addresses = name_lookup::addresses(&name_and_port).map_err(|error| {
            Failure::failed(format!("{}: the name does not resolve: {error}", self.host))
                .hint(name_lookup::hint())
        })?;
        match addresses.iter().find_map(no_server_at) {
            Some(why) => Err(Failure::input(format!("{}: {why}", self.text))),
            None => Ok(addresses),
        }
    }

    /// Returns the first address that a connection can be opened to within `patience`. Without `patience`, returns the
    /// first.
    pub(super) fn one_of(
        &self,
        addresses: Vec<SocketAddr>,
        patience: Option<Duration>,
    ) -> Result<SocketAddr, Failure> {
        let mut refused = None;
        for address in addresses {
            let Some(patience) = patience else {
                return Ok(address);
            };
            match try_connecting(address, patience) {
                Ok(()) => return Ok(address),
                Err(_) if is_stopped() => {
                    return Err(Failure::interrupted(format!(
                        "interrupted before {address} answered"
                    )));
                }
                Err(error) => refused = Some((address, error)),
            }
        }
        Err(match refused {
            Some((address, error)) => Failure::failed(format!("{}: {address}: {error}", self.text))
                .hint("is a server listening there?"),
            None => Failure::failed(format!("{}: the name has no address", self.host)),
        })
    }
}

/// Opens a connection and closes it, unless the user wants weir to end meanwhile.
fn try_connecting(address: SocketAddr, patience: Duration) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let connected = TcpStream::connect_timeout(&address, patience);
        // Nobody waits for it any more after a signal.
        let _ = sender.send(connected.map(drop));
    });
    while !is_stopped() {
        match receiver.recv_timeout(POLL) {
            Ok(connected) => return connected,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_url_is_shown_without_its_secrets() {
        for (text, shown) in [
            ("http://127.0.0.1:80 80/", "http://127.0.0.1:80 80/"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://me:S3CRET@host name/a", "http://(masked)@host name/a"),
            ("me:S3CRET@host", "(masked)@host"),
            ("http://me:S3/CRET@host/", "http://(masked)@host/"),
            ("ftp://h/a?token=S3CRET", "ftp://h/a?(masked)"),
            ("http://h /?a=me:S3CRET@x", "http://h /?(masked)"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
