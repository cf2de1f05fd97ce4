//! What a configuration amounts to, reckoned once for all rules.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, DefaultLevel};

use super::numbers::KEEPS_BY_DEFAULT;
use super::serving;
use crate::configuration::{Configuration, Placed, Statement};
use crate::facts::Facts;

/// Directives that pass requests on, over connections of their own.
#[rustfmt::skip]
const PASSES: &[&str] = &[
    "proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass",
];

/// What `keepalive` stands behind in an upstream block: a balancing method behind it takes its place
/// (ngx_http_upstream_keepalive_module).
pub(super) const BEFORE_KEEPALIVE: [&str; 6] = [
    "server",
    "hash",
    "ip_hash",
    "least_conn",
    "least_time",
    "random",
];

/// Facts, and what follows from them.
pub(super) struct Shape<'a> {
    pub(super) facts: &'a Facts,
    pub(super) configuration: Option<&'a Configuration>,
    catalog: Catalog,
    /// Where the requests of clients are answered.
    pub(super) places: Vec<Placed<'a>>,
    /// Places where requests are passed to origin servers.
    pub(super) passes: Vec<Pass<'a>>,
    /// Workers that run, or would.
    pub(super) workers: Option<u64>,
    /// Connections that one worker may have.
    pub(super) worker_connections: Option<u64>,
}

/// One `proxy_pass` or the like.
pub(super) struct Pass<'a> {
    pub(super) placed: Placed<'a>,
    /// What it names, with the values of variables that have one alone.
    pub(super) target: String,
    /// The upstream block that it names.
    pub(super) upstream: Option<&'a Statement>,
    /// Addresses of its origin servers; none where a variable decides, or by Unix sockets.
    pub(super) origins: Vec<String>,
    pub(super) keepalive: Keepalive<'a>,
    /// The entry of a `map` that closes the connections of requests which ask for no upgrade.
    pub(super) closes: Option<&'a Statement>,
}

/// Whether connections to an origin server are kept.
pub(super) enum Keepalive<'a> {
    Kept,
    /// Nothing asks for it.
    Missing,
    /// Connections would be kept, by `keepalive` or by default, and something else closes them.
    Inert {
        keepalive: Option<&'a Statement>,
        because: Vec<String>,
    },
    /// Variables or protocols that this does not follow.
    Unknown,
}

