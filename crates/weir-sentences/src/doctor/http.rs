//! Settings of connections and content.

use weir_doctor::HttpProblem;

use crate::numbers::count;

pub(super) fn title(problem: &HttpProblem) -> String {
    let text = match problem {
        HttpProblem::OriginKeepaliveInert { is_set: true, .. } => {
            "`keepalive` in the upstream block does nothing: connections to the origin are closed"
        }
        HttpProblem::OriginKeepaliveInert { .. } => {
            "connections to the origin, which nginx would keep, are closed"
        }
        HttpProblem::OriginKeepaliveMissing => "every request opens a connection to the origin",
        HttpProblem::KeepaliveRequestsLow { default } => {
            let default = count(*default);
            return format!(
                "connections are closed after fewer requests than nginx's default of {default}"
            );
        }
        HttpProblem::ClientKeepaliveOff => "clients must open a connection for each request",
        HttpProblem::GzipOfCompressed { types } => {
            return format!("gzip is applied to what is already compressed: {}", types.join(", "));
        }
        HttpProblem::AccessLogUnbuffered => {
            "every request writes a line of the access log with a separate system call"
        }
    };
    text.to_owned()
}

pub(super) fn mechanism(problem: &HttpProblem) -> &'static str {
    match problem {
        HttpProblem::OriginKeepaliveInert { is_map: true, .. } => {
            "The `map` gives `close` for every request that asks for no upgrade, and with that \
             header the connection ends with its response. An empty value sends no such header, \
             and WebSocket works as before."
        }
        HttpProblem::OriginKeepaliveInert { .. } => {
            "Before 1.29.7 nginx speaks HTTP/1.0 to origin servers and sends `Connection: close`, \
             so that every connection ends with its response. `keepalive` needs \
             `proxy_http_version 1.1` and an empty Connection header beside it."
        }
        HttpProblem::OriginKeepaliveMissing => {
            "Opening and closing costs both ends CPU time, a round trip for each request, and a \
             local port that TIME_WAIT holds for a minute. An upstream block with `keepalive` \
             keeps connections."
        }
        HttpProblem::KeepaliveRequestsLow { .. } => {
            "A connection that has carried so many requests is closed and opened again. Advice to \
             set it dates from when the default was 100. Do not remove the limit: closing now and \
             then frees memory."
        }
        HttpProblem::ClientKeepaliveOff => {
            "With a timeout of 0 nginx closes every client connection after its response: each \
             request costs a handshake, with TLS two, and a place in the accept queue."
        }
        HttpProblem::GzipOfCompressed { .. } => {
            "Images, fonts, video and archives are compressed; gzip makes them no smaller and \
             takes CPU time from the workers for each response."
        }
        HttpProblem::AccessLogUnbuffered => {
            "With buffer= a worker collects lines and writes them together. A crash then loses \
             what is in the buffer."
        }
    }
}
