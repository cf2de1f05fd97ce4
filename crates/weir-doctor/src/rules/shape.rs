//! Facts derived from a configuration once, for all rules.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, DefaultLevel};

use super::numbers::KEEPS_BY_DEFAULT;
use super::serving;
use crate::configuration::{Configuration, Placed, Statement, is_word_char};
use crate::evidence::{self, Evidence, FileEvidence, HostEvidence};
use crate::facts::Facts;

/// Directives that pass requests on, over separate connections.
#[rustfmt::skip]
const PASSES: &[&str] = &[
    "proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass",
];

/// Directives that have to precede `keepalive` in an upstream block: a balancing method after it would replace it
/// (ngx_http_upstream_keepalive_module).
pub(super) const BEFORE_KEEPALIVE: [&str; 6] =
    ["server", "hash", "ip_hash", "least_conn", "least_time", "random"];

/// Facts, and values derived from them.
pub(super) struct Shape<'a> {
    pub(super) facts: &'a Facts,
    pub(super) configuration: Option<&'a Configuration>,
    catalog: Catalog,
    /// Locations and servers that answer the requests of clients.
    pub(super) places: Vec<Placed<'a>>,
    /// Directives that pass requests to origin servers.
    pub(super) passes: Vec<Pass<'a>>,
    /// Number of workers: running or, if no proxy runs, configured.
    pub(super) workers: Option<u64>,
    /// Maximum number of connections of one worker.
    pub(super) worker_connections: Option<u64>,
}

/// A `proxy_pass` or similar directive.
pub(super) struct Pass<'a> {
    pub(super) placed: Placed<'a>,
    /// Argument of the directive, with variables replaced that have a single constant value.
    pub(super) target: String,
    /// The upstream block that the argument names, if it does.
    pub(super) upstream: Option<&'a Statement>,
    /// Addresses of its origin servers; without Unix sockets and names that contain a variable.
    pub(super) origins: Vec<String>,
    pub(super) keepalive: Keepalive<'a>,
    /// The `map` entry that sends `Connection: close` for requests without an upgrade, if there is one.
    pub(super) closes: Option<&'a Statement>,
}

/// State of kept connections to an origin server.
pub(super) enum Keepalive<'a> {
    Kept,
    /// Nothing in the configuration enables keeping connections.
    Missing,
    /// Keeping is enabled, by `keepalive` or by default, but another setting closes the connections.
    Inert {
        keepalive: Option<&'a Statement>,
        because: Vec<Evidence>,
    },
    /// The setting depends on variables or protocols that are not evaluated here.
    Unknown,
}

