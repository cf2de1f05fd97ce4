//! Which listener, server and location a load asks: looked up in the configuration as the proxy would.
//!
//! Each language says where it listens ([`Door`]) and which way a request takes that comes in there
//! ([`Way`]); which of the listeners is asked is decided here, for all of them alike. Nothing is guessed: what depends
//! on something that a configuration alone does not say is [`Answer::Unknown`].

use std::net::SocketAddr;
use std::ops::Range;

use weir_model::study::{AskSpec, HOST};

use crate::answer::{Answer, Barrier};
use crate::names::without_port;
use crate::place::{about, error, line_and_column};
use crate::{Ask, ConfigurationError, Listener, Source};

/// Listeners that a message lists at most.
const LISTED: usize = 10;

/// What answers one request of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The listener, as the server that answers has it.
    pub listener: Listener,
    /// The place of the first listener that shares its socket, among all of the configuration.
    pub index: usize,
    /// What passes connections of clients on to the listener, and is left out.
    pub past: Vec<Spot>,
    /// HAProxy: the frontends that pass the connection or the request on before `server` has it.
    pub through: Vec<Spot>,
    /// nginx: the `server`; HAProxy: the `frontend` or `listen`; Envoy: the virtual host; Caddy: the server.
    pub server: Option<Spot>,
    /// nginx: the innermost `location`; HAProxy: the `backend` or `listen`; Envoy and Caddy: the route.
    pub location: Option<Spot>,
    /// nginx: locations that had the request before, and sent it on when they had checked it.
    pub left: Vec<Spot>,
    /// What it does with the request.
    pub answer: Answer,
    /// What compresses answers there, where somebody wrote it for that and this request does not accept it.
    pub compressed: Option<Spot>,
}

/// A part of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spot {
    /// Index in [`Source::files`].
    pub file: usize,
    /// Bytes of its text: of nginx the directive's name, of HAProxy the words of the section's header, of
    /// documents the value.
    pub span: Range<usize>,
    /// Line of its begin, counted from 1.
    pub line: usize,
    /// What it is called: `server shop.example`, `location /api/`, `backend app`.
    pub name: String,
    /// Its JSON pointer (RFC 6901) in a document; else empty.
    pub pointer: String,
}

/// A listener as those who choose among all see it.
pub(crate) struct Door {
    pub(crate) listener: Listener,
    /// Where it stands: file, and byte of its text.
    pub(crate) at: (usize, usize),
    /// The last of its ports, where it has several.
    pub(crate) last_port: Option<u16>,
    /// What it belongs to; doors of one thing stand near each other.
    pub(crate) group: usize,
    /// The first door that shares its socket: itself, or one before.
    pub(crate) first: usize,
    /// Whether HTTP over TCP is no use there.
    pub(crate) is_udp: bool,
    /// Whether what stands behind it speaks TLS, so that it may be asked so, or in clear.
    pub(crate) is_either: bool,
    /// Whether clients come to it through another alone.
    pub(crate) is_inner: bool,
}

impl Door {
    fn speaks(&self, tls: bool) -> bool {
        !self.is_udp && (self.is_either || self.listener.tls == tls)
    }

    pub(crate) fn has_port(&self, wanted: u16) -> bool {
        let first = self.listener.port;
        first.is_some_and(|first| (first..=self.last_port.unwrap_or(first)).contains(&wanted))
    }

    fn name(&self) -> String {
        let tls = if self.listener.tls { " (TLS)" } else { "" };
        format!("{}{tls}", self.listener.address)
    }

    fn place(&self) -> String {
        let Listener { file, line, .. } = &self.listener;
        format!("{} at {}:{line}", self.name(), file.display())
    }
}

/// A request as a proxy sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The name in the handshake; `None` in clear.
    pub(crate) server_name: Option<&'a str>,
    /// The Host field.
    pub(crate) authority: &'a str,
    /// The Host field, without a port.
    pub(crate) host: &'a str,
    /// The target up to its query.
    pub(crate) path: &'a str,
    /// All of the target.
    pub(crate) target: &'a str,
    /// Its method.
    pub(crate) method: &'a str,
    fields: &'a [(String, String)],
    /// The port that is named for it.
    pub(crate) port: Option<u16>,
    /// Whether the load names the host, so that the server must be one for it.
    pub(crate) is_named: bool,
    /// Whether its client shows a certificate.
    pub(crate) is_certified: bool,
    /// Whether it is right that nothing takes it.
    may_miss: bool,
}

