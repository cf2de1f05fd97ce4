//! Where a proxy that runs tells of itself, by its command line and its configuration.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_configuration::nginx::{self, Plain};
use weir_configuration::{document, haproxy, read_regular};
use weir_model::study::ProxyKind;

use super::process::Process;
use super::{ObservedProxy, Peer, Way};
use crate::envoy::ASK_OWN;

/// The largest file of httpd's that is read, in bytes, and how deep they include each other.
const MOST: u64 = 1 << 20;
const DEEPEST: usize = 8;

/// Where Caddy listens for its administration by default.
const CADDY_ADMIN: u16 = 2019;

pub(super) fn of(processes: &[u32], address: SocketAddr) -> Option<ObservedProxy> {
    let process = Process::first(processes)?;
    let open = weir_probe::error_log_of(processes).map(|(_, path)| path);
    let unknown = ObservedProxy {
        kind: process.kind,
        error_log: open.clone(),
        logs_warnings: None,
        settings: BTreeMap::new(),
        idle: Vec::new(),
        way: Err("its configuration is in another file system than weir's".to_owned()),
    };
    if process.kind == ProxyKind::Caddy {
        let way = caddy(processes);
        return Some(ObservedProxy { way, ..unknown });
    }
    if !process.has_our_files() {
        return Some(unknown);
    }
    let read = match process.kind {
        ProxyKind::Nginx => of_nginx(&process),
        ProxyKind::Haproxy => of_haproxy(&process),
        ProxyKind::Envoy => of_envoy(&process),
        _ => of_httpd(&process, address),
    };
    Some(match read {
        Ok(read) => ObservedProxy {
            kind: process.kind,
            error_log: read.error_log.filter(|path| path.exists()).or(open),
            logs_warnings: read.logs_warnings,
            settings: read.settings,
            idle: read.idle,
            way: read.way,
        },
        Err(why) => ObservedProxy {
            way: Err(format!("its configuration cannot be read: {why}")),
            ..unknown
        },
    })
}

/// What was found in a configuration.
struct Found {
    error_log: Option<PathBuf>,
    logs_warnings: Option<bool>,
    settings: BTreeMap<String, String>,
    idle: Vec<&'static str>,
    way: Result<Way, String>,
}

/// What a program prints of itself: `nginx -V`, `apache2 -V`.
fn printed(process: &Process) -> String {
    let mut program = Command::new(process.program());
    program.arg("-V").stdin(Stdio::null());
    let output = program.output();
    let bytes = output.map(|output| [output.stdout, output.stderr].concat());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// The value of an option of `configure` in `nginx -V`.
fn built<'t>(printed: &'t str, option: &str) -> Option<&'t str> {
    let mut words = printed.split_whitespace();
    words.find_map(|word| word.strip_prefix(option)?.strip_prefix('='))
}

fn of_nginx(process: &Process) -> Result<Found, String> {
    let printed = printed(process);
    let given = process
        .values(&["-p"])
        .last()
        .map(|path| process.path(path));
    let prefix = given
        .or_else(|| built(&printed, "--prefix").map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/usr/local/nginx"));
    let named = process.values(&["-c"]).last().map(|path| prefix.join(path));
    let main = named
        .or_else(|| built(&printed, "--conf-path").map(|path| prefix.join(path)))
        .unwrap_or_else(|| prefix.join("conf/nginx.conf"));
    let source = nginx::read(&main, None).map_err(|error| error.to_string())?;
    let tree = nginx::expanded(&source).map_err(|error| error.to_string())?;
    let log = tree.iter().rfind(|directive| directive.name == "error_log");
    let log = log.map(|directive| directive.arguments.clone());
    let log = log.unwrap_or_default();
    let level = log.get(1).map_or("error", String::as_str);
    let events = tree.iter().find(|directive| directive.name == "events");
    let events = events.and_then(|events| events.block.as_ref());
    let mut settings = BTreeMap::new();
    let mut keep = |tree: &[Plain], name: &str| {
        let found = tree.iter().rfind(|directive| directive.name == name);
        let level = found.and_then(|directive| directive.arguments.first());
        settings.extend(level.map(|level| (name.to_owned(), level.clone())));
    };
    keep(&tree, "worker_processes");
    keep(events.map_or(&[], Vec::as_slice), "worker_connections");
    settings
        .entry("worker_connections".to_owned())
        .or_insert_with(|| "512".to_owned());
    let none = "its configuration has no location with `stub_status` that this host may ask";
    Ok(Found {
        error_log: log.first().map(|path| prefix.join(path)),
        logs_warnings: Some(!["error", "crit", "alert", "emerg"].contains(&level)),
        settings,
        idle: idle(&tree),
        way: stub_status(&tree).ok_or_else(|| none.to_owned()),
    })
}

/// Counters of nginx by the directives that they count, and which of these a configuration has not.
fn idle(tree: &[Plain]) -> Vec<&'static str> {
    const COUNTED: [(&str, &[&str]); 2] = [
        ("limit_req", &["log.limit_req", "log.limit_req_delayed"]),
        ("limit_conn", &["log.limit_conn"]),
    ];
    let absent = COUNTED.iter().filter(|(name, _)| !has(tree, name));
    absent
        .flat_map(|(_, counters)| *counters)
        .copied()
        .collect()
}