impl<'a> Shape<'a> {
    /// The servers in which requests of a load are answered.
    pub(super) fn serving_servers(&self) -> BTreeSet<*const Statement> {
        let around = |place: &Placed<'a>| {
            let blocks = place.within.iter().copied().chain([place.statement]);
            let servers = blocks.filter(|block| block.name == "server");
            servers.map(std::ptr::from_ref).collect::<Vec<_>>()
        };
        self.places.iter().flat_map(around).collect()
    }

    pub(super) fn of(facts: &'a Facts) -> Shape<'a> {
        let configuration = facts.configuration.as_ref();
        let keeps = facts
            .nginx_version
            .is_some_and(|version| version >= KEEPS_BY_DEFAULT);
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
            let set = set.and_then(Statement::number);
            set.or_else(|| shape.nginx_number("worker_connections"))
        });
        shape.workers = shape.count_workers();
        shape
    }

    /// What nginx does where a parameter of the catalog is not set: the version that is there, or else
    /// the newest.
    pub(super) fn nginx_default(&self, id: &str) -> Option<&DefaultLevel> {
        let default = &self.catalog.get(ProxyKind::Nginx, id)?.default;
        Some(match self.facts.nginx_version {
            Some(version) => default.at(&version.map(|part| part.to_string()).join(".")),
            None => default.newest(),
        })
    }

    /// What the newest nginx does.
    pub(super) fn newest_nginx_default(&self, id: &str) -> Option<&DefaultLevel> {
        Some(self.catalog.get(ProxyKind::Nginx, id)?.default.newest())
    }

    /// nginx's default, where it is a number.
    pub(super) fn nginx_number(&self, id: &str) -> Option<u64> {
        self.nginx_default(id)?.level.as_ref()?.parse().ok()
    }

    /// The kernel's default of a setting, where it is a number: of the kernel that is there, or else of
    /// the newest.
    pub(super) fn kernel_default(&self, name: &str) -> Option<u64> {
        let default = &self.catalog.get(ProxyKind::Nginx, name)?.default;
        let default = match &self.facts.kernel {
            Some(release) => default.at(release),
            None => default.newest(),
        };
        default.level.as_ref()?.parse().ok()
    }

    /// A directive where it is set, or else that it is not, and what nginx does then.
    pub(super) fn said(&self, name: &str, set: Option<&Statement>) -> String {
        let unset = || self.nginx_default(name)?.level.clone();
        set.map_or_else(
            || format!("{name} is not set: {}", unset().unwrap_or_default()),
            Statement::evidence,
        )
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

    /// Connections that one client takes: its own, and one to an origin server or to a program behind FastCGI and its
    /// like while a request is answered. One to a file is none.
    pub(super) fn connections_per_client(&self) -> u64 {
        if self.passes.is_empty() { 1 } else { 2 }
    }

    /// Directives of this name that count where requests of clients are answered, each once, with such a
    /// place.
    pub(super) fn in_force(&self, name: &str) -> Vec<(&Placed<'a>, &'a Statement)> {
        let mut found: Vec<(&Placed<'a>, &'a Statement)> = Vec::new();
        for place in &self.places {
            for set in place.in_force(name) {
                if !found.iter().any(|(_, known)| std::ptr::eq(*known, set)) {
                    found.push((place, set));
                }
            }
        }
        found
    }

    /// Smallest soft limit of descriptors among the workers, and where that is known from.
    pub(super) fn nofile(&self) -> Option<(u64, String)> {
        let running = self.facts.proxy.as_ref().and_then(|proxy| {
            let limits = proxy
                .workers
                .iter()
                .filter_map(|worker| Some((worker.nofile?.0, worker.pid)));
            limits.min()
        });
        if let Some((soft, pid)) = running {
            let evidence = format!("/proc/{pid}/limits: Max open files {}", super::limit(soft));
            return Some((soft, evidence));
        }
        let set = self.configuration?.main("worker_rlimit_nofile");
        if let Some(set) = set {
            return Some((set.number()?, set.evidence()));
        }
        let unit = self.facts.unit_limit.as_ref()?;
        Some((unit.soft?, unit.evidence.clone()?))
    }

    /// Whether nothing keeps connections to the origin of at least one pass, which may then get all
    /// of the load.
    pub(super) fn unkept(&self) -> Vec<&Pass<'a>> {
        let lacks = |pass: &&Pass<'_>| {
            let is_closed = matches!(pass.keepalive, Keepalive::Missing | Keepalive::Inert { .. });
            // Sockets of the file system take no ports.
            is_closed && !pass.origins.is_empty()
        };
        self.passes.iter().filter(lacks).collect()
    }

    /// New connections to origin servers per second, if all of the load goes where none are kept.
    pub(super) fn origin_connections_per_second(&self) -> Option<f64> {
        match self.unkept().is_empty() {
            true => None,
            false => self.facts.asked.rate,
        }
    }

    /// New client connections per second: as asked, or every request's own where nginx keeps none.
    pub(super) fn client_connections_per_second(&self) -> Option<f64> {
        let asked = self.facts.asked;
        asked.connections_per_second.or_else(|| {
            let closes = |place: &Placed<'_>| {
                let set = place.in_force("keepalive_timeout");
                set.first().is_some_and(|set| is_zero(set))
            };
            let off = !self.places.is_empty() && self.places.iter().all(closes);
            asked.rate.filter(|_| off)
        })
    }

    /// `keepalive_timeout 0` where clients are answered.
    pub(super) fn keeps_no_clients(&self) -> Option<&'a Statement> {
        let mut all = self.in_force("keepalive_timeout").into_iter();
        all.find(|(_, set)| is_zero(set)).map(|(_, set)| set)
    }

    /// Local ports that outgoing connections may have to one address: the range without what is
    /// reserved.
    pub(super) fn local_ports(&self) -> Option<LocalPorts> {
        let range = self.facts.sysctl_numbers("net.ipv4.ip_local_port_range");
        let [low, high] = range[..] else {
            return None;
        };
        let reserved = self
            .facts
            .sysctls
            .get("net.ipv4.ip_local_reserved_ports")
            .map_or("", String::as_str);
        Some(LocalPorts {
            low,
            high,
            reserved: ranges(reserved),
        })
    }
}

fn is_zero(set: &Statement) -> bool {
    matches!(set.argument(), Some("0" | "0s"))
}

/// Ports that the kernel chooses from.
pub(super) struct LocalPorts {
    pub(super) low: u64,
    pub(super) high: u64,
    reserved: Vec<(u64, u64)>,
}

impl LocalPorts {
    pub(super) fn count(&self) -> u64 {
        (self.low..=self.high)
            .filter(|&port| !self.reserves(port))
            .count() as u64
    }

    pub(super) fn contains(&self, port: u64) -> bool {
        (self.low..=self.high).contains(&port) && !self.reserves(port)
    }

    fn reserves(&self, port: u64) -> bool {
        let within = |&(first, last): &(u64, u64)| (first..=last).contains(&port);
        self.reserved.iter().any(within)
    }
}

/// `1,2-4` as ranges.
fn ranges(list: &str) -> Vec<(u64, u64)> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    list.split(',').filter_map(range).collect()
}

