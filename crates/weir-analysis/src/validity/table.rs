//! The table of rules.

use weir_model::load::{Ended, ErrorCount};
use weir_model::record::{ConnectionCounts, CrowdedCpus, Observation};

use super::grade::{NEVER, both, limits, load, study};
use super::{BUSY, BYPASSED, GAP_NS, LAG, Rule, count, most_frequent_error, share};
use crate::evidence::{Due, Hop, TICK_NS};

/// Every rule, in the order in which reasons are named.
pub static RULES: [Rule; 29] = [
    Rule {
        name: "nothing-answered",
        compares: "whether no response was complete",
        limits: load(0.0, 0.0),
        why: "no figures can be computed. For an arm of a study, this is the worst outcome",
        observe: |e| {
            let size = f64::from(e.answered? == 0);
            Some((size, Observation::NothingAnswered { error: most_frequent_error(e) }))
        },
    },
    Rule {
        name: "few-responses",
        compares: "one response, of those that the quantiles are made of",
        limits: load(0.01, 0.2),
        why: "of fewer than 100 the p99 is the slowest one; of fewer than 5 not even the median is known. A study \
              says by intervals what its trials do not know",
        observe: |e| {
            let responses = e.timed?;
            Some((1.0 / responses as f64, Observation::FewResponses { responses }))
        },
    },
    Rule {
        name: "failures",
        compares: "errors, and responses with an unexpected status, of all requests",
        limits: load(0.001, 0.05),
        why: "one in a thousand is what published capacity goals still call loss; at one in twenty the \
              server spends itself on something else than the question. In a study it is an outcome: failed \
              requests count in no rate, and as unanswered in every quantile",
        observe: |e| {
            let errors = e.errors.iter().map(|error| (error.kind, error.count));
            let Ended { requests, failed } = Ended::of(e.completed?, e.unexpected, errors);
            let error = most_frequent_error(e);
            Some((share(failed, requests), Observation::Failures { failed, requests, error }))
        },
    },
    Rule {
        name: "ports-exhausted",
        compares: "connections that the generator had no local port for, per response",
        limits: both(0.0, 0.05),
        why: "the generator's own trouble, so the first one is said; from where on too many requests \
              failed is as for `failures`",
        observe: |e| {
            let connections = count(e, ErrorCount::lacks_port);
            let size = share(connections, e.completed? + connections);
            Some((size, Observation::PortsExhausted { connections }))
        },
    },
    Rule {
        name: "proxy-steal",
        compares: "time that the hypervisor took of the proxy's CPUs, less one tick, of their time",
        limits: study(0.05, 0.20),
        why: "the arms of a block are measured alternately, so a little falls on both alike; a fifth does not",
        observe: |e| {
            let s = e.slices?;
            let share = s.of_proxy(s.proxy_steal_ns);
            Some((s.of_proxy(s.proxy_steal_ns - TICK_NS), Observation::ProxySteal { share }))
        },
    },
    Rule {
        name: "steal",
        compares: "time that the hypervisor took of the generator's CPUs, of their time",
        limits: [limits(0.05, 0.20), limits(0.01, 0.10)],
        why: "a load test has no other arm that it falls on alike: one in a hundred reaches the p99 by itself. \
              In a study, less a tick, it is as for `proxy-steal`: in a closed loop no lateness would show it",
        observe: |e| {
            let share = e.steal?;
            Some((share, Observation::Steal { share }))
        },
    },
    Rule {
        name: "throttled",
        compares: "time that CPU quotas held weir's control groups back, summed over CPUs, of the slices",
        limits: study(0.01, 0.20),
        why: "who is held back sends and answers nothing for the rest of a period, tens of milliseconds: one in a \
              hundred reaches the p99; a fifth falls on some slices and not on others",
        observe: |e| {
            let s = e.slices?;
            let held_back = s.held_back(s.throttled_ns);
            Some((held_back.held_back_ns / s.whole_ns, Observation::Throttled(held_back)))
        },
    },
    Rule {
        name: "proxy-throttled",
        compares: "the same of the groups that the proxy is in beside weir's",
        limits: study(0.01, NEVER),
        why: "as for `throttled`, but a quota of the proxy's own may be meant, and is then a part of what is measured",
        observe: |e| {
            let s = e.slices?;
            let held_back = s.held_back(s.proxy_throttled_ns);
            Some((held_back.held_back_ns / s.whole_ns, Observation::ProxyThrottled(held_back)))
        },
    },
    Rule {
        name: "proxy-crowded",
        compares: "time of the proxy's CPUs that went to processes of other people; of a server that weir did not start, of \
                   the CPUs of its host, by samples",
        limits: study(0.05, NEVER),
        why: "they also share it out by the number of processes that want it, so an arm with more workers \
              gets more of it",
        observe: |e| {
            if let Some(share) = e.crowd {
                let cpus = CrowdedCpus::Host;
                return Some((share, Observation::ProxyCrowded { cpus, share }));
            }
            let s = e.slices?;
            let others_ns = s.others_ns?;
            // Idle time comes in ticks: in every slice each CPU may have one more than was counted.
            let grain = TICK_NS * s.count * s.proxy_cpus;
            let (cpus, share) = (CrowdedCpus::Proxy, s.of_proxy(others_ns));
            Some((s.of_proxy(others_ns - grain), Observation::ProxyCrowded { cpus, share }))
        },
    },
    Rule {
        name: "proxy-not-limit",
        compares: "in a closed loop, idle time of the proxy's CPUs while generator or origin used 80 % of theirs",
        limits: study(0.20, NEVER),
        why: "what was measured is then somebody else, and ratios understate what the proxy gained",
        observe: |e| {
            let s = e.slices?;
            let (peer, busy) = s.peer.filter(|(_, busy)| *busy >= BUSY)?;
            let observation = Observation::ProxyNotLimit {
                idle_share: s.of_proxy(s.proxy_idle_ns),
                peer,
                peer_share: busy.min(1.0),
            };
            Some((s.of_proxy(s.proxy_idle_ns - TICK_NS), observation))
        },
    },
    Rule {
        name: "slice-too-short",
        compares: "in a closed loop, the median response time, of the part of a slice that is not measured",
        limits: study(1.0, NEVER),
        why: "requests in flight when the load moves on are answered while another arm has it, so what the \
              measured part sees of a longer one is how a queue fills",
        observe: |e| {
            let s = e.slices?;
            let median_ns = s.median_ns?;
            let unmeasured_ns = (s.whole_ns - s.measured_ns) / s.count.max(1.0);
            // A study that discards nothing has said so.
            let size = if unmeasured_ns < 1.0 { 0.0 } else { median_ns / unmeasured_ns };
            Some((size, Observation::SliceTooShort { median_ns, unmeasured_ns }))
        },
    },
    Rule {
        name: "late-counters",
        compares: "lateness of the readings of counters, of a slice",
        limits: study(0.05, 0.50),
        why: "as much of the CPU time that they tell may belong to a neighbouring slice, which is another arm's",
        observe: |e| {
            let s = e.slices?;
            let (late_ns, share) = (s.late_ns / s.count.max(1.0), s.late_ns / s.whole_ns);
            Some((share, Observation::LateCounters { late_ns, share }))
        },
    },
    Rule {
        name: "offered-rate",
        compares: "requests that were neither sent nor waiting for a connection nor left out, of those due",
        limits: both(0.001, 0.01),
        why: "0.1 % is what the engine promises; beyond, the load was not the one asked for. That no connection \
              was idle is the server's doing, and an outcome",
        observe: |e| {
            let d = e.schedule?;
            let (due, offered) = (d.due, d.sent + d.queued + d.dropped);
            Some((share(due.abs_diff(offered), due), Observation::OfferedRate { offered, due }))
        },
    },
    Rule {
        name: "trace-left-out",
        compares: "lines of a recorded trace that are not sent, of all its lines",
        limits: load(0.10, NEVER),
        why: "every public server gets some percent of scans and empty connections, and they are no part of a load; where more \
              is missing, the load is not the one that was recorded, whatever the rate",
        observe: |e| {
            let (arrivals, left_out) = e.recorded?;
            let unsent = left_out.iter().map(|kind| kind.lines).sum();
            let (lines, left_out) = (arrivals + unsent, left_out.to_vec());
            Some((share(unsent, lines), Observation::TraceLeftOut { lines, left_out }))
        },
    },
    Rule {
        name: "start-spread",
        compares: "milliseconds between the first start and the last one of several generators",
        limits: both(5.0, NEVER),
        why: "each keeps its share of the schedule by its own clock from its own start: so much later a share of the \
              requests comes than it is meant to, side by side with others instead of between them",
        observe: |e| {
            let (spread_ns, uncertainty_ns) = e.start_spread?;
            let observation = Observation::StartSpread { spread_ns, uncertainty_ns };
            Some((spread_ns as f64 / 1e6, observation))
        },
    },
    Rule {
        name: "node-lost",
        compares: "nodes with pods of the proxies that the cluster lost meanwhile",
        limits: study(0.0, 0.0),
        why: "requests to pods of a lost node fail, or others serve them as well: neither is the doing of the arm",
        observe: |e| {
            let nodes = e.lost_nodes.clone();
            Some((nodes.len() as f64, Observation::NodeLost { nodes }))
        },
    },
    Rule {
        name: "dropped",
        compares: "requests that were left out, of those due",
        limits: load(0.001, NEVER),
        why: "what was left out is in no quantile. In a study it counts as unanswered",
        observe: |e| {
            let Due { dropped, due, .. } = e.schedule?;
            Some((share(dropped, due), Observation::Dropped { dropped, due }))
        },
    },
    Rule {
        name: "dispatch-lag",
        compares: "the generator's own lateness, of the response time, both at p50 or both at p99; in a load test 400 µs \
                   stand for shorter ones",
        limits: both(LAG, 0.50),
        why: "it burdens both sides of a ratio alike and pulls it towards 1: beyond a quarter that must be \
              said; from one half on a figure is more about the generator than about the server. In a study all \
              arms are judged together: by itself the fastest would be doubted first. A load test has no ratio: its \
              result says how exactly it knows a response time, and 100 µs are what nobody notices",
        observe: |e| {
            let least = (e.resolution_ns as f64 / LAG).max(1.0);
            let shares = e.lag.iter().map(|&(quantile, lag_ns, response_ns)| {
                let share = lag_ns as f64 / least.max(response_ns as f64);
                (share, Observation::DispatchLag { quantile, lag_ns, response_ns })
            });
            shares.max_by(|a, b| a.0.total_cmp(&b.0))
        },
    },
    Rule {
        name: "threads-crowded",
        compares: "threads of the generator that share a CPU",
        limits: load(8.0, NEVER),
        why: "each waits for the others' turns, some milliseconds each, and what waits there is in the response times. \
              A study's generator has a thread for each CPU, and more only where descriptors are wanting",
        observe: |e| {
            let (threads, cpus) = e.threads?;
            Some((
                threads as f64 / cpus.max(1) as f64,
                Observation::ThreadsCrowded { threads, cpus },
            ))
        },
    },
    Rule {
        name: "generator-busy",
        compares: "CPU time of the generator, of what it had",
        limits: both(0.95, NEVER),
        why: "a thread without time to spare is not punctual in an open loop, and in a closed one it is as \
              likely the limit as the server, which `proxy-not-limit` says of a study",
        observe: |e| {
            let (share, is_open) = (e.generator_busy?, e.is_open);
            Some((share, Observation::GeneratorBusy { share, is_open }))
        },
    },
    Rule {
        name: "generator-stopped",
        compares: "the longest time for which a thread of the generator did not come round, less 50 ms, of the measured time",
        limits: load(0.01, 0.10),
        why: "nothing is sent meanwhile and what comes is stamped late, as for `steal`: one in a hundred reaches the p99 of \
              an open loop, and takes as much off the rate of a closed one, which has no lateness to show it. 50 ms are \
              what programs that share a CPU may wait for each other, and what a thread may have asked for. In a study \
              counters are read late",
        observe: |e| {
            let (gap_ns, measured_ns) = e.gap?;
            let size = (gap_ns as f64 - GAP_NS) / measured_ns;
            Some((size, Observation::GeneratorStopped { gap_ns, measured_ns }))
        },
    },
    Rule {
        name: "near-self-capacity",
        compares: "the rate, of what `weir load --calibrate` found on this machine",
        limits: load(0.8, NEVER),
        why: "a rate close to what the generator can do at all says little about the server. A study's \
              load stays on each arm for a slice, which no calibration was made with",
        observe: |e| {
            let (rate, self_capacity) = e.capacity?;
            Some((rate / self_capacity, Observation::NearSelfCapacity { rate, self_capacity }))
        },
    },
    Rule {
        name: "censored",
        compares: "requests that never ended, of all",
        limits: load(0.0, NEVER),
        why: "the quantiles leave them out, and go up to the maximum, which one is enough to leave unknown. In a \
              study they count as never answered",
        observe: |e| {
            let censored = e.censored?;
            let unended = censored.in_flight + censored.queued;
            let (requests, oldest_ns) = (unended + e.completed?, censored.oldest_ns);
            let observation = Observation::Censored { unended, requests, oldest_ns };
            Some((share(unended, requests), observation))
        },
    },
    Rule {
        name: "generator-starved",
        compares: "receives that waited for one of the generator's own buffers, of all",
        limits: both(0.001, NEVER),
        why: "each is some microseconds of the generator in the response times; one in a thousand is the p99.9",
        observe: |e| {
            let (starved, receives) = e.starved?;
            let observation = Observation::GeneratorStarved { starved, receives };
            Some((share(starved, receives), observation))
        },
    },
    Rule {
        name: "listen-overflows",
        compares: "connections that a full listen queue on this host kept waiting, per response",
        limits: both(0.001, NEVER),
        why: "a wait is a fifth of a second or more, so one in a thousand is the p99.9. The kernel does not \
              say whose queue it was: no more can have been ours than connections were opened",
        observe: |e| {
            let o = e.overflows?;
            let (on_host, of_trial) = (o.seen, o.seen.min(o.opened));
            let observation = Observation::ListenOverflows { on_host, of_trial };
            Some((share(of_trial, o.responses), observation))
        },
    },
    Rule {
        name: "connections-missing",
        compares: "connections that were not open when the trial began, of those wanted",
        limits: [limits(0.001, NEVER), limits(0.001, 0.05)],
        why: "a load of fewer connections is another load; in a study it is its arm that lets no more of them be open, \
              and how it answers then is part of its result. One that is renewed may be closed at any moment, and one \
              for each request is not open before",
        observe: |e| {
            let ConnectionCounts { wanted, open_at_start, .. } = e.asking?;
            let missing = wanted.saturating_sub(open_at_start);
            let observation = Observation::ConnectionsMissing { wanted, open_at_start };
            Some((share(missing, wanted), observation))
        },
    },
    Rule {
        name: "held-connections",
        compares: "held connections that were not open from the start to the end, of those wanted",
        limits: both(0.001, 0.05),
        why: "as for `connections-missing`; those that were closed were not held",
        observe: |e| {
            let ConnectionCounts { wanted, open_at_start, open_at_end, opened, .. } = e.held?;
            let lost = opened.saturating_sub(open_at_start);
            let missing = wanted.saturating_sub(open_at_start.min(open_at_end)).max(lost);
            let observation =
                Observation::HeldConnections { wanted, open_at_start, open_at_end, lost };
            Some((share(missing, wanted), observation))
        },
    },
    Rule {
        name: "bypass-idle",
        compares: "bytes of a hop that went by TCP though the arm is to go past it",
        limits: study(0.5, BYPASSED),
        why: "below one half an effect is mostly TCP's; without a byte there is none",
        observe: |e| {
            let Hop { name, redirected_bytes, tcp_bytes, redirected, tcp, .. } = e.hop?;
            let (past, by_tcp) = (redirected_bytes as f64, tcp_bytes as f64);
            let share = match redirected_bytes {
                0 => 1.0,
                _ => (by_tcp / (past + by_tcp)).min(BYPASSED),
            };
            let hop = name.to_owned();
            let observation =
                Observation::BypassIdle { hop, redirected_bytes, tcp_bytes, redirected, tcp };
            Some((share, observation))
        },
    },
    Rule {
        name: "bypass-refused",
        compares: "sockets of a hop that the bypass had no place for",
        limits: study(0.0, NEVER),
        why: "their bytes went by TCP and are in no share, so the first one is said",
        observe: |e| {
            let Hop { name, refused, sockets, .. } = e.hop?;
            let (hop, sockets) = (name.to_owned(), refused + sockets);
            let observation = Observation::BypassRefused { hop, refused, sockets };
            Some((share(refused, sockets), observation))
        },
    },
];
