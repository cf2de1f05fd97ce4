//! Which server and location a request meets, as nginx chooses them: by `server_name` (the manual's "Server
//! names"), by `location` (ngx_http_core_module), after what `return`, `rewrite` and `if` of the
//! rewrite module do before.

use std::net::SocketAddr;

use weir_model::study::AskSpec;

use super::listen::{self, Listen, Socket};
use super::rewrite::{End, Fallback, Passage};
use super::view::{self, Node};
use crate::asked::{self, Answer, Asked, Door, Map, Request, Spot, Way};
use crate::names::{is_found, wildcard};
use crate::place::is_among;
use crate::{Ask, ConfigurationError, Source};

/// Ways from one location to another, by `try_files`; nginx itself gives up after ten.
const MOST_STEPS: usize = 10;

/// Directives that pass a request on.
const PASSING: &str = "proxy_pass, grpc_pass, fastcgi_pass, uwsgi_pass, scgi_pass, memcached_pass";

/// Directives that answer with what nginx knows of itself.
const STATISTICS: &str = "stub_status, api, status, vhost_traffic_status_display, check_status";

/// Directives that say where files are.
const FILES: &str = "root, alias, try_files, index, autoindex, gzip_static";

/// Directives of other languages, whose answers nobody knows.
const PROGRAMS: &str = "js_content, perl, content_by_lua_file, empty_gif, flv, mp4, dav_methods";

/// Looks up what answers the requests of a load: one for each.
///
/// # Errors
/// A file is not nginx's language; no listener is as asked; a host or path that is named meets nothing.
pub fn asked(source: &Source, ask: &AskSpec) -> Result<Vec<Asked>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    asked::look_up(&Servers::of(source, &nodes), ask)
}

/// The sockets that loads ask, and where the copy has them.
pub(super) fn sockets(
    source: &Source,
    nodes: &[Node<'_>],
    asks: &[Ask],
) -> Result<Vec<(Socket, SocketAddr)>, ConfigurationError> {
    let servers = Servers::of(source, nodes);
    let addresses = asked::addresses(&servers, asks)?.into_iter();
    Ok(addresses
        .map(|(door, at)| (servers.listens[door].socket.clone(), at))
        .collect())
}

/// The servers of `http` by what they listen at.
struct Servers<'a> {
    source: &'a Source,
    listens: Vec<Listen<'a>>,
    doors: Vec<Door>,
    /// Whether `http` itself says where files are.
    has_files: bool,
}

