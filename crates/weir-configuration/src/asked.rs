//! Looks up the listener, server and location that a load asks, as the proxy would.
//!
//! Each language lists its listeners ([`ListenerCandidate`]) and finds the way of a request that
//! comes in there ([`Route`]). The choice among the listeners is made here, for all languages
//! alike. Nothing is guessed: an answer that depends on something outside of the configuration is
//! [`Answer::Unknown`].

use std::net::SocketAddr;
use std::ops::Range;

use weir_model::study::{AskSpec, HOST};

use crate::answer::{Answer, Barrier};
use crate::names::without_port;
use crate::place::{about, error, line_and_column};
use crate::{Ask, ConfigurationError, Listener, Source};

/// Maximum number of listeners that a message lists.
const LISTED: usize = 10;

/// The parts of a configuration that answer one request of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOutcome {
    /// Listener of the server that answers, with TLS as the load asks.
    pub listener: Listener,
    /// Index of the first listener on the same socket, among all listeners of the configuration.
    pub index: usize,
    /// Parts that pass client connections on to the listener; a run leaves them out.
    pub past: Vec<Spot>,
    /// HAProxy: the frontends that pass the connection or the request on before it reaches `server`.
    pub through: Vec<Spot>,
    /// nginx: the `server`; HAProxy: the `frontend` or `listen`; Envoy: the virtual host; Caddy: the server.
    pub server: Option<Spot>,
    /// nginx: the innermost `location`; HAProxy: the `backend` or `listen`; Envoy and Caddy: the route.
    pub location: Option<Spot>,
    /// nginx: locations that checked the request first and then sent it on.
    pub left: Vec<Spot>,
    /// Answer of the server or location to the request.
    pub answer: Answer,
    /// Statement that compresses answers, if the user wrote one and this request does not accept compression.
    pub compressed: Option<Spot>,
}

/// A named part of a configuration, with its position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spot {
    /// Index in [`Source::files`].
    pub file: usize,
    /// Byte range in the file's text: in nginx the directive's name, in HAProxy the words of the section's header, in
    /// documents the value.
    pub span: Range<usize>,
    /// Line on which the part begins, counted from 1.
    pub line: usize,
    /// Display name: `server shop.example`, `location /api/`, `backend app`.
    pub name: String,
    /// JSON pointer (RFC 6901) of the part in a document; empty in other languages.
    pub pointer: String,
}

/// A listener with the properties by which one is chosen among all.
pub struct ListenerCandidate {
    pub listener: Listener,
    /// Position: index of the file, and byte offset in its text.
    pub at: (usize, usize),
    /// Last port of a range of ports; None for a single port.
    pub last_port: Option<u16>,
    /// Number of the group that the listener belongs to, such as a server; a load may get another listener of its
    /// group.
    pub group: usize,
    /// Index of the first listener that shares its socket: its own, or a lower one.
    pub first: usize,
    /// True if the listener is of no use for HTTP over TCP.
    pub is_udp: bool,
    /// True if the part behind the listener speaks TLS, so that loads may ask with TLS or in clear.
    pub is_either: bool,
    /// True if clients reach the listener only through another one.
    pub is_inner: bool,
}

impl ListenerCandidate {
    fn speaks(&self, tls: bool) -> bool {
        !self.is_udp && (self.is_either || self.listener.tls == tls)
    }

