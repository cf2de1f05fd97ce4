//! List of everything that statements may do in a copy: weir runs no copy with a keyword, an option or an action that
//! is not on it, since that could contact or write anything. The sources are the configuration manual of HAProxy 3.3
//! and the tables in its code (`cfg_kw_list`).

use std::path::Path;

use weir_configuration::place::{LEAVE_OUT, bytes, error, is_among, runs_code, unknown};
use weir_configuration::{ConfigurationError, Source};

use super::addresses::{NOT_IN_A_COPY, is_of_servers};
use super::options::options;
use super::sections::{Section, Statement, Tree};

/// Sections that a copy does not have: they listen, contact others, or start programs by themselves, or are for the
/// user's servers.
const NO_SECTIONS: &str = "program, log-forward, mailers, resolvers, namespace_list, traces";

const GLOBAL: &str = "anonkey, busy-polling, ca-base, chroot, close-spread-time, cluster-secret, cpu-affinity, \
     cpu-map, cpu-policy, cpu-set, crt-base, daemon, debug.counters, default-path, description, \
     dns-accept-family, expose-deprecated-directives, expose-experimental-directives, external-check, \
     fd-hard-limit, force-cfg-parser-pause, gid, grace, group, h1-accept-payload-with-any-method, \
     h1-case-adjust, h1-case-adjust-file, h1-do-not-close-on-insecure-transfer-encoding, \
     h2-workaround-bogus-websocket-clients, hard-stop-after, harden.reject-privileged-ports.quic, \
     harden.reject-privileged-ports.tcp, http-err-codes, http-fail-codes, httpclient.resolvers.disabled, \
     httpclient.resolvers.id, httpclient.resolvers.prefer, httpclient.retries, httpclient.ssl.ca-file, \
     httpclient.ssl.verify, httpclient.timeout.connect, insecure-fork-wanted, insecure-setuid-wanted, \
     issuers-chain-path, jwt.decrypt_alg_list, jwt.decrypt_enc_list, key-base, limited-quic, localpeer, log, \
     log-send-hostname, log-tag, lua-prepend-path, master-worker, max-spread-checks, max-threads-per-group, \
     maxcompcpuusage, maxcomprate, maxconn, maxconnrate, maxpipes, maxsessrate, maxsslconn, maxsslrate, \
     maxzlibmem, mworker-max-reloads, nbproc, nbthread, no-memory-trimming, no-quic, node, noepoll, \
     noevports, nogetaddrinfo, nokqueue, noktls, nopoll, noreuseport, nosplice, numa-cpu-mapping, \
     ocsp-update.disable, ocsp-update.maxdelay, ocsp-update.mindelay, pidfile, pp2-never-send-local, \
     prealloc-fd, presetenv, profiling.memory, profiling.tasks, quiet, resetenv, server-state-base, \
     server-state-file, set-dumpable, set-var, set-var-fmt, setcap, setenv, spread-checks, \
     ssl-default-bind-ciphers, ssl-default-bind-ciphersuites, ssl-default-bind-client-sigalgs, \
     ssl-default-bind-curves, ssl-default-bind-options, ssl-default-bind-sigalgs, \
     ssl-default-server-ciphers, ssl-default-server-ciphersuites, ssl-default-server-client-sigalgs, \
     ssl-default-server-curves, ssl-default-server-options, ssl-default-server-sigalgs, ssl-dh-param-file, \
     ssl-engine, ssl-load-extra-del-ext, ssl-load-extra-files, ssl-mode-async, ssl-propquery, ssl-provider, \
     ssl-provider-path, ssl-security-level, ssl-server-verify, ssl-skip-self-issued-ca, stats, stats-file, \
     stress-level, strict-limits, thread-group, thread-groups, thread-hard-limit, uid, ulimit-n, unix-bind, \
     unsetenv, user, warn-blocked-traffic-after, zero-warning";

const OF_PROXIES: &str = "acl, backlog, balance, be-unpublished, bind, capture, clitcpka-cnt, clitcpka-idle, \
     clitcpka-intvl, compression, cookie, crt, declare, default-server, default_backend, description, \
     disabled, dispatch, dynamic-cookie-key, email-alert, enabled, error-log-format, errorfile, errorfiles, \
     errorloc, errorloc302, errorloc303, external-check, filter, filter-sequence, force-be-switch, \
     force-persist, fullconn, guid, hash-balance-factor, hash-preserve-affinity, hash-type, \
     http-after-response, http-check, http-error, http-request, http-response, http-reuse, \
     http-send-name-header, id, ignore-persist, load-server-state-from-file, log, log-format, \
     log-format-sd, log-steps, log-tag, max-keep-alive-queue, max-session-srv-conns, maxconn, mode, monitor, \
     monitor-uri, option, persist, quic-initial, rate-limit, redirect, retries, retry-on, server, \
     server-state-file-name, server-template, source, srvtcpka-cnt, srvtcpka-idle, srvtcpka-intvl, ssl-f-use, \
     stats, stick, stick-table, tcp-check, tcp-request, tcp-response, timeout, unique-id-format, \
     unique-id-header, use-fcgi-app, use-server, use_backend";

