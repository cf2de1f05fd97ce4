//! What to say of a server that was asked in clear and speaks TLS on that port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use weir_model::load_report::LoadReport;

use super::job::Job;

/// How long it may think about a greeting.
const PATIENCE: Duration = Duration::from_secs(1);

/// A TLS record (RFC 8446 §5.1) with a ClientHello of one byte: whoever speaks TLS answers with an alert.
const GREETING: [u8; 10] = [0x16, 0x03, 0x01, 0x00, 0x05, 0x01, 0x00, 0x00, 0x01, 0x00];

/// The types of records that may be the answer: an alert, or a handshake.
const TLS: [u8; 2] = [0x15, 0x16];

/// What to say where every answer was 400, which is what servers say in clear to http on a port for https.
pub(super) fn remark(job: &Job, report: &LoadReport) -> Option<String> {
    let all_refused = matches!(&report.statuses[..], [only] if only.status == 400);
    let asked_in_clear = job
        .plan
        .flows
        .iter()
        .zip(&job.flows)
        .filter(|(flow, _)| flow.tls.is_none());
    let mut asked_in_clear =
        asked_in_clear.filter_map(|(flow, named)| Some((flow.routes.first()?.peer, named)));
    let (_, named) = asked_in_clear.find(|(peer, _)| all_refused && speaks_tls(*peer))?;
    let url = &named.target.url;
    let secure = url.replacen("http:", "https:", 1);
    Some(format!(
        "weir: {url}: every answer was status 400, and the port speaks TLS\nhint: ask over TLS: {secure}"
    ))
}

fn speaks_tls(peer: SocketAddr) -> bool {
    let answer = || -> std::io::Result<u8> {
        let mut stream = TcpStream::connect_timeout(&peer, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&GREETING)?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        Ok(first[0])
    };
    answer().is_ok_and(|first| TLS.contains(&first))
}
