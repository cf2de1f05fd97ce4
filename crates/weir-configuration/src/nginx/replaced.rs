//! Finds what a copy replaces, of what the requests of a load meet ([`super::adapt`]).

use weir_model::record::{ReplacedPart, ReplacedRecord};
use weir_model::study::AskSpec;

use super::adapt::is_pass;
use super::asked::{Servers, way_out};
use super::listen::Socket;
use super::origin::Target;
use super::view::{self, Node};
use crate::asked::{Map, Request, Spot, look_up};
use crate::place::is_among;
use crate::replaced::Replacements;
use crate::{ConfigurationError, PemLocation, ShownCertificate, Source};

/// Servers of one configuration that pass a request on to each other at most: more are a circle.
const MOST_LAYERS: usize = 10;

/// Directives by which a service is asked about requests, or gets a second copy of them.
const SERVICES: &str = "auth_request, mirror";

/// Directives whose state outlasts a slice.
const LIMITS: &str = "limit_conn, limit_rate, limit_req, proxy_limit_rate";

/// Directives whose work depends on the content or the headers of responses.
const CONTENT: &str = "add_after_body, add_before_body, fastcgi_cache, gunzip, image_filter, proxy_cache, scgi_cache, \
     slice, ssi, sub_filter, subs_filter, uwsgi_cache, xslt_stylesheet";

/// Directives that compress for clients that accept it.
const COMPRESSION: &str = "brotli, gzip, zstd";

/// Directives that decide by the client's address.
const ADDRESSES: &str = "allow, deny";

/// Variables that hold the client's address.
const CLIENT_VARIABLES: [&str; 3] = ["remote_addr", "realip_", "proxy_protocol_addr"];

/// Finds what a copy replaces, of what the requests of a load meet. `build` is what the program
/// prints of itself (`nginx -V`).
///
/// # Errors
/// As of [`super::asked`].
pub fn replaced(
    source: &Source,
    ask: &AskSpec,
    build: &str,
) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    let servers = Servers::of(source, &nodes, build);
    let asked = look_up(&servers, ask)?;
    let mut search = Search {
        servers: &servers,
        http: nodes.iter().filter(|node| node.is_block("http")).collect(),
        found: Replacements::new(source),
    };
    for (request, asked) in Request::all(ask).zip(&asked) {
        for spot in &asked.past {
            search.found.add(ReplacedPart::Before, spot);
        }
        search.listener(asked.index);
        search.server(asked.server.as_ref(), asked.location.as_ref(), &request, 0);
    }
    Ok(search.found.done())
}

/// The certificates that a configuration shows to the clients of a load.
///
/// # Errors
/// As of [`super::asked`].
pub fn certificates(
    source: &Source,
    ask: &AskSpec,
    build: &str,
) -> Result<Vec<ShownCertificate>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    let servers = Servers::of(source, &nodes, build);
    let asked = look_up(&servers, ask)?;
    let https: Vec<&Node<'_>> = nodes.iter().filter(|node| node.is_block("http")).collect();
    let server = asked.first().and_then(|asked| asked.server.as_ref());
    let mut blocks = https.iter().flat_map(|http| &http.children);
    let server =
        server.and_then(|spot| blocks.find(|it| it.place() == (spot.file, spot.span.start)));
    let layers: Vec<&Node<'_>> = server.into_iter().chain(https).collect();
    let shown = in_force(&layers, |name| name == "ssl_certificate");
    let shown = shown.into_iter().map(|node| {
        let argument = node.directive.argument(0).unwrap_or_default();
        let spot = servers.spot(node, format!("ssl_certificate {argument}"));
        ShownCertificate {
            spot: spot.record(source),
            pem: match argument.strip_prefix("data:") {
                _ if argument.contains('$') => PemLocation::Unknown,
                Some(text) => PemLocation::Text(text.to_owned()),
                None => PemLocation::At(source.base.join(argument)),
            },
        }
    });
    Ok(shown.collect())
}

struct Search<'a> {
    servers: &'a Servers<'a>,
    http: Vec<&'a Node<'a>>,
    found: Replacements<'a>,
}

