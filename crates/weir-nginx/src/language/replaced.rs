//! Finds the parts on the way of a load's requests that a copy replaces ([`super::adapt`]).

use std::collections::BTreeSet;

use weir_configuration::answer::Answer;
use weir_configuration::asked::{Map, Request, Spot, look_up};
use weir_configuration::names::without_port;
use weir_configuration::place::is_among;
use weir_configuration::replaced::Replacements;
use weir_configuration::{ConfigurationError, PemLocation, ShownCertificate, Source};
use weir_model::record::{ReplacedPart, ReplacedRecord};
use weir_model::study::AskSpec;

use super::access::is_for;
use super::adapt::groups::group_names;
use super::adapt::is_pass;
use super::asked::Servers;
use super::location::way_out;
use super::origin::Target;
use super::rewrite::Passage;
use super::targets::PassTarget;
use super::variables::{Variables, key};
use super::view::{self, Node};

/// Maximum number of places that a request is followed through, each with the request's path there.
const MOST_MET: usize = 100;

/// Directives that ask a service about requests, or send it a second copy of them.
const SERVICES: &str = "auth_request, mirror";

/// Directives that answer with requests of their own beside the client's.
const SUBREQUESTS: &str = "add_after_body, add_before_body, post_action";

/// Directives for the lookup of names while nginx runs.
const NAMES: &str = "resolver, resolver_timeout";

/// Directives whose state outlasts a slice.
const LIMITS: &str = "limit_req";

/// Directives that count requests or connections in a zone, by a key.
const COUNTERS: &str = "limit_conn, limit_req";

/// Directives whose work depends on the content or the headers of responses.
const CONTENT: &str = "add_after_body, add_before_body, fastcgi_cache, gunzip, image_filter, proxy_cache, scgi_cache, \
     slice, ssi, sub_filter, subs_filter, uwsgi_cache, xslt_stylesheet";

/// Directives that compress for clients that accept it.
const COMPRESSION: &str = "brotli, gzip, zstd";

/// Directives that write a line for each request or each failure.
const LOGS: &str = "access_log, error_log";

/// Directives that decide by the client's address.
const ADDRESSES: &str = "allow, deny";

/// Directives that decide by the values of their variables.
const CONDITIONS: &str = "alias, auth_basic, fastcgi_cache_bypass, fastcgi_no_cache, index, limit_rate, \
     proxy_cache_bypass, proxy_cache_key, proxy_no_cache, root, try_files";

/// Finds the parts on the way of a load's requests that a copy replaces. `build` is the output of `nginx -V`.
///
/// # Errors
/// Returns the errors of [`super::asked`].
pub fn replaced(
    source: &Source,
    ask: &AskSpec,
    build: &str,
) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    let servers = Servers::of(source, (&trees, &nodes), build);
    let answers = look_up(&servers, ask)?;
    let http = nodes.iter().find(|node| node.is_block("http"));
    let variables = http.map(|http| Variables::of(source, &trees, &http.children));
    let mut search = Search {
        servers: &servers,
        variables: variables.unwrap_or_default(),
        kept: http.map(|http| group_names(source, &trees, http)).unwrap_or_default(),
        http: nodes.iter().filter(|node| node.is_block("http")).collect(),
        logs: nodes.iter().filter(|node| node.is_simple("error_log")).collect(),
        met: BTreeSet::new(),
        found: Replacements::new(source),
    };
    for (request, asked) in Request::all(ask).zip(&answers) {
        search.met.clear();
        for spot in &asked.past {
            search.found.add(ReplacedPart::Before, spot);
        }
        search.listener(asked.index);
        let spots = [&asked.server, &asked.location].map(Option::as_ref);
        search.server(asked.index, spots, &asked.left, &request);
    }
    Ok(search.found.done())
}

