//! One request, to see whether an arm answers as it should.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

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
        Some(connector) => exchanged(job, request, connector.over(stream)?),
        None => exchanged(job, request, stream),
    }
}

fn exchanged(job: &OnceJob, request: &Request, mut stream: impl Read + Write) -> io::Result<u16> {
    let mut bytes = Vec::new();
    request
        .template
        .render(0, &mut SplitMix64::new(0), &mut bytes);
    stream.write_all(&bytes)?;
    stream.flush()?;
    let mut parser = ResponseParser::default();
    parser.begin(request.head);
    let mut buffer = vec![0; 64 * 1024];
    let until = Instant::now() + job.timeout;
    loop {
        let length = match stream.read(&mut buffer) {
            // On a bypassed socket a receive may be woken before there is anything for it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
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