impl<'a> Request<'a> {
    /// The same request for another path, of another host, as a proxy passes it on.
    pub(crate) fn passed_on<'p>(&'p self, path: &'p str, host: &'p str) -> Request<'p> {
        Request {
            path,
            target: path,
            host,
            authority: host,
            ..*self
        }
    }

    pub(crate) fn all(ask: &'a AskSpec) -> impl Iterator<Item = Request<'a>> {
        ask.requests.iter().map(move |requested| {
            let target = &*requested.target;
            let authority = requested.host.as_deref().unwrap_or(ask.authority());
            Request {
                server_name: ask.tls.then(|| ask.server_name()),
                authority,
                host: without_port(authority),
                path: target.split('?').next().unwrap_or_default(),
                target,
                method: match &*requested.method {
                    "" => "GET",
                    method => method,
                },
                fields: &requested.fields,
                port: ask.port.or(ask.proxy_port),
                is_named: ask.host.is_some() && requested.host.is_none(),
                is_certified: ask.certified,
                may_miss: requested.may_miss,
            }
        })
    }

    /// Whether it came over TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.server_name.is_some()
    }

    /// What comes behind the `?` of its target.
    pub(crate) fn query(&self) -> &'a str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The value of a field but Host, empty where the load sends none; `None`: it has a slot or is
    /// there several times, or the engine makes it.
    pub(crate) fn field(&self, name: &str) -> Option<&'a str> {
        let is_it = |own: &str| own.eq_ignore_ascii_case(name);
        if ["connection", "content-length", "host", "transfer-encoding"]
            .into_iter()
            .any(is_it)
        {
            return None;
        }
        let mut values = self.fields.iter().filter(|(own, _)| is_it(own));
        match (values.next(), values.next()) {
            (None, _) => Some(""),
            (Some((_, value)), None) if !value.contains("{{") => Some(value),
            _ => None,
        }
    }

    /// Whether it surely names no coding that an answer could have (RFC 9110 section 12.5.3).
    pub(crate) fn is_plain(&self) -> bool {
        let value = self.field("accept-encoding").map(str::trim);
        value.is_some_and(|value| value.is_empty() || value.eq_ignore_ascii_case("identity"))
    }
}

/// The way of a request from a listener on.
pub(crate) struct Way {
    pub(crate) through: Vec<Spot>,
    pub(crate) server: Option<Spot>,
    pub(crate) location: Option<Spot>,
    /// As of [`Asked`].
    pub(crate) left: Vec<Spot>,
    pub(crate) answer: Answer,
    /// What compresses answers, where it is no stock configuration's; nginx and HAProxy alone say it so far.
    pub(crate) compressed: Option<Spot>,
}

impl Way {
    /// One that ends at once.
    pub(crate) fn end(answer: Answer) -> Way {
        Way {
            through: Vec::new(),
            server: None,
            location: None,
            left: Vec::new(),
            answer,
            compressed: None,
        }
    }
}

/// How a language says that a listener is missing.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    /// Of one in clear: `no HTTP server listens in clear`.
    pub(crate) clear: &'static str,
    pub(crate) tls: &'static str,
    /// What to do where there is none at all.
    pub(crate) hint: &'static str,
}

/// Where a configuration listens.
pub(crate) struct Doors<'a> {
    pub(crate) source: &'a Source,
    /// In the order of [`Listener`]s.
    pub(crate) all: Vec<Door>,
    pub(crate) missing: Missing,
}

impl Doors<'_> {
    pub(crate) fn listeners(&self) -> Vec<Listener> {
        self.all.iter().map(|door| door.listener.clone()).collect()
    }
}

/// A configuration in which ways can be looked up.
pub(crate) trait Map {
    fn doors(&self) -> &Doors<'_>;

