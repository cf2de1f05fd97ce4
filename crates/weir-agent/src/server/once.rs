//! One request, to see whether an arm answers as it should.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use weir_http::response::{Progress, ResponseParser};

use weir_load::random::Random;
use weir_load::request_set::Request;

use crate::message::OnceJob;

/// Sends `request`, and gives the status code of the response.
pub(super) fn status(job: &OnceJob, request: &Request) -> io::Result<u16> {
    let mut bytes = Vec::new();
    request.template.render(0, &mut Random::new(0), &mut bytes);
    let mut stream = TcpStream::connect_timeout(&job.address, job.timeout)?;
    stream.set_read_timeout(Some(job.timeout))?;
    stream.write_all(&bytes)?;
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
