//! HAProxy's effective configuration.
//!
//! HAProxy prints no configuration, but reports some of it over its runtime API: threads, limits, sizes of buffers.
//! Reported values take precedence; the rest is as the configuration file has it.

use weir_configuration::{Source, SourceFile};
use weir_model::study::{ProxyKind, Settings};
use weir_parameters::{Catalog, EffectiveFrom, Parameter};
use weir_sut::route_match::RouteMatch;
use weir_sut::{Configuration, Effective, RunningProxy, SutError, admin};

use super::route::Route;
use super::runtime::{Row, info, is_of, pool_size, stat};
use crate::language::Tree;

/// Keywords of `global` that `show info` reports, with their names there.
const TOLD: [(&str, &str); 3] =
    [("nbthread", "Nbthread"), ("maxconn", "Maxconn"), ("ulimit-n", "Ulimit-n")];

/// Options of a server that `show stat` reports, with their fields there. Options without a limit are not reported.
const TOLD_OF_SERVER: [(&str, &str); 3] =
    [("maxconn", "slim"), ("maxqueue", "qlimit"), ("pool-max-conn", "src_ilim")];

pub(super) fn read(
    configuration: &Configuration,
    proxy: Option<&RunningProxy>,
    catalog: &Catalog,
) -> Result<Effective, SutError> {
    let files = configuration.texts()?.into_iter();
    let source =
        Source::new(files.map(|(name, text)| SourceFile { path: name.into(), text }).collect());
    let tree = Tree::parse(&source)?;
    let mut routes: Vec<(bool, Route)> = configuration
        .route_matches()
        .into_iter()
        .map(|route_match| (route_match.is_secure, Route::of(&tree, &route_match)))
        .collect();
    let texts: Vec<&str> = source.files.iter().map(|file| &*file.text).collect();
    let mut text = texts.join("\n");
    if proxy.is_some() {
        let info = admin::line(configuration, "show info")?;
        let pools = admin::line(configuration, "show pools")?;
        let statistics = admin::line(configuration, "show stat")?;
        for (_, route) in &mut routes {
            route.add_process_settings(&info, &pools);
            route.add_proxy_settings(&stat(&statistics));
        }
        text += &format!("\n# show info\n{}", as_comment(&info));
    }
    let rows = (catalog, ProxyKind::Haproxy);
    Ok(Effective::of_routes(text, rows, &routes, is_of_tls, level))
}

/// Reads the levels of a proxy that weir did not start from its files, with the total of connections that the servers
/// of its backend may have.
pub(super) fn of_files(source: &Source, route_match: &RouteMatch) -> Result<Settings, SutError> {
    let route = Route::of(&Tree::parse(source)?, route_match);
    let servers =
        (route.origin_side.iter()).filter(|line| line.starts_with("server ")).count() as u64;
    let rows = (&Catalog::builtin(), ProxyKind::Haproxy);
    let routes = [(route_match.is_secure, route)];
    let mut levels = Effective::of_routes(String::new(), rows, &routes, is_of_tls, level).levels;
    let maxconn = levels.get("server_maxconn").map(|most| most.parse::<u64>());
    if let Some(Ok(maxconn @ 1..)) = maxconn {
        let most = (maxconn * servers).to_string();
        levels.insert("origin_max_connections".to_owned(), most);
    }
    Ok(levels)
}

/// Returns true if a row is about TLS towards clients.
fn is_of_tls(row: &Parameter) -> bool {
    matches!(&row.effective, EffectiveFrom::Directive { name, .. } if name.starts_with("ssl-"))
}

fn as_comment(text: &str) -> String {
    text.lines().filter(|line| !line.is_empty()).map(|line| format!("# {line}\n")).collect()
}

impl Route {
    fn add_process_settings(&mut self, of_process: &str, pools: &str) {
        let numbers =
            TOLD.iter().filter_map(|(keyword, name)| Some((*keyword, info(of_process, name)?)));
        let size = pool_size(pools, "buffer").map(|size| ("tune.bufsize", size));
        let lines = numbers.chain(size).map(|(keyword, number)| format!("{keyword} {number}"));
        self.global.splice(..0, lines);
    }

