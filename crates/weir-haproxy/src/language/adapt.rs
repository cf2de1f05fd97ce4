//! A copy of a haproxy.cfg that runs beside the original.

use weir_configuration::place::{is_among, socket};
use weir_configuration::{ConfigurationError, Source, Surroundings};

use super::edit::Edit;
use super::options::options;
use super::paths::{made_absolute, written};
use super::sections::{Section, Statement, Tree};
use super::{addresses, known};

/// Options that make a check use another protocol than HTTP, or a program. Without them a check only connects.
const CHECKS: &str = "external-check, ldap-check, mysql-check, pgsql-check, redis-check, smtpchk, spop-check, \
     ssl-hello-chk, tcp-check";

/// Makes a copy that can run in a trial: in the foreground, on the given addresses, with its sockets below
/// `PREFIX/run/` (which the caller makes), and contacting only the given origin server.
///
/// * `daemon`, `master-worker`, `chroot`, `unix-bind`, `external-check` and `httpclient.…` are taken out, and whole
///   sections `program`, `log-forward`, `mailers`, `resolvers`, `namespace_list` and `traces`; `user` and `group`
///   become those of the surroundings.
/// * `resolvers default` names the origin server, and nothing uses it: HAProxy makes that section from the host's
///   `/etc/resolv.conf` if there is none, and tries whether a socket can be connected to those servers
///   (`resolvers_finalize_config`, since 2.6).
/// * Log lines go to the datagram socket `PREFIX/run/log.sock`. Nobody has to listen there: HAProxy makes every line
///   and sends it, so logging costs the copies of all arms alike, and settings of logging (`option dontlog-normal`) can
///   still be varied.
/// * The first `stats socket` becomes `PREFIX/run/admin.sock` with `level admin`, and is added if there is none; others
///   move below the prefix too. All have `mode 600`: only weir may use them.
/// * The `bind` lines that loads ask ([`Surroundings::asks`]) get the new addresses; none of them keeps `accept-proxy`.
///   With a certificate of the surroundings, those with `ssl` show that certificate to everybody, and so do those that
///   a frontend in TCP leads to. All others move to `PREFIX/run/N.sock`, which only the surroundings' user can use;
///   those for QUIC are taken out.
/// * Every `server`, `server-template` and `dispatch` gets the origin server's address, unless it is an address that
///   the configuration listens on itself. Options about reaching the user's servers are taken out: name resolution,
///   TLS, the PROXY protocol, `source`, ports of checks and agents, and everything that `http-check connect` says.
///   `proto` stays, and `alpn h2` becomes `proto h2`. `check` stays, and asks the origin server in addition to the
///   load: a check by HTTP stays one, and any other only connects. Expectations of an answer are taken out.
/// * `peers` are disabled, and servers and files of a `ring` and `email-alert` are taken out.
/// * Relative paths become absolute if a file exists there, relative to the user's folder.
///
/// Some settings stay that can matter: `cpu-map`, `maxconn`, `setenv`.
///
/// # Errors
/// Returns an error if the configuration cannot be read; if a statement is not known to do no harm (Lua, SPOE,
/// `do-resolve`, statements that weir does not know); if no listener matches a load; or if the prefix is too long for a
/// socket.
pub fn adapt(
    source: &Source,
    surroundings: &Surroundings<'_>,
) -> Result<Source, ConfigurationError> {
    known::check(source, &Tree::parse(source)?)?;
    let source = made_absolute(source)?;
    let tree = Tree::parse(&source)?;
    let mut edit = Edit::new(&source, &tree);
    let mut added = Vec::new();
    user(&mut edit, surroundings, &mut added);
    stats_sockets(&mut edit, surroundings, &mut added)?;
    match tree.of_kind("global").next() {
        Some((_, global)) => added.iter().for_each(|text| edit.insert(global, text)),
        None => edit.insert_section("global", &added),
    }
    let nameserver = format!("nameserver origin {}", surroundings.origin);
    edit.append_section("resolvers default", &nameserver);
    let log = socket(surroundings.prefix, "log.sock", &source.files[0])?;
    for section in &tree.sections {
        if known::is_left_out(section.kind()) {
            edit.remove_section(section);
            continue;
        }
        if section.kind() == "peers" {
            edit.insert(section, "disabled");
        }
        for statement in &section.statements {
            of_section(&mut edit, section, statement, surroundings, &log);
        }
    }
    addresses::adapt(&mut edit, surroundings)?;
    Ok(edit.done())
}

