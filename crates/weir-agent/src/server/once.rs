//! One request, to see whether an arm answers as it should.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weir_http::response::{Progress, ResponseParser};

use weir_load::SplitMix64;
use weir_load::request_set::Request;
use weir_load::tls::Connector;

use crate::message::OnceJob;

/// Sends `request`, over TLS with a connector, and gives the status code of the response.
pub(super) fn status(
    job: &OnceJob,
    request: &Request,
    connector: Option<&Connector>,
) -> io::Result<u16> {
    let stream = TcpStream::connect_timeout(&job.address, job.timeout)?;
    stream.set_read_timeout(Some(job.timeout))?;
    match connector {
        Some(connector) => exchange(job.timeout, request, connector.over(stream)?),
        None => exchange(job.timeout, request, stream),
    }
}

/// Sends `request`, and reads until the response is whole or `timeout` has passed.
fn exchange(
    timeout: Duration,
    request: &Request,
    mut stream: impl Read + Write,
) -> io::Result<u16> {
    let mut bytes = Vec::new();
    request
        .template
        .render(0, &mut SplitMix64::new(0), &mut bytes);
    stream.write_all(&bytes)?;
    stream.flush()?;
    let mut parser = ResponseParser::default();
    parser.begin(request.head);
    let mut buffer = vec![0; 64 * 1024];
    let until = Instant::now() + timeout;
    loop {
        let length = match stream.read(&mut buffer) {
            // A receive with a timeout ends so in a process that was stopped and continues (signal(7)). However long
            // that was, the response may be there.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // On a bypassed socket a receive may be woken before there is anything for it.
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                continue;
            }
            read => read?,
        };
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

    /// Gives what each read is to give, and takes everything that is written.
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

    /// Status code of the response that these reads give, or the error of one of them.
    fn status_of(reads: impl IntoIterator<Item = io::Result<&'static [u8]>>) -> io::Result<u16> {
        let requests = RequestSet::plain(b"GET / HTTP/1.1\r\n\r\n".to_vec(), false);
        let stream = Script(reads.into_iter().collect());
        exchange(Duration::from_secs(60), requests.get(0), stream)
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
}
