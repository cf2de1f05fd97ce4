//! Caddy's JSON: what is where in it, and a copy that runs beside the original.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::asked::{Document, Parts};
use super::caddy_known::KNOWN;
use super::caddy_routes;
use super::dialect::Dialect;
use super::find::{get, items};
use super::kept::check;
use super::listening::Listening;
use super::pointer::Pointer;
use super::set::{Edits, set_in};
use super::tree::Tree;
use super::walk::Visit;
use crate::asked::{Missing, addresses};
use crate::place::socket;
use crate::{ConfigurationError, Source, Surroundings};

/// The objects that a context's name means.
pub(super) fn objects(document: &Json, context: &str) -> Option<Vec<Pointer>> {
    Some(match context {
        "root" => vec![Pointer::default()],
        "admin" => vec![Pointer::parse("/admin")],
        "app" => vec![Pointer::parse("/apps/http")],
        "tls" => vec![Pointer::parse("/apps/tls")],
        "server" => servers(document),
        "tls_policy" => servers(document)
            .iter()
            .flat_map(|server| items(document, server.child(POLICIES)))
            .collect(),
        "encode" => handlers(document, "encode"),
        "reverse_proxy" => handlers(document, "reverse_proxy"),
        "upstream" => handlers(document, "reverse_proxy")
            .iter()
            .flat_map(|handler| items(document, handler.child("upstreams")))
            .collect(),
        "transport" => {
            let speaks_http = |handler: &Pointer| {
                let protocol = get(document, &handler.join("/transport/protocol"));
                protocol.is_none_or(|protocol| protocol == "http")
            };
            let handlers = handlers(document, "reverse_proxy").into_iter();
            let handlers = handlers.filter(speaks_http);
            handlers.map(|handler| handler.child("transport")).collect()
        }
        _ => return None,
    })
}

/// Where a server has what it speaks TLS by.
pub(super) const POLICIES: &str = "tls_connection_policies";

const MISSING: Missing = Missing {
    clear: "no server is in clear",
    tls: "no server has tls_connection_policies",
    hint: "add a server to the app `http`",
};

