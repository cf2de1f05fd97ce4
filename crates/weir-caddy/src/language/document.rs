//! Caddy's JSON: its structure, and a copy that runs beside the original.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value as Json, json};
use weir_configuration::asked::{Missing, addresses};
use weir_configuration::document::asked::{Document, Parts};
use weir_configuration::document::find::{get, items};
use weir_configuration::document::kept::check;
use weir_configuration::document::listening::Listening;
use weir_configuration::document::visit_all;
use weir_configuration::document::{Edits, Format, Pointer, Tree, set_in};
use weir_configuration::place::socket;
use weir_configuration::{ConfigurationError, Source, Surroundings};

use super::known::KNOWN;
use super::routes;

/// Returns the objects that a context's name stands for; None if the context is not known.
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
        "transport" => handlers(document, "reverse_proxy")
            .into_iter()
            .filter(|handler| {
                let protocol = get(document, &handler.join("/transport/protocol"));
                protocol.is_none_or(|protocol| protocol == "http")
            })
            .map(|handler| handler.child("transport"))
            .collect(),
        _ => return None,
    })
}

/// Key of a server's TLS connection policies.
pub(super) const POLICIES: &str = "tls_connection_policies";

const MISSING: Missing = Missing {
    clear: "no server is in clear",
    tls: "no server has tls_connection_policies",
    hint: "add a server to the app `http`",
};

/// Returns the default fields of a transport's `keep_alive` object. Caddy 2.6 drops all defaults as soon as one of the
/// fields is there (`NewTransport` in `reverseproxy/httptransport.go`).
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
    servers.into_iter().flatten().map(|(name, _)| at.child(name)).collect()
}

/// Returns all handlers of a name in the servers' routes, at any depth.
fn handlers(document: &Json, name: &str) -> Vec<Pointer> {
    let mut handlers = Vec::new();
    for server in servers(document) {
        let routes = get(document, &server).unwrap_or(&Json::Null);
        visit_all(routes, &mut |at, value| {
            if value.get("handler").is_some_and(|handler| handler == name) {
                handlers.push(server.join(at));
            }
        });
    }
    handlers
}

/// Returns the configuration prepared for looking up ways; `is_automatic` as for [`listening`].
pub(super) fn document(parts: Parts<'_>, is_automatic: bool) -> Document<'_> {
    let addresses = listening(parts.2, is_automatic);
    Document::new(parts, addresses, MISSING, routes::find_route)
}

/// Returns the index of the listener that an upstream's address leads to, if there is one.
pub(super) fn behind(document: &Document<'_>, dial: &Pointer) -> Option<usize> {
    let address = get(document.json, dial)?.as_str()?;
    let mut all = document.found.iter();
    all.position(|listener| listener.is_behind(address))
}

/// Runs a look-up in the document. Servers with automatic HTTPS speak TLS in it. If the look-up fails and nobody asks
/// over TLS (`is_secure`), it is repeated with these servers in clear.
///
/// # Errors
/// Returns the error of the first look-up, in which all servers with automatic HTTPS speak TLS.
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
            let outcome = look_up(&in_clear).map_err(|_| error)?;
            Ok((in_clear, outcome))
        }
    }
}

/// Returns all addresses that the servers listen on. A server without policies gets them from automatic HTTPS on the
/// HTTPS port, and on any port but the HTTP port if its routes name hosts (`automaticHTTPSPhase1`). A copy has no
/// automatic HTTPS: `is_automatic` makes such a server count as one with TLS.
fn listening(document: &Json, is_automatic: bool) -> Vec<Listening> {
    let mut addresses = Vec::new();
    for server in servers(document) {
        let value = |name: &str| get(document, &server.child(name));
        let secure =
            value(POLICIES).and_then(Json::as_array).is_some_and(|policies| !policies.is_empty());
        let http_port = port_of(document, "http_port", 80);
        let https_port = port_of(document, "https_port", 443);
        let is_off = document.pointer(&format!("{server}/automatic_https/disable"));
        let is_automatic = is_automatic && is_off != Some(&Json::Bool(true));
        let has_names = is_automatic && has_names(document, &server);
        let protocols = value("protocols").and_then(Json::as_array);
        let is_quic =
            protocols.is_some_and(|all| !all.is_empty() && all.iter().all(|it| it == "h3"));
        let listen = value("listen").and_then(Json::as_array).into_iter().flatten();
        for (index, text) in listen.filter_map(Json::as_str).enumerate() {
            let port = parse_port(text);
            let number = port.map(u64::from);
            addresses.push(Listening {
                at: server.child("listen").child(index),
                server: server.clone(),
                address: text.to_owned(),
                port,
                // Caddy does not speak TLS on its HTTP port, whatever the policies.
                tls: (secure && number != Some(http_port))
                    || (is_automatic && number == Some(https_port))
                    || (has_names && port.is_some() && number != Some(http_port)),
                udp: is_quic || text.starts_with("udp"),
            });
        }
    }
    addresses
}

