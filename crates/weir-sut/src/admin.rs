//! A proxy's socket for administration: HTTP for Envoy and Caddy, lines of text for HAProxy.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use weir_http::Sink;
use weir_http::response::{Progress, ResponseParser};

use crate::{Configuration, SutError};

/// The host that requests name: nginx wants one, and Caddy one that it was told.
pub(crate) const HOST: &str = "localhost";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer at most: Envoy's dump of its configuration has some hundred kilobytes.
const MOST: usize = 64 << 20;

/// Sends a line and gives all that comes back until the proxy closes, as HAProxy's runtime API does.
///
/// # Errors
/// It does not answer within five seconds.
pub(crate) fn line(configuration: &Configuration, line: &str) -> Result<String, SutError> {
    line_at(configuration, &configuration.admin_socket(), line)
}

/// As [`line`], on another socket of the arm's.
///
/// # Errors
/// As [`line`].
pub(crate) fn line_at(
    configuration: &Configuration,
    socket: &Path,
    line: &str,
) -> Result<String, SutError> {
    let ask = || -> io::Result<String> {
        let mut stream = connect(socket)?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.take(MOST as u64).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    ask().map_err(silent(configuration, line))
}

/// The content that a GET request for `target` is answered with.
///
/// # Errors
/// As [`line`], or the status is not 200.
pub(crate) fn get(configuration: &Configuration, target: &str) -> Result<String, SutError> {
    request(configuration, "GET", target, "")
}

/// The content that a request with JSON content is answered with.
///
/// # Errors
/// As [`get`].
pub(crate) fn request(
    configuration: &Configuration,
    method: &str,
    target: &str,
    json: &str,
) -> Result<String, SutError> {
    let ask = || -> io::Result<String> {
        let mut stream = connect(&configuration.admin_socket())?;
        let length = json.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(json.as_bytes())?;
        answer(stream)
    };
    ask().map_err(silent(configuration, target))
}

/// A GET request for `target`, after whose answer the connection is closed. [`answer`] reads that.
pub fn asks(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")
}

/// The content of a response with the status 200.
///
/// # Errors
/// It does not come in time, is none, or has another status.
pub fn answer(mut stream: impl Read) -> io::Result<String> {
    let mut parser = ResponseParser::default();
    parser.begin(false);
    let mut content = Content::default();
    let mut buffer = vec![0; 64 << 10];
    let end = loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            break parser.finish_on_close().map_err(io::Error::other)?;
        }
        let fed = parser.feed_with(&buffer[..length], &mut content);
        if let Progress::Complete(end) = fed.map_err(io::Error::other)?.event {
            break end;
        }
        if content.0.len() > MOST {
            return Err(io::Error::other("the answer has no end"));
        }
    };
    let text = String::from_utf8_lossy(&content.0).into_owned();
    match end.status {
        200 => Ok(text),
        status => Err(io::Error::other(format!("{status} {}", text.trim()))),
    }
}

/// Keeps content.
#[derive(Default)]
struct Content(Vec<u8>);

impl Sink for Content {
    fn content(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }
}

/// By way of its folder's descriptor, since a path from the root may be too long for a socket's
/// address.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (folder, name) = (socket.parent(), socket.file_name());
    let (folder, name) = folder.zip(name).ok_or(io::ErrorKind::InvalidInput)?;
    let folder = File::open(folder)?;
    let short = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), name.display());
    let stream = UnixStream::connect(short)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn silent(configuration: &Configuration, asked: &str) -> impl FnOnce(io::Error) -> SutError {
    let (kind, asked) = (configuration.kind(), asked.to_owned());
    move |source| SutError::Admin {
        kind,
        asked,
        source,
    }
}