impl<'a> Servers<'a> {
    fn of(source: &'a Source, nodes: &'a [Node<'a>]) -> Servers<'a> {
        let mut listens = listen::all(nodes);
        listens.retain(|listen| listen.is_http);
        let first = |is_it: &dyn Fn(&Listen<'_>) -> bool| listens.iter().position(is_it);
        let doors = listens.iter().enumerate().map(|(index, listen)| Door {
            listener: listen.listener(source),
            at: listen.node.place(),
            last_port: None,
            group: first(&|it| it.server.place() == listen.server.place()).unwrap_or(index),
            first: first(&|it| it.socket == listen.socket).unwrap_or(index),
            is_udp: listen.socket.is_udp,
        });
        let mut https = nodes.iter().filter(|node| node.is_block("http"));
        Servers {
            source,
            doors: doors.collect(),
            listens,
            has_files: https.any(|http| http.simple().any(|node| is_one_of(node, FILES))),
        }
    }

    /// The server that a name chooses among those of a socket, and whether it has that name.
    fn server(&self, door: usize, name: &str) -> (&'a Node<'a>, bool) {
        let socket = &self.listens[door].socket;
        let here = || {
            self.listens
                .iter()
                .filter(move |listen| listen.socket == *socket)
        };
        let named = |fits: &dyn Fn(&str) -> Option<usize>| {
            let ranked = here().enumerate().flat_map(|(place, listen)| {
                let lengths = names(listen.server).into_iter().filter_map(fits);
                lengths.map(move |length| (length, std::cmp::Reverse(place), listen.server))
            });
            // The longest, and of those the first.
            ranked
                .max_by_key(|(length, place, _)| (*length, *place))
                .map(|(.., server)| server)
        };
        let exact = |own: &str| {
            let own = own.strip_prefix('.').unwrap_or(own);
            own.eq_ignore_ascii_case(name).then_some(0)
        };
        let before = |own: &str| match own.strip_prefix('.') {
            Some(_) => wildcard(&format!("*{own}"), name),
            None => own.starts_with("*.").then(|| wildcard(own, name)).flatten(),
        };
        let behind = |own: &str| own.ends_with(".*").then(|| wildcard(own, name)).flatten();
        let expression = |own: &str| {
            let pattern = own.strip_prefix('~')?;
            is_found(pattern, true, name)?.then_some(0)
        };
        let found = named(&exact)
            .or_else(|| named(&before))
            .or_else(|| named(&behind))
            .or_else(|| named(&expression));
        let is_default = |listen: &&Listen<'_>| {
            let mut flags = listen.flags().iter();
            flags.any(|flag| flag.text == "default_server" || flag.text == "default")
        };
        let default = || here().find(is_default).map(|listen| listen.server);
        let first = self.listens[door].server;
        match found {
            Some(server) => (server, true),
            None => (default().unwrap_or(first), false),
        }
    }

    fn spot(&self, node: &Node<'_>, name: String) -> Spot {
        Spot::new(
            self.source,
            node.file,
            node.directive.name.span.clone(),
            name,
        )
    }

    /// Why no server is meant by a name that the load gives: the one by default is called something else.
    fn misses_name(&self, door: usize, server: &Node<'_>, request: &Request<'_>) -> Option<String> {
        let own = names(server);
        let is_catch_all = own
            .iter()
            .all(|name| name.is_empty() || !name.contains('.'));
        if is_catch_all {
            return None;
        }
        let socket = &self.listens[door].socket;
        let here = self
            .listens
            .iter()
            .filter(|listen| listen.socket == *socket);
        let all = here.flat_map(|listen| names(listen.server));
        let all: Vec<&str> = all.filter(|name| !name.is_empty()).collect();
        Some(format!(
            "no server there has the name `{}`; the names there are {}",
            request.host,
            all.join(", ")
        ))
    }

    /// What a server does with a request, by way of all the locations that it is sent on to.
    fn in_server(&self, server: &'a Node<'a>, mut passage: Passage<'_>) -> Way {
        let of_server = Some(self.spot(server, server_name(server)));
        let way = |location: Option<&Node<'_>>, answer| Way {
            server: of_server.clone(),
            location: location.map(|node| self.spot(node, location_name(node))),
            answer,
        };
        if let Some(End::Answer(answer)) = passage.rewritten(server) {
            return way(None, answer);
        }
        let taking = |path: &str| find(&server.children, path).map(|(location, _)| location);
        let mut location = taking(&passage.path);
        for _ in 0..MOST_STEPS {
            let before = passage.path.clone();
            match location.and_then(|node| passage.rewritten(node)) {
                Some(End::Answer(answer)) => return way(location, answer),
                Some(End::Last) | None if passage.path != before => {
                    location = taking(&passage.path);
                    continue;
                }
                _ => {}
            }
            match passage.fallback(location.unwrap_or(server)) {
                Some(Fallback::Named(name)) => {
                    let named = |node: &&Node<'a>| {
                        node.is_block("location") && node.directive.argument(0) == Some(name)
                    };
                    match server.children.iter().find(named) {
                        Some(next) => location = Some(next),
                        None => return way(location, Answer::Unknown),
                    }
                    continue;
                }
                Some(Fallback::Path(next)) if next != passage.path => passage.path = next,
                _ => match (
                    self.content(location, server),
                    passage.index(location, server),
                ) {
                    (Answer::Files, Some(next)) if next != passage.path => passage.path = next,
                    (answer, _) => return way(location, answer),
                },
            }
            location = taking(&passage.path);
        }
        way(location, Answer::Unknown)
    }

    /// What answers where nothing sends a request on.
    fn content(&self, location: Option<&Node<'_>>, server: &Node<'_>) -> Answer {
        let has_locations = || server.children.iter().any(|node| node.is_block("location"));
        let says_files = || server.simple().any(|node| is_one_of(node, FILES));
        match location {
            Some(location) => content(location),
            None if self.has_files || says_files() || !has_locations() => Answer::Files,
            None => Answer::Nothing(format!(
                "no location of {} takes it, and no `root` says where files are",
                server_name(server)
            )),
        }
    }
}

impl Map for Servers<'_> {
    fn source(&self) -> &Source {
        self.source
    }

    fn doors(&self) -> &[Door] {
        &self.doors
    }

    fn missing(&self, tls: bool) -> &'static str {
        match tls {
            true => "no HTTP server listens with TLS",
            false => "no HTTP server listens in clear",
        }
    }

    fn without_any(&self) -> &'static str {
        "write a `server` into `http`"
    }

    fn is_for_host(&self, door: usize, request: &Request<'_>) -> bool {
        self.server(door, request.host).1
    }

    fn door_of(&self, door: usize, server: &Spot) -> usize {
        let socket = &self.listens[door].socket;
        let place = (server.file, server.span.start);
        let is_own =
            |listen: &Listen<'_>| listen.socket == *socket && listen.server.place() == place;
        self.listens.iter().position(is_own).unwrap_or(door)
    }

    fn way(&self, door: usize, request: &Request<'_>) -> Way {
        // The handshake comes first, and has a name of its own.
        if let Some(name) = request.server_name {
            let (server, _) = self.server(door, name);
            let rejects = |node: &Node<'_>| {
                node.directive.is("ssl_reject_handshake")
                    && node.directive.argument(0) == Some("on")
            };
            if server.simple().any(rejects) {
                return Way {
                    server: Some(self.spot(server, server_name(server))),
                    ..Way::end(Answer::Closes)
                };
            }
        }
        let (server, is_named) = self.server(door, request.host);
        let missed = match request.is_named && !is_named {
            true => self.misses_name(door, server, request),
            false => None,
        };
        match missed {
            Some(why) => Way {
                server: Some(self.spot(server, server_name(server))),
                ..Way::end(Answer::Nothing(why))
            },
            None => {
                let passage = Passage {
                    request,
                    port: self.listens[door].socket.port(),
                    path: request.path.to_owned(),
                };
                self.in_server(server, passage)
            }
        }
    }
}