fn port_of(document: &Json, name: &str, otherwise: u64) -> u64 {
    let port = document.pointer(&format!("/apps/http/{name}"));
    port.and_then(Json::as_u64).unwrap_or(otherwise)
}

/// Returns true if a server's own routes name hosts for which Caddy gets certificates by itself.
fn has_names(document: &Json, server: &Pointer) -> bool {
    let skipped = texts(document, &server.join("/automatic_https/skip"));
    let mut names = items(document, server.child("routes"))
        .into_iter()
        .flat_map(|route| items(document, route.child("match")))
        .flat_map(|set| texts(document, &set.child("host")));
    names.any(|name| !skipped.contains(&name))
}

fn texts<'a>(document: &'a Json, at: &Pointer) -> Vec<&'a str> {
    let list = get(document, at).and_then(Json::as_array);
    list.into_iter().flatten().filter_map(Json::as_str).collect()
}

/// Returns the port of a Caddy network address; the first one of a range.
fn parse_port(address: &str) -> Option<u16> {
    if address.starts_with("unix") {
        return None;
    }
    address.rsplit_once(':')?.1.split('-').next()?.parse().ok()
}

/// Makes a copy that can run in a trial: on the given addresses, with its sockets below `PREFIX/run/` and its logs
/// below `PREFIX/logs/` (which the caller makes), and contacting only the given origin server.
///
/// * The administration interface is the socket `PREFIX/run/admin.sock`, for requests to `localhost`. Settings that
///   load a configuration from elsewhere or keep one are taken out.
/// * Certificates and all other data that Caddy keeps go below `PREFIX/storage`; storages of single authorities and
///   keys are taken out. Automatic HTTPS is off in every server, and `automation` and names to be managed are taken
///   out. Certificates are not checked by OCSP, keys of connections are not logged, and no root certificate is put into
///   the host's trust store. A server that has `tls_connection_policies` speaks TLS as before. A server that would have
///   got them from automatic HTTPS gets one policy if TLS is asked for, and otherwise speaks in clear. A certificate of
///   the surroundings is the only one there is; if all policies of a server under load are for some clients only, the
///   first becomes one for any client.
/// * The addresses that loads ask ([`Surroundings::asks`]) are replaced by the new ones; `http_port` and `https_port`
///   follow. All other addresses become the sockets `PREFIX/run/N.sock`.
/// * All upstreams of reverse proxies get the origin server's address, dynamic ones too. TLS towards them is taken out,
///   with proxies and resolvers on the way. An upstream that is a listener of the configuration stays one.
///   `health_checks` stay, without a port or an upstream of their own, and ask the origin server in addition to the
///   load; their expectations of an answer are taken out.
/// * Logs to files and to the network go to files in `PREFIX/logs/`, with their encoders and filters.
/// * Relative paths of certificates become absolute if a file exists there, relative to the user's folder.
///
/// # Errors
/// Returns an error if the configuration cannot be read; if the rest of it could contact or write something else
/// (another app than `http`, `tls` and `pki`, a handler or module that weir does not know); if no listener matches a
/// load; or if the prefix is too long for a socket.
pub fn adapt(
    source: &Source,
    surroundings: &Surroundings<'_>,
) -> Result<Source, ConfigurationError> {
    let format = Format::Json;
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
    /// Listeners, each with its new address.
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
        for at in
            ["disabled", "enforce_origin", "identity", "remote", "config/load", "config/load_delay"]
        {
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
            self.edits.put(server.child("automatic_https"), json!({"disable": true}));
            for policy in items(self.document, server.child(POLICIES)) {
                self.edits.take(policy.child("insecure_secrets_log"));
            }
        }
        Ok(())
    }

    /// Returns the certificate authorities, including the one that Caddy has by itself.
    fn authorities(&self) -> BTreeSet<Pointer> {
        let at = Pointer::parse("/apps/pki/certificate_authorities");
        get(self.document, &at)
            .and_then(Json::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| at.child(name))
            .chain([at.child("local")])
            .collect()
    }

    /// Takes out storages that are not below the prefix.
    fn other_storages(&mut self) {
        for authority in self.authorities() {
            self.edits.take(authority.child("storage"));
        }
        self.edits.take("/apps/tls/session_tickets/key_source/storage");
    }

    fn listeners(&mut self) -> Result<(), ConfigurationError> {
        let parts = (self.source, self.tree, self.document);
        let asks = &self.surroundings.asks;
        let is_secure = asks.iter().any(|ask| ask.spec.tls);
        let (document, asked) = with_document(parts, is_secure, |it| addresses(it, asks))?;
        let listeners = document.found;
        let http = Pointer::parse("/apps/http");
        let (mut secured, mut moved) = (BTreeSet::new(), Vec::new());
        for (index, address) in listeners.iter().enumerate() {
            let candidate = asked.iter().find(|(candidate, _)| *candidate == index);
            let new = match candidate {
                Some((_, at)) => at.to_string(),
                None => self.socket(&format!("{index}.sock"))?,
            };
            self.edits.put(address.at.clone(), new.clone());
            moved.push(new);
            if candidate.is_some() && address.tls && secured.insert(address.server.clone()) {
                self.policies(&address.server);
            }
        }
        // What is in clear and what is not goes by these, in a server that has both.
        for (name, usual, tls) in [("http_port", 80, false), ("https_port", 443, true)] {
            let configured_port = get(self.document, &http.child(name)).and_then(Json::as_u64);
            let best = asked
                .iter()
                .filter(|(candidate, _)| listeners[*candidate].tls == tls)
                .max_by_key(|(candidate, _)| {
                    let port = listeners[*candidate].port.map(u64::from);
                    (port == configured_port.or(Some(usual)), std::cmp::Reverse(*candidate))
                });
            match best {
                Some((_, at)) => self.edits.put(http.child(name), at.port()),
                // No TLS is spoken at the port of HTTP, wherever that is.
                None if asked
                    .iter()
                    .any(|(_, at)| configured_port == Some(u64::from(at.port()))) =>
                {
                    self.edits.put(http.child(name), usual);
                }
                None => {}
            }
        }
        self.listening = listeners.into_iter().zip(moved).collect();
        Ok(())
    }

    /// Makes a server speak TLS to clients that name any server, with the certificate of the surroundings.
    fn policies(&mut self, server: &Pointer) {
        let list = server.child(POLICIES);
        let policies = items(self.document, &list);
        if policies.is_empty() {
            self.edits.put(list, json!([{}]));
        }
        if self.surroundings.certificate.is_none() {
            return;
        }
        let takes_all =
            policies.iter().any(|policy| get(self.document, &policy.child("match")).is_none());
        if let Some(first) = policies.first().filter(|_| !takes_all) {
            self.edits.take(first.child("match"));
        }
        for policy in &policies {
            self.edits.take(policy.child("certificate_selection"));
        }
    }

    /// Returns the new address of the listener that an upstream leads to, if it is a listener of the configuration.
    fn find_moved_address(&self, dial: &Pointer) -> Option<String> {
        let address = get(self.document, dial)?.as_str()?;
        let mut all = self.listening.iter();
        all.find(|(listener, _)| listener.is_behind(address)).map(|(_, new)| new.clone())
    }

    fn upstreams(&mut self, origin: SocketAddr) {
        for handler in handlers(self.document, "reverse_proxy") {
            let list = handler.child("upstreams");
            let upstreams = items(self.document, &list);
            // Listeners of the configuration itself are spoken to as before.
            let mut is_own = !upstreams.is_empty();
            for upstream in &upstreams {
                let moved = self.find_moved_address(&upstream.child("dial"));
                is_own &= moved.is_some();
                let new = moved.unwrap_or_else(|| origin.to_string());
                self.edits.put(upstream.child("dial"), new);
            }
            if upstreams.is_empty() {
                self.edits.put(list, json!([{"dial": origin.to_string()}]));
            }
            self.edits.take(handler.child("dynamic_upstreams"));
            let elsewhere = ["forward_proxy_url", "local_address", "network_proxy", "resolver"];
            let tls = (!is_own).then_some("tls");
            for elsewhere in elsewhere.into_iter().chain(tls) {
                self.edits.take(handler.child("transport").child(elsewhere));
            }
            // The last two are of what the user's servers answer.
            for elsewhere in ["port", "upstream", "expect_body", "expect_status"] {
                self.edits.take(handler.join("/health_checks/active").child(elsewhere));
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
            Some("net") => self.edits.put(writer, json!({"output": "file", "filename": path})),
            _ => {}
        }
    }

    fn certificates(&mut self) {
        if let Some(pem) = self.surroundings.certificate {
            let shown = json!([{
                "certificate": pem.certificate.display().to_string(),
                "key": pem.key.display().to_string(),
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
                let name = Path::new(get(self.document, &at).and_then(Json::as_str).unwrap_or("/"));
                let path = beside.join(name);
                if name.is_relative() && path.exists() {
                    self.edits.put(at, path.display().to_string());
                }
            }
        }
    }
}