    /// The way of a request that comes in at a door.
    fn way(&self, door: usize, request: &Request<'_>) -> Way;

    /// Whether a server there is called as the request's host.
    fn is_for_host(&self, _door: usize, _request: &Request<'_>) -> bool {
        false
    }

    /// The variable by which a door has its port, where nothing says what it holds.
    fn variable(&self, _door: usize) -> Option<&str> {
        None
    }

    /// What to do about a variable that is to hold a port.
    fn how_to_set(&self, _variable: &str, _port: u16) -> String {
        String::new()
    }

    /// What passes connections on to a door, so that clients may not come to it by themselves.
    fn before(&self, _door: usize) -> Vec<Spot> {
        Vec::new()
    }

    /// Of the doors that share a socket with this one, that of a server.
    fn door_of(&self, door: usize, _server: &Spot) -> usize {
        door
    }
}

/// What answers the requests of a load, all at one listener.
///
/// A load that names a port gets the listener at that port. Else it is the listener at the proxy's port, if it is
/// one in clear or with TLS as the load asks; or one that belongs to the same server or section; or the first
/// of all. Of several it is the first that passes the load's first request on, answers it from files, or might.
/// One that redirects, refuses, or shows statistics is never chosen by itself.
///
/// # Errors
/// Nobody listens as asked; a host or a path that the load names meets nothing there; what is there asks for
/// more than clients of a study have.
pub(crate) fn look_up(map: &dyn Map, ask: &AskSpec) -> Result<Vec<Asked>, ConfigurationError> {
    let door = choose(map, ask)?;
    let index = map.doors().all[door].first;
    let asked = |request: Request<'_>| {
        let way = map.way(index, &request);
        if let Some(error) = refused(map, index, &request, &way) {
            return Err(error);
        }
        let Way {
            through,
            server,
            location,
            left,
            answer,
            compressed,
        } = way;
        let own = server
            .as_ref()
            .map_or(index, |server| map.door_of(index, server));
        Ok(Asked {
            listener: Listener {
                tls: ask.tls,
                ..map.doors().all[own].listener.clone()
            },
            index,
            past: map.before(index),
            through,
            server,
            location,
            left,
            answer,
            compressed: compressed.filter(|_| request.is_plain()),
        })
    };
    Request::all(ask).map(asked).collect()
}

/// The address of every listener that is asked, by its place among all.
pub(crate) fn addresses(
    map: &dyn Map,
    asks: &[Ask],
) -> Result<Vec<(usize, SocketAddr)>, ConfigurationError> {
    let mut addresses: Vec<(usize, SocketAddr)> = Vec::new();
    for ask in asks {
        let asked = look_up(map, &ask.spec)?;
        let Some(index) = asked.first().map(|asked| asked.index) else {
            continue;
        };
        if !addresses.iter().any(|(known, _)| *known == index) {
            addresses.push((index, ask.at));
        }
    }
    Ok(addresses)
}

fn choose(map: &dyn Map, ask: &AskSpec) -> Result<usize, ConfigurationError> {
    let doors = &map.doors().all;
    let fits = |door: &usize| doors[*door].speaks(ask.tls);
    let all: Vec<usize> = (0..doors.len()).filter(fits).collect();
    let at = |port: u16| {
        let mut there = all.clone();
        there.retain(|door| doors[*door].has_port(port));
        there
    };
    let Some(request) = Request::all(ask).next() else {
        return Err(missing(map, ask.tls, None));
    };
    let best = |among: &[usize]| best(map, among, &request, ask.files);
    for (port, is_of_load) in [(ask.port, true), (ask.proxy_port, false)] {
        let Some(port) = port else { continue };
        let there = at(port);
        // What is named is asked, whatever it answers.
        if let Some(first) = there.first() {
            return Ok(best(&there).unwrap_or(*first));
        }
        let is_other = |door: &&Door| !is_of_load && door.has_port(port) && !door.is_udp;
        let Some(other) = doors.iter().find(is_other) else {
            return Err(missing(map, ask.tls, Some(port)));
        };
        let mut near = all.clone();
        near.retain(|door| doors[*door].group == other.group);
        if let Some(door) = best(&near) {
            return Ok(door);
        }
    }
    let mut outer = all;
    outer.retain(|door| !doors[*door].is_inner);
    if outer.is_empty() {
        return Err(missing(map, ask.tls, None));
    }
    best(&outer).ok_or_else(|| none_by_itself(map, &outer, &request))
}