impl<'a> Shape<'a> {
    /// Returns the `server` blocks that answer requests of a load.
    pub(super) fn serving_servers(&self) -> BTreeSet<*const Statement> {
        self.places
            .iter()
            .flat_map(|place| {
                place
                    .within
                    .iter()
                    .copied()
                    .chain([place.statement])
                    .filter(|block| block.name == "server")
                    .map(std::ptr::from_ref)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    pub(super) fn of(facts: &'a Facts) -> Shape<'a> {
        let configuration = facts.configuration.as_ref();
        let keeps = facts.nginx_version.is_some_and(|version| version >= KEEPS_BY_DEFAULT);
        let passes = configuration.map_or_else(Vec::new, |configuration| {
            let upstreams = configuration.upstreams();
            let all = configuration.all(PASSES);
            all.into_iter()
                .map(|placed| Pass::of((configuration, &upstreams), placed, keeps))
                .collect()
        });
        let mut shape = Shape {
            facts,
            configuration,
            catalog: Catalog::builtin(),
            places: configuration.map_or_else(Vec::new, serving::places),
            passes,
            workers: None,
            worker_connections: None,
        };
        let set = configuration.and_then(|all| all.events("worker_connections"));
        shape.worker_connections = configuration.and_then(|_| {
            set.and_then(Statement::number).or_else(|| shape.nginx_number("worker_connections"))
        });
        shape.workers = shape.count_workers();
        shape
    }

    /// Returns nginx's default for a parameter of the catalog: of the version in use or, if unknown, the newest.
    pub(super) fn nginx_default(&self, id: &str) -> Option<&DefaultLevel> {
        let default = &self.catalog.get(ProxyKind::Nginx, id)?.default;
        Some(match self.facts.nginx_version {
            Some(version) => default.at(&version.map(|part| part.to_string()).join(".")),
            None => default.newest(),
        })
    }

    /// Returns the default of the newest nginx for a parameter of the catalog.
    pub(super) fn newest_nginx_default(&self, id: &str) -> Option<&DefaultLevel> {
        Some(self.catalog.get(ProxyKind::Nginx, id)?.default.newest())
    }

    /// Returns nginx's default if it is a number.
    pub(super) fn nginx_number(&self, id: &str) -> Option<u64> {
        self.nginx_default(id)?.level.as_ref()?.parse().ok()
    }

    /// Returns the kernel's default of a setting if it is a number: of the kernel in use or, if unknown, the newest.
    pub(super) fn kernel_default(&self, name: &str) -> Option<u64> {
        let default = &self.catalog.get(ProxyKind::Nginx, name)?.default;
        let default = match &self.facts.kernel {
            Some(release) => default.at(release),
            None => default.newest(),
        };
        default.level.as_ref()?.parse().ok()
    }

    /// Describes a directive as evidence: its position or, if it is not set, nginx's default.
    pub(super) fn setting(&self, name: &str, set: Option<&Statement>) -> Evidence {
        let Some(set) = set else {
            let level = self.nginx_default(name).and_then(|default| default.level.clone());
            let default = level.unwrap_or_default();
            return FileEvidence::Unset { name: name.to_owned(), default }.into();
        };
        set.into()
    }

    fn count_workers(&self) -> Option<u64> {
        if let Some(proxy) = &self.facts.proxy {
            return Some(proxy.workers.len() as u64);
        }
        let set = self.configuration?.main("worker_processes");
        match set.and_then(Statement::argument) {
            Some("auto") => self.facts.cpus_online,
            Some(_) => set.and_then(Statement::number),
            None => self.nginx_number("worker_processes"),
        }
    }

    /// Returns the number of connections per client: one to the client and, while a request is answered, one to an
    /// origin server or to a program behind FastCGI and the like. Static files need none.
    pub(super) fn connections_per_client(&self) -> u64 {
        if self.passes.is_empty() { 1 } else { 2 }
    }

    /// Returns the directives of this name in force where clients are answered, each once, with one such location or
    /// server.
    pub(super) fn in_force(&self, name: &str) -> Vec<(&Placed<'a>, &'a Statement)> {
        let mut settings: Vec<(&Placed<'a>, &'a Statement)> = Vec::new();
        for place in &self.places {
            for set in place.in_force(name) {
                if !settings.iter().any(|(_, earlier)| std::ptr::eq(*earlier, set)) {
                    settings.push((place, set));
                }
            }
        }
        settings
    }

    /// Returns the smallest soft limit of descriptors among the workers, and its evidence.
    pub(super) fn nofile(&self) -> Option<(u64, Evidence)> {
        let running = self.facts.proxy.as_ref().and_then(|proxy| {
            proxy.workers.iter().filter_map(|worker| Some((worker.nofile?.0, worker.pid))).min()
        });
        if let Some((soft, pid)) = running {
            return Some((soft, HostEvidence::WorkerLimit { pid, soft }.into()));
        }
        let set = self.configuration?.main("worker_rlimit_nofile");
        if let Some(set) = set {
            return Some((set.number()?, set.into()));
        }
        let unit = self.facts.unit_limit.as_ref()?;
        Some((unit.soft?, FileEvidence::UnitLimit(unit.clone()).into()))
    }

    /// Returns the passes to TCP origins whose connections nothing keeps; any of them may get all of the load.
    pub(super) fn unkept(&self) -> Vec<&Pass<'a>> {
        let passes = self.passes.iter();
        passes
            .filter(|pass| {
                // Sockets of the file system take no ports.
                matches!(pass.keepalive, Keepalive::Missing | Keepalive::Inert { .. })
                    && !pass.origins.is_empty()
            })
            .collect()
    }

    /// Returns the rate of new connections to origin servers if all of the load goes to a pass that keeps none; `None`
    /// if every pass keeps them.
    pub(super) fn origin_connections_per_second(&self) -> Option<f64> {
        if self.unkept().is_empty() { None } else { self.facts.asked.rate }
    }

    /// Returns the rate of new client connections: as requested by the user or, if nginx keeps no client connections,
    /// one per request.
    pub(super) fn client_connections_per_second(&self) -> Option<f64> {
        let load = self.facts.asked;
        load.connections_per_second.or_else(|| {
            let off = !self.places.is_empty()
                && self.places.iter().all(|place| {
                    let set = place.in_force("keepalive_timeout");
                    set.first().is_some_and(|set| is_zero(set))
                });
            load.rate.filter(|_| off)
        })
    }

    /// Returns a `keepalive_timeout 0` in force where clients are answered.
    pub(super) fn keeps_no_clients(&self) -> Option<&'a Statement> {
        let mut all = self.in_force("keepalive_timeout").into_iter();
        all.find(|(_, set)| is_zero(set)).map(|(_, set)| set)
    }

    /// Returns the local ports available to outgoing connections to one address: the range without reserved ports.
    pub(super) fn local_ports(&self) -> Option<LocalPorts> {
        let range = self.facts.sysctl_numbers("net.ipv4.ip_local_port_range");
        let [low, high] = range[..] else {
            return None;
        };
        let reserved =
            self.facts.sysctls.get("net.ipv4.ip_local_reserved_ports").map_or("", String::as_str);
        Some(LocalPorts { low, high, reserved: ranges(reserved) })
    }
}

fn is_zero(set: &Statement) -> bool {
    matches!(set.argument(), Some("0" | "0s"))
}

/// Ports that the kernel chooses from for outgoing connections.
pub(super) struct LocalPorts {
    pub(super) low: u64,
    pub(super) high: u64,
    reserved: Vec<(u64, u64)>,
}

impl LocalPorts {
    pub(super) fn count(&self) -> u64 {
        (self.low..=self.high).filter(|&port| !self.reserves(port)).count() as u64
    }

    pub(super) fn figures(&self) -> evidence::LocalPorts {
        evidence::LocalPorts { low: self.low, high: self.high, ports: self.count() }
    }

    pub(super) fn contains(&self, port: u64) -> bool {
        (self.low..=self.high).contains(&port) && !self.reserves(port)
    }

    fn reserves(&self, port: u64) -> bool {
        self.reserved.iter().any(|&(first, last)| (first..=last).contains(&port))
    }
}

/// Parses a list such as `1,2-4` into ranges with inclusive ends.
fn ranges(list: &str) -> Vec<(u64, u64)> {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        })
        .collect()
}

