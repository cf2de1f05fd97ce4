//! The addresses on which a document makes its program listen.

use super::pointer::Pointer;

/// An address on which a document makes its program listen.
pub struct Listening {
    /// Pointer to the value that sets the address.
    pub at: Pointer,
    /// Pointer to the server that the address belongs to; addresses of one server share its behaviour.
    pub server: Pointer,
    /// Address as messages show it.
    pub address: String,
    pub port: Option<u16>,
    pub tls: bool,
    pub udp: bool,
}

impl Listening {
    /// Returns true if a server's address (`127.0.0.1:8080`, or a path) leads to this listener.
    pub fn is_behind(&self, server: &str) -> bool {
        !self.udp && leads(server, &self.address)
    }
}

/// Returns true if a server's address leads to a listener's address.
pub fn leads(server: &str, listener: &str) -> bool {
    let (Some((host, port)), Some((own, own_port))) =
        (server.rsplit_once(':'), listener.rsplit_once(':'))
    else {
        return !server.is_empty() && server == listener;
    };
    // Go connects to this host where an address has none.
    let is_name = matches!(host, "" | "localhost");
    let is_loopback = is_name || host == "[::1]" || host.starts_with("127.");
    let is_any = matches!(own, "" | "*" | "0.0.0.0" | "[::]" | "localhost");
    let is_local_name = is_name && matches!(own, "127.0.0.1" | "[::1]");
    port == own_port && (host == own || is_local_name || (is_loopback && is_any))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_the_listener_at_it_or_at_any() {
        for (server, listener, expected) in [
            ("127.0.0.1:81", "127.0.0.1:81", true),
            ("localhost:81", ":81", true),
            ("localhost:81", "127.0.0.1:81", true),
            ("127.0.0.1:81", "0.0.0.0:81", true),
            ("[::1]:81", "[::]:81", true),
            (":81", "127.0.0.1:81", true),
            ("10.0.0.1:81", "0.0.0.0:81", false),
            ("127.0.0.1:81", "10.0.0.1:81", false),
            ("127.0.0.1:82", ":81", false),
            ("unix//run/a.sock", "unix//run/a.sock", true),
            ("", "", false),
        ] {
            assert_eq!(leads(server, listener), expected, "{server} {listener}");
        }
    }
}