/// What of a transport's `keep_alive` is as by default where the object is not there. Caddy 2.6 drops
/// all of it as soon as one of the fields is there (`NewTransport` in `reverseproxy/httptransport.go`).
pub(super) fn new_keep_alive() -> [(&'static str, Json); 3] {
    [
        ("probe_interval", json!("30s")),
        ("idle_timeout", json!("120s")),
        ("max_idle_conns_per_host", json!(32)),
    ]
}

fn servers(document: &Json) -> Vec<Pointer> {
    let at = Pointer::parse("/apps/http/servers");
    let servers = get(document, &at).and_then(Json::as_object);
    servers
        .into_iter()
        .flatten()
        .map(|(name, _)| at.child(name))
        .collect()
}

/// All handlers of a name in the servers' routes, however deep they are.
fn handlers(document: &Json, name: &str) -> Vec<Pointer> {
    let mut handlers = Vec::new();
    for server in servers(document) {
        let routes = get(document, &server).unwrap_or(&Json::Null);
        Visit::all(routes, &mut |at, value| {
            if value.get("handler").is_some_and(|handler| handler == name) {
                handlers.push(server.join(at));
            }
        });
    }
    handlers
}

/// The configuration as ways are looked up in it; `is_automatic` as for [`listening`].
pub(super) fn document(parts: Parts<'_>, is_automatic: bool) -> Document<'_> {
    let found = listening(parts.2, is_automatic);
    Document::new(parts, found, MISSING, caddy_routes::way)
}

/// The listener that an upstream's address leads to, by its place among those of the configuration.
pub(super) fn behind(document: &Document<'_>, dial: &Pointer) -> Option<usize> {
    let address = get(document.json, dial)?.as_str()?;
    let mut all = document.found.iter();
    all.position(|listener| listener.is_behind(address))
}

/// Looks something up. A server that would have its TLS from automatic HTTPS speaks it, unless nobody asks
/// over TLS and nothing else is there.
///
/// # Errors
/// As for what is looked up, with all that is there.
pub(super) fn with_document<'a, T>(
    parts: Parts<'a>,
    is_secure: bool,
    look_up: impl Fn(&Document<'a>) -> Result<T, ConfigurationError>,
) -> Result<(Document<'a>, T), ConfigurationError> {
    let all = document(parts, true);
    match look_up(&all) {
        Ok(found) => Ok((all, found)),
        Err(error) if is_secure => Err(error),
        Err(error) => {
            let in_clear = document(parts, false);
            let found = look_up(&in_clear).map_err(|_| error)?;
            Ok((in_clear, found))
        }
    }
}

/// All addresses. A server that nobody gave policies gets them from automatic HTTPS on the HTTPS port, and on any
/// but the HTTP port if its routes are for hosts by name (`automaticHTTPSPhase1`). A copy has not got that:
/// `is_automatic` has it count as one with TLS.
fn listening(document: &Json, is_automatic: bool) -> Vec<Listening> {
    let mut addresses = Vec::new();
    for server in servers(document) {
        let get = |name: &str| get(document, &server.child(name));
        let secure = get(POLICIES).and_then(Json::as_array);
        let secure = secure.is_some_and(|policies| !policies.is_empty());
        let port_of = |name: &str, otherwise: u64| {
            let port = document.pointer(&format!("/apps/http/{name}"));
            port.and_then(Json::as_u64).unwrap_or(otherwise)
        };
        let (http_port, https_port) = (port_of("http_port", 80), port_of("https_port", 443));
        let is_off = document.pointer(&format!("{server}/automatic_https/disable"));
        let is_automatic = is_automatic && is_off != Some(&Json::Bool(true));
        let has_names = is_automatic && has_names(document, &server);
        let protocols = get("protocols").and_then(Json::as_array);
        let is_quic =
            protocols.is_some_and(|all| !all.is_empty() && all.iter().all(|it| it == "h3"));
        let listen = get("listen").and_then(Json::as_array).into_iter().flatten();
        for (index, text) in listen.filter_map(Json::as_str).enumerate() {
            let port = port(text);
            let is = |other: u64| port.map(u64::from) == Some(other);
            addresses.push(Listening {
                at: server.child("listen").child(index),
                server: server.clone(),
                address: text.to_owned(),
                port,
                // Caddy does not speak TLS on its HTTP port, whatever the policies.
                tls: (secure && !is(http_port))
                    || (is_automatic && is(https_port))
                    || (has_names && port.is_some() && !is(http_port)),
                udp: is_quic || text.starts_with("udp"),
            });
        }
    }
    addresses
}

/// Whether a server's own routes name hosts for which Caddy gets certificates by itself.
fn has_names(document: &Json, server: &Pointer) -> bool {
    let texts = |at: Pointer| {
        let list = get(document, &at).and_then(Json::as_array);
        list.into_iter().flatten().filter_map(Json::as_str)
    };
    let skipped: Vec<&str> = texts(server.join("/automatic_https/skip")).collect();
    let routes = items(document, server.child("routes")).into_iter();
    let sets = routes.flat_map(|route| items(document, route.child("match")));
    let mut names = sets.flat_map(|set| texts(set.child("host")));
    names.any(|name| !skipped.contains(&name))
}

/// The port of a network address of Caddy's; the first of a range.
fn port(address: &str) -> Option<u16> {
    if address.starts_with("unix") {
        return None;
    }
    address.rsplit_once(':')?.1.split('-').next()?.parse().ok()
}

/// Makes a copy run in a trial: on the given addresses, with its sockets below `PREFIX/run/` and its
/// logs below `PREFIX/logs/` (which the caller makes), and asking nobody but the given origin server.
///
/// * The administration interface is the socket `PREFIX/run/admin.sock`, for requests to `localhost`; what would load a
///   configuration from elsewhere or keep one is taken out.
/// * Certificates and everything else that Caddy keeps go below `PREFIX/storage`; storages of single
///   authorities and keys are taken out. Automatic HTTPS is off in every server, `automation` and names to be
///   managed are taken out, nobody is asked whether a certificate is valid (OCSP), keys of connections are
///   not logged, and no root certificate is put into the host's trust store. A server that
///   has `tls_connection_policies` speaks TLS as before; one that would have got them
///   from automatic HTTPS gets one, if TLS is asked for, and else speaks in clear. With a certificate of
///   the surroundings, that is the only one there is; where all policies of the server that is asked are
///   for some clients, the first is for any.
/// * The addresses that loads ask ([`Surroundings::asks`]) become those for that; `http_port` and
///   `https_port` follow. All others become the sockets `PREFIX/run/N.sock`.
/// * All upstreams of reverse proxies have the origin server's address, dynamic ones too, and
///   TLS towards them is taken out, with proxies and resolvers on the way; one that is a listener of the configuration
///   stays one. `health_checks` stay, without a port or an upstream of their own, and
///   ask it besides the load; what they expect of an answer is taken out.
/// * Logs to files and to the network go to files in `PREFIX/logs/`, with their encoders and filters.
/// * Certificates by relative path become absolute where a file stands there, seen from the user's
///   folder.
///
/// # Errors
/// The configuration cannot be read; what is left of it could ask or write something else (another app
/// than `http`, `tls` and `pki`, a handler or module that weir does not know); it has no listener as asked
/// for; the prefix is too long for a socket.
pub fn adapt_caddy(
    source: &Source,
    surroundings: &Surroundings<'_>,
) -> Result<Source, ConfigurationError> {
    let format = Dialect::Caddy.format(&source.files[0].path);
    let tree = Tree::parse(&source.files[0], format)?;
    let document = tree.meaning(&tree.root);
    let mut copy = Copy {
        source,
        tree: &tree,
        document: &document,
        surroundings,
        edits: Edits::default(),
        listening: Vec::new(),
    };
    copy.process()?;
    copy.listeners()?;
    copy.upstreams(surroundings.origin);
    copy.logs();
    copy.certificates();
    check(&source.files[0], &tree, &copy.edits.0, &KNOWN)?;
    set_in(source, &tree, format, &copy.edits.0)
}

struct Copy<'c> {
    source: &'c Source,
    tree: &'c Tree,
    document: &'c Json,
    surroundings: &'c Surroundings<'c>,
    edits: Edits,
    /// The listeners with their new addresses.
    listening: Vec<(Listening, String)>,
}

impl Copy<'_> {
    fn below(&self, path: &str) -> String {
        self.surroundings.prefix.join(path).display().to_string()
    }

    fn socket(&self, name: &str) -> Result<String, ConfigurationError> {
        let path = socket(self.surroundings.prefix, name, &self.source.files[0])?;
        Ok(format!("unix/{path}"))
    }

    fn process(&mut self) -> Result<(), ConfigurationError> {
        let admin = self.socket("admin.sock")?;
        self.edits.put("/admin/listen", admin);
        self.edits.put("/admin/config/persist", false);
        // Whom a request to the socket may name.
        self.edits.put("/admin/origins", json!(["localhost"]));
        for at in [
            "disabled",
            "enforce_origin",
            "identity",
            "remote",
            "config/load",
            "config/load_delay",
        ] {
            self.edits.take(&*format!("/admin/{at}"));
        }
        let storage = json!({"module": "file_system", "root": self.below("storage")});
        self.edits.put("/storage", storage);
        self.edits.take("/apps/tls/certificates/automate");
        self.edits.take("/apps/tls/automation");
        let is_tls = get(self.document, &Pointer::parse("/apps/tls")).is_some();
        // With the lab's certificate it is said with that.
        if is_tls && self.surroundings.certificate.is_none() {
            self.edits.put("/apps/tls/disable_ocsp_stapling", true);
        }
        self.other_storages();
        for authority in self.authorities() {
            self.edits.put(authority.child("install_trust"), false);
        }
        for server in servers(self.document) {
            self.edits
                .put(server.child("automatic_https"), json!({"disable": true}));
            for policy in items(self.document, server.child(POLICIES)) {
                self.edits.take(policy.child("insecure_secrets_log"));
            }
        }
        Ok(())
    }

    /// The certificate authorities, with the one that Caddy has by itself.
    fn authorities(&self) -> BTreeSet<Pointer> {
        let at = Pointer::parse("/apps/pki/certificate_authorities");
        let own = get(self.document, &at);
        let own = own.and_then(Json::as_object).into_iter().flatten();
        own.map(|(name, _)| at.child(name))
            .chain([at.child("local")])
            .collect()
    }

    /// What would be kept elsewhere than below the prefix.
    fn other_storages(&mut self) {
        for authority in self.authorities() {
            self.edits.take(authority.child("storage"));
        }
        self.edits
            .take("/apps/tls/session_tickets/key_source/storage");
    }

    fn listeners(&mut self) -> Result<(), ConfigurationError> {
        let parts = (self.source, self.tree, self.document);
        let asks = &self.surroundings.asks;
        let is_secure = asks.iter().any(|ask| ask.spec.tls);
        let (document, asked) = with_document(parts, is_secure, |it| addresses(it, asks))?;
        let found = document.found;
        let http = Pointer::parse("/apps/http");
        let (mut secured, mut moved) = (BTreeSet::new(), Vec::new());
        for (index, address) in found.iter().enumerate() {
            let door = asked.iter().find(|(door, _)| *door == index);
            let new = match door {
                Some((_, at)) => at.to_string(),
                None => self.socket(&format!("{index}.sock"))?,
            };
            self.edits.put(address.at.clone(), new.clone());
            moved.push(new);
            if door.is_some() && address.tls && secured.insert(address.server.clone()) {
                self.policies(&address.server);
            }
        }
        // What is in clear and what is not goes by these, in a server that has both.
        for (name, usual, tls) in [("http_port", 80, false), ("https_port", 443, true)] {
            let own = get(self.document, &http.child(name)).and_then(Json::as_u64);
            let is_usual =
                |door: usize| found[door].port.map(u64::from) == Some(own.unwrap_or(usual));
            let of_kind = asked.iter().filter(|(door, _)| found[*door].tls == tls);
            let best = of_kind.max_by_key(|(door, _)| (is_usual(*door), std::cmp::Reverse(*door)));
            let is_taken = || {
                asked
                    .iter()
                    .any(|(_, at)| own == Some(u64::from(at.port())))
            };
            match best {
                Some((_, at)) => self.edits.put(http.child(name), at.port()),
                // No TLS is spoken at the port of HTTP, wherever that is.
                None if is_taken() => self.edits.put(http.child(name), usual),
                None => {}
            }
        }
        self.listening = found.into_iter().zip(moved).collect();
        Ok(())
    }

    /// What a server speaks TLS by: to clients that name any server, with the certificate of the
    /// surroundings.
    fn policies(&mut self, server: &Pointer) {
        let list = server.child(POLICIES);
        let policies = items(self.document, &list);
        if policies.is_empty() {
            self.edits.put(list, json!([{}]));
        }
        if self.surroundings.certificate.is_none() {
            return;
        }
        let takes_all = |policy: &Pointer| get(self.document, &policy.child("match")).is_none();
        let first = policies.first();
        if let Some(first) = first.filter(|_| !policies.iter().any(takes_all)) {
            self.edits.take(first.child("match"));
        }
        for policy in &policies {
            self.edits.take(policy.child("certificate_selection"));
        }
    }

    /// The new address of the listener that an upstream's leads to, if it is one of the configuration.
    fn own(&self, dial: &Pointer) -> Option<String> {
        let address = get(self.document, dial)?.as_str()?;
        let leads = |(listener, _): &&(Listening, String)| listener.is_behind(address);
        let found = self.listening.iter().find(leads);
        found.map(|(_, new)| new.clone())
    }

    fn upstreams(&mut self, origin: SocketAddr) {
        for handler in handlers(self.document, "reverse_proxy") {
            let list = handler.child("upstreams");
            let upstreams = items(self.document, &list);
            // Listeners of the configuration itself are spoken to as before.
            let mut is_own = !upstreams.is_empty();
            for upstream in &upstreams {
                let own = self.own(&upstream.child("dial"));
                is_own &= own.is_some();
                let new = own.unwrap_or_else(|| origin.to_string());
                self.edits.put(upstream.child("dial"), new);
            }
            if upstreams.is_empty() {
                self.edits.put(list, json!([{"dial": origin.to_string()}]));
            }
            self.edits.take(handler.child("dynamic_upstreams"));
            let elsewhere = [
                "forward_proxy_url",
                "local_address",
                "network_proxy",
                "resolver",
            ];
            let tls = (!is_own).then_some("tls");
            for elsewhere in elsewhere.into_iter().chain(tls) {
                self.edits.take(handler.child("transport").child(elsewhere));
            }
            // The last two are of what the user's servers answer.
            for elsewhere in ["port", "upstream", "expect_body", "expect_status"] {
                self.edits
                    .take(handler.join("/health_checks/active").child(elsewhere));
            }
        }
    }

    fn logs(&mut self) {
        let at = Pointer::parse("/logging/logs");
        let logs = get(self.document, &at).and_then(Json::as_object);
        for (name, log) in logs.into_iter().flatten() {
            self.log(at.child(name), name, log);
        }
        // What Go's own log has to say.
        let sink = Pointer::parse("/logging/sink");
        if let Some(log) = get(self.document, &sink) {
            self.log(sink, "sink", log);
        }
    }

    fn log(&mut self, at: Pointer, name: &str, log: &Json) {
        let output = log.pointer("/writer/output").and_then(Json::as_str);
        let path = self.below(&format!("logs/{}.log", name.replace('/', "_")));
        let writer = at.child("writer");
        match output {
            Some("file") => self.edits.put(writer.child("filename"), path),
            Some("net") => self
                .edits
                .put(writer, json!({"output": "file", "filename": path})),
            _ => {}
        }
    }

    fn certificates(&mut self) {
        if let Some(pem) = self.surroundings.certificate {
            let file = |path: &Path| path.display().to_string();
            let shown = json!([{
                "certificate": file(pem.certificate),
                "key": file(pem.key),
            }]);
            let certificates = Pointer::parse("/apps/tls/certificates");
            self.edits.put(certificates.child("load_files"), shown);
            for other in ["load_folders", "load_pem", "load_storage"] {
                self.edits.take(certificates.child(other));
            }
            // The lab's certificate names nobody who could be asked.
            return self.edits.put("/apps/tls/disable_ocsp_stapling", true);
        }
        let beside = self.source.files[0].path.parent().unwrap_or(Path::new("/"));
        for file in items(self.document, "/apps/tls/certificates/load_files") {
            for key in ["certificate", "key"] {
                let at = file.child(key);
                let name = get(self.document, &at).and_then(Json::as_str);
                let name = Path::new(name.unwrap_or("/"));
                let path = beside.join(name);
                if name.is_relative() && path.exists() {
                    self.edits.put(at, path.display().to_string());
                }
            }
        }
    }
}