/// Returns the certificates that a configuration shows to the clients of a load.
///
/// # Errors
/// Returns the errors of [`super::asked`].
pub fn certificates(
    source: &Source,
    ask: &AskSpec,
    build: &str,
) -> Result<Vec<ShownCertificate>, ConfigurationError> {
    let trees = view::parse(source)?;
    let nodes = view::expand(source, &trees)?;
    let servers = Servers::of(source, (&trees, &nodes), build);
    let answers = look_up(&servers, ask)?;
    let https: Vec<&Node<'_>> = nodes.iter().filter(|node| node.is_block("http")).collect();
    let server = answers.first().and_then(|asked| asked.server.as_ref());
    let mut blocks = https.iter().flat_map(|http| &http.children);
    let server =
        server.and_then(|spot| blocks.find(|it| it.place() == (spot.file, spot.span.start)));
    let layers: Vec<&Node<'_>> = server.into_iter().chain(https).collect();
    let shown = in_force(&layers, |name| name == "ssl_certificate").into_iter().map(|node| {
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

pub(super) struct Search<'a> {
    pub(super) servers: &'a Servers<'a>,
    pub(super) variables: Variables,
    /// Names of groups, and of variables that hold nothing else: a copy goes on naming them.
    kept: BTreeSet<String>,
    pub(super) http: Vec<&'a Node<'a>>,
    /// Directives outside of all blocks that set where failures are logged.
    logs: Vec<&'a Node<'a>>,
    /// Places that a request has come to, each with its path there; they end a circle.
    met: BTreeSet<((usize, usize), String)>,
    pub(super) found: Replacements<'a>,
}

impl<'a> Search<'a> {
    pub(super) fn add(&mut self, part: ReplacedPart, node: &Node<'_>) {
        let words: Vec<&str> = node.directive.words().collect();
        let name = format!("{} {}", node.directive.name.text, words.join(" "));
        let spot = self.servers.spot(node, name.trim_end().to_owned());
        self.found.add(part, &spot);
    }

    /// Adds the parts that the listener under load loses in the copy.
    fn listener(&mut self, candidate: usize) {
        let servers = self.servers;
        let socket = &servers.listens[candidate].socket;
        let with_protocol = servers.listens.iter().filter(|it| it.socket == *socket).filter(|it| {
            let mut flags = it.flags().iter();
            flags.any(|flag| flag.text == "proxy_protocol")
        });
        for listen in with_protocol {
            let spot = servers.spot(listen.node, "listen … proxy_protocol".to_owned());
            self.found.add(ReplacedPart::ProxyProtocol, &spot);
        }
    }

    /// Adds the replaced parts of a server and one of its locations, of the locations that the request went through
    /// before (`left`), and of the servers behind them.
    fn server(
        &mut self,
        candidate: usize,
        [server, location]: [Option<&Spot>; 2],
        left: &[Spot],
        request: &Request<'_>,
    ) {
        let Some(server) = server.and_then(|spot| self.block(spot)) else {
            return;
        };
        let layers = self.layers(server, location);
        if !self.meets(layers[0], request) {
            return;
        }
        let mut passage = self.servers.passage(candidate, request);
        self.servers.in_server(server, &mut passage);
        let before = left.iter().map(|spot| self.layers(server, Some(spot)));
        let before: Vec<_> = before.collect();
        for layers in before.iter().chain([&layers]) {
            self.conditions(layers);
            let inside: Vec<&Node<'_>> = layers[0]
                .children
                .iter()
                .filter(|node| node.is_block("limit_except") && !is_for(node, request.method))
                .chain(layers.iter().copied())
                .collect();
            for node in in_force(&inside, |name| {
                is_among(name, SERVICES) || is_among(name, COUNTERS) || is_among(name, ADDRESSES)
            }) {
                self.access(node, server, &passage);
            }
        }
        self.left_out(&layers, request);
        self.answered(&layers, &passage);
    }

    /// Adds log lines and answers of authorities that the copy leaves out.
    fn left_out(&mut self, layers: &[&'a Node<'a>], request: &Request<'_>) {
        let mut directives =
            in_force(layers, |name| is_among(name, LOGS) || name == "ssl_stapling");
        if !directives.iter().any(|node| node.directive.is("error_log")) {
            directives.extend(&self.logs);
        }
        for node in directives {
            let first = node.directive.argument(0).unwrap_or_default();
            let name = &*node.directive.name.text;
            if name == "ssl_stapling" && first == "on" && request.is_tls() {
                self.add(ReplacedPart::LeftOut, node);
            } else if first.starts_with("syslog:") {
                let spot = self.servers.spot(node, format!("{name} syslog:"));
                self.found.add(ReplacedPart::LeftOut, &spot);
            }
        }
    }

    /// Records that a request comes to a place; returns true if that is new.
    fn meets(&mut self, place: &Node<'_>, request: &Request<'_>) -> bool {
        let path = request.path.to_owned();
        self.met.len() < MOST_MET && self.met.insert((place.place(), path))
    }

    /// Returns the blocks around a place in a server, and `http`, inner ones first.
    fn layers(&self, server: &'a Node<'a>, spot: Option<&Spot>) -> Vec<&'a Node<'a>> {
        let position = spot.map_or(server.place(), |spot| (spot.file, spot.span.start));
        let mut layers = way_out(server, position).unwrap_or_else(|| vec![server]);
        layers.extend(&self.http);
        layers
    }

    /// Adds the replaced parts of a location's answer.
    fn answered(&mut self, layers: &[&'a Node<'a>], passage: &Passage<'_>) {
        for node in in_force(layers, |name| {
            is_among(name, CONTENT) || (is_among(name, COMPRESSION) && !passage.request.is_plain())
        }) {
            if node.directive.argument(0) != Some("off") {
                self.add(ReplacedPart::Content, node);
            }
        }
        if let Some(server) = layers.iter().find(|layer| layer.is_block("server")) {
            for node in in_force(layers, |name| is_among(name, SUBREQUESTS)) {
                self.service(node, server, passage);
            }
        }
        for pass in passes(layers[0], passage) {
            self.pass(pass, layers, passage);
        }
    }

    /// Adds the directives that decide by the client's address.
    fn conditions(&mut self, layers: &[&'a Node<'a>]) {
        let blocks =
            layers.iter().flat_map(|layer| &layer.children).filter(|node| node.is_block("if"));
        let conditions = in_force(layers, |name| is_among(name, CONDITIONS));
        for node in blocks.chain(conditions) {
            self.add_client(node);
        }
    }

    /// Returns the `server` block at a place.
    fn block(&self, spot: &Spot) -> Option<&'a Node<'a>> {
        let mut servers = self.http.iter().flat_map(|http| &http.children);
        servers.find(|node| node.place() == (spot.file, spot.span.start))
    }

    /// Adds a directive by which a request is checked before it is answered.
    fn access(&mut self, node: &'a Node<'a>, server: &'a Node<'a>, passage: &Passage<'_>) {
        let name = &*node.directive.name.text;
        let first = node.directive.argument(0).unwrap_or_default();
        if first == "off" || (is_among(name, ADDRESSES) && first == "all") {
            return;
        }
        if is_among(name, SERVICES) {
            return self.service(node, server, passage);
        }
        if is_among(name, ADDRESSES) {
            return self.add(ReplacedPart::ClientAddress, node);
        }
        let zone = node
            .directive
            .words()
            .find_map(|word| self.zone(name, word.strip_prefix("zone=").unwrap_or(word)));
        // What has an empty key is not counted.
        let key = zone.and_then(|zone| passage.text(zone.directive.argument(0)?));
        if key.is_some_and(|key| key.is_empty()) {
            return;
        }
        if is_among(name, LIMITS) {
            self.add(ReplacedPart::Limit, node);
        }
        if let Some(zone) = zone {
            self.add_client(zone);
        }
    }

    /// Adds a service that is asked about requests, and the replaced parts on the way to it. A service that the
    /// configuration certainly answers by itself is not replaced.
    fn service(&mut self, node: &'a Node<'a>, server: &'a Node<'a>, passage: &Passage<'_>) {
        let uri = node.directive.argument(0).unwrap_or_default();
        if uri.contains('$') {
            return self.add(ReplacedPart::Service, node);
        }
        let request = passage.request.passed_on(uri, passage.request.host);
        let mut inner = passage.within(&request);
        let route = self.servers.in_server(server, &mut inner);
        let Some(location) = &route.location else {
            return;
        };
        let layers = self.layers(server, Some(location));
        let passing: Vec<&Node<'_>> = passes(layers[0], &inner).collect();
        let asks_others = passing.iter().any(|pass| {
            let targets = self.targets(pass, &inner);
            targets.iter().any(|target| !target.others(self).is_empty())
        });
        let is_unknown = passing.is_empty() && route.answer == Answer::Unknown;
        if asks_others || is_unknown {
            self.add(ReplacedPart::Service, node);
        }
        // Access is not checked again for a request within a request (`ngx_http_core_access_phase`).
        if self.meets(layers[0], &request) {
            self.answered(&layers, &inner);
        }
    }

    /// Returns the directive of the zone of a limit.
    fn zone(&self, limit: &str, zone: &str) -> Option<&'a Node<'a>> {
        let mut all = self.http.iter().flat_map(|http| http.simple());
        all.find(|node| {
            let mut words = node.directive.words();
            node.directive.is(&format!("{limit}_zone"))
                && words.any(|word| {
                    word.strip_prefix("zone=").is_some_and(|it| it.split(':').next() == Some(zone))
                })
        })
    }

    /// Adds a directive if one of its arguments depends on a property of clients that is different in a copy.
    pub(super) fn add_client(&mut self, node: &Node<'_>) {
        let mut words = node.directive.words();
        if let Some(part) = words.find_map(|word| self.variables.replaced_in(word)) {
            self.add(part, node);
        }
    }

    /// Adds the parts that a directive that passes the request on loses in the copy.
    fn pass(&mut self, pass: &'a Node<'a>, layers: &[&'a Node<'a>], passage: &Passage<'_>) {
        let targets = self.targets(pass, passage);
        let has_variable = targets.iter().any(|target| target.is_by_variable);
        if has_variable {
            self.add_client(pass);
        }
        let host = key(Target::of(pass.directive.argument(0).unwrap_or_default()).host);
        let is_kept = self.kept.contains(&host) && targets.iter().all(|target| target.is_kept);
        if has_variable && !is_kept {
            self.names(pass, layers);
        }
        for target in &targets {
            self.target(pass, target, layers);
            let path = passed_path(layers[0], target, &passage.path);
            let host = passed_host(layers, target, passage.request.host);
            let request = passage.request.passed_on(&path, &host);
            for (node, server) in target.own(self) {
                if !server.starts_with("unix:") {
                    let spot = self.servers.spot(node, "its own listener".to_owned());
                    self.found.add(ReplacedPart::OwnListener, &spot);
                }
                self.behind(&server, &request);
            }
        }
    }

    /// Adds a directive whose names are looked up while nginx runs, and the directives for the lookup.
    pub(super) fn names(&mut self, node: &Node<'_>, layers: &[&'a Node<'a>]) {
        self.add(ReplacedPart::Names, node);
        for resolver in in_force(layers, |name| is_among(name, NAMES)) {
            self.add(ReplacedPart::Names, resolver);
        }
    }

    /// Follows a request to a listener of the same configuration.
    fn behind(&mut self, server: &str, request: &Request<'_>) {
        let servers = self.servers;
        if let Some(candidate) = servers.listener_at(server) {
            let route = servers.find_route(candidate, request);
            let places = [&route.server, &route.location].map(Option::as_ref);
            self.server(candidate, places, &route.left, request);
        }
    }
}

/// Returns the path that a location requests: a URI behind the name replaces the location's own part
/// (`ngx_http_proxy_module`, proxy_pass).
fn passed_path(location: &Node<'_>, target: &PassTarget<'_>, path: &str) -> String {
    let uri = &*target.uri;
    let prefix = location.directive.words().last().unwrap_or_default();
    let is_location = location.is_block("location");
    match path.strip_prefix(prefix).filter(|_| is_location) {
        Some(rest) if !uri.is_empty() && !uri.contains('$') => format!("{uri}{rest}"),
        _ => path.to_owned(),
    }
}

/// Returns the host that a location requests: by default the one in `proxy_pass` (`$proxy_host`).
fn passed_host(layers: &[&Node<'_>], target: &PassTarget<'_>, host: &str) -> String {
    let fields = in_force(layers, |name| name == "proxy_set_header");
    let mut hosts = fields.into_iter().filter_map(|node| {
        let name = node.directive.argument(0)?;
        name.eq_ignore_ascii_case("host").then(|| node.directive.argument(1))?
    });
    match hosts.next() {
        Some(value) if !value.contains('$') => value.to_owned(),
        Some(_) => host.to_owned(),
        None => without_port(&target.host).to_owned(),
    }
}

/// Returns the directives that pass requests on, of a block and of the conditions in it that may hold.
fn passes<'n>(block: &'n Node<'n>, passage: &Passage<'_>) -> impl Iterator<Item = &'n Node<'n>> {
    let conditions =
        (block.children.iter()).filter(|node| node.is_block("if") && !passage.fails(node));
    std::iter::once(block)
        .chain(conditions)
        .flat_map(Node::simple)
        .filter(|node| is_pass(&node.directive.name.text))
}

/// Returns the directives with these names that are in force for some blocks, inner ones first: the directives of a
/// name in one block replace all those of that name in the blocks around it.
pub(super) fn in_force<'n>(
    layers: &[&'n Node<'n>],
    is_one: impl Fn(&str) -> bool,
) -> Vec<&'n Node<'n>> {
    let mut directives: Vec<&'n Node<'n>> = Vec::new();
    for layer in layers {
        let inner = directives.len();
        for node in layer.simple() {
            let name = &*node.directive.name.text;
            let is_said = directives[..inner].iter().any(|it| {
                let previous = &*it.directive.name.text;
                // These two are one list (`ngx_http_access_module`).
                name == previous || (is_among(name, ADDRESSES) && is_among(previous, ADDRESSES))
            });
            if is_one(name) && !is_said {
                directives.push(node);
            }
        }
    }
    directives
}
