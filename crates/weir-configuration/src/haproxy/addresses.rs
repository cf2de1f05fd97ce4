//! Where a copy listens, and whom it asks.

use std::collections::BTreeMap;

use super::edit::Edit;
use super::listeners::{is_tls, port};
use super::options::options;
use super::paths::written;
use super::sections::Statement;
use crate::place::{error, is_among, socket};
use crate::{ConfigurationError, Surroundings};

/// Options of `bind` lines that a copy cannot have: they are about interfaces, rights and owners.
pub(super) const NOT_IN_A_COPY: &str = "interface, transparent, namespace, user, group, uid, gid";

/// Options of the listeners under load that would have the load be something else than HTTP.
const NOT_UNDER_LOAD: [&str; 2] = ["accept-proxy", "accept-netscaler-cip"];

/// Options of `bind` lines that say which certificate is shown, and to whom.
const CERTIFICATES: &str = "crt, crt-list, strict-sni, generate-certificates, ca-sign-file";

/// Options of `server` lines by which somebody else would be asked than the server, or from elsewhere.
const OF_OTHERS: &str = "addr, agent-addr, agent-check, agent-inter, agent-port, agent-send, check-via-socks4, \
     init-addr, interface, namespace, no-agent-check, port, resolve-net, resolve-opts, resolve-prefer, \
     resolvers, socks4, source, usesrc";

/// Options of `server` lines that are about how the user's servers are spoken to.
const OF_USERS_SERVERS: &str = "allow-0rtt, ca-file, check-alpn, check-proto, check-send-proxy, \
     check-sni, check-ssl, ciphers, ciphersuites, crl-file, crt, curves, no-check-ssl, no-ssl, no-ssl-reuse, \
     no-tls-tickets, no-verifyhost, npn, proxy-v2-options, send-proxy, send-proxy-v2, \
     send-proxy-v2-ssl, send-proxy-v2-ssl-cn, sigalgs, sni, ssl, ssl-max-ver, ssl-min-ver, verify, \
     verifyhost";

/// A `bind` line of a proxy.
struct Bind<'t> {
    file: usize,
    section: usize,
    statement: &'t Statement<'t>,
    tls: bool,
}

/// Gives every `bind` and `server` line its address in the copy.
pub(super) fn adapt(
    edit: &mut Edit<'_>,
    surroundings: &Surroundings<'_>,
) -> Result<(), ConfigurationError> {
    let binds = binds(edit);
    let chosen = Chosen::among(&binds, edit, surroundings)?;
    let mut moved = BTreeMap::new();
    for (index, bind) in binds.iter().enumerate() {
        let Some(address) = bind.statement.words.get(1) else {
            continue;
        };
        if address.text.starts_with("quic") {
            edit.remove(bind.file, bind.statement);
            continue;
        }
        let new = match chosen.address(index, surroundings) {
            Some(address) => address,
            None => {
                let name = format!("{index}.sock");
                let path = socket(surroundings.prefix, &name, &edit.source.files[0])?;
                format!("unix@{}", written(path.as_ref()))
            }
        };
        let under_load = chosen.address(index, surroundings).is_some();
        edit.splice(bind.file, address.span.clone(), new.clone());
        let certificate = surroundings
            .certificate
            .filter(|_| chosen.tls == Some(index));
        for option in options(bind.statement) {
            let name = bind.statement.word(option.start);
            let gone = is_among(name, NOT_IN_A_COPY)
                || (certificate.is_some() && is_among(name, CERTIFICATES))
                || (under_load && NOT_UNDER_LOAD.contains(&name))
                || (!under_load && name == "shards");
            if gone {
                edit.remove_words(bind.file, &bind.statement.words, option);
            }
        }
        if let Some(pem) = certificate {
            let option = format!("crt {}", written(pem.certificate));
            edit.append(bind.file, bind.statement, &option);
        }
        moved.extend(
            address
                .text
                .split(',')
                .map(|address| (plain(address), new.clone())),
        );
    }
    servers(edit, surroundings, &moved);
    Ok(())
}

/// An address without what means "any address of this host".
fn plain(address: &str) -> String {
    let address = address.strip_prefix("ipv4@").unwrap_or(address);
    match address.rsplit_once(':') {
        Some(("" | "*" | "0.0.0.0" | "127.0.0.1" | "localhost", port)) => format!(":{port}"),
        _ => address.to_owned(),
    }
}