fn has(tree: &[Plain], name: &str) -> bool {
    tree.iter().any(|directive| {
        directive.name == name
            || directive
                .block
                .as_ref()
                .is_some_and(|block| has(block, name))
    })
}

/// Where nginx tells of itself (ngx_http_stub_status_module).
fn stub_status(tree: &[Plain]) -> Option<Way> {
    let blocks = |tree: &'_ [Plain], name: &'static str| -> Vec<Plain> {
        let found = tree
            .iter()
            .filter(|it| it.name == name && it.block.is_some());
        found.cloned().collect()
    };
    let https = blocks(tree, "http");
    let servers = https
        .iter()
        .flat_map(|http| blocks(http.block.as_deref().unwrap_or_default(), "server"));
    for server in servers {
        let inner = server.block.as_deref().unwrap_or_default();
        let Some(path) = location_of(inner, "stub_status") else {
            continue;
        };
        let argument = |name: &str| {
            let found = inner.iter().find(|directive| directive.name == name);
            found.and_then(|directive| directive.arguments.first())
        };
        let host = argument("server_name").map_or("localhost", String::as_str);
        let listens = inner.iter().filter(|directive| directive.name == "listen");
        let mut in_clear = listens.filter(|listen| {
            let mut flags = listen.arguments.iter().skip(1);
            !flags.any(|flag| ["ssl", "quic", "proxy_protocol"].contains(&flag.as_str()))
        });
        let peer = match in_clear.next() {
            Some(listen) => peer_of(listen.arguments.first()?)?,
            None if argument("listen").is_some() => continue,
            None => Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 80))),
        };
        return Some(Way::Http(peer, host.to_owned(), path));
    }
    None
}

/// The path of the first location with a directive, nested ones included.
fn location_of(blocks: &[Plain], directive: &str) -> Option<String> {
    let locations = blocks.iter().filter(|it| it.name == "location");
    locations.into_iter().find_map(|location| {
        let inner = location.block.as_deref()?;
        let is_here = inner.iter().any(|it| it.name == directive);
        let path = match &location.arguments[..] {
            [path] if path.starts_with('/') => Some(path),
            [sign, path] if sign == "=" || sign == "^~" => Some(path),
            _ => None,
        };
        let own = path.filter(|_| is_here).cloned();
        own.or_else(|| location_of(inner, directive))
    })
}

/// Who is connected to for an address that is listened at: this host where it is any.
fn peer_of(listen: &str) -> Option<Peer> {
    if let Some(path) = listen.strip_prefix("unix:") {
        return Some(Peer::Unix(path.into()));
    }
    let local = IpAddr::from(Ipv4Addr::LOCALHOST);
    let (host, port) = match listen.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => match listen.parse::<u16>() {
            Ok(port) => ("*", port),
            Err(_) => (listen, 80),
        },
    };
    let host = match host.trim_start_matches('[').trim_end_matches(']') {
        "*" | "" | "localhost" => local,
        address => address.parse().ok()?,
    };
    let host = if host.is_unspecified() { local } else { host };
    Some(Peer::Tcp(SocketAddr::from((host, port))))
}