impl<'a> Pass<'a> {
    fn of(
        (configuration, upstreams): (&'a Configuration, &BTreeMap<&str, &'a Statement>),
        placed: Placed<'a>,
        keeps: bool,
    ) -> Pass<'a> {
        let target = with_constants(&placed);
        let host = parse_host(&target);
        let upstream = upstreams.get(host).copied();
        let servers: BTreeSet<&str> = match upstream {
            Some(upstream) => {
                Configuration::inside(upstream, "server").filter_map(Statement::argument).collect()
            }
            None => BTreeSet::from([host]),
        };
        let origins: Vec<String> = servers
            .into_iter()
            .filter(|server| !server.starts_with("unix:") && !server.contains('$'))
            .map(str::to_owned)
            .collect();
        let closes = field(&placed, "connection")
            .and_then(|set| configuration.without_upgrade(set.arguments.get(1)?)?)
            .filter(|entry| closes(entry));
        Pass {
            origins,
            keepalive: keepalive(
                (&placed, host),
                upstream,
                keeps,
                against_keepalive(configuration, &placed, keeps, upstream),
            ),
            target,
            upstream,
            placed,
            closes,
        }
    }

    /// Returns the `keepalive` of its upstream block, with the balancing method after it that replaces it.
    pub(super) fn replaced_keepalive(&self) -> Option<(&'a Statement, &'a Statement)> {
        replaced_keepalive(self.upstream?)
    }

    /// Returns true if all its origin servers are on this host's loopback interface.
    pub(super) fn is_loopback(&self) -> bool {
        !self.origins.is_empty()
            && self.origins.iter().all(|origin| {
                ["127.", "localhost", "[::1]"].iter().any(|begin| origin.starts_with(begin))
            })
    }
}

fn replaced_keepalive(upstream: &Statement) -> Option<(&Statement, &Statement)> {
    let all = upstream.block.as_deref()?;
    let at = all.iter().position(|one| one.name == "keepalive")?;
    let methods = &BEFORE_KEEPALIVE[1..];
    let mut behind = all[at..].iter();
    Some((&all[at], behind.rfind(|one| methods.contains(&&*one.name))?))
}

/// Returns the argument of a `proxy_pass`, with variables replaced that have a single constant value.
fn with_constants(placed: &Placed<'_>) -> String {
    let mut parts = placed.statement.argument().unwrap_or_default().split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = variable(part);
        match placed.constant(name) {
            Some(value) => text.extend([value, rest]),
            None => text.extend(["$", part]),
        }
    }
    text
}