const OPTIONS: &str = "abortonclose, accept-invalid-http-request, accept-invalid-http-response, \
     accept-unsafe-violations-in-http-request, accept-unsafe-violations-in-http-response, allbackups, \
     checkcache, clitcpka, contstats, disable-h2-upgrade, dontlog-normal, dontlognull, external-check, \
     forceclose, forwarded, forwardfor, h1-case-adjust-bogus-client, h1-case-adjust-bogus-server, \
     http-buffer-request, http-drop-request-trailers, http-drop-response-trailers, http-ignore-probes, \
     http-keep-alive, http-no-delay, http-pretend-keepalive, http-restrict-req-hdr-names, \
     http-server-close, http-tunnel, http-use-htx, http-use-proxy-header, httpchk, httpclose, httplog, \
     httpslog, idle-close-on-response, independent-streams, ldap-check, log-health-checks, \
     log-separate-errors, logasap, mysql-check, nolinger, originalto, persist, pgsql-check, \
     prefer-last-server, redis-check, redispatch, smtpchk, socket-stats, splice-auto, splice-request, \
     splice-response, spop-check, srvtcpka, ssl-hello-chk, tcp-check, tcp-smart-accept, tcp-smart-connect, \
     tcpka, tcplog, use-small-buffers";

/// Known actions of rules; not `do-resolve`, `attach-srv`, those of SPOE and those of Lua.
const ACTIONS: &str = "accept, add-acl, add-header, add-headers-bin, allow, auth, cache-store, cache-use, \
     capture, close, del-acl, del-header, del-headers-bin, del-map, deny, disable-l7-retry, do-log, \
     early-hint, expect-netscaler-cip, expect-proxy, normalize-uri, pause, redirect, reject, \
     replace-header, replace-path, replace-pathq, replace-uri, replace-value, return, sc-add-gpc, \
     sc-inc-gpc, sc-inc-gpc0, sc-inc-gpc1, sc-set-gpt, sc-set-gpt0, send-retry, set-bandwidth-limit, \
     set-bc-mark, set-bc-tos, set-dst, set-dst-port, set-fc-mark, set-fc-tos, set-header, set-headers-bin, \
     set-log-level, set-map, set-mark, set-method, set-nice, set-path, set-pathq, set-priority-class, \
     set-priority-offset, set-query, set-retries, set-src, set-src-port, set-status, set-timeout, set-tos, \
     set-uri, set-var, set-var-fmt, silent-drop, strict-mode, switch-mode, tarpit, unset-var, use-service, wait-for-body, wait-for-handshake";

const FILTERS: &str =
    "bwlim-in, bwlim-out, cache, comp-req, comp-res, compression, fcgi-app, trace";

/// Known options of `bind` lines, in addition to those that a copy cannot have.
const OF_BINDS: &str = "accept-netscaler-cip, accept-proxy, allow-0rtt, alpn, backlog, ca-file, ca-ignore-err, \
     ca-sign-file, ca-sign-pass, ca-verify-file, cc, ciphers, ciphersuites, client-sigalgs, crl-file, crt, \
     crt-ignore-err, crt-list, curves, default-crt, defer-accept, ecdhe, ech, expose-fd, \
     generate-certificates, guid-prefix, id, idle-ping, ktls, label, level, maxconn, mode, mss, name, nice, \
     no-alpn, no-ca-names, no-sslv3, no-strict-sni, no-tls-tickets, npn, prefer-client-ciphers, process, \
     proto, quic-cc-algo, quic-force-retry, quic-socket, severity-output, shards, sigalgs, ssl, ssl-max-ver, \
     ssl-min-ver, strict-sni, tcp-md5sig, tcp-ss, tcp-ut, tfo, thread, tls-ticket-keys, tls-tickets, v4v6, \
     v6only, verify";

