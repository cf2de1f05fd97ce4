//! Hosts given on the command line, which ssh reaches.

use std::path::Path;
use std::time::Duration;

use weir_agent::Client;
use weir_agent::ssh::{self, SshPlace};
use weir_hosts::{PlaceSpec, Role};

use crate::args::{self, SshArgs};
use crate::failure::Failure;

/// Longest time to start an agent on another host.
const CONNECT: Duration = Duration::from_secs(90);

/// Starts an agent on a host and connects to it.
pub(crate) fn connect(host: &str, words: &SshArgs) -> Result<Client, Failure> {
    let agent_place = SshPlace {
        options: words.ssh_option.clone(),
        remote: words.agent.clone(),
        ..SshPlace::new(host)
    };
    let weir = Path::new("/proc/self/exe");
    let connected =
        ssh::connect(&agent_place, weir, args::version(), CONNECT).map_err(|error| {
            let (hint, is_input) = (error.hint(), error.is_input());
            let failure = if is_input { Failure::input(error) } else { Failure::failed(error) };
            failure.maybe_hint(hint)
        })?;
    Ok(ssh::client(host, connected))
}

/// Reads the places of roles: `generator=HOST`, `proxy=HOST`, `origin=HOST`, each at most once; `all=HOST` for all
/// three. Several generators are given as `generator=HOST,HOST`.
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
        if roles.iter().any(|role| spec.host_of(*role).is_some()) {
            return Err(unclear(text, "its role has a host already"));
        }
        let mut hosts: Vec<&str> = host.split(',').map(str::trim).collect();
        let count = hosts.len();
        if count > 1 && roles != [Role::Generator] {
            return Err(unclear(text, "only generators can be on several hosts"));
        }
        if hosts.iter().any(|host| host.is_empty()) {
            return Err(unclear(text, "one of its hosts has no name"));
        }
        for (host, &role) in hosts.iter().flat_map(|host| roles.iter().map(move |it| (host, it))) {
            spec.put(role, (*host).to_owned());
        }
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.len() < count {
            return Err(unclear(text, "it names a host twice"));
        }
    }
    Ok(spec)
}

fn unclear(text: &str, why: &str) -> Failure {
    let failure = Failure::input(format!("--place: `{text}` is not understood: {why}"));
    failure.maybe_hint(Some(
        "such as proxy=web1, origin=admin@app1 or generator=gen1,gen2; the roles are generator, proxy, origin and all"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(places: &[&str]) -> Result<PlaceSpec, Failure> {
        let places: Vec<String> = places.iter().map(ToString::to_string).collect();
        let words = SshArgs { ssh_option: Vec::new(), agent: None };
        roles(&places, &words)
    }

    #[test]
    fn each_role_has_one_host_and_generators_may_have_several() {
        const HERE: Option<&str> = None;
        for (places, generators, proxy, origin) in [
            (&[][..], &[HERE][..], HERE, HERE),
            (&["proxy=web1", "origin=me@app1"], &[HERE], Some("web1"), Some("me@app1")),
            (&["all=a"], &[Some("a")], Some("a"), Some("a")),
            (&["generator=a"], &[Some("a")], HERE, HERE),
            (
                &["generator=a,me@b, c", "proxy=a"],
                &[Some("a"), Some("me@b"), Some("c")],
                Some("a"),
                HERE,
            ),
        ] {
            let spec = read(places).unwrap();
            assert_eq!(spec.generators(), generators, "{places:?}");
            assert_eq!(spec.host_of(Role::Proxy), proxy, "{places:?}");
            assert_eq!(spec.host_of(Role::Origin), origin, "{places:?}");
        }
        for (wrong, why) in [
            (&["proxy"][..], "not ROLE=HOST"),
            (&["proxy="], "not ROLE=HOST"),
            (&["gateway=a"], "no such role"),
            (&["proxy=a", "proxy=b"], "has a host already"),
            (&["all=a", "origin=b"], "has a host already"),
            (&["generator=a", "generator=b"], "has a host already"),
            (&["proxy=a,b"], "only generators"),
            (&["all=a,b"], "only generators"),
            (&["generator=a,,b"], "has no name"),
            (&["generator=a,b,"], "has no name"),
            (&["generator=a,b,a"], "names a host twice"),
        ] {
            let failure = read(wrong).unwrap_err().rendered(false);
            assert!(failure.contains(why), "{wrong:?}: {failure}");
        }
    }
}