fn of_haproxy(process: &Process) -> Result<Found, String> {
    let mut way = Err("its configuration has no `stats socket`".to_owned());
    let files = process.values(&["-f"]);
    if files.is_empty() {
        return Err("its command line names none".to_owned());
    }
    let mut settings = BTreeMap::new();
    for file in files {
        let source = haproxy::read(&process.path(file)).map_err(|error| error.to_string())?;
        let tree = haproxy::Tree::parse(&source).map_err(|error| error.to_string())?;
        let globals = tree.of_kind("global");
        for statement in globals.flat_map(|(_, section)| &section.statements) {
            match (statement.word(0), statement.word(1)) {
                ("stats", "socket") if way.is_err() => {
                    let address = statement.word(2);
                    let address = address.strip_prefix("unix@").unwrap_or(address);
                    let address = address.strip_prefix("ipv4@").unwrap_or(address);
                    let peer = match address.starts_with('/') {
                        true => Some(Peer::Unix(address.into())),
                        false => peer_of(address),
                    };
                    way = peer.map(Way::Lines).ok_or_else(|| {
                        format!("its `stats socket {address}` is no address that is known here")
                    });
                }
                ("maxconn" | "nbthread", level) => {
                    settings.insert(statement.word(0).to_owned(), level.to_owned());
                }
                _ => {}
            }
        }
    }
    Ok(Found {
        error_log: None,
        logs_warnings: None,
        settings,
        idle: Vec::new(),
        way,
    })
}

fn of_envoy(process: &Process) -> Result<Found, String> {
    let file = process.values(&["-c", "--config-path"]);
    let file = file.last().ok_or("its command line names none")?;
    let main = process.path(file);
    let format = document::Dialect::Envoy.format(&main);
    let source = document::read(&main, format).map_err(|error| error.to_string())?;
    let value = document::value(&source, format).map_err(|error| error.to_string())?;
    let socket = value.pointer("/admin/address/socket_address");
    let tcp = socket.and_then(|socket| {
        let host = socket.get("address")?.as_str()?;
        let port = socket
            .get("port_value")
            .or_else(|| socket.get("portValue"))?;
        peer_of(&format!("{host}:{}", port.as_u64()?))
    });
    let pipe = value.pointer("/admin/address/pipe/path");
    let pipe = pipe.and_then(|path| path.as_str());
    let peer = tcp.or_else(|| pipe.map(|path| Peer::Unix(path.into())));
    let none = "its bootstrap has no `admin` address: add one to have its circuit breakers read";
    let http = |peer| Way::Http(peer, "localhost".to_owned(), ASK_OWN.to_owned());
    Ok(Found {
        error_log: None,
        logs_warnings: None,
        settings: BTreeMap::new(),
        idle: Vec::new(),
        way: peer.map(http).ok_or_else(|| none.to_owned()),
    })
}

/// Caddy listens at a port of its own, unless it was told otherwise.
fn caddy(processes: &[u32]) -> Result<Way, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, CADDY_ADMIN));
    let there = weir_probe::listening_at(address);
    match there.iter().any(|pid| processes.contains(pid)) {
        true => {
            let host = format!("localhost:{CADDY_ADMIN}");
            Ok(Way::Http(Peer::Tcp(address), host, "/metrics".to_owned()))
        }
        false => Err(format!("its administration does not listen at {address}")),
    }
}

fn of_httpd(process: &Process, address: SocketAddr) -> Result<Found, String> {
    let printed = printed(process);
    let defined = |name: &str| {
        let mut lines = printed.lines();
        let value = lines.find_map(|line| line.trim().strip_prefix("-D ")?.strip_prefix(name));
        let value = value.and_then(|value| value.strip_prefix("=\""));
        value
            .and_then(|value| value.strip_suffix('"'))
            .map(str::to_owned)
    };
    let root = process
        .values(&["-d"])
        .last()
        .map(|path| process.path(path));
    let root = root.or_else(|| defined("HTTPD_ROOT").map(PathBuf::from));
    let root = root.unwrap_or_else(|| PathBuf::from("/etc/apache2"));
    let main = process.values(&["-f"]).last().map(|path| root.join(path));
    let main = main.or_else(|| defined("SERVER_CONFIG_FILE").map(|path| root.join(path)));
    let main = main.unwrap_or_else(|| root.join("apache2.conf"));
    let mut lines = Vec::new();
    httpd_lines(&main, &root, DEEPEST, &mut lines)?;
    let value = |name: &str| {
        let mut found = lines.iter().rev().filter_map(|line| {
            let (own, value) = line.split_once(char::is_whitespace)?;
            own.eq_ignore_ascii_case(name)
                .then(|| value.trim().trim_matches('"').to_owned())
        });
        found.next()
    };
    let log =
        value("ErrorLog").filter(|log| !log.starts_with(['|', '$']) && !log.contains("syslog"));
    let settings =
        value("MaxRequestWorkers").map(|level| ("max_request_workers".to_owned(), level));
    let none = "its configuration has no location with the handler `server-status`";
    Ok(Found {
        error_log: log.map(|log| root.join(log)),
        logs_warnings: value("LogLevel").map(|level| !level.starts_with("error")),
        settings: settings.into_iter().collect(),
        idle: Vec::new(),
        way: server_status(&lines)
            .map(|path| {
                let target = format!("{path}?auto");
                Way::Http(Peer::Tcp(address), "localhost".to_owned(), target)
            })
            .ok_or_else(|| none.to_owned()),
    })
}

