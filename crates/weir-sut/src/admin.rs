//! Client of a proxy's administration socket: HTTP for Envoy and Caddy, lines of text for HAProxy.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use weir_http::Sink;
use weir_http::response::{Progress, ResponseParser};

use crate::timed::TimedStream;
use crate::{Configuration, SutError};

/// Host that requests name: nginx requires one, and Caddy the one in its configuration.
pub const HOST: &str = "localhost";

/// Time limit for a question and its whole answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum length of an answer in bytes: Envoy's dump of its configuration has some hundred kilobytes.
pub const MOST: usize = 64 << 20;

/// Sends a line and returns everything that the proxy sends until it closes, as HAProxy's runtime API does.
///
/// # Errors
/// The proxy does not answer within five seconds.
pub fn line(configuration: &Configuration, line: &str) -> Result<String, SutError> {
    line_at(configuration, &configuration.admin_socket(), line)
}

/// Sends a line, and reads until the other end closes.
pub(crate) fn answer_to_line(
    mut stream: TimedStream,
    line: &str,
    most: usize,
) -> io::Result<String> {
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.take(most as u64 + 1).read_to_end(&mut answer)?;
    if answer.len() > most {
        return Err(too_long(most));
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Does the same as [`line`], on another socket of the arm's.
///
/// # Errors
/// Same as [`line`].
pub fn line_at(
    configuration: &Configuration,
    socket: &Path,
    line: &str,
) -> Result<String, SutError> {
    connect(socket)
        .and_then(|stream| answer_to_line(stream, line, MOST))
        .map_err(silent(configuration, line))
}

/// Returns the content of the answer to a GET request for `target`.
///
/// # Errors
/// Same as [`line`], or the status is not 200.
pub fn get(configuration: &Configuration, target: &str) -> Result<String, SutError> {
    request(configuration, "GET", target, "")
}

/// Returns the content of the answer to a request with JSON content.
///
/// # Errors
/// Same as [`get`].
pub fn request(
    configuration: &Configuration,
    method: &str,
    target: &str,
    json: &str,
) -> Result<String, SutError> {
    exchange(configuration, method, target, json).map_err(silent(configuration, target))
}

fn exchange(
    configuration: &Configuration,
    method: &str,
    target: &str,
    json: &str,
) -> io::Result<String> {
    let mut stream = connect(&configuration.admin_socket())?;
    let length = json.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(json.as_bytes())?;
    answer(stream, MOST)
}

/// Returns a GET request for `target` after whose answer the connection is closed; [`answer`] reads that answer.
pub fn asks(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")
}

/// The content of a response with the status 200, `most` bytes of it at most.
///
/// # Errors
/// It does not come in time, is none, is longer, or has another status.
pub fn answer(mut stream: impl Read, most: usize) -> io::Result<String> {
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
        let event = fed.map_err(io::Error::other)?.event;
        if content.0.len() > most {
            return Err(too_long(most));
        }
        if let Progress::Complete(end) = event {
            break end;
        }
    };
    let text = String::from_utf8_lossy(&content.0).into_owned();
    match end.status {
        200 => Ok(text),
        status => Err(io::Error::other(format!("{status} {}", text.trim()))),
    }
}

/// Collects the content of a response.
#[derive(Default)]
struct Content(Vec<u8>);

impl Sink for Content {
    fn content(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }
}

fn too_long(most: usize) -> io::Error {
    io::Error::other(format!("the answer is longer than {most} bytes"))
}

fn connect(socket: &Path) -> io::Result<TimedStream> {
    TimedStream::to_socket(socket, Instant::now() + PATIENCE)
}

fn silent(configuration: &Configuration, asked: &str) -> impl FnOnce(io::Error) -> SutError {
    let (kind, asked) = (configuration.kind(), asked.to_owned());
    move |source| SutError::Admin { kind, asked, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_far_as_its_limit() {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
        assert_eq!(answer(&response[..], 5).unwrap(), "abcde");
        let error = answer(&response[..], 4).unwrap_err();
        assert!(error.to_string().contains("longer than 4 bytes"));
    }
}