    fn add_proxy_settings(&mut self, rows: &[Row<'_>]) {
        let frontend = rows
            .iter()
            .find(|row| row.get("pxname") == Some(&&*self.frontend) && is_of(row, "FRONTEND"));
        let limit =
            frontend.and_then(|row| row.get("slim")).map(|limit| format!("maxconn {limit}"));
        self.client_side.splice(..0, limit);

        let server = rows.iter().find(|row| {
            row.get("pxname") == Some(&&*self.backend)
                && !is_of(row, "FRONTEND")
                && !is_of(row, "BACKEND")
        });
        self.server.extend(
            TOLD_OF_SERVER
                .iter()
                .filter_map(|(option, field)| Some(format!(" {option} {}", server?.get(field)?))),
        );
    }
}

fn level(row: &Parameter, route: &Route) -> Option<String> {
    let EffectiveFrom::Directive { name, context } = &row.effective else {
        return None;
    };
    match context.name() {
        "bind" => row.read_back(option(row, &route.bind).as_deref()),
        "server" => row.read_back(option(row, &route.server).as_deref()),
        section => directive(row, &route.lines(section, name), name),
    }
}

/// Returns the level of a row that is a line of its section; the earliest line takes precedence. A line that no level
/// leads to is returned as it stands, unless it begins like many others do.
fn directive(row: &Parameter, lines: &[&str], name: &str) -> Option<String> {
    let strange = lines.first().filter(|_| name != "option");
    lines
        .iter()
        .find_map(|line| row.read_back(Some(line)))
        .or_else(|| strange.map(|line| (*line).to_owned()))
        .or_else(|| row.read_back(None))
}

/// Returns the words of a row on a line; the last ones take precedence.
fn option(row: &Parameter, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    row.writes.iter().find_map(|write| {
        let option: Vec<&str> = write.text.split_ascii_whitespace().collect();
        let mut windows = words.windows(option.len().max(1)).rev();
        let window = windows.find(|window| window.first() == option.first())?;
        Some(window.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_configuration::Spot;

    use super::*;
    use weir_sut::route_match::RouteMatch;

    const ASKED: &str = "127.0.0.1:18080";

    fn read_levels(text: &str, told: &str) -> BTreeMap<String, String> {
        of_routes(text, told, vec![RouteMatch::at(ASKED.parse().unwrap(), false)])
    }

    fn of_routes(
        text: &str,
        told: &str,
        route_matches: Vec<RouteMatch>,
    ) -> BTreeMap<String, String> {
        let source =
            Source::new(vec![SourceFile { path: "haproxy.cfg".into(), text: text.to_owned() }]);
        let tree = Tree::parse(&source).unwrap();
        let routes: Vec<(bool, Route)> = route_matches
            .into_iter()
            .map(|route_match| {
                let mut route = Route::of(&tree, &route_match);
                route.add_proxy_settings(&stat(told));
                (route_match.is_secure, route)
            })
            .collect();
        let rows = (&Catalog::builtin(), ProxyKind::Haproxy);
        Effective::of_routes(String::new(), rows, &routes, is_of_tls, level).levels
    }

    #[test]
    fn servers_may_have_their_connections_together() {
        const TEXT: &str = "frontend f\n bind 127.0.0.1:18080\n default_backend b\n\
                            backend b\n server s1 127.0.0.1:1MOST\n server s2 127.0.0.1:2MOST\n";
        for (most, expected) in [(" maxconn 4", Some("8")), (" maxconn 0", None), ("", None)] {
            let file = SourceFile { path: "haproxy.cfg".into(), text: TEXT.replace("MOST", most) };
            let route_match = RouteMatch::at(ASKED.parse().unwrap(), false);
            let levels = of_files(&Source::new(vec![file]), &route_match).unwrap();
            let all = levels.get("origin_max_connections").map(String::as_str);
            assert_eq!(all, expected, "{most}");
        }
    }

    /// A load reads the listener with TLS, and the backend that its request is sent to.
    #[test]
    fn a_load_over_tls_has_what_its_own_frontend_and_backend_say() {
        let text = "global\n    ssl-default-bind-options ssl-min-ver TLSv1.2\n\
                    frontend clear\n    bind 127.0.0.1:18080 backlog 5\n    timeout client 5s\n    \
                    default_backend one\n\
                    frontend secure\n    bind 127.0.0.1:18443 ssl crt a.pem backlog 7 ssl-min-ver TLSv1.3\n    \
                    timeout client 7s\n    use_backend two if { path_beg /two }\n    default_backend one\n\
                    backend one\n    http-reuse never\n    server a 127.0.0.1:1\n\
                    backend two\n    http-reuse always\n    server a 127.0.0.1:1\n";
        let clear = RouteMatch::at(ASKED.parse().unwrap(), false);
        let secure = RouteMatch {
            location: Some(Spot { name: "backend two".to_owned(), ..Spot::default() }),
            ..RouteMatch::at("127.0.0.1:18443".parse().unwrap(), true)
        };
        for (route_matches, expected) in [
            (vec![clear.clone()], ["5", "5s", "never", "TLSv1.2"]),
            (vec![secure.clone()], ["7", "7s", "always", "TLSv1.3"]),
            (vec![clear, secure], ["5 and 7", "5s and 7s", "never and always", "TLSv1.3"]),
        ] {
            let levels = of_routes(text, "", route_matches);
            let ids = ["backlog", "timeout_client", "http_reuse", "ssl_min_ver"];
            assert_eq!(ids.map(|id| &*levels[id]), expected);
        }
    }

    #[test]
    fn what_counts_is_what_the_load_meets() {
        let text = "\
defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout http-keep-alive 5s
    http-reuse safe
    default-server maxconn 7 pool-low-conn 3

frontend first
    bind :8404
    timeout client 1s
    default_backend other

backend other
    timeout server 1s
    http-reuse always
    server other 127.0.0.1:1 pool-purge-delay 1s

frontend web
    bind 127.0.0.1:9000 backlog 5
    bind unix@/run/a,127.0.0.1:18080 backlog 77
    timeout http-keep-alive 2s
    timeout server 9s
    use_backend app if TRUE

backend app
    timeout server 11s
    timeout client 12s
    http-reuse never
    default-server pool-purge-delay 7s
    server one 127.0.0.1:1 maxconn 9
";
        let statistics = "# pxname,svname,slim,\nfirst,FRONTEND,1,\nweb,FRONTEND,900,\nother,other,5,\n\
                    app,one,8,\n";
        let levels = read_levels(text, statistics);
        for (id, level) in [
            ("timeout_client", "30s"),
            ("timeout_server", "11s"),
            ("timeout_http_keep_alive", "2s"),
            ("http_reuse", "never"),
            ("backlog", "77"),
            ("pool_purge_delay", "7s"),
            ("pool_low_conn", "3"),
            ("frontend_maxconn", "900"),
            ("server_maxconn", "8"),
        ] {
            assert_eq!(levels.get(id).map(String::as_str), Some(level), "{id}");
        }
    }

    #[test]
    fn servers_of_a_template_are_servers() {
        let text = "listen web\n    bind 127.0.0.1:18080\n    default-server maxqueue 4\n    \
                    server-template app 1-3 127.0.0.1:1 maxconn 9\n    server b 127.0.0.1:1 maxconn 2\n";
        let levels = read_levels(text, "");
        assert_eq!(levels["server_maxconn"], "9");
        assert_eq!(levels["server_maxqueue"], "4");
    }

    #[test]
    fn options_of_tls_count_wherever_they_stand_in_their_lists() {
        let global = "global\n    ssl-default-bind-options no-tls-tickets ssl-min-ver TLSv1.2\n    \
                      ssl-default-bind-options prefer-client-ciphers ssl-min-ver TLSv1.0\n";
        let listen = "listen web\n    bind 127.0.0.1:18080 ssl crt a.pem";
        let of_all = read_levels(&format!("{global}{listen}\n"), "");
        assert_eq!(of_all["ssl_min_ver"], "TLSv1.0");
        assert_eq!(of_all["ssl_session_tickets"], "off");
        assert_eq!(of_all["ssl_prefer_server_ciphers"], "off");
        let options = " ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.3";
        let of_one = read_levels(&format!("{global}{listen}{options}\n"), "");
        assert_eq!(of_one["ssl_min_ver"], "TLSv1.3", "the line's own");
        assert_eq!(of_one["ssl_max_ver"], "TLSv1.3");
        let none = read_levels(&format!("{listen}\n"), "");
        assert_eq!(none["ssl_session_tickets"], "on");
    }

    #[test]
    fn a_listen_is_both_sides_and_a_default_is_said_by_nobody() {
        let text = "defaults\n    mode http\n    http-reuse always\nlisten web\n    bind 127.0.0.1:18080\n    \
                    http-reuse aggressive\n    timeout client  3s # soon\n    server a 127.0.0.1:1\n";
        let levels = read_levels(text, "");
        assert_eq!(levels["http_reuse"], "aggressive");
        assert_eq!(levels["timeout_client"], "3s");
        let catalog = Catalog::builtin();
        let defaults = catalog.defaults(ProxyKind::Haproxy);
        assert_eq!(levels["pool_low_conn"], defaults["pool_low_conn"]);
    }
}