/// Known options of `server` lines, in addition to those about the user's servers.
const OF_SERVERS: &str = "alpn, backup, check, check-pool-conn-name, check-reuse-pool, check-sni-auto, \
     client-sigalgs, cookie, disabled, downinter, enabled, error-limit, fall, fastinter, guid, hash-key, \
     healthcheck, id, idle-ping, init-state, inter, ktls, log-bufsize, log-proto, max-reuse, maxconn, \
     maxqueue, minconn, no-backup, no-check, no-check-reuse-pool, no-check-send-proxy, no-check-sni-auto, \
     no-renegotiate, no-send-proxy, no-send-proxy-v2, no-send-proxy-v2-ssl, no-send-proxy-v2-ssl-cn, \
     no-sni-auto, no-tfo, non-stick, observe, on-error, on-marked-down, on-marked-up, pool-conn-name, \
     pool-low-conn, pool-max-conn, pool-purge-delay, proto, quic-cc-algo, redir, renegotiate, rise, \
     set-proxy-v2-tlv-fmt, shard, slowstart, sni-auto, ssl-reuse, stick, strict-maxconn, tcp-md5sig, tcp-ut, \
     tfo, tls-tickets, track, weight, ws";

/// Returns true if a copy has no section of this kind.
pub(super) fn is_left_out(kind: &str) -> bool {
    is_among(kind, NO_SECTIONS)
}

/// Returns the known keywords of a kind of section; None if the kind is not known.
fn keywords(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "global" => GLOBAL,
        "defaults" | "frontend" | "backend" | "listen" => OF_PROXIES,
        // All of it is disabled.
        "peers" => {
            "bind, default-bind, default-server, disabled, enabled, log, peer, server, shards, \
             stick-table, table"
        }
        "userlist" => "group, user",
        "cache" => "max-age, max-object-size, max-secondary-entries, process-vary, total-max-size",
        "http-errors" => "errorfile",
        "ring" => {
            "backing-file, default-server, description, format, maxlen, server, size, timeout"
        }
        "fcgi-app" => {
            "acl, docroot, hide-header, index, log-stderr, option, pass-header, path-info, \
             set-param, unset-param"
        }
        "crt-store" => "crt-base, key-base, load",
        "log-profile" => "log-tag, on",
        _ => return None,
    })
}

/// Checks that all statements are known to do no harm in a copy.
///
/// # Errors
/// Returns an error for the first statement that is not known, with its place.
pub(super) fn check(source: &Source, tree: &Tree<'_>) -> Result<(), ConfigurationError> {
    let check = Check { source, tree };
    let sections = tree.sections.iter();
    for section in sections.filter(|section| !is_left_out(section.kind())) {
        let Some(keywords) = keywords(section.kind()) else {
            return Err(check.refuse(section.file, &section.header, 0));
        };
        for statement in section.statements.iter().filter(|it| !it.is_macro()) {
            check.statement(section, statement, keywords)?;
        }
    }
    Ok(())
}

/// Second words of `stats` in the section `global`. One that comes from a variable could be any of them.
const STATS_OF_GLOBAL: [&str; 4] = ["socket", "timeout", "maxconn", "bind-process"];

/// Returns true if HAProxy would load a program, or one of a folder, that others could have written.
fn is_program_of_others(path: &str) -> bool {
    let program = Path::new(path);
    let fault = if program.is_dir() {
        weir_files::only_ours_named(program).err()
    } else {
        weir_files::only_ours_file_named(program).err()
    };
    path.contains('/') && program.exists() && fault.is_some()
}

struct Check<'c> {
    source: &'c Source,
    tree: &'c Tree<'c>,
}