fn is_one_of(node: &Node<'_>, names: &str) -> bool {
    is_among(&node.directive.name.text, names)
}

/// The names of a server; one that says none has the empty one.
fn names<'a>(server: &'a Node<'_>) -> Vec<&'a str> {
    let lines = server
        .simple()
        .filter(|node| node.directive.is("server_name"));
    let names: Vec<&str> = lines.flat_map(|node| node.directive.words()).collect();
    match names.is_empty() {
        true => vec![""],
        false => names,
    }
}

fn server_name(server: &Node<'_>) -> String {
    let names = names(server).join(" ");
    format!("server {names}").trim_end().to_owned()
}

fn location_name(location: &Node<'_>) -> String {
    let words: Vec<&str> = location.directive.words().collect();
    format!("location {}", words.join(" "))
}

/// How a location is compared with a path.
enum Matching<'a> {
    Exact(&'a str),
    /// And whether regular expressions are not asked any more.
    Prefix(&'a str, bool),
    /// And whether the case of letters does not count.
    Expression(&'a str, bool),
    Named,
}

fn matching<'a>(location: &'a Node<'_>) -> Matching<'a> {
    let directive = location.directive;
    let (first, second) = (
        directive.argument(0).unwrap_or_default(),
        directive.argument(1),
    );
    // The sign may stand right before its word.
    let (sign, word) = match second {
        Some(word) => (first, word),
        None => {
            let signs = ["^~", "~*", "~", "="];
            let sign = signs.iter().find(|sign| first.starts_with(**sign));
            first.split_at(sign.map_or(0, |sign| sign.len()))
        }
    };
    match sign {
        "=" => Matching::Exact(word),
        "^~" => Matching::Prefix(word, true),
        "~" => Matching::Expression(word, false),
        "~*" => Matching::Expression(word, true),
        _ if word.starts_with('@') => Matching::Named,
        _ => Matching::Prefix(word, false),
    }
}

/// The location of a block that takes a path, and whether it was found for good
/// (`ngx_http_core_find_location`): an exact one; else the longest prefix, unless a regular expression in it, or
/// then beside it, is found, the first of which counts.
fn find<'n, 't>(block: &'n [Node<'t>], path: &str) -> Option<(&'n Node<'t>, bool)> {
    let locations = || block.iter().filter(|node| node.is_block("location"));
    let exact = |node: &&Node<'_>| matches!(matching(node), Matching::Exact(own) if own == path);
    if let Some(node) = locations().find(exact) {
        return Some((node, true));
    }
    let prefixes = locations().filter_map(|node| match matching(node) {
        Matching::Prefix(own, is_last) if path.starts_with(own) => Some((own.len(), is_last, node)),
        _ => None,
    });
    let prefix = prefixes.max_by_key(|(length, ..)| *length);
    let inner = prefix.and_then(|(.., node)| find(&node.children, path));
    if let Some((node, true)) = inner {
        return Some((node, true));
    }
    let is_last = prefix.is_some_and(|(_, is_last, _)| is_last);
    let fits = |node: &&Node<'_>| match matching(node) {
        Matching::Expression(own, any_case) => is_found(own, any_case, path) == Some(true),
        _ => false,
    };
    if let Some(node) = locations().filter(|_| !is_last).find(fits) {
        let inner = find(&node.children, path).map_or(node, |(inner, _)| inner);
        return Some((inner, true));
    }
    inner.or(prefix.map(|(.., node)| (node, false)))
}

/// What answers in a location that changes nothing any more.
fn content(location: &Node<'_>) -> Answer {
    let has = |names: &str| location.simple().any(|node| is_one_of(node, names));
    let is_closed =
        |node: &Node<'_>| node.directive.is("deny") && node.directive.argument(0) == Some("all");
    let is_program = |node: &Node<'_>| {
        is_one_of(node, PROGRAMS) || node.directive.name.text.starts_with("content_by_lua")
    };
    match () {
        () if location.simple().any(is_closed) && !has("allow") => Answer::Returns(403),
        () if has(PASSING) => Answer::Passes,
        () if has(STATISTICS) => Answer::Statistics,
        () if location.children.iter().any(is_program) => Answer::Unknown,
        () => Answer::Files,
    }
}
