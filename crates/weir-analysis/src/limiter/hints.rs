//! Selection of a finding's parameters that are worth naming for an arm, by its settings and by the evidence about it.

use std::collections::BTreeMap;

use weir_limits::{Evidence, Finding, Rules, TurnDirection};
use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::{Catalog, Parameter};

/// The properties of an arm that decide if a hint fits.
pub(super) struct HintedArm<'a> {
    pub(super) kind: ProxyKind,
    pub(super) role: &'a ProxyRole,
    /// Settings in force by the catalog's ids; a missing one is unknown.
    pub(super) settings: &'a BTreeMap<String, String>,
}

impl HintedArm<'_> {
    /// Removes the parameters of a finding that would change nothing in this arm.
    pub(super) fn leave_out_misfits(&self, finding: &mut Finding, evidence: &Evidence) {
        let turns = finding.turn.drain(..).zip(finding.ways.drain(..));
        (finding.turn, finding.ways) = turns
            .filter(|(parameter, way)| {
                let level = self.settings.get(parameter).map(String::as_str);
                let turn = (parameter.as_str(), way, level);
                self.changes_something(parameter, way)
                    && Rules::builtin().hint_fits(&finding.limiter, turn, evidence)
            })
            .collect();
    }

    /// Returns false if the parameter is at its level already, cannot go further, or has no effect beside the other
    /// settings.
    fn changes_something(&self, parameter: &str, way: &TurnDirection) -> bool {
        let catalog = Catalog::builtin();
        let settings = self.known(&catalog);
        if !catalog.has_effect(self.kind, parameter, &settings, self.role) {
            return false;
        }
        let row = catalog.get(self.kind, parameter);
        let Some((row, level)) = row.zip(self.settings.get(parameter)) else {
            return true;
        };
        let turned = match way {
            TurnDirection::To(other) => Some(other.clone()).filter(|other| other != level),
            TurnDirection::Up | TurnDirection::Down => {
                let up = *way == TurnDirection::Up;
                let turned = row.level.further(level, up);
                // Of words, and of levels in no order, nobody can tell the next.
                if turned.is_none() && !is_at_end(row, level, up) {
                    return true;
                }
                turned
            }
            TurnDirection::Either => return true,
        };
        // Of a backlog and net.core.somaxconn the smaller one counts.
        turned.is_some_and(|turned| {
            let change = Settings::from([(parameter.to_owned(), turned)]);
            let mut then = settings.clone();
            then.extend(change.clone());
            let inert = catalog.inert(self.kind, &change, &then, &settings);
            inert.is_empty()
        })
    }

    /// Returns the settings that are in the catalog.
    fn known(&self, catalog: &Catalog) -> Settings {
        self.settings
            .iter()
            .filter(|(id, _)| catalog.get(self.kind, id).is_some())
            .map(|(id, level)| (id.clone(), level.clone()))
            .collect()
    }
}