    pub fn has_port(&self, wanted: u16) -> bool {
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
pub struct Request<'a> {
    /// Server name in the TLS handshake; None in clear.
    pub server_name: Option<&'a str>,
    /// Value of the Host field.
    pub authority: &'a str,
    /// Value of the Host field, without a port.
    pub host: &'a str,
    /// Target up to its query.
    pub path: &'a str,
    /// Complete target, with its query.
    pub target: &'a str,
    pub method: &'a str,
    fields: &'a [(String, String)],
    /// Port that the load names, or else the proxy's port.
    pub port: Option<u16>,
    /// True if the load names the host, so that the server must be one for it.
    pub is_named: bool,
    /// True if the client shows a certificate.
    pub is_certified: bool,
    /// True if it is no error when nothing takes the request.
    may_miss: bool,
}

impl<'a> Request<'a> {
    /// Returns the same request with another path and host, as a proxy passes it on.
    pub fn passed_on<'p>(&'p self, path: &'p str, host: &'p str) -> Request<'p> {
        Request { path, target: path, host, authority: host, ..*self }
    }

    pub fn all(ask: &'a AskSpec) -> impl Iterator<Item = Request<'a>> {
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

    /// Returns true if the request came over TLS.
    pub fn is_tls(&self) -> bool {
        self.server_name.is_some()
    }

    /// Returns the query of the target, without the `?`; empty if there is none.
    pub fn query(&self) -> &'a str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// Returns the value of a header field, empty if the load sends none. None for Host, for a field with a slot
    /// (`{{…}}`) or several values, and for a field that the engine makes.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        if ["connection", "content-length", "host", "transfer-encoding"]
            .iter()
            .any(|header| header.eq_ignore_ascii_case(name))
        {
            return None;
        }
        let mut values = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        match (values.next(), values.next()) {
            (None, _) => Some(""),
            (Some((_, value)), None) if !value.contains("{{") => Some(value),
            _ => None,
        }
    }

    /// Returns true if the request certainly accepts no content coding (RFC 9110 section 12.5.3).
    pub fn is_plain(&self) -> bool {
        let value = self.field("accept-encoding").map(str::trim);
        value.is_some_and(|value| value.is_empty() || value.eq_ignore_ascii_case("identity"))
    }
}

/// Way of a request through the configuration, from a listener on.
pub struct Route {
    pub through: Vec<Spot>,
    pub server: Option<Spot>,
    pub location: Option<Spot>,
    /// Same as [`RequestOutcome::left`].
    pub left: Vec<Spot>,
    pub answer: Answer,
    /// Statement that compresses answers, unless a stock configuration has it too. Only nginx and HAProxy report it so
    /// far.
    pub compressed: Option<Spot>,
}

impl Route {
    /// Returns the same way with one more part in front.
    pub fn through(mut self, spot: Spot) -> Route {
        self.through.insert(0, spot);
        self
    }

    /// Returns a way that ends at once, with this answer.
    pub fn end(answer: Answer) -> Route {
        Route {
            through: Vec::new(),
            server: None,
            location: None,
            left: Vec::new(),
            answer,
            compressed: None,
        }
    }
}

/// Texts by which a language reports a missing listener.
#[derive(Clone, Copy)]
pub struct Missing {
    /// Text for a missing listener in clear: `no HTTP server listens in clear`.
    pub clear: &'static str,
    pub tls: &'static str,
    /// Hint for a configuration that has no listener at all.
    pub hint: &'static str,
}

/// All listeners of a configuration.
pub struct Candidates<'a> {
    pub source: &'a Source,
    /// Listeners in the order of the [`Listener`]s.
    pub all: Vec<ListenerCandidate>,
    pub missing: Missing,
}

impl Candidates<'_> {
    pub fn listeners(&self) -> Vec<Listener> {
        self.all.iter().map(|candidate| candidate.listener.clone()).collect()
    }
}

/// A configuration in which the ways of requests can be looked up.
pub trait Map {
    fn candidates(&self) -> &Candidates<'_>;

