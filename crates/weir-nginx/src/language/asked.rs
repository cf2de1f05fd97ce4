//! Looks up the server and location of a request, as nginx chooses them: by `server_name` (the manual's "Server
//! names"), and by [`super::location`].

use std::net::SocketAddr;

use weir_configuration::answer::{Answer, Barrier};
use weir_configuration::asked::{
    self, Candidates, ListenerCandidate, Map, Missing, Request, RequestOutcome, Route, Spot,
};
use weir_configuration::{Ask, ConfigurationError, Source};
use weir_model::study::AskSpec;

use super::access::refusal;
use super::by_name::{ByName, names};
use super::listen::{self, Listen, Socket};
use super::location::{FILES, content, find, is_one_of, named_location, way_out};
use super::rewrite::{End, Fallback, MapBlock, Passage, maps};
use super::syntax::{Directive, Tree};
use super::view::{self, Node};

/// Maximum number of steps from one location to another, by `try_files`; nginx itself gives up after ten.
const MOST_STEPS: usize = 10;

/// Directives that set which answers are compressed, and how well; no stock configuration has them.
const COMPRESSED: &str = "gzip_types, gzip_comp_level, gzip_min_length, gzip_proxied";

const MISSING: Missing = Missing {
    clear: "no HTTP server listens in clear",
    tls: "no HTTP server listens with TLS",
    hint: "write a `server` into `http`",
};

/// Looks up the answers to the requests of a load, one for each. `build` is the output of `nginx -V`.
///
/// # Errors
/// Returns an error if a file is not in nginx's language; if no listener matches the load; if a host or path that the
/// load names matches nothing; or if the configuration demands a certificate or HTTP/2.
pub fn asked(
    source: &Source,
    ask: &AskSpec,
    build: &str,
) -> Result<Vec<RequestOutcome>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    asked::look_up(&Servers::of(source, (&trees, &nodes), build), ask)
}