/// The path of the location whose handler is mod_status.
fn server_status(lines: &[String]) -> Option<String> {
    let mut path = None;
    for line in lines {
        let lower = line.to_ascii_lowercase();
        if lower.starts_with("<location ") {
            let rest = line[10..].trim_end_matches('>').trim().trim_matches('"');
            path = rest.starts_with('/').then(|| rest.to_owned());
        } else if lower.starts_with("</location") {
            path = None;
        } else if lower.starts_with("sethandler ") && lower.contains("server-status") {
            return path;
        }
    }
    None
}

/// The lines of a file of httpd's and of all that it includes, without comments.
fn httpd_lines(
    file: &Path,
    root: &Path,
    depth: usize,
    lines: &mut Vec<String>,
) -> Result<(), String> {
    let text = read_regular(file, MOST);
    let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
    for line in String::from_utf8_lossy(&text).lines().map(str::trim) {
        let word = line.split_whitespace().next().unwrap_or_default();
        let is_include = ["include", "includeoptional"].contains(&&*word.to_ascii_lowercase());
        if !is_include {
            if !line.is_empty() && !line.starts_with('#') {
                lines.push(line.to_owned());
            }
            continue;
        }
        let pattern = line[word.len()..].trim().trim_matches('"');
        for inner in included(&root.join(pattern)) {
            if depth > 0 && inner.is_file() {
                // What cannot be read of many files is missing, and the rest is not.
                let _ = httpd_lines(&inner, root, depth - 1, lines);
            }
        }
    }
    Ok(())
}

/// The files that a pattern stands for, whose last part alone has asterisks; those of a folder.
fn included(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    if !name.contains('*') && !pattern.is_dir() {
        return vec![pattern.to_owned()];
    }
    let (folder, name) = match pattern.is_dir() {
        true => (pattern, "*".to_owned()),
        false => (pattern.parent().unwrap_or(Path::new("/")), name),
    };
    let (before, behind) = name.split_once('*').unwrap_or((&name, ""));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let own = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            let own = own.unwrap_or_default();
            own.len() >= before.len() + behind.len()
                && own.starts_with(before)
                && own.ends_with(behind)
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_is_asked_where_its_status_is() {
        let status = |text: &str| {
            let path = PathBuf::from("/etc/nginx/nginx.conf");
            let file = weir_configuration::SourceFile {
                path,
                text: text.to_owned(),
            };
            let source = weir_configuration::Source::new(vec![file]);
            stub_status(&nginx::expanded(&source).unwrap())
        };
        let http =
            |peer, host: &str, path: &str| Some(Way::Http(peer, host.to_owned(), path.to_owned()));
        let tcp = |address: &str| Peer::Tcp(address.parse().unwrap());
        for (text, expected) in [
            (
                "http { server { listen 8081; location /s { stub_status; } } }",
                http(tcp("127.0.0.1:8081"), "localhost", "/s"),
            ),
            (
                "http { server { listen 443 ssl; listen 127.0.0.2:81; server_name a; \
                 location / { location = /s { stub_status on; } } } }",
                http(tcp("127.0.0.2:81"), "a", "/s"),
            ),
            (
                "http { server { location /s { stub_status; } } }",
                http(tcp("127.0.0.1:80"), "localhost", "/s"),
            ),
            (
                "http { server { listen unix:/run/s.sock; location /s { stub_status; } } }",
                http(Peer::Unix("/run/s.sock".into()), "localhost", "/s"),
            ),
            (
                "http { server { listen 443 ssl; location /s { stub_status; } } }",
                None,
            ),
            (
                "http { server { listen 80; location ~ ^/s { stub_status; } } }",
                None,
            ),
        ] {
            assert_eq!(status(text), expected, "{text}");
        }
    }

    #[test]
    fn httpd_is_asked_where_its_status_is() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let text = "<Location \"/server-status\">\nSetHandler server-status\n</Location>";
        let found = server_status(&lines(text));
        assert_eq!(found.as_deref(), Some("/server-status"));
        let text = "<Location /a>\n</Location>\nSetHandler server-status";
        assert_eq!(server_status(&lines(text)), None);
    }
}
