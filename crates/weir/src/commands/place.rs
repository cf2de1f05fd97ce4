//! Hosts that ssh reaches, as they are named on the command line.

use std::path::Path;
use std::time::Duration;

use weir_agent::Client;
use weir_agent::ssh::{self, SshPlace};
use weir_lab::{PlaceSpec, Role};

use crate::args::{self, SshArgs};
use crate::failure::Failure;

/// How long it may take to have an agent on another host.
const CONNECT: Duration = Duration::from_secs(90);

/// An agent on a host.
pub(crate) fn connect(host: &str, words: &SshArgs) -> Result<Client, Failure> {
    let place = SshPlace {
        options: words.ssh_option.clone(),
        remote: words.agent.clone(),
        ..SshPlace::new(host)
    };
    let weir = Path::new("/proc/self/exe");
    let connected = ssh::connect(&place, weir, args::version(), CONNECT).map_err(|error| {
        let (hint, is_input) = (error.hint(), error.is_input());
        let failure = match is_input {
            true => Failure::input(error),
            false => Failure::failed(error),
        };
        failure.maybe_hint(hint)
    })?;
    Ok(ssh::client(host, connected))
}

/// `generator=HOST`, `proxy=HOST`, `origin=HOST`, each at most once; `all=HOST` for all three.
pub(crate) fn roles(places: &[String], words: &SshArgs) -> Result<PlaceSpec, Failure> {
    let mut spec = PlaceSpec::new(words.ssh_option.clone(), words.agent.clone());
    for text in places {
        let named = text.split_once('=').filter(|(_, host)| !host.is_empty());
        let Some((role, host)) = named else {
            return Err(unclear(text, "it is not ROLE=HOST"));
        };
        let roles: &[Role] = match role {
            "generator" => &[Role::Generator],
            "proxy" => &[Role::Proxy],
            "origin" => &[Role::Origin],
            "all" => &[Role::Generator, Role::Proxy, Role::Origin],
            _ => return Err(unclear(text, "there is no such role")),
        };
        for &role in roles {
            if spec.host_of(role).is_some() {
                return Err(unclear(text, "its role has a host already"));
            }
            spec.put(role, host.to_owned());
        }
    }
    Ok(spec)
}

fn unclear(text: &str, why: &str) -> Failure {
    let failure = Failure::input(format!("--place: `{text}` is not understood: {why}"));
    failure.maybe_hint(Some(
        "such as proxy=web1 or origin=admin@app1; the roles are generator, proxy, origin and all"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(places: &[&str]) -> Result<PlaceSpec, Failure> {
        let places: Vec<String> = places.iter().map(ToString::to_string).collect();
        let words = SshArgs {
            ssh_option: Vec::new(),
            agent: None,
        };
        roles(&places, &words)
    }

    #[test]
    fn each_role_has_one_host() {
        let spec = read(&["proxy=web1", "origin=me@app1"]).unwrap();
        assert_eq!(spec.host_of(Role::Generator), None);
        assert_eq!(spec.host_of(Role::Proxy), Some("web1"));
        assert_eq!(spec.host_of(Role::Origin), Some("me@app1"));
        for wrong in [
            &["proxy"][..],
            &["proxy="],
            &["gateway=a"],
            &["proxy=a", "proxy=b"],
            &["all=a", "origin=b"],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