impl<'a> Search<'a> {
    fn add(&mut self, part: ReplacedPart, node: &Node<'_>) {
        let words: Vec<&str> = node.directive.words().collect();
        let name = format!("{} {}", node.directive.name.text, words.join(" "));
        let spot = self.servers.spot(node, name.trim_end().to_owned());
        self.found.add(part, &spot);
    }

    /// Adds what the listener that is asked loses in the copy.
    fn listener(&mut self, door: usize) {
        let servers = self.servers;
        let socket = &servers.listens[door].socket;
        let here = servers.listens.iter().filter(|it| it.socket == *socket);
        let with_protocol = here.filter(|it| {
            let mut flags = it.flags().iter();
            flags.any(|flag| flag.text == "proxy_protocol")
        });
        for listen in with_protocol {
            let spot = servers.spot(listen.node, "listen … proxy_protocol".to_owned());
            self.found.add(ReplacedPart::ProxyProtocol, &spot);
        }
    }

    /// Adds what is replaced of a server and one of its locations, and of the servers behind them.
    fn server(
        &mut self,
        server: Option<&Spot>,
        location: Option<&Spot>,
        request: &Request<'_>,
        layer: usize,
    ) {
        let Some(server) = server.and_then(|spot| self.block(spot)) else {
            return;
        };
        let place = location.map_or(server.place(), |spot| (spot.file, spot.span.start));
        let mut layers = way_out(server, place).unwrap_or_else(|| vec![server]);
        layers.extend(&self.http);
        for node in in_force(&layers, |name| {
            is_among(name, SERVICES)
                || is_among(name, LIMITS)
                || is_among(name, CONTENT)
                || is_among(name, ADDRESSES)
                || (is_among(name, COMPRESSION) && !request.is_plain())
        }) {
            self.directive(node);
        }
        let innermost = layers[0];
        let conditions = innermost.children.iter().filter(|it| it.is_block("if"));
        let blocks = std::iter::once(innermost).chain(conditions);
        let passes = blocks.flat_map(Node::simple);
        let passes = passes.filter(|node| is_pass(&node.directive.name.text));
        for pass in passes {
            self.pass(pass, &layers, request, layer);
        }
    }

    /// The `server` block at a place.
    fn block(&self, spot: &Spot) -> Option<&'a Node<'a>> {
        let mut servers = self.http.iter().flat_map(|http| &http.children);
        servers.find(|node| node.place() == (spot.file, spot.span.start))
    }

    fn directive(&mut self, node: &Node<'_>) {
        let name = &*node.directive.name.text;
        let first = node.directive.argument(0).unwrap_or_default();
        if first == "off" || (is_among(name, ADDRESSES) && first == "all") {
            return;
        }
        let part = if is_among(name, SERVICES) {
            ReplacedPart::Service
        } else if is_among(name, LIMITS) {
            ReplacedPart::Limit
        } else if is_among(name, ADDRESSES) {
            ReplacedPart::ClientAddress
        } else {
            ReplacedPart::Content
        };
        self.add(part, node);
        let zone = node.directive.words().find_map(|word| {
            self.zone_of_clients(name, word.strip_prefix("zone=").unwrap_or(word))
        });
        if let Some(zone) = zone {
            self.add(ReplacedPart::ClientAddress, zone);
        }
    }

    /// The zone of a limit, where it counts by the client's address.
    fn zone_of_clients(&self, limit: &str, zone: &str) -> Option<&'a Node<'a>> {
        let mut all = self.http.iter().flat_map(|http| http.simple());
        all.find(|node| {
            let mut words = node.directive.words();
            node.directive.is(&format!("{limit}_zone"))
                && words.any(|word| {
                    word.strip_prefix("zone=")
                        .is_some_and(|it| it.split(':').next() == Some(zone))
                })
                && holds_client(node)
        })
    }