/// Adapts a statement that can be understood without looking at others.
fn of_section(
    edit: &mut Edit<'_>,
    section: &Section<'_>,
    statement: &Statement<'_>,
    surroundings: &Surroundings<'_>,
    log: &str,
) {
    let is_removed = match (section.kind(), statement.word(0)) {
        ("global", "daemon" | "master-worker" | "chroot" | "unix-bind" | "external-check") => true,
        ("global", keyword) if keyword.starts_with("httpclient.") => true,
        ("ring", "server" | "backing-file") => true,
        // The last of them would count.
        ("peers", "enabled" | "disabled") => true,
        (_, "email-alert" | "external-check") => true,
        // The origin server answers HTTP, and with content of its own.
        (_, "tcp-check") => true,
        (_, "http-check") => statement.word(1) == "expect",
        (_, "option") => is_among(statement.word(1), CHECKS),
        (_, "source" | "load-server-state-from-file") => section.kind() != "global",
        _ => false,
    };
    if is_removed {
        edit.remove(section.file, statement);
        return;
    }
    match (
        statement.word(0),
        statement.word(1),
        statement.words.get(1).map(|word| word.span.clone()),
    ) {
        ("pidfile", _, Some(span)) => {
            let path = surroundings.prefix.join("run/haproxy.pid");
            edit.splice(section.file, span, written(&path));
        }
        ("log" | "log-stderr", target, Some(span)) if target != "global" => {
            edit.splice(section.file, span, written(log.as_ref()));
        }
        ("dispatch", _, Some(span)) => {
            edit.splice(section.file, span, surroundings.origin.to_string());
        }
        ("http-check", "connect", _) if statement.words.len() > 2 => {
            edit.remove_words(section.file, &statement.words, 2..statement.words.len());
        }
        _ => {}
    }
}

/// Returns the statements of all sections `global`, each with its file.
fn globals<'t>(tree: &'t Tree<'t>) -> impl Iterator<Item = (usize, &'t Statement<'t>)> {
    let sections = tree.of_kind("global");
    sections.flat_map(|(_, section)| section.statements.iter().map(|s| (section.file, s)))
}

/// Sets the user and group that the copy runs as.
fn user(edit: &mut Edit<'_>, surroundings: &Surroundings<'_>, added: &mut Vec<String>) {
    let names = surroundings.user.map(|(user, group)| [user, group]);
    for (index, keywords) in [["user", "uid"], ["group", "gid"]].iter().enumerate() {
        let mut wanted = names.map(|names| names[index]);
        for (file, statement) in globals(edit.tree).filter(|(_, s)| keywords.contains(&s.word(0))) {
            match wanted.take() {
                Some(name) => {
                    let words = [keywords[0].to_owned(), name.to_owned()];
                    edit.rewrite(file, &statement.words, &words);
                }
                None => edit.remove(file, statement),
            }
        }
        added.extend(wanted.map(|name| format!("{} {name}", keywords[0])));
    }
}

/// Moves the stats sockets below the prefix, or adds one.
fn stats_sockets(
    edit: &mut Edit<'_>,
    surroundings: &Surroundings<'_>,
    added: &mut Vec<String>,
) -> Result<(), ConfigurationError> {
    let main = &edit.source.files[0];
    let admin = socket(surroundings.prefix, "admin.sock", main)?;
    let sockets = globals(edit.tree).filter(|(_, s)| s.begins_with(&["stats", "socket"]));
    let mut count = 0;
    for (file, statement) in sockets {
        let path = match count {
            0 => admin.clone(),
            n => socket(surroundings.prefix, &format!("stats-{n}.sock"), main)?,
        };
        count += 1;
        let Some(address) = statement.words.get(2) else {
            continue;
        };
        edit.splice(file, address.span.clone(), written(path.as_ref()));
        let mut missing = vec![("mode", "600")];
        missing.extend((count == 1).then_some(("level", "admin")));
        for option in options(statement) {
            let name = statement.word(option.start);
            let wanted = missing.iter().position(|(wanted, _)| *wanted == name);
            match (name, wanted) {
                ("user" | "group" | "uid" | "gid", _) => {
                    edit.remove_words(file, &statement.words, option);
                }
                (_, Some(wanted)) => {
                    let (name, value) = missing.remove(wanted);
                    let words = [name.to_owned(), value.to_owned()];
                    edit.rewrite(file, &statement.words[option], &words);
                }
                // A second one, which would count.
                ("mode", None) => edit.remove_words(file, &statement.words, option),
                _ => {}
            }
        }
        for (name, value) in missing {
            edit.append(file, statement, &format!("{name} {value}"));
        }
    }
    if count == 0 {
        added.push(format!("stats socket {} mode 600 level admin", written(admin.as_ref())));
    }
    Ok(())
}