impl<'a> Pass<'a> {
    fn of(
        (configuration, upstreams): (&'a Configuration, &BTreeMap<&str, &'a Statement>),
        placed: Placed<'a>,
        keeps: bool,
    ) -> Pass<'a> {
        let target = with_constants(&placed);
        let host = host(&target);
        let upstream = upstreams.get(host).copied();
        let servers: BTreeSet<&str> = match upstream {
            Some(upstream) => Configuration::inside(upstream, "server")
                .filter_map(Statement::argument)
                .collect(),
            None => BTreeSet::from([host]),
        };
        let is_address = |server: &&str| !server.starts_with("unix:") && !server.contains('$');
        let origins: Vec<String> = servers
            .into_iter()
            .filter(is_address)
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

    /// `keepalive` in its upstream block, and the balancing method behind it that takes its place.
    pub(super) fn replaced_keepalive(&self) -> Option<(&'a Statement, &'a Statement)> {
        replaced_keepalive(self.upstream?)
    }

    /// Whether all its origin servers are on this host's loopback interface.
    pub(super) fn is_loopback(&self) -> bool {
        let local = |origin: &String| {
            ["127.", "localhost", "[::1]"]
                .iter()
                .any(|begin| origin.starts_with(begin))
        };
        !self.origins.is_empty() && self.origins.iter().all(local)
    }
}

fn replaced_keepalive(upstream: &Statement) -> Option<(&Statement, &Statement)> {
    let all = upstream.block.as_deref()?;
    let at = all.iter().position(|one| one.name == "keepalive")?;
    let methods = &BEFORE_KEEPALIVE[1..];
    let mut behind = all[at..].iter();
    Some((&all[at], behind.rfind(|one| methods.contains(&&*one.name))?))
}

/// What a `proxy_pass` names, with the values of variables in place of those that have one alone.
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

/// Name of the variable that begins behind a `$`, and the text behind it.
pub(super) fn variable(part: &str) -> (&str, &str) {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let braced = part.strip_prefix('{').and_then(|part| part.split_once('}'));
    braced.unwrap_or_else(|| part.split_at(part.find(|c| !is_of_name(c)).unwrap_or(part.len())))
}

/// `10.0.0.1:80` of `http://10.0.0.1:80/path`, or of one with a variable for its path.
pub(super) fn host(target: &str) -> &str {
    const PATHS: [&str; 3] = ["request_uri", "uri", "document_uri"];
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let is_path = |&(at, c): &(usize, char)| {
        c == '/' || (c == '$' && PATHS.contains(&variable(&rest[at + 1..]).0))
    };
    match rest.char_indices().find(is_path) {
        Some((end, _)) if !rest.starts_with("unix:") => &rest[..end],
        _ => rest,
    }
}

/// Whether a header `Connection` is that of WebSocket written by hand, which HTTP/1.1 keeps open all the same.
pub(super) fn is_upgrade(value: &str) -> bool {
    value.eq_ignore_ascii_case("upgrade")
}

/// The `proxy_set_header` of a header, whose name is in lower case, that is in force at a place.
pub(super) fn field<'a>(placed: &Placed<'a>, name: &str) -> Option<&'a Statement> {
    let fields = placed.inherited("proxy_set_header").into_iter();
    let mut own = fields.filter(|set| {
        let own = set.argument().unwrap_or_default();
        own.eq_ignore_ascii_case(name)
    });
    own.next()
}

/// Whether the entry of a `map` is `close`.
fn closes(entry: &Statement) -> bool {
    let value = entry.argument().unwrap_or_default();
    value.eq_ignore_ascii_case("close")
}

/// `because`: what is said against it; `None`: it is not known.
fn keepalive<'a>(
    (placed, host): (&Placed<'a>, &str),
    upstream: Option<&'a Statement>,
    keeps: bool,
    because: Option<Vec<String>>,
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

/// What keeps a location from keeping connections; `None` where a variable decides that is not understood here.
fn against_keepalive(
    configuration: &Configuration,
    placed: &Placed<'_>,
    keeps: bool,
    upstream: Option<&Statement>,
) -> Option<Vec<String>> {
    let mut because = Vec::new();
    let version = placed.inherited("proxy_http_version").into_iter().next();
    match (version, version.and_then(Statement::argument)) {
        (Some(set), Some("1.0")) => because.push(set.evidence()),
        (None, _) if !keeps => {
            because.push("proxy_http_version is not set: 1.0 before nginx 1.29.7".to_owned());
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
                    because.extend([set.evidence(), entry.evidence()]);
                }
                Some(entry) if entry.argument().is_some_and(|it| it.contains('$')) => return None,
                _ => {}
            }
        }
        // HTTP/1.0 keeps connections too, when it is asked to.
        (_, Some(value)) if value.eq_ignore_ascii_case("keep-alive") => because.clear(),
        (_, Some(value)) if is_upgrade(value) => {}
        (Some(set), _) => because.push(set.evidence()),
        (None, _) if !keeps => because
            .push("proxy_set_header Connection is not set: `close` before nginx 1.29.7".to_owned()),
        (None, _) => {}
    }
    let replaced = upstream.and_then(replaced_keepalive);
    because
        .extend(replaced.map(|(_, method)| format!("{}, behind `keepalive`", method.evidence())));
    Some(because)
}
