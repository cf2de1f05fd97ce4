//! Facts about HAProxy's keywords beyond their order: sections, options without an argument, sides. The sources are the
//! configuration manual, and the output of `haproxy -dKcfg`.

use weir_configuration::place::is_among;

/// Keywords that begin a section. The last four came with HAProxy 3.
pub(super) const SECTIONS: &str = "global, defaults, frontend, backend, listen, peers, mailers, userlist, resolvers, cache, \
     program, ring, http-errors, fcgi-app, log-forward, namespace_list, crt-store, traces, \
     log-profile";

/// Options of `bind` lines that take no argument; all others take one.
const BIND_FLAGS: &str = "accept-proxy, allow-0rtt, defer-accept, generate-certificates, no-ca-names, no-tls-tickets, \
     prefer-client-ciphers, quic-force-retry, ssl, strict-sni, tfo, transparent, v4v6, v6only";

/// Options of `server` lines that take no argument; all others take one.
const SERVER_FLAGS: &str = "agent-check, allow-0rtt, backup, check, check-reuse-pool, check-send-proxy, check-sni-auto, check-ssl, check-via-socks4, \
     disabled, enabled, non-stick, send-proxy, send-proxy-v2, send-proxy-v2-ssl, \
     send-proxy-v2-ssl-cn, sni-auto, ssl, ssl-reuse, stick, tfo, tls-tickets, no-agent-check, no-check, \
     no-backup, no-ssl-reuse, no-verifyhost";

/// Keywords of `global` that list options for all lines of some kinds; such a line may override them.
pub(super) const OPTION_LISTS: [(&str, &[&str]); 2] = [
    ("ssl-default-bind-options", &["bind"]),
    ("ssl-default-server-options", &["server", "server-template", "default-server"]),
];

/// Keywords of proxies that may occur several times, each adding to the others. A user's own statement is therefore no
/// other spelling of a row's.
const ADDING: [&str; 1] = ["log"];

/// Keywords of proxies that decide about a request and its server. New settings are written above such statements.
const RULES: &str = "acl, default-server, default_backend, errorfile, errorloc, errorloc302, errorloc303, filter, \
     http-after-response, http-check, http-request, http-response, redirect, server, server-template, \
     stick, tcp-check, tcp-request, tcp-response, use-server, use_backend";

/// Returns true if statements of a keyword are rules or servers.
pub(super) fn is_rule(keyword: &str) -> bool {
    is_among(keyword, RULES)
}

/// Returns true if statements of a keyword list options.
pub(super) fn is_option_list(keyword: &str) -> bool {
    OPTION_LISTS.iter().any(|(list, _)| *list == keyword)
}

/// Returns true if statements of a keyword add to each other.
pub(super) fn is_adding(keyword: &str) -> bool {
    ADDING.contains(&keyword)
}

/// Returns true if an option of a `bind` or `server` line takes no argument.
pub(super) fn is_flag(option: &str) -> bool {
    is_among(option, BIND_FLAGS)
        || is_among(option, SERVER_FLAGS)
        || option.starts_with("no-")
        || option.starts_with("force-")
}

/// Keywords of proxies that only the client's side has (manual §4.1).
const FRONTEND_ONLY: &str = "backlog, clitcpka-cnt, clitcpka-idle, clitcpka-intvl, maxconn, monitor-uri, \
     option accept-invalid-http-request, option clitcpka, option contstats, \
     option disable-h2-upgrade, option dontlog-normal, option dontlognull, \
     option http-ignore-probes, option httplog, option idle-close-on-response, \
     option log-separate-errors, option logasap, option socket-stats, option tcp-smart-accept, \
     rate-limit sessions, timeout client, timeout client-fin";

/// Keywords of proxies that only the origin's side has (manual §4.1).
const BACKEND_ONLY: &str = "balance, cookie, default-server, fullconn, hash-type, http-reuse, max-keep-alive-queue, \
     option abortonclose, option accept-invalid-http-response, option allbackups, \
     option checkcache, option http-pretend-keepalive, option log-health-checks, option persist, \
     option prefer-last-server, option redispatch, option srvtcpka, option tcp-smart-connect, \
     retries, retry-on, timeout check, timeout connect, timeout server, timeout server-fin";

/// Returns true if a section of this kind (`frontend`, `backend`, `listen`) can use a keyword of proxies, which may
/// have several words. HAProxy warns about a keyword that a section cannot use, and ignores it.
pub fn is_used_by(keyword: &str, section: &str) -> bool {
    match section {
        "frontend" => !is_among(keyword, BACKEND_ONLY),
        "backend" => !is_among(keyword, FRONTEND_ONLY),
        _ => true,
    }
}