    /// Returns the way of a request that comes in at a listener.
    fn find_route(&self, candidate: usize, request: &Request<'_>) -> Route;

    /// Returns true if a server at the listener is named like the request's host.
    fn is_for_host(&self, _door: usize, _request: &Request<'_>) -> bool {
        false
    }

    /// Returns the variable that holds a listener's port, if the value of that variable is not known.
    fn variable(&self, _door: usize) -> Option<&str> {
        None
    }

    /// Returns a hint how to set a variable that has to hold a port.
    fn how_to_set(&self, _variable: &str, _port: u16) -> String {
        String::new()
    }

    /// Returns the parts that pass connections on to a listener, so that clients may not reach it directly.
    fn before(&self, _door: usize) -> Vec<Spot> {
        Vec::new()
    }

    /// Returns the listener of a server, among the listeners that share a socket with `candidate`.
    fn candidate_of(&self, candidate: usize, _server: &Spot) -> usize {
        candidate
    }
}

/// Looks up the answers to the requests of a load, all at one listener.
///
/// A load that names a port gets the listener at that port. Otherwise it gets the listener at the proxy's port, if that
/// listener speaks TLS or cleartext as the load asks; or another listener of the same server or section; or the first
/// of all. Among several, the first is chosen that passes the load's first request on, answers it from files, or might
/// do so. A listener that redirects, refuses, or shows statistics is only chosen by its port.
///
/// # Errors
/// Returns an error if no listener matches the load, if a host or a path that the load names matches nothing there, or
/// if the configuration demands more than clients of a study have.
pub fn look_up(map: &dyn Map, ask: &AskSpec) -> Result<Vec<RequestOutcome>, ConfigurationError> {
    let candidate = choose(map, ask)?;
    let index = map.candidates().all[candidate].first;
    Request::all(ask).map(|request| follow(map, index, &request, ask.tls)).collect()
}

/// Follows a request from a listener to its answer.
fn follow(
    map: &dyn Map,
    index: usize,
    request: &Request<'_>,
    tls: bool,
) -> Result<RequestOutcome, ConfigurationError> {
    let route = map.find_route(index, request);
    if let Some(error) = refused(map, index, request, &route) {
        return Err(error);
    }
    let Route { through, server, location, left, answer, compressed } = route;
    let serving = server.as_ref().map_or(index, |server| map.candidate_of(index, server));
    Ok(RequestOutcome {
        listener: Listener { tls, ..map.candidates().all[serving].listener.clone() },
        index,
        past: map.before(index),
        through,
        server,
        location,
        left,
        answer,
        compressed: compressed.filter(|_| request.is_plain()),
    })
}

/// Returns the new address of every listener that loads ask, by the listener's index among all.
pub fn addresses(
    map: &dyn Map,
    asks: &[Ask],
) -> Result<Vec<(usize, SocketAddr)>, ConfigurationError> {
    let mut addresses: Vec<(usize, SocketAddr)> = Vec::new();
    for ask in asks {
        let Some(index) = look_up(map, &ask.spec)?.first().map(|answer| answer.index) else {
            continue;
        };
        if !addresses.iter().any(|(known, _)| *known == index) {
            addresses.push((index, ask.at));
        }
    }
    Ok(addresses)
}

fn choose(map: &dyn Map, ask: &AskSpec) -> Result<usize, ConfigurationError> {
    let candidates = &map.candidates().all;
    let all: Vec<usize> =
        (0..candidates.len()).filter(|candidate| candidates[*candidate].speaks(ask.tls)).collect();
    let Some(request) = Request::all(ask).next() else {
        return Err(missing(map, ask.tls, None));
    };
    for (port, is_of_load) in [(ask.port, true), (ask.proxy_port, false)] {
        let Some(port) = port else { continue };
        let mut there = all.clone();
        there.retain(|candidate| candidates[*candidate].has_port(port));
        // What is named is asked, whatever it answers.
        if let Some(first) = there.first() {
            return Ok(best(map, &there, &request, ask.files).unwrap_or(*first));
        }
        let Some(other) = candidates
            .iter()
            .find(|candidate| !is_of_load && candidate.has_port(port) && !candidate.is_udp)
        else {
            return Err(missing(map, ask.tls, Some(port)));
        };
        let mut neighbours = all.clone();
        neighbours.retain(|candidate| candidates[*candidate].group == other.group);
        if let Some(candidate) = best(map, &neighbours, &request, ask.files) {
            return Ok(candidate);
        }
    }
    let mut outer = all;
    outer.retain(|candidate| !candidates[*candidate].is_inner);
    if outer.is_empty() {
        return Err(missing(map, ask.tls, None));
    }
    best(map, &outer, &request, ask.files).ok_or_else(|| none_by_itself(map, &outer, &request))
}

/// Returns the listener that suits a load best. Listeners with a port come before others, and listeners of servers
/// named like the host before those of servers for any host.
fn best(map: &dyn Map, among: &[usize], request: &Request<'_>, files: bool) -> Option<usize> {
    let ranked = among.iter().filter_map(|&candidate| {
        let rank = map.find_route(candidate, request).answer.rank(files)?;
        let has_port = map.candidates().all[candidate].listener.port.is_some();
        Some((!has_port, !map.is_for_host(candidate, request), rank, candidate))
    });
    ranked.min().map(|(.., candidate)| candidate)
}

/// Returns the error for a load that no listener matches.
fn missing(map: &dyn Map, tls: bool, port: Option<u16>) -> ConfigurationError {
    let missing = map.candidates().missing;
    let subject = if tls { missing.tls } else { missing.clear };
    let message = match port {
        Some(port) => format!("{subject} on port {port}"),
        None => subject.to_owned(),
    };
    let candidates = &map.candidates().all;
    let mut fitting = (0..candidates.len()).filter(|&candidate| candidates[candidate].speaks(tls));
    let unknown =
        fitting.find_map(|candidate| Some((&candidates[candidate], map.variable(candidate)?)));
    if let (Some((candidate, variable)), Some(port)) = (unknown, port) {
        let message = format!(
            "{message}: `{}` has its port from the variable `{variable}` of the environment, which nothing sets",
            candidate.listener.address
        );
        let file = &map.candidates().source.files[candidate.at.0];
        return error(file, candidate.at.1, message).hint(map.how_to_set(variable, port));
    }
    let named: Vec<String> = candidates.iter().take(LISTED).map(ListenerCandidate::place).collect();
    let error = candidates.first().map_or_else(
        || about(&map.candidates().source.files[0].path, &*message),
        |first| error(&map.candidates().source.files[first.at.0], first.at.1, &*message),
    );
    error.hint(if named.is_empty() {
        missing.hint.to_owned()
    } else {
        format!("listeners: {}", named.join(", "))
    })
}

/// Returns the error for listeners of which none suits a load that names no port.
fn none_by_itself(map: &dyn Map, all: &[usize], request: &Request<'_>) -> ConfigurationError {
    let candidates = &map.candidates().all;
    let first = &candidates[all[0]];
    let sockets = all.iter().filter(|candidate| candidates[**candidate].first == **candidate);
    let sockets: Vec<usize> = sockets.copied().collect();
    if let [candidate] = sockets[..]
        && let Some(error) = refused(map, candidate, request, &map.find_route(candidate, request))
    {
        return error;
    }
    let answers: Vec<String> = sockets
        .iter()
        .take(LISTED)
        .map(|&candidate| {
            format!(
                "{} {}",
                candidates[candidate].place(),
                map.find_route(candidate, request).answer
            )
        })
        .collect();
    let how = if request.is_tls() { "with TLS" } else { "in clear" };
    let message = format!(
        "no listener {how} passes on a request for `{}` with the host `{}`: {}",
        request.path,
        request.host,
        answers.join(", ")
    );
    let determiner = if request.host == HOST { "" } else { "another " };
    let hint = format!(
        "name {determiner}`host`, `path` or `port` in the load; headers that conditions ask for are `fields` of its request"
    );
    error(&map.candidates().source.files[first.at.0], first.at.1, message).hint(hint)
}

/// Returns the error for a request that the listener cannot serve: something that the load names is not there, or the
/// configuration demands something that clients of a study do not have. None if the request can be served.
fn refused(
    map: &dyn Map,
    candidate: usize,
    request: &Request<'_>,
    route: &Route,
) -> Option<ConfigurationError> {
    let candidate = &map.candidates().all[candidate];
    let (why, (file, at), hint) = match &route.answer {
        Answer::Nothing(why) if !request.may_miss => {
            let server = route.server.as_ref();
            let at = server.map_or(candidate.at, |server| (server.file, server.span.start));
            let hint = "name another `host`, `path` or `port` in the load";
            (why, at, hint)
        }
        Answer::Bars(Barrier { at, what, hint }) => (what, *at, *hint),
        _ => return None,
    };
    let message = format!(
        "a request for `{}` with the host `{}` at {}: {why}",
        request.path,
        request.host,
        candidate.name()
    );
    Some(error(&map.candidates().source.files[file], at, message).hint(hint))
}

impl Spot {
    /// Returns the part at a byte range of a file.
    pub fn new(source: &Source, file: usize, span: Range<usize>, name: String) -> Spot {
        Spot {
            file,
            line: line_and_column(&source.files[file].text, span.start).0,
            span,
            name,
            pointer: String::new(),
        }
    }
}