fn binds<'t>(edit: &Edit<'t>) -> Vec<Bind<'t>> {
    let sections = edit.tree.sections.iter().enumerate();
    sections
        .filter(|(_, section)| section.has_frontend())
        .flat_map(|(index, section)| {
            let binds = section.statements.iter().filter(|s| s.word(0) == "bind");
            binds.map(move |statement| Bind {
                file: section.file,
                section: index,
                statement,
                tls: is_tls(statement),
            })
        })
        .collect()
}

/// The lines that are under load, by their places among all.
struct Chosen {
    clear: Option<usize>,
    tls: Option<usize>,
}

impl Chosen {
    fn among(
        binds: &[Bind<'_>],
        edit: &Edit<'_>,
        surroundings: &Surroundings<'_>,
    ) -> Result<Chosen, ConfigurationError> {
        let find = |tls: bool, also: &dyn Fn(&Bind<'_>) -> bool| {
            let fits = |bind: &Bind<'_>| {
                bind.tls == tls && !bind.statement.word(1).starts_with("quic") && also(bind)
            };
            binds.iter().position(fits)
        };
        let asked = |bind: &Bind<'_>| match surroundings.port {
            Some(wanted) => has_port(bind.statement.word(1), wanted),
            None => port(bind.statement.word(1)).is_some(),
        };
        let tls_asked = surroundings.port.and_then(|_| find(true, &asked));
        let clear = match (find(false, &asked), tls_asked) {
            // Their port is that of a TLS listener: the clear one, if any, is its neighbour.
            (None, Some(tls)) => find(false, &|bind| bind.section == binds[tls].section),
            (clear, _) => clear,
        };
        let section = clear.or(tls_asked).map(|index| binds[index].section);
        let tls = surroundings.tls_listen.and_then(|_| {
            let near = find(true, &|bind| Some(bind.section) == section);
            tls_asked.or(near).or_else(|| find(true, &|_| true))
        });
        if surroundings.tls_listen.is_some() && tls.is_none() {
            return Err(missing(
                edit,
                "no `bind` line of a frontend has `ssl`",
                binds,
            ));
        }
        let is_elsewhere = surroundings.port.is_some() && tls_asked.is_none();
        if clear.is_none() && (tls.is_none() || is_elsewhere) {
            let what = match surroundings.port {
                Some(port) => format!("no `bind` line of a frontend is in clear on port {port}"),
                None => "no `bind` line of a frontend is in clear".to_owned(),
            };
            return Err(missing(edit, &what, binds));
        }
        Ok(Chosen { clear, tls })
    }

    /// The address of a line in the copy; `None` for one that is not under load.
    fn address(&self, index: usize, surroundings: &Surroundings<'_>) -> Option<String> {
        let address = match index {
            index if Some(index) == self.clear => Some(surroundings.listen),
            index if Some(index) == self.tls => surroundings.tls_listen,
            _ => None,
        };
        address.map(|address| address.to_string())
    }
}

fn missing(edit: &Edit<'_>, what: &str, binds: &[Bind<'_>]) -> ConfigurationError {
    let has = |bind: &Bind<'_>| {
        let tls = if bind.tls { " (ssl)" } else { "" };
        format!("{}{tls}", bind.statement.word(1))
    };
    let listens: Vec<String> = binds.iter().map(has).collect();
    let (file, at) = binds.first().map_or((0, 0), |bind| {
        (bind.file, bind.statement.words_from(0).start)
    });
    let hint = match listens.is_empty() {
        true => "add a frontend with a `bind` line".to_owned(),
        false => format!("the configuration listens on {}", listens.join(", ")),
    };
    error(&edit.source.files[file], at, what).hint(hint)
}

/// Whether one of the addresses has this port, or a range of ports with it.
fn has_port(addresses: &str, wanted: u16) -> bool {
    addresses.split(',').any(|address| {
        let last = address
            .rsplit([':', '-'])
            .next()
            .and_then(|port| port.parse().ok());
        port(address).is_some_and(|first| (first..=last.unwrap_or(first)).contains(&wanted))
    })
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
            let own = moved.get(&plain(statement.word(at))).filter(|_| at > 0);
            let new = own
                .cloned()
                .unwrap_or_else(|| surroundings.origin.to_string());
            if let (Some(word), true) = (statement.words.get(at), at > 0) {
                edit.splice(section.file, word.span.clone(), new);
            }
            for option in options(statement) {
                let name = statement.word(option.start);
                let is_users = own.is_none();
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

/// Whether an option of a `server` line is about the user's servers.
pub(super) fn is_of_servers(option: &str) -> bool {
    is_among(option, OF_OTHERS)
        || is_among(option, OF_USERS_SERVERS)
        || option.starts_with("force-")
        || option.starts_with("no-tlsv")
        || option == "no-sslv3"
}
