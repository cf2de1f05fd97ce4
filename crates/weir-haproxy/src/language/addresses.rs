//! The addresses on which a copy listens, and those of the servers that it contacts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_configuration::place::{error, is_among, socket};
use weir_configuration::{ConfigurationError, Surroundings};

use super::asked;
use super::edit::Edit;
use super::listeners::{has_no_number, last_port, plain, port};
use super::options::options;
use super::paths::written;
use super::sections::Statement;

/// Options of `bind` lines that a copy cannot have, since they are about interfaces, rights and owners.
pub(super) const NOT_IN_A_COPY: &str = "interface, transparent, namespace, user, group, uid, gid";

/// Options that listeners under load cannot have, since they expect something else than HTTP.
const NOT_UNDER_LOAD: [&str; 2] = ["accept-proxy", "accept-netscaler-cip"];

/// Options of `bind` lines that set which certificate is shown, and to which clients.
const CERTIFICATES: &str = "crt, crt-list, strict-sni, generate-certificates, ca-sign-file";

/// Options of `server` lines that make HAProxy contact another address than the server's, or from another source
/// address.
const OF_OTHERS: &str = "addr, agent-addr, agent-check, agent-inter, agent-port, agent-send, check-via-socks4, \
     init-addr, interface, namespace, no-agent-check, port, resolve-net, resolve-opts, resolve-prefer, \
     resolvers, socks4, source, usesrc";

/// Options of `server` lines that send information about clients to the user's servers.
const OF_PROXY_PROTOCOL: &str = "check-send-proxy, proxy-v2-options, send-proxy, send-proxy-v2, send-proxy-v2-ssl, \
     send-proxy-v2-ssl-cn";

/// Options of `server` lines about TLS with the user's servers.
const OF_TLS: &str = "allow-0rtt, ca-file, check-alpn, check-proto, check-sni, check-ssl, ciphers, ciphersuites, crl-file, \
     crt, curves, no-check-ssl, no-ssl, no-ssl-reuse, no-tls-tickets, no-verifyhost, npn, sigalgs, sni, ssl, \
     ssl-max-ver, ssl-min-ver, verify, verifyhost";

/// A `bind` line of a proxy.
struct Bind<'t> {
    file: usize,
    statement: &'t Statement<'t>,
}

/// Gives every `bind` and `server` line its address in the copy.
pub(super) fn adapt(
    edit: &mut Edit<'_>,
    surroundings: &Surroundings<'_>,
) -> Result<(), ConfigurationError> {
    let binds = list_binds(edit);
    let lines = asked::lines(edit.source, edit.tree, &surroundings.asks)?;
    let mut moved = BTreeMap::new();
    let mut ports = Vec::new();
    for (index, bind) in binds.iter().enumerate() {
        let Some(address) = bind.statement.words.get(1) else {
            continue;
        };
        if address.variable.is_none() && address.text.split(',').any(has_no_number) {
            let message = format!("the port of `{}` is not a number for HAProxy", address.text);
            let hint = "write the number, or a variable that holds it: \"*:${PORT}\"";
            return Err(
                error(&edit.source.files[bind.file], address.span.start, message).hint(hint)
            );
        }
        if address.text.starts_with("quic") {
            edit.remove(bind.file, bind.statement);
            continue;
        }
        let load_address = lines.asked.iter().find(|(line, _)| *line == index);
        let new = match load_address {
            Some((_, address)) => address.to_string(),
            None => {
                let name = format!("{index}.sock");
                let path = socket(surroundings.prefix, &name, &edit.source.files[0])?;
                format!("unix@{}", written(path.as_ref()))
            }
        };
        let port = load_address.and_then(|(_, new)| asked_port(&address.text, new, surroundings));
        ports.extend(port);
        let under_load = load_address.is_some();
        edit.splice(bind.file, address.span.clone(), new.clone());
        // Workers that are somebody else ask it as well.
        let owner = surroundings.user.filter(|_| !under_load);
        let certificate = surroundings.certificate.filter(|_| lines.secure.contains(&index));
        for option in options(bind.statement) {
            let name = bind.statement.word(option.start);
            let is_removed = is_among(name, NOT_IN_A_COPY)
                || (certificate.is_some() && is_among(name, CERTIFICATES))
                || (under_load && NOT_UNDER_LOAD.contains(&name))
                || (!under_load && name == "shards")
                || (owner.is_some() && name == "mode");
            if is_removed {
                edit.remove_words(bind.file, &bind.statement.words, option);
            }
        }
        if let Some(pem) = certificate {
            let option = format!("crt {}", written(pem.certificate));
            edit.append(bind.file, bind.statement, &option);
        }
        if let Some((user, _)) = owner {
            edit.append(bind.file, bind.statement, &format!("user {user} mode 600"));
        }
        moved.extend(address.text.split(',').map(|address| (plain(address), new.clone())));
    }
    servers(edit, surroundings, &moved);
    destinations(edit, &ports);
    Ok(())
}