    /// A directive that passes the request on.
    fn pass(
        &mut self,
        pass: &'a Node<'a>,
        layers: &[&'a Node<'a>],
        request: &Request<'_>,
        layer: usize,
    ) {
        let Some(argument) = pass.directive.argument(0) else {
            return;
        };
        let target = Target::of(argument);
        let group = self.group(target.host);
        if target.host.contains('$') && group.is_none() {
            self.add(ReplacedPart::Names, pass);
        }
        let servers = match group {
            Some(group) => self.servers_of(group),
            None => vec![(pass, target.server().into_owned())],
        };
        let (own, others): (Vec<_>, Vec<_>) = servers
            .into_iter()
            .partition(|(_, server)| self.servers.listener_at(server).is_some());
        if !others.is_empty() && !target.is_in_clear() {
            let name = format!("{} {}", pass.directive.name.text, target.scheme);
            let spot = self.servers.spot(pass, name);
            self.found.add(ReplacedPart::OriginTls, &spot);
            for node in in_force(layers, is_of_tls) {
                self.add(ReplacedPart::OriginTls, node);
            }
        }
        if others.len() > 1
            && let Some(group) = group
        {
            let spot = self
                .servers
                .spot(group, format!("{} servers", others.len()));
            self.found.add(ReplacedPart::Servers, &spot);
        }
        for (node, _) in others
            .iter()
            .filter(|(_, server)| server.starts_with("unix:"))
        {
            let spot = self.servers.spot(node, "server unix:".to_owned());
            self.found.add(ReplacedPart::Servers, &spot);
        }
        for node in group.into_iter().flat_map(Node::simple) {
            let is_by_client =
                node.directive.is("ip_hash") || (node.directive.is("hash") && holds_client(node));
            if is_by_client {
                self.add(ReplacedPart::ClientAddress, node);
            }
        }
        if layer < MOST_LAYERS {
            for (_, server) in own {
                self.behind(&server, request, layer);
            }
        }
    }

    /// Follows a request to a listener of the same configuration.
    fn behind(&mut self, server: &str, request: &Request<'_>, layer: usize) {
        let servers = self.servers;
        if let Some(door) = servers.listener_at(server) {
            let way = servers.way(door, request);
            self.server(
                way.server.as_ref(),
                way.location.as_ref(),
                request,
                layer + 1,
            );
        }
    }

    /// The group of origin servers of a name.
    fn group(&self, host: &str) -> Option<&'a Node<'a>> {
        let mut blocks = self.http.iter().flat_map(|http| &http.children);
        blocks.find(|node| {
            let name = node.directive.argument(0).unwrap_or_default();
            node.is_block("upstream") && name.eq_ignore_ascii_case(host)
        })
    }

    /// The servers of a group that are asked, with their addresses.
    fn servers_of(&self, group: &'a Node<'a>) -> Vec<(&'a Node<'a>, String)> {
        let lines = group.simple().filter(|node| node.directive.is("server"));
        let up = lines.filter(|node| !node.directive.words().any(|word| word == "down"));
        up.filter_map(|node| Some((node, node.directive.argument(0)?.to_owned())))
            .collect()
    }
}

impl Servers<'_> {
    /// The listener of HTTP that a server's address leads to.
    fn listener_at(&self, server: &str) -> Option<usize> {
        let mut all = self.listens.iter();
        all.position(|listen| Socket::at(server).leads_to(&listen.socket))
    }
}

/// Returns true for a directive about TLS to origin servers.
fn is_of_tls(name: &str) -> bool {
    name.starts_with("proxy_ssl_")
        || name.starts_with("grpc_ssl_")
        || name.starts_with("uwsgi_ssl_")
}

/// Returns true if an argument of a directive holds the client's address.
fn holds_client(node: &Node<'_>) -> bool {
    let mut words = node.directive.words();
    words.any(|word| CLIENT_VARIABLES.iter().any(|name| word.contains(name)))
}

/// Finds the directives of these names that hold in the first of some blocks, inner ones first: what a block says of a
/// name replaces all that those around it say.
fn in_force<'n>(layers: &[&'n Node<'n>], is_one: impl Fn(&str) -> bool) -> Vec<&'n Node<'n>> {
    let mut found: Vec<&'n Node<'n>> = Vec::new();
    for layer in layers {
        let inner = found.len();
        for node in layer.simple() {
            let name = &*node.directive.name.text;
            let is_said = found[..inner].iter().any(|it| it.directive.is(name));
            if is_one(name) && !is_said {
                found.push(node);
            }
        }
    }
    found
}