impl Check<'_> {
    fn statement(
        &self,
        section: &Section<'_>,
        statement: &Statement<'_>,
        keywords: &str,
    ) -> Result<(), ConfigurationError> {
        // `no option httpclose`, and `default` in the same place.
        let first = usize::from(matches!(statement.word(0), "no" | "default"));
        let keyword = statement.word(first);
        let is_tuning = section.kind() == "global" && keyword.starts_with("tune.");
        let mut unknown = (!is_tuning && !is_among(keyword, keywords)).then_some(first);
        // One word here may be several there: what they say is not known.
        let words = statement.words.iter();
        let several = words.clone().position(|word| word.text.contains("[*]}"));
        let ocsp = words.clone().position(|word| word.text == "ocsp-update");
        unknown = unknown.or(several).or(ocsp).or_else(|| match keyword {
            // HAProxy takes it before any keyword, where nothing would be adapted.
            _ if statement.word(0) == "default" && keyword != "option" => Some(0),
            "stats"
                if section.kind() == "global" && !STATS_OF_GLOBAL.contains(&statement.word(1)) =>
            {
                Some(1)
            }
            "ssl-engine" | "ssl-provider" | "ssl-provider-path"
                if is_program_of_others(statement.word(1)) =>
            {
                Some(1)
            }
            "bind" | "stats" | "server" | "server-template" | "default-server"
                if section.kind() != "peers" && section.kind() != "ring" =>
            {
                unknown_option(statement)
            }
            "option" if section.is_proxy() || section.kind() == "defaults" => {
                (!is_among(statement.word(first + 1), OPTIONS)).then_some(first + 1)
            }
            "filter" => (!is_among(statement.word(1), FILTERS)).then_some(1),
            _ => unknown_action(statement),
        });
        match unknown {
            Some(index) => Err(self.refuse(section.file, statement, index)),
            None => self.lists_of_certificates(section, statement),
        }
    }

    /// Refuses a list of certificates that makes HAProxy contact their authorities at its start (`ocsp-update`).
    fn lists_of_certificates(
        &self,
        section: &Section<'_>,
        statement: &Statement<'_>,
    ) -> Result<(), ConfigurationError> {
        let words = &statement.words;
        let Some(at) = words.iter().position(|word| word.text == "crt-list") else {
            return Ok(());
        };
        let mut globals = self.tree.of_kind("global").flat_map(|(_, section)| &section.statements);
        let base = globals.find(|it| it.word(0) == "crt-base");
        let beside = self.source.files[0].path.parent();
        let folder = base.map_or(beside.unwrap_or(Path::new("/")), |it| Path::new(it.word(1)));
        // One that cannot be read is HAProxy's to complain about.
        let list = bytes(&folder.join(statement.word(at + 1))).unwrap_or_default();
        if String::from_utf8_lossy(&list).contains("ocsp-update") {
            Err(self.refuse(section.file, statement, at))
        } else {
            Ok(())
        }
    }

    fn refuse(&self, file: usize, statement: &Statement<'_>, index: usize) -> ConfigurationError {
        let word = statement.words.get(index).unwrap_or(&statement.words[0]);
        let name = match index {
            0 => word.text.to_string(),
            _ => format!("{}` with `{}", statement.word(0), word.text),
        };
        let message = if word.text.starts_with("lua") { runs_code(&name) } else { unknown(&name) };
        error(&self.source.files[file], word.span.start, message).hint(LEAVE_OUT)
    }
}

/// Returns the index of the first unknown option of a line with options.
fn unknown_option(statement: &Statement<'_>) -> Option<usize> {
    let is_of_server = match statement.word(0) {
        "stats" if statement.word(1) != "socket" => return None,
        "bind" | "stats" => false,
        _ => true,
    };
    options(statement).into_iter().map(|option| option.start).find(|&at| {
        let name = statement.word(at).split('(').next().unwrap_or_default();
        if is_of_server {
            !is_among(name, OF_SERVERS) && !is_of_servers(name)
        } else {
            let is_version = name.starts_with("force-") || name.starts_with("no-tlsv");
            !is_among(name, OF_BINDS) && !is_among(name, NOT_IN_A_COPY) && !is_version
        }
    })
}

/// Returns the index of a rule's action, if the action is not known.
fn unknown_action(statement: &Statement<'_>) -> Option<usize> {
    let at = match (statement.word(0), statement.word(1)) {
        ("http-request" | "http-response" | "http-after-response" | "quic-initial", _) => 1,
        ("tcp-request" | "tcp-response", "inspect-delay") => return None,
        ("tcp-request" | "tcp-response", _) => 2,
        _ => return None,
    };
    let action = statement.word(at).split('(').next().unwrap_or_default();
    let is_known = is_among(action, ACTIONS) || action.starts_with("track-sc");
    (!is_known).then_some(at)
}

#[cfg(test)]
mod tests {
    use weir_model::study::ProxyKind;
    use weir_parameters::Catalog;

    use super::*;
    use weir_configuration::SourceFile;

    #[test]
    fn whatever_a_study_can_set_is_known() {
        let catalog = Catalog::builtin();
        for write in catalog
            .parameters(ProxyKind::Haproxy)
            .flat_map(|row| &row.writes)
            // Its levels are names of options.
            .filter(|write| !write.text.starts_with("option {"))
        {
            let setting = write.text.replace("{value}", "1");
            let text = match write.context.name() {
                "bind" => format!("frontend a\n  bind :80 {setting}\n"),
                "server" => format!("backend a\n  server a 192.0.2.1:80 {setting}\n"),
                "arguments" => continue,
                section => format!("{section}\n  {setting}\n"),
            };
            let path = "/haproxy.cfg".into();
            let source = Source::new(vec![SourceFile { path, text }]);
            let tree = Tree::parse(&source).unwrap();
            check(&source, &tree).unwrap();
        }
    }
}