/// Returns the sockets that loads ask, each with its address in the copy.
pub(super) fn sockets(
    source: &Source,
    parsed: (&[Tree], &[Node<'_>]),
    (asks, build): (&[Ask], &str),
) -> Result<Vec<(Socket, SocketAddr)>, ConfigurationError> {
    let servers = Servers::of(source, parsed, build);
    let addresses = asked::addresses(&servers, asks)?.into_iter();
    Ok(addresses.map(|(candidate, at)| (servers.listens[candidate].socket.clone(), at)).collect())
}

/// Servers of `http`, by the sockets on which they listen.
pub(super) struct Servers<'a> {
    candidates: Candidates<'a>,
    pub(super) listens: Vec<Listen<'a>>,
    by_name: ByName<'a>,
    /// Directives directly in `http`.
    http: Vec<&'a Node<'a>>,
    /// The `map` blocks of `http`.
    maps: Vec<MapBlock<'a>>,
    /// Listeners of `stream`, and the `stream` blocks themselves.
    streams: (Vec<Listen<'a>>, Vec<&'a Node<'a>>),
    /// True if nginx tells HTTP/2 in clear from HTTP/1.1 by the beginning of a connection.
    tells_http2: bool,
}

/// Location of an error page.
enum Page<'n> {
    /// The page is in a named location.
    Named(&'n str),
    /// The page is at a path.
    Path(&'n str),
    /// The page is at another URL, to which clients are redirected.
    Elsewhere,
}

/// Returns true if this build tells HTTP/2 in clear from HTTP/1.1. nginx does so from 1.25.1 on; before, a listener in
/// clear with `http2` answers nothing else.
fn tells_http2(build: &str) -> bool {
    let version = build
        .split_once("nginx version: ")
        .map(|(_, it)| it)
        .and_then(|it| it.split_once('/'))
        .map(|(_, it)| it)
        .unwrap_or_default();
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.');
    let numbers = version[..end.unwrap_or(version.len())].split('.');
    let numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
    numbers.is_empty() || numbers >= vec![1, 25, 1]
}

impl<'a> Servers<'a> {
    pub(super) fn of(
        source: &'a Source,
        (trees, nodes): (&'a [Tree], &'a [Node<'a>]),
        build: &str,
    ) -> Servers<'a> {
        let (listens, others) =
            listen::all(nodes).into_iter().partition::<Vec<_>, _>(|listen| listen.is_http);
        let candidates = listens.iter().enumerate().map(|(index, listen)| ListenerCandidate {
            listener: listen.listener(source),
            at: listen.node.place(),
            last_port: None,
            group: listens
                .iter()
                .position(|it| it.server.place() == listen.server.place())
                .unwrap_or(index),
            first: listens.iter().position(|it| it.socket == listen.socket).unwrap_or(index),
            is_udp: listen.socket.is_udp,
            is_either: false,
            is_inner: false,
        });
        let blocks = |name: &'static str| nodes.iter().filter(move |node| node.is_block(name));
        let candidates = Candidates { source, all: candidates.collect(), missing: MISSING };
        Servers {
            candidates,
            streams: (others, blocks("stream").collect()),
            listens,
            by_name: ByName::default(),
            http: blocks("http").flat_map(Node::simple).collect(),
            maps: (blocks("http").flat_map(|http| maps(source, trees, http))).collect(),
            tells_http2: tells_http2(build),
        }
    }

    /// Returns the server that a name chooses among those of a socket, and true if the server has that name.
    fn server(&self, candidate: usize, name: &str) -> (&'a Node<'a>, bool) {
        let listen = &self.listens[candidate];
        let (server, has_name) = self.by_name.server(&self.listens, &listen.socket, name);
        (server.unwrap_or(listen.server), has_name)
    }

    pub(super) fn spot(&self, node: &Node<'_>, name: String) -> Spot {
        Spot::new(self.candidates.source, node.file, node.directive.name.span.clone(), name)
    }

    /// Returns the reason why no server has the host name that the load gives; None if the default server is one for
    /// any name.
    fn misses_name(
        &self,
        candidate: usize,
        server: &Node<'_>,
        request: &Request<'_>,
    ) -> Option<String> {
        let server_names = names(server);
        let is_catch_all = server_names.iter().all(|name| name.is_empty() || !name.contains('.'));
        if is_catch_all {
            return None;
        }
        let socket = &self.listens[candidate].socket;
        let all: Vec<&str> = (self.listens.iter())
            .filter(|listen| listen.socket == *socket)
            .flat_map(|listen| names(listen.server))
            .filter(|name| !name.is_empty())
            .collect();
        Some(format!(
            "no server there has the name `{}`; the names there are {}",
            request.host,
            all.join(", ")
        ))
    }

    /// Returns true if `http` itself sets where files are.
    fn has_files(&self) -> bool {
        self.http.iter().any(|node| is_one_of(node, FILES))
    }

    /// Returns the demand of a listener in clear or a server that the clients of a load cannot meet, if it has one.
    fn barrier(
        &self,
        candidate: usize,
        server: &'a Node<'a>,
        request: &Request<'_>,
    ) -> Option<Barrier> {
        if request.is_tls() {
            let node = server
                .simple()
                .chain(self.http.iter().copied())
                .find(|node| node.directive.is("ssl_verify_client"))
                .filter(|node| node.directive.argument(0) == Some("on"))
                .filter(|_| !request.is_certified)?;
            return Some(Barrier::certificate(node.place(), "ssl_verify_client on"));
        }
        let socket = &self.listens[candidate].socket;
        let mut here = self.listens.iter().filter(|it| it.socket == *socket);
        let flags = here.find_map(|listen| {
            let mut flags = listen.flags().iter();
            Some((listen, flags.find(|flag| flag.text == "http2")?))
        });
        let (listen, flag) = flags.filter(|_| !self.tells_http2)?;
        let at = (listen.node.file, flag.span.start);
        let words: Vec<&str> = listen.node.directive.words().collect();
        Some(Barrier::http2(at, &format!("listen {}", words.join(" "))))
    }

    /// Returns a request as it comes in at a listener.
    pub(super) fn passage<'p>(&'p self, candidate: usize, request: &'p Request<'p>) -> Passage<'p> {
        Passage::new(request, self.listens[candidate].socket.port(), &self.maps)
    }

    /// Returns the way of a request in a server, through all the locations that it is sent on to.
    pub(super) fn in_server(&self, server: &'a Node<'a>, passage: &mut Passage<'_>) -> Route {
        if let Some(End::Answer(answer)) = passage.rewritten(server) {
            return self.way_to(server, None, Vec::new(), answer);
        }
        let taking = |path: &str| find(&server.children, path).map(|(location, _)| location);
        // Locations that had the request when their rules of access were asked.
        let mut earlier: Vec<Spot> = Vec::new();
        // Without `recursive_error_pages` a page is looked for once.
        let mut has_failed = false;
        let mut location = taking(&passage.path);
        for _ in 0..MOST_STEPS {
            let before = passage.path.clone();
            match location.and_then(|node| passage.rewritten(node)) {
                Some(End::Answer(Answer::Returns(status))) if !has_failed => {
                    let next = match self.error_page(server, location, status) {
                        Some(Page::Named(name)) => named_location(server, name),
                        Some(Page::Path(path)) => {
                            taking(path).inspect(|_| passage.path = path.to_owned())
                        }
                        Some(Page::Elsewhere) => {
                            return self.way_to(server, location, earlier, Answer::Redirects);
                        }
                        None => None,
                    };
                    has_failed = true;
                    let Some(next) = next else {
                        return self.way_to(server, location, earlier, Answer::Returns(status));
                    };
                    location = Some(next);
                    continue;
                }
                Some(End::Answer(answer)) => return self.way_to(server, location, earlier, answer),
                Some(End::Last) | None if passage.path != before => {
                    location = taking(&passage.path);
                    continue;
                }
                _ => {}
            }
            let is_first =
                earlier.is_empty() && !has_failed && passage.path == passage.request.path;
            if let Some(status) = refusal(
                location,
                |names| self.in_force((server, location), names),
                passage.request,
                is_first,
            ) {
                return self.way_to(server, location, earlier, Answer::Returns(status));
            }
            let here = location.unwrap_or(server);
            let spot = location.map(|node| self.spot(node, location_name(node)));
            match passage.fallback(here) {
                Some(Fallback::Named(name)) => {
                    let Some(next) = named_location(server, name) else {
                        return self.way_to(server, location, earlier, Answer::Unknown);
                    };
                    earlier.extend(spot);
                    location = Some(next);
                    continue;
                }
                Some(Fallback::Path(next)) if next != passage.path => passage.path = next,
                _ => match (self.content(location, server), passage.index(location, server)) {
                    (Answer::Files, Some(next)) if next != passage.path => passage.path = next,
                    (answer, _) => return self.way_to(server, location, earlier, answer),
                },
            }
            earlier.extend(spot);
            location = taking(&passage.path);
        }
        self.way_to(server, location, earlier, Answer::Unknown)
    }

    fn way_to(
        &self,
        server: &'a Node<'a>,
        location: Option<&Node<'_>>,
        left: Vec<Spot>,
        answer: Answer,
    ) -> Route {
        Route {
            server: Some(self.spot(server, server_name(server))),
            location: location.map(|node| self.spot(node, location_name(node))),
            left,
            compressed: self.compression(server, location.unwrap_or(server)),
            ..Route::end(answer)
        }
    }

    /// Returns the directives of some names that are in force: those of the innermost level that has any.
    fn in_force(
        &self,
        (server, location): (&'a Node<'a>, Option<&Node<'_>>),
        names: &str,
    ) -> Vec<&'a Node<'a>> {
        let inside =
            location.and_then(|node| way_out(server, node.place())).unwrap_or_else(|| vec![server]);
        let mut levels = inside
            .iter()
            .map(|block| block.simple().filter(|node| is_one_of(node, names)).collect())
            .chain([self.http.iter().copied().filter(|node| is_one_of(node, names)).collect()]);
        levels.find(|level: &Vec<_>| !level.is_empty()).unwrap_or_default()
    }

    /// Returns the target to which `error_page` sends a request that a location would answer with a status. Only pages
    /// that set the status of the answer (`=`) count.
    fn error_page(
        &self,
        server: &'a Node<'a>,
        location: Option<&Node<'_>>,
        status: u16,
    ) -> Option<Page<'a>> {
        let code = status.to_string();
        self.in_force((server, location), "error_page").into_iter().find_map(|node| {
            let words: Vec<&str> = node.directive.words().collect();
            let is_meant = words.contains(&&*code) && words.iter().any(|it| it.starts_with('='));
            let target = words.last().copied().filter(|_| is_meant)?;
            Some(if target.starts_with('@') {
                Page::Named(target)
            } else if target.contains("://") {
                Page::Elsewhere
            } else {
                Page::Path(target.split('?').next().unwrap_or_default())
            })
        })
    }

    /// Returns the directive that compresses the answers of a location or a server, if the user wrote one for that
    /// purpose. In `http` of the main file, `gzip on` is Debian's stock setting, unless another directive sets what is
    /// compressed.
    fn compression(&self, server: &Node<'_>, block: &Node<'_>) -> Option<Spot> {
        let blocks = way_out(server, block.place())?;
        let mut inner =
            blocks.iter().filter_map(|block| block.simple().find(|node| node.directive.is("gzip")));
        let gzip = match inner.next() {
            Some(node) => node,
            None => {
                let node = self.http.iter().copied().find(|node| node.directive.is("gzip"))?;
                let is_wished = self.http.iter().any(|node| is_one_of(node, COMPRESSED))
                    || blocks
                        .iter()
                        .flat_map(|block| block.simple())
                        .any(|node| is_one_of(node, COMPRESSED));
                (node.file != 0 || is_wished).then_some(node)?
            }
        };
        let is_on = gzip.directive.argument(0) == Some("on");
        is_on.then(|| self.spot(gzip, "gzip on".to_owned()))
    }

    /// Returns the answer of a location or a server if nothing sends the request on.
    fn content(&self, location: Option<&Node<'_>>, server: &Node<'_>) -> Answer {
        match location {
            Some(location) => content(location),
            None if self.has_files()
                || server.simple().any(|node| is_one_of(node, FILES))
                || !server.children.iter().any(|node| node.is_block("location")) =>
            {
                Answer::Files
            }
            None => Answer::Nothing(format!(
                "no location of {} takes it, and no `root` says where files are",
                server_name(server)
            )),
        }
    }
}

impl Map for Servers<'_> {
    fn candidates(&self) -> &Candidates<'_> {
        &self.candidates
    }

    fn is_for_host(&self, candidate: usize, request: &Request<'_>) -> bool {
        self.server(candidate, request.host).1
    }

    fn before(&self, candidate: usize) -> Vec<Spot> {
        let socket = &self.listens[candidate].socket;
        let (listens, blocks) = &self.streams;
        let mut targets = blocks.iter().flat_map(|block| &block.children);
        if !targets.any(|node| names_socket(node.directive, socket)) {
            return Vec::new();
        }
        listens
            .iter()
            .map(|it| self.spot(it.node, format!("stream server {}", it.address())))
            .collect()
    }

    fn candidate_of(&self, candidate: usize, server: &Spot) -> usize {
        let socket = &self.listens[candidate].socket;
        let position = (server.file, server.span.start);
        self.listens
            .iter()
            .position(|listen| listen.socket == *socket && listen.server.place() == position)
            .unwrap_or(candidate)
    }

    fn find_route(&self, candidate: usize, request: &Request<'_>) -> Route {
        // The handshake comes first, and has a name of its own.
        if let Some(name) = request.server_name {
            let (server, _) = self.server(candidate, name);
            let is_rejecting = server.simple().any(|node| {
                node.directive.is("ssl_reject_handshake")
                    && node.directive.argument(0) == Some("on")
            });
            if is_rejecting {
                return Route {
                    server: Some(self.spot(server, server_name(server))),
                    ..Route::end(Answer::Closes)
                };
            }
        }
        let (server, is_named) = self.server(candidate, request.host);
        let missed = if request.is_named && !is_named {
            self.misses_name(candidate, server, request)
        } else {
            None
        };
        let barred = self.barrier(candidate, server, request).map(Answer::Bars);
        match missed.map(Answer::Nothing).or(barred) {
            Some(answer) => {
                Route { server: Some(self.spot(server, server_name(server))), ..Route::end(answer) }
            }
            None => self.in_server(server, &mut self.passage(candidate, request)),
        }
    }
}

/// Returns true if a directive other than `listen` names a socket.
fn names_socket(directive: &Directive, socket: &Socket) -> bool {
    !directive.is("listen")
        && (directive.words().any(|word| word.contains(':') && Socket::at(word).leads_to(socket))
            || directive.children().iter().any(|it| names_socket(it, socket)))
}

fn server_name(server: &Node<'_>) -> String {
    let list = names(server).join(" ");
    format!("server {list}").trim_end().to_owned()
}

fn location_name(location: &Node<'_>) -> String {
    let words: Vec<&str> = location.directive.words().collect();
    format!("location {}", words.join(" "))
}