/// Returns the port of a `bind` line that a load asks, and the port that replaces it in the copy.
fn asked_port(
    addresses: &str,
    new: &SocketAddr,
    surroundings: &Surroundings<'_>,
) -> Option<(u16, u16)> {
    surroundings
        .asks
        .iter()
        .filter(|ask| ask.at == *new)
        .filter_map(|ask| ask.spec.port.or(ask.spec.proxy_port))
        .find(|port| has_port(addresses, *port))
        .or_else(|| addresses.split(',').find_map(port))
        .map(|port| (port, new.port()))
}

/// Returns true if a port is one of those of a `bind` line's addresses.
fn has_port(addresses: &str, wanted: u16) -> bool {
    addresses.split(',').any(|address| {
        let ports = port(address).map(|first| first..=last_port(address).unwrap_or(first));
        ports.is_some_and(|ports| ports.contains(&wanted))
    })
}

/// Changes the port in conditions about a port that a load asks to the copy's port.
fn destinations(edit: &mut Edit<'_>, ports: &[(u16, u16)]) {
    let tree = edit.tree;
    for section in &tree.sections {
        for statement in &section.statements {
            let mut is_port = false;
            for word in &statement.words {
                let number: Option<u16> = word.text.parse().ok();
                is_port =
                    word.text == "dst_port" || (is_port && (number.is_some() || word.text == "eq"));
                if let Some((_, new)) =
                    ports.iter().find(|(own, _)| is_port && number == Some(*own))
                {
                    edit.splice(section.file, word.span.clone(), new.to_string());
                }
            }
        }
    }
}

fn list_binds<'t>(edit: &Edit<'t>) -> Vec<Bind<'t>> {
    edit.tree
        .sections
        .iter()
        .filter(|section| section.has_frontend())
        .flat_map(|section| {
            section
                .statements
                .iter()
                .filter(|s| s.word(0) == "bind")
                .map(move |statement| Bind { file: section.file, statement })
        })
        .collect()
}

fn servers(edit: &mut Edit<'_>, surroundings: &Surroundings<'_>, moved: &BTreeMap<String, String>) {
    let tree = edit.tree;
    for section in &tree.sections {
        if !section.has_backend() && section.kind() != "defaults" {
            continue;
        }
        for statement in &section.statements {
            let at = match statement.word(0) {
                "server" => 2,
                "server-template" => 3,
                "default-server" => 0,
                _ => continue,
            };
            let socket = moved.get(&plain(statement.word(at))).filter(|_| at > 0);
            let new = socket.cloned().unwrap_or_else(|| surroundings.origin.to_string());
            if let (Some(word), true) = (statement.words.get(at), at > 0) {
                edit.splice(section.file, word.span.clone(), new);
            }
            for option in options(statement) {
                let name = statement.word(option.start);
                let is_users = socket.is_none();
                // Without TLS nobody negotiates: what was preferred is said.
                let is_alpn = is_users && name == "alpn";
                if is_alpn && statement.word(option.start + 1).starts_with("h2") {
                    let [first, last] = [option.start, option.start + 1];
                    let words = &statement.words;
                    let span = words[first].span.start..words[last].span.end;
                    edit.splice(section.file, span, "proto h2".to_owned());
                } else if is_alpn || is_among(name, OF_OTHERS) || (is_users && is_of_servers(name))
                {
                    edit.remove_words(section.file, &statement.words, option);
                }
            }
        }
    }
}

/// Returns true if an option of a `server` line is about the user's servers.
pub(super) fn is_of_servers(option: &str) -> bool {
    is_among(option, OF_OTHERS) || is_among(option, OF_PROXY_PROTOCOL) || is_of_tls(option)
}

/// Returns true for an option of a `server` line about TLS with that server.
pub(super) fn is_of_tls(option: &str) -> bool {
    is_among(option, OF_TLS)
        || option.starts_with("force-")
        || option.starts_with("no-tlsv")
        || option == "no-sslv3"
}
