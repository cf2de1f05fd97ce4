//! Address to which ssh connects.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::SshError;
use super::process::Ssh;

/// A name lookup that runs while the connection is made.
///
/// The name service has time limits of its own, and no time limit can be passed to it. The lookup therefore has a
/// thread of its own, which may be abandoned.
pub(super) struct Lookup(Receiver<Option<IpAddr>>);

impl Lookup {
    /// Runs `ssh -G`, which connects to nothing, to learn how ssh resolves the host, and starts the lookup of the
    /// resulting name.
    ///
    /// # Errors
    /// ssh is not installed, or refuses its configuration or options. This is reported before any host is contacted.
    pub(super) fn begin(ssh: &Ssh<'_>) -> Result<Lookup, SshError> {
        let ran = ssh.run(ssh.configuration(), Stdio::null())?;
        if !ran.status.success() {
            let (host, words) = (ssh.host().to_owned(), ran.words);
            return Err(match ran.status.code() {
                Some(_) => SshError::Configuration { host, words },
                // A signal says nothing about what ssh was given.
                None => SshError::Ended { host, how: ran.status.to_string(), words },
            });
        }
        let configuration = String::from_utf8_lossy(&ran.stdout).into_owned();
        let (sender, receiver) = mpsc::channel();
        // Without a thread there is no address, which is no reason to have no agent.
        let _ = thread::Builder::new().name("ssh-name".to_owned()).spawn(move || {
            // Nobody may be listening any more.
            let _ = sender.send(resolve(&configuration));
        });
        Ok(Lookup(receiver))
    }

    /// Waits for the address, at most this long; `None` if it is not known by then.
    pub(super) fn wait(self, at_most: Duration) -> Option<IpAddr> {
        self.0.recv_timeout(at_most).ok().flatten()
    }
}

/// Returns the first address of the host that belongs to the address family that ssh is configured to use.
fn resolve(configuration: &str) -> Option<IpAddr> {
    let name = value(configuration, "hostname")?;
    let usable: fn(&SocketAddr) -> bool = match value(configuration, "addressfamily") {
        Some("inet") => SocketAddr::is_ipv4,
        Some("inet6") => SocketAddr::is_ipv6,
        _ => |_| true,
    };
    let mut addresses = (name, 0).to_socket_addrs().ok()?;
    Some(addresses.find(usable)?.ip())
}

/// Returns the value of a keyword in the output of `ssh -G`: each line is a keyword in small letters, a space, and a
/// value.
fn value<'a>(configuration: &'a str, keyword: &str) -> Option<&'a str> {
    configuration.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == keyword).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_one_that_the_alias_stands_for() {
        let configuration = "host web\nuser root\nhostname 192.0.2.7\nport 22\naddressfamily any\n";
        assert_eq!(resolve(configuration), Some([192, 0, 2, 7].into()));
        assert_eq!(resolve(&configuration.replace("any", "inet6")), None);
        assert_eq!(resolve("host web\n"), None);
    }
}