/// Returns true if a level is at the end of its range: it can be turned only the other way.
fn is_at_end(row: &Parameter, level: &str, up: bool) -> bool {
    let is_word = row.level.words().any(|word| word == level);
    !is_word && row.level.further(level, !up).is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_limits::{Certainty, Fact, Rule};
    use weir_model::study::ProxyKind::{Caddy, Envoy, Haproxy, Httpd, Nginx};

    use super::*;

    const ALL: [ProxyKind; 5] = [Nginx, Haproxy, Envoy, Caddy, Httpd];

    fn pairs(text: &str) -> BTreeMap<String, String> {
        text.split(',')
            .filter_map(|pair| pair.trim().split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn evidence(text: &str) -> Evidence {
        Evidence {
            quantities: pairs(text)
                .into_iter()
                .map(|(name, value)| {
                    let fact = Fact {
                        value: value.parse().expect("a number"),
                        at_low_load: None,
                        unit: String::new(),
                        from: Vec::new(),
                        read_of: None,
                    };
                    (name, fact)
                })
                .collect(),
            absent: BTreeMap::new(),
        }
    }

    fn name_hints(kind: ProxyKind, limiter: &str, settings: &str, seen: &str) -> BTreeSet<String> {
        let (settings, evidence) = (pairs(settings), evidence(seen));
        let arm = HintedArm { kind, role: &ProxyRole::ReverseProxy, settings: &settings };
        Rules::builtin()
            .all()
            .iter()
            .filter(|rule| rule.limiter.value == limiter)
            .flat_map(|rule| {
                let mut finding = make_finding(rule, kind);
                arm.leave_out_misfits(&mut finding, &evidence);
                finding.turn
            })
            .collect()
    }

    fn make_finding(rule: &Rule, kind: ProxyKind) -> Finding {
        let turns = rule.turns(Some(kind));
        Finding {
            turn: turns.iter().map(|turn| turn.parameter.clone()).collect(),
            ways: turns.iter().map(|turn| turn.way.clone()).collect(),
            limiter: rule.limiter.value.clone(),
            role: rule.role,
            says: rule.says.clone(),
            advice: rule.advice.clone(),
            certainty: Certainty::default(),
            unjudged: Vec::new(),
            score: 0.0,
            evidence: Vec::new(),
            after: Vec::new(),
            behind: None,
            source: rule.source.clone(),
            doctor: rule.doctor.clone(),
        }
    }

    /// Settings and evidence of an arm.
    type ArmState = [&'static str; 2];

    /// Proxy, limiter, an arm that a hint fits, one that it does not fit, and the hint.
    #[rustfmt::skip]
    const ROWS: &[(ProxyKind, &str, ArmState, ArmState, &str)] = &[
        (Nginx, "keepalive_origin", ["origin_keepalive=64,origin_keepalive_requests=10", "connections=500,outbound_opens_per_request=0.1"],
            ["origin_keepalive=0,origin_keepalive_requests=10", "connections=500,outbound_opens_per_request=1"], "origin_keepalive_requests"),
        (Nginx, "keepalive_origin", ["origin_keepalive=64,origin_keepalive_requests=1", "outbound_opens_per_request=1"],
            ["origin_keepalive=64,origin_keepalive_requests=1000", "outbound_opens_per_request=0.6"], "origin_keepalive_requests"),
        (Nginx, "keepalive_origin", ["origin_keepalive=0", "connections=32,outbound_opens_per_request=1"],
            ["origin_keepalive=64", "connections=32,outbound_opens_per_request=1"], "origin_keepalive"),
        (Nginx, "keepalive_origin", ["origin_keepalive=8", "connections=32,outbound_opens_per_request=0.7"],
            ["origin_keepalive=65535", "connections=99999,outbound_opens_per_request=0.7"], "origin_keepalive"),
        (Nginx, "cpu", ["origin_keepalive=0", "connections=32,outbound_opens_per_request=1"],
            ["origin_keepalive=16", "connections=32,outbound_opens_per_request=0.001"], "origin_keepalive"),
        (Nginx, "cpu", ["access_log=on", ""], ["access_log=off", ""], "access_log"),
        (Nginx, "cpu_one_worker", ["worker_processes=1", "workers=1,proxy_cpu_count=4"],
            ["worker_processes=4", "workers=4,proxy_cpu_count=4"], "worker_processes"),
        (Nginx, "cpu_one_worker", ["reuseport=off", "workers=4,proxy_cpu_count=4"], ["reuseport=off", "workers=1"], "reuseport"),
        (Nginx, "keepalive_inbound", ["keepalive_requests=1", "inbound_opens_per_request=1"],
            ["keepalive_requests=1000", "inbound_opens_per_request=0.5"], "keepalive_requests"),
        (Nginx, "keepalive_inbound", ["keepalive_timeout=0s", "connections=100,client_pause=0.01"],
            ["keepalive_timeout=75s", "connections=100,client_pause=0.01"], "keepalive_timeout"),
        (Nginx, "tls", ["keepalive_timeout=1s", "opened_by_load=0,client_pause=2"], ["keepalive_timeout=1s", "opened_by_load=1,client_pause=2"], "keepalive_timeout"),
        (Nginx, "tls", ["ssl_session_tickets=off", ""], ["ssl_session_tickets=on", ""], "ssl_session_tickets"),
        (Nginx, "compression", ["gzip=on,gzip_comp_level=9", ""], ["gzip=on,gzip_comp_level=1", ""], "gzip_comp_level"),
        (Nginx, "quota", ["worker_processes=4", ""], ["worker_processes=1", ""], "worker_processes"),
        (Nginx, "network", ["gzip=off", "asks_compressed=1"], ["gzip=off", "asks_compressed=0"], "gzip"),
        (Nginx, "accept_queue", ["backlog=511,net.core.somaxconn=4096", ""], ["backlog=4096,net.core.somaxconn=511", ""], "backlog"),
        (Nginx, "accept_queue", ["backlog=4096,net.core.somaxconn=511", ""], ["backlog=511,net.core.somaxconn=4096", ""], "net.core.somaxconn"),
        (Nginx, "lost_syns", ["", ""], ["", "listen_overflows=0"], "net.core.somaxconn"),
        (Nginx, "ports", ["net.ipv4.tcp_tw_reuse=2", ""], ["net.ipv4.tcp_tw_reuse=1", ""], "net.ipv4.tcp_tw_reuse"),
        (Envoy, "ports", ["", "local_ports=28232"], ["", "local_ports=64512"], "net.ipv4.ip_local_port_range"),
        (Envoy, "syn_queue", ["net.ipv4.tcp_syncookies=0", ""], ["net.ipv4.tcp_syncookies=1", ""], "net.ipv4.tcp_max_syn_backlog"),
        (Haproxy, "keepalive_origin", ["http_reuse=safe,pool_max_conn=8", "connections=100"], ["http_reuse=safe,pool_max_conn=-1", "connections=100"], "pool_max_conn"),
        (Haproxy, "keepalive_origin", ["http_reuse=safe,pool_max_conn=8", ""], ["http_reuse=never,pool_max_conn=8", ""], "pool_max_conn"),
        (Haproxy, "keepalive_origin", ["http_reuse=safe", ""], ["http_reuse=safe,http_connection_mode=httpclose", ""], "http_reuse"),
        (Haproxy, "maxconn", ["server_maxconn=2", ""], ["server_maxconn=0", ""], "server_maxconn"),
        (Haproxy, "cpu_one_worker", ["nbthread=2,shards=1", "workers=2"], ["nbthread=1,shards=1", "workers=1"], "shards"),
        (Haproxy, "keepalive_inbound", ["http_connection_mode=httpclose", ""], ["http_connection_mode=http-keep-alive", ""], "http_connection_mode"),
        (Haproxy, "disk_log", ["access_log=sampled", ""], ["access_log=off", ""], "access_log"),
        (Envoy, "keepalive_origin", ["origin_keepalive_requests=1", "outbound_opens_per_request=1"],
            ["origin_keepalive_requests=unlimited", "outbound_opens_per_request=1"], "origin_keepalive_requests"),
        (Envoy, "keepalive_inbound", ["keepalive_requests=2", ""], ["keepalive_requests=unlimited", ""], "keepalive_requests"),
        (Envoy, "cpu_one_worker", ["concurrency=1", ""], ["concurrency=auto", ""], "concurrency"),
        (Envoy, "cpu_one_worker", ["concurrency=2", "workers=2"], ["concurrency=1", "workers=1"], "connection_balance"),
        (Caddy, "maxconn", ["origin_max_connections=2", ""], ["origin_max_connections=0", ""], "origin_max_connections"),
        (Caddy, "keepalive_origin", ["origin_max_requests=1", "outbound_opens_per_request=1"], ["origin_max_requests=0", "outbound_opens_per_request=1"], "origin_max_requests"),
        (Caddy, "compression", ["compression=gzip,gzip_comp_level=9", ""], ["compression=zstd,gzip_comp_level=9", ""], "gzip_comp_level"),
        (Caddy, "lock", ["metrics=on", ""], ["metrics=off", ""], "metrics"),
        (Caddy, "cpu", ["gogc=100", ""], ["gogc=off", ""], "gogc"),
        (Httpd, "keepalive_origin", ["proxy_disablereuse=on", "outbound_opens_per_request=1"], ["proxy_disablereuse=off", "outbound_opens_per_request=1"], "proxy_disablereuse"),
        (Httpd, "keepalive_origin", ["proxy_disablereuse=off,proxy_ttl=1s", "client_pause=5"], ["proxy_disablereuse=on,proxy_ttl=1s", "client_pause=5"], "proxy_ttl"),
        (Httpd, "keepalive_inbound", ["keepalive=on,keepalive_requests=1", ""], ["keepalive=off,keepalive_requests=1", ""], "keepalive_requests"),
        (Httpd, "keepalive_inbound", ["keepalive=off", ""], ["keepalive=on", ""], "keepalive"),
        (Httpd, "disk_log", ["access_log=on,buffered_logs=off", ""], ["access_log=off,buffered_logs=off", ""], "buffered_logs"),
        (Httpd, "maxconn", ["threads_per_child=25,mpm=event", ""], ["threads_per_child=25,mpm=prefork", ""], "threads_per_child"),
    ];

    #[test]
    fn hints_fit_their_arm() {
        let mut wrong = Vec::new();
        for (kind, limiter, fit, misfit, hint) in ROWS {
            for ([settings, seen], is_named) in [(fit, true), (misfit, false)] {
                let named = name_hints(*kind, limiter, settings, seen);
                if named.contains(*hint) != is_named {
                    wrong.push(format!(
                        "{kind:?} {limiter} {hint} with {settings} {seen}: {named:?}"
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Parameters that rules would turn are not named if they are already at the end of their range.
    #[test]
    fn what_is_turned_as_far_as_it_goes_is_not_named() {
        let catalog = Catalog::builtin();
        let mut held_against = 0;
        for kind in ALL {
            for rule in Rules::builtin().all() {
                for turn in rule.turns(Some(kind)) {
                    let Some(row) = catalog.get(kind, &turn.parameter) else {
                        continue;
                    };
                    let end = match &turn.way {
                        TurnDirection::To(level) => level.clone(),
                        TurnDirection::Up | TurnDirection::Down => {
                            let up = turn.way == TurnDirection::Up;
                            let first = catalog
                                .complete(kind, &Settings::new())
                                .get(&turn.parameter)
                                .cloned()
                                .unwrap_or_else(|| "1024".to_owned());
                            // Eight times as much each time.
                            let steps = std::iter::successors(Some(first), |level| {
                                row.level.further(level, up)
                            });
                            let end = steps.take(100).last().expect("the first");
                            if !is_at_end(row, &end, up) {
                                continue;
                            }
                            end
                        }
                        TurnDirection::Either => continue,
                    };
                    let mut same = rule.turns(Some(kind)).iter();
                    let is_turned_twice = same
                        .any(|other| other.parameter == turn.parameter && other.way != turn.way);
                    if row.check(&end).is_err() || is_turned_twice {
                        continue;
                    }
                    held_against += 1;
                    let settings = format!("{}={end}", turn.parameter);
                    let limiter = &rule.limiter.value;
                    let named = name_hints(kind, limiter, &settings, "");
                    assert!(!named.contains(&turn.parameter), "{kind:?} {limiter}: {settings}");
                }
            }
        }
        assert!(held_against > 200, "{held_against}");
    }
}
