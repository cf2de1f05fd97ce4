//! A single request, to check that an arm answers as it should.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_http::response::{Progress, ResponseParser};
use weir_load::SplitMix64;
use weir_load::request_set::Request;
use weir_load::tls::{Connector, TlsError};
use weir_model::quantity::format_duration;

use crate::message::{Failure, OnceJob};

/// Longest wait before it is looked whether somebody wants it to end.
const LOOK: Duration = Duration::from_millis(100);

/// Longest wait for a connection before it is tried anew: a lost SYN is sent again after a second (RFC 6298 §2).
const CONNECT_LOOK: Duration = Duration::from_secs(1);

/// Sends `request`, over TLS if there is a connector, and returns the status code of the response.
pub(super) fn status(
    job: &OnceJob,
    request: &Request,
    connector: Option<&Connector>,
    stop: &AtomicBool,
) -> Result<u16, Failure> {
    ask(job, request, connector, stop).map_err(|error| match TlsError::of_stream(&error) {
        Some(error) => Failure::other(error),
        None => Failure::other(error),
    })
}

fn ask(
    job: &OnceJob,
    request: &Request,
    connector: Option<&Connector>,
    stop: &AtomicBool,
) -> io::Result<u16> {
    let limit = Limit { within: job.timeout, until: Instant::now() + job.timeout, stop };
    let stream =
        limit.keep(|| TcpStream::connect_timeout(&job.address, job.timeout.min(CONNECT_LOOK)))?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(LOOK))?;
    let stream = LimitedStream { stream, limit };
    match connector {
        Some(connector) => exchange(request, connector.over(stream)?),
        None => exchange(request, stream),
    }
}

/// Limit on how long something may take, and who may end it before.
struct Limit<'a> {
    within: Duration,
    until: Instant,
    stop: &'a AtomicBool,
}

impl Limit<'_> {
    /// Repeats what has waited in vain.
    fn keep<T>(&self, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        while !self.stop.load(Ordering::Relaxed) {
            if Instant::now() >= self.until {
                let words = format!("did not answer within {}", format_duration(self.within));
                return Err(io::Error::new(ErrorKind::TimedOut, words));
            }
            match act() {
                // A wait with a timeout ends so in a process that was stopped and continues (signal(7)), and on a
                // bypassed socket a receive may be woken before there is anything for it.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut
                    ) => {}
                done => return done,
            }
        }
        Err(io::Error::other("interrupted"))
    }
}

/// A stream whose reads and writes end with a limit.
struct LimitedStream<'a, S> {
    stream: S,
    limit: Limit<'a>,
}

impl<S: Read> Read for LimitedStream<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit.keep(|| self.stream.read(buffer))
    }
}

impl<S: Write> Write for LimitedStream<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit.keep(|| self.stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Sends `request`, and reads until the response is whole.
fn exchange(request: &Request, mut stream: impl Read + Write) -> io::Result<u16> {
    let mut bytes = Vec::new();
    request.template.render(0, &mut SplitMix64::new(0), &mut bytes);
    stream.write_all(&bytes)?;
    stream.flush()?;
    let mut parser = ResponseParser::default();
    parser.begin(request.head);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            let end = parser.finish_on_close().map_err(io::Error::other)?;
            return Ok(end.status);
        }
        let fed = parser.feed(&buffer[..length]).map_err(io::Error::other)?;
        if let Progress::Complete(end) = fed.event {
            return Ok(end.status);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use weir_load::request_set::RequestSet;

    use super::*;

    /// A stream whose reads return scripted results, and which accepts all writes.
    struct Script(VecDeque<io::Result<&'static [u8]>>);

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.pop_front().unwrap_or(Ok(b""))?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn status_of(reads: impl IntoIterator<Item = io::Result<&'static [u8]>>) -> io::Result<u16> {
        let requests = RequestSet::plain(b"GET / HTTP/1.1\r\n\r\n".to_vec(), false);
        let within = Duration::from_secs(60);
        let limit = Limit { within, until: Instant::now() + within, stop: &AtomicBool::new(false) };
        let stream = Script(reads.into_iter().collect());
        exchange(requests.get(0), LimitedStream { stream, limit })
    }

    #[test]
    fn a_receive_that_gives_nothing_yet_is_repeated() {
        for kind in [ErrorKind::Interrupted, ErrorKind::WouldBlock] {
            let response: [io::Result<&[u8]>; 4] = [
                Err(kind.into()),
                Ok(b"HTTP/1.1 204 No"),
                Err(kind.into()),
                Ok(b" Content\r\n\r\n"),
            ];
            assert_eq!(status_of(response).unwrap(), 204, "{kind}");
        }
    }

    #[test]
    fn a_connection_that_is_reset_is_an_error() {
        let reads: [io::Result<&[u8]>; 1] = [Err(ErrorKind::ConnectionReset.into())];
        let error = status_of(reads).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }

    /// Says one thing, and then another for ever.
    struct Endless(Option<&'static [u8]>, Option<&'static [u8]>);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(1));
            let bytes = self.0.take().or(self.1).ok_or(ErrorKind::WouldBlock)?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    impl Write for Endless {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_is_waited_for_as_long_as_it_may_take_and_nobody_ends_it() {
        let (silence, head, field) =
            (None, Some(&b"HTTP/1.1 200 OK\r\n"[..]), Some(&b"X: y\r\n"[..]));
        let rows = [
            (silence, silence, false, "did not answer within 50ms"),
            (head, field, false, "did not answer within 50ms"),
            (head, field, true, "interrupted"),
        ];
        for (first, rest, is_stopped, words) in rows {
            let within = Duration::from_millis(50);
            let limit = Limit {
                within,
                until: Instant::now() + within,
                stop: &AtomicBool::new(is_stopped),
            };
            let requests = RequestSet::plain(b"GET / HTTP/1.1\r\n\r\n".to_vec(), false);
            let stream = Endless(first, rest);
            let outcome = exchange(requests.get(0), LimitedStream { stream, limit });
            assert_eq!(outcome.unwrap_err().to_string(), words);
        }
    }
}
