//! One request, to see whether an arm answers as it should.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use weir_http::response::{Progress, ResponseParser};

use crate::message::OnceJob;

/// Sends a request and gives the status code of the response.
pub(super) fn status(job: &OnceJob) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&job.address, job.timeout)?;
    stream.set_read_timeout(Some(job.timeout))?;
    stream.write_all(&job.request.0)?;
    let mut parser = ResponseParser::default();
    parser.begin(job.head);
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