/// Splits the text after a `$` into the variable's name and the rest.
pub(super) fn variable(part: &str) -> (&str, &str) {
    let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
    braced.unwrap_or_else(|| part.split_at(part.find(|c| !is_word_char(c)).unwrap_or(part.len())))
}

/// Returns `10.0.0.1:80` for `http://10.0.0.1:80/path`, or for a target whose path is a variable.
pub(super) fn parse_host(target: &str) -> &str {
    const PATHS: [&str; 3] = ["request_uri", "uri", "document_uri"];
    let address = target.split_once("://").map_or(target, |(_, address)| address);
    let path = address
        .char_indices()
        .find(|&(at, c)| c == '/' || (c == '$' && PATHS.contains(&variable(&address[at + 1..]).0)));
    match path {
        Some((end, _)) if !address.starts_with("unix:") => &address[..end],
        _ => address,
    }
}

/// Returns true if a `Connection` header is `upgrade`, as hand-written for WebSocket; HTTP/1.1 keeps the connection
/// open all the same.
pub(super) fn is_upgrade(value: &str) -> bool {
    value.eq_ignore_ascii_case("upgrade")
}

/// Returns the `proxy_set_header` in force at a location for this header. `name` is in lower case.
pub(super) fn field<'a>(placed: &Placed<'a>, name: &str) -> Option<&'a Statement> {
    placed
        .inherited("proxy_set_header")
        .into_iter()
        .find(|set| set.argument().unwrap_or_default().eq_ignore_ascii_case(name))
}

/// Returns true if a `map` entry has the value `close`.
fn closes(entry: &Statement) -> bool {
    let value = entry.argument().unwrap_or_default();
    value.eq_ignore_ascii_case("close")
}

/// Determines whether connections are kept. `because` lists the settings that close them; `None` if unknown.
fn keepalive<'a>(
    (placed, host): (&Placed<'a>, &str),
    upstream: Option<&'a Statement>,
    keeps: bool,
    because: Option<Vec<Evidence>>,
) -> Keepalive<'a> {
    // Other protocols keep connections by rules of their own, and so do the servers of a stream.
    if placed.statement.name != "proxy_pass" || host.contains('$') || placed.is_in("stream") {
        return Keepalive::Unknown;
    }
    let set = upstream.and_then(|upstream| Configuration::inside(upstream, "keepalive").next());
    match (set, because) {
        (Some(set), _) if set.number() == Some(0) => Keepalive::Missing,
        (None, _) if !keeps => Keepalive::Missing,
        (_, None) => Keepalive::Unknown,
        (_, Some(because)) if because.is_empty() => Keepalive::Kept,
        (keepalive, Some(because)) => Keepalive::Inert { keepalive, because },
    }
}

/// Returns evidence of the settings that prevent a location from keeping connections; `None` if that depends on a
/// variable that is not evaluated here.
fn against_keepalive(
    configuration: &Configuration,
    placed: &Placed<'_>,
    keeps: bool,
    upstream: Option<&Statement>,
) -> Option<Vec<Evidence>> {
    let mut because: Vec<Evidence> = Vec::new();
    let version = placed.inherited("proxy_http_version").into_iter().next();
    match (version, version.and_then(Statement::argument)) {
        (Some(set), Some("1.0")) => because.push(set.into()),
        (None, _) if !keeps => {
            because.push(FileEvidence::HttpVersionUnset.into());
        }
        _ => {}
    }
    let connection = field(placed, "connection");
    let value = connection.and_then(|set| set.arguments.get(1));
    match (connection, value.map(String::as_str)) {
        (_, Some("")) => {}
        (Some(set), Some(value)) if value.contains('$') => {
            match configuration.without_upgrade(value)? {
                Some(entry) if closes(entry) => {
                    because.extend([set.into(), entry.into()]);
                }
                Some(entry) if entry.argument().is_some_and(|it| it.contains('$')) => return None,
                _ => {}
            }
        }
        // HTTP/1.0 keeps connections too, when it is asked to.
        (_, Some(value)) if value.eq_ignore_ascii_case("keep-alive") => because.clear(),
        (_, Some(value)) if is_upgrade(value) => {}
        (Some(set), _) => because.push(set.into()),
        (None, _) if !keeps => because.push(FileEvidence::ConnectionUnset.into()),
        (None, _) => {}
    }
    if let Some((_, method)) = upstream.and_then(replaced_keepalive) {
        because.push(FileEvidence::BehindKeepalive(method.place()).into());
    }
    Some(because)
}