/// Of some doors the first that suits a load best, those with a port before others, and those of servers
/// that are called as the host before those that take any.
fn best(map: &dyn Map, among: &[usize], request: &Request<'_>, files: bool) -> Option<usize> {
    let ranked = among.iter().filter_map(|&door| {
        let rank = map.way(door, request).answer.rank(files)?;
        let has_port = map.doors().all[door].listener.port.is_some();
        Some((!has_port, !map.is_for_host(door, request), rank, door))
    });
    ranked.min().map(|(.., door)| door)
}

/// Nobody listens as asked.
fn missing(map: &dyn Map, tls: bool, port: Option<u16>) -> ConfigurationError {
    let missing = map.doors().missing;
    let what = if tls { missing.tls } else { missing.clear };
    let what = match port {
        Some(port) => format!("{what} on port {port}"),
        None => what.to_owned(),
    };
    let doors = &map.doors().all;
    let mut fitting = (0..doors.len()).filter(|&door| doors[door].speaks(tls));
    let unknown = fitting.find_map(|door| Some((&doors[door], map.variable(door)?)));
    if let (Some((door, variable)), Some(port)) = (unknown, port) {
        let what = format!(
            "{what}: `{}` has its port from the variable `{variable}` of the environment, which nothing sets",
            door.listener.address
        );
        let place = &map.doors().source.files[door.at.0];
        return error(place, door.at.1, what).hint(map.how_to_set(variable, port));
    }
    let named: Vec<String> = doors.iter().take(LISTED).map(Door::place).collect();
    let at_first = |first: &Door| error(&map.doors().source.files[first.at.0], first.at.1, &*what);
    let found = doors.first().map_or_else(
        || about(&map.doors().source.files[0].path, &*what),
        at_first,
    );
    found.hint(match named.is_empty() {
        true => missing.hint.to_owned(),
        false => format!("listeners: {}", named.join(", ")),
    })
}

/// There are listeners, and none that is chosen by itself.
fn none_by_itself(map: &dyn Map, all: &[usize], request: &Request<'_>) -> ConfigurationError {
    let doors = &map.doors().all;
    let first = &doors[all[0]];
    let sockets = all.iter().filter(|door| doors[**door].first == **door);
    let sockets: Vec<usize> = sockets.copied().collect();
    if let [door] = sockets[..]
        && let Some(error) = refused(map, door, request, &map.way(door, request))
    {
        return error;
    }
    let each = sockets.iter().take(LISTED).map(|&door| {
        let way = map.way(door, request);
        format!("{} {}", doors[door].place(), way.answer)
    });
    let each: Vec<String> = each.collect();
    let how = if request.is_tls() {
        "with TLS"
    } else {
        "in clear"
    };
    let what = format!(
        "no listener {how} passes on a request for `{}` with the host `{}`: {}",
        request.path,
        request.host,
        each.join(", ")
    );
    let other = if request.host == HOST { "" } else { "another " };
    let hint = format!(
        "name {other}`host`, `path` or `port` in the load; headers that conditions ask for are `fields` of its request"
    );
    error(&map.doors().source.files[first.at.0], first.at.1, what).hint(hint)
}

/// Why a request cannot be asked there, if it cannot: something that the load names is not there, or it asks
/// for what clients of a study do not have.
fn refused(
    map: &dyn Map,
    door: usize,
    request: &Request<'_>,
    way: &Way,
) -> Option<ConfigurationError> {
    let door = &map.doors().all[door];
    let (why, (file, at), hint) = match &way.answer {
        Answer::Nothing(why) if !request.may_miss => {
            let server = way.server.as_ref();
            let at = server.map_or(door.at, |server| (server.file, server.span.start));
            let hint = "name another `host`, `path` or `port` in the load";
            (why, at, hint)
        }
        Answer::Bars(Barrier { at, what, hint }) => (what, *at, *hint),
        _ => return None,
    };
    let what = format!(
        "a request for `{}` with the host `{}` at {}: {why}",
        request.path,
        request.host,
        door.name()
    );
    Some(error(&map.doors().source.files[file], at, what).hint(hint))
}

impl Spot {
    /// A part of a file.
    pub(crate) fn new(source: &Source, file: usize, span: Range<usize>, name: String) -> Spot {
        Spot {
            file,
            line: line_and_column(&source.files[file].text, span.start).0,
            span,
            name,
            pointer: String::new(),
        }
    }
}
