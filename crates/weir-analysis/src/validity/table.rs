//! The table of rules.

use weir_model::load::{Ended, ErrorCount};

use super::grade::{NEVER, both, limits, load, study};
use super::{BUSY, BYPASSED, GAP_NS, Rule, count, mostly, percent, recorded};
use crate::evidence::{Due, TICK_NS};
use crate::names;

/// Every rule, in the order in which reasons are named.
pub static RULES: [Rule; 29] = [
    Rule {
        name: "nothing-answered",
        compares: "whether no response was complete",
        limits: load(0.0, 0.0),
        why: "no figures can be computed. For an arm of a study, this is the worst outcome",
        judge: |e, grade| {
            let nothing = f64::from(e.answered? == 0);
            grade.of(nothing, || format!("no response was complete{}", mostly(e)))
        },
    },
    Rule {
        name: "few-responses",
        compares: "one response, of those that the quantiles are made of",
        limits: load(0.01, 0.2),
        why: "of fewer than 100 the p99 is the slowest one; of fewer than 5 not even the median is known. A study \
              says by intervals what its trials do not know",
        judge: |e, grade| {
            let timed = e.timed?;
            grade.of(1.0 / timed as f64, || {
                if timed == 0 {
                    return "no response is to a request of the measured time (-d, --ramp-up)"
                        .to_owned();
                }
                let knowable = match timed {
                    1..=4 => "no quantile",
                    _ => "the median at best, and no p99",
                };
                let (are, s) = if timed == 1 { ("is", "") } else { ("are", "s") };
                format!("there {are} {timed} response{s}, of which {knowable} can be told (-n, -d)")
            })
        },
    },
    Rule {
        name: "failures",
        compares: "errors, and responses with an unexpected status, of all requests",
        limits: load(0.001, 0.05),
        why: "one in a thousand is what published capacity goals still call loss; at one in twenty the \
              server spends itself on something else than the question. In a study it is an outcome: failed \
              requests count in no rate, and as unanswered in every quantile",
        judge: |e, grade| {
            let errors = e.errors.iter().map(|error| (error.kind, error.count));
            let Ended { requests, failed } = Ended::of(e.completed?, e.unexpected, errors);
            grade.share(failed, requests, |share| {
                let share = percent(share);
                format!(
                    "{} of {} requests failed ({share}){}",
                    names::count(failed),
                    names::count(requests),
                    mostly(e)
                )
            })
        },
    },
    Rule {
        name: "ports-exhausted",
        compares: "connections that the generator had no local port for, per response",
        limits: both(0.0, 0.05),
        why: "the generator's own trouble, so the first one is said; from where on too many requests \
              failed is as for `failures`",
        judge: |e, grade| {
            let times = count(e, ErrorCount::lacks_port);
            grade.share(times, e.completed? + times, |_| {
                let times = names::count(times);
                format!(
                    "the generator had no local port left {times} times (net.ipv4.ip_local_port_range; closed \
                     connections keep theirs for a minute, and each own address has as many: `--source`)"
                )
            })
        },
    },
    Rule {
        name: "proxy-steal",
        compares: "time that the hypervisor took of the proxy's CPUs, less one tick, of their time",
        limits: study(0.05, 0.20),
        why: "the arms of a block are measured alternately, so a little falls on both alike; a fifth does not",
        judge: |e, grade| {
            let s = e.slices?;
            grade.of(s.of_proxy(s.proxy_steal_ns - TICK_NS), || {
                let share = percent(s.of_proxy(s.proxy_steal_ns));
                format!("the hypervisor kept {share} of the proxy's CPU time for others")
            })
        },
    },
    Rule {
        name: "steal",
        compares: "time that the hypervisor took of the generator's CPUs, of their time",
        limits: [limits(0.05, 0.20), limits(0.01, 0.10)],
        why: "a load test has no other arm that it falls on alike: one in a hundred reaches the p99 by itself. \
              In a study, less a tick, it is as for `proxy-steal`: in a closed loop no lateness would show it",
        judge: |e, grade| {
            let steal = e.steal?;
            grade.of(steal, || {
                format!("the hypervisor took {} of the generator's CPU time", percent(steal))
            })
        },
    },
    Rule {
        name: "throttled",
        compares: "time that CPU quotas held weir's control groups back, summed over CPUs, of the slices",
        limits: study(0.01, 0.20),
        why: "who is held back sends and answers nothing for the rest of a period, tens of milliseconds: one in a \
              hundred reaches the p99; a fifth falls on some slices and not on others",
        judge: |e, grade| {
            let s = e.slices?;
            grade.of(s.throttled_ns / s.whole_ns, || s.held_back("weir's", s.throttled_ns))
        },
    },
    Rule {
        name: "proxy-throttled",
        compares: "the same of the groups that the proxy is in beside weir's",
        limits: study(0.01, NEVER),
        why: "as for `throttled`, but a quota of the proxy's own may be meant, and is then a part of what is measured",
        judge: |e, grade| {
            let s = e.slices?;
            grade.of(s.proxy_throttled_ns / s.whole_ns, || {
                s.held_back("the proxy's", s.proxy_throttled_ns)
            })
        },
    },
    Rule {
        name: "proxy-crowded",
        compares: "time of the proxy's CPUs that went to processes of other people; of a server that weir did not start, of \
                   the CPUs of its host, by samples",
        limits: study(0.05, NEVER),
        why: "they also share it out by the number of processes that want it, so an arm with more workers \
              gets more of it",
        judge: |e, grade| {
            if let Some(share) = e.crowd {
                return grade.of(share, || {
                    let share = percent(share);
                    format!(
                        "other processes took {share} of the time of the CPUs of the server's host"
                    )
                });
            }
            let s = e.slices?;
            let others_ns = s.others_ns?;
            // Idle time comes in ticks: in every slice each CPU may have one more than was counted.
            let grain = TICK_NS * s.count * s.proxy_cpus;
            grade.of(s.of_proxy(others_ns - grain), || {
                let share = percent(s.of_proxy(others_ns));
                format!("other processes took {share} of the time of the proxy's CPUs")
            })
        },
    },
    Rule {
        name: "proxy-not-limit",
        compares: "in a closed loop, idle time of the proxy's CPUs while generator or origin used 80 % of theirs",
        limits: study(0.20, NEVER),
        why: "what was measured is then somebody else, and ratios understate what the proxy gained",
        judge: |e, grade| {
            let s = e.slices?;
            let (who, busy) = s.peer.filter(|(_, busy)| *busy >= BUSY)?;
            grade.of(s.of_proxy(s.proxy_idle_ns - TICK_NS), || {
                format!(
                    "the proxy was not the limit: its CPUs were idle {} of the time while {who} used {} of theirs",
                    percent(s.of_proxy(s.proxy_idle_ns)),
                    percent(busy.min(1.0)),
                )
            })
        },
    },
    Rule {
        name: "slice-too-short",
        compares: "in a closed loop, the median response time, of the part of a slice that is not measured",
        limits: study(1.0, NEVER),
        why: "requests in flight when the load moves on are answered while another arm has it, so what the \
              measured part sees of a longer one is how a queue fills",
        judge: |e, grade| {
            let s = e.slices?;
            let median_ns = s.median_ns?;
            let lead_ns = (s.whole_ns - s.measured_ns) / s.count.max(1.0);
            // A study that discards nothing has said so.
            let share = if lead_ns < 1.0 { 0.0 } else { median_ns / lead_ns };
            grade.of(share, || {
                format!(
                    "half of the responses took longer ({}) than the part of a slice that is not \
                     measured ({}): use longer slices or fewer connections",
                    names::time(median_ns),
                    names::time(lead_ns)
                )
            })
        },
    },
    Rule {
        name: "late-counters",
        compares: "lateness of the readings of counters, of a slice",
        limits: study(0.05, 0.50),
        why: "as much of the CPU time that they tell may belong to a neighbouring slice, which is another arm's",
        judge: |e, grade| {
            let s = e.slices?;
            grade.of(s.late_ns / s.whole_ns, || {
                let late = names::time(s.late_ns / s.count.max(1.0));
                let share = percent(s.late_ns / s.whole_ns);
                format!("the counters of its slices were read {late} late, {share} of a slice")
            })
        },
    },
    Rule {
        name: "offered-rate",
        compares: "requests that were neither sent nor waiting for a connection nor left out, of those due",
        limits: both(0.001, 0.01),
        why: "0.1 % is what the engine promises; beyond, the load was not the one asked for. That no connection \
              was idle is the server's doing, and an outcome",
        judge: |e, grade| {
            let d = e.schedule?;
            let offered = d.sent + d.queued + d.dropped;
            grade.share(d.due.abs_diff(offered), d.due, |_| {
                let [offered, due] = [offered, d.due].map(names::count);
                format!("{offered} requests were offered where {due} were due")
            })
        },
    },
    recorded::RULE,
    Rule {
        name: "start-spread",
        compares: "milliseconds between the first start and the last one of several generators",
        limits: both(5.0, NEVER),
        why: "each keeps its share of the schedule by its own clock from its own start: so much later a share of the \
              requests comes than it is meant to, side by side with others instead of between them",
        judge: |e, grade| {
            let (spread, unsure) = e.start_spread?;
            grade.of(spread as f64 / 1e6, || {
                let [apart, unsure] = [spread, unsure].map(|ns| names::time(ns as f64));
                format!("the generators started {apart} apart (known to {unsure})")
            })
        },
    },
    Rule {
        name: "node-lost",
        compares: "nodes with pods of the proxies that the cluster lost meanwhile",
        limits: study(0.0, 0.0),
        why: "requests to pods of a lost node fail, or others serve them as well: neither is the doing of the arm",
        judge: |e, grade| {
            let losses: Vec<String> = e
                .lost_nodes
                .iter()
                .map(|lost| format!("node `{}` was lost ({})", lost.node, lost.why))
                .collect();
            grade.of(losses.len() as f64, || losses.join("; "))
        },
    },
    Rule {
        name: "dropped",
        compares: "requests that were left out, of those due",
        limits: load(0.001, NEVER),
        why: "what was left out is in no quantile. In a study it counts as unanswered",
        judge: |e, grade| {
            let Due { dropped, due, .. } = e.schedule?;
            grade.share(dropped, due, |_| {
                let [dropped, due] = [dropped, due].map(names::count);
                format!("{dropped} of {due} requests found no idle connection and were left out")
            })
        },
    },
    Rule {
        name: "dispatch-lag",
        compares: "the generator's own lateness, of the response time, both at p50 or both at p99; in a load test 400 µs \
                   stand for shorter ones",
        limits: both(0.25, 0.50),
        why: "it burdens both sides of a ratio alike and pulls it towards 1: beyond a quarter that must be \
              said; from one half on a figure is more about the generator than about the server. In a study all \
              arms are judged together: by itself the fastest would be doubted first. A load test has no ratio: its \
              result says how exactly it knows a response time, and 100 µs are what nobody notices",
        judge: |e, grade| {
            let least = (e.resolution_ns as f64 / grade.1.suspect).max(1.0);
            let shares = e.lag.iter().map(|(quantile, lag, response)| {
                let share = *lag as f64 / least.max(*response as f64);
                (share, *quantile, *lag, *response)
            });
            let (share, quantile, lag, response) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
            grade.of(share, || {
                let [lag, response] = [lag, response].map(|ns| names::time(ns as f64));
                format!(
                    "at {quantile} the generator itself was {lag} late, of a response time of {response}"
                )
            })
        },
    },
    Rule {
        name: "threads-crowded",
        compares: "threads of the generator that share a CPU",
        limits: load(8.0, NEVER),
        why: "each waits for the others' turns, some milliseconds each, and what waits there is in the response times. \
              A study's generator has a thread for each CPU, and more only where descriptors are wanting",
        judge: |e, grade| {
            let (threads, cpus) = e.threads?;
            grade.of(threads as f64 / cpus.max(1) as f64, || {
                let s = if cpus == 1 { "" } else { "s" };
                let threads = names::count(threads as u64);
                format!("{threads} threads of the generator share {cpus} CPU{s} (-t)")
            })
        },
    },
    Rule {
        name: "generator-busy",
        compares: "CPU time of the generator, of what it had",
        limits: both(0.95, NEVER),
        why: "a thread without time to spare is not punctual in an open loop, and in a closed one it is as \
              likely the limit as the server, which `proxy-not-limit` says of a study",
        judge: |e, grade| {
            let busy = e.generator_busy?;
            grade.of(busy, || match (e.is_open, percent(busy)) {
                (true, share) => format!("the generator used {share} of its CPU time"),
                (false, share) => format!(
                    "the generator used {share} of its CPU time: the server may be able to carry more"
                ),
            })
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
        judge: |e, grade| {
            let (gap, measured_ns) = e.gap?;
            grade.of((gap as f64 - GAP_NS) / measured_ns, || {
                format!(
                    "a thread of the generator stood still for {}, {} of the measured time: it was stopped, or others \
                     had its CPU",
                    names::time(gap as f64),
                    percent(gap as f64 / measured_ns)
                )
            })
        },
    },
    Rule {
        name: "near-self-capacity",
        compares: "the rate, of what `weir load --calibrate` found on this machine",
        limits: load(0.8, NEVER),
        why: "a rate close to what the generator can do at all says little about the server. A study's \
              load stays on each arm for a slice, which no calibration was made with",
        judge: |e, grade| {
            let (offered, most) = e.capacity?;
            grade.of(offered / most, || {
                format!(
                    "{}/s is {} of the {}/s that this generator can send (weir load --calibrate)",
                    names::rate(offered),
                    percent(offered / most),
                    names::rate(most),
                )
            })
        },
    },
    Rule {
        name: "censored",
        compares: "requests that never ended, of all",
        limits: load(0.0, NEVER),
        why: "the quantiles leave them out, and go up to the maximum, which one is enough to leave unknown. In a \
              study they count as never answered",
        judge: |e, grade| {
            let censored = e.censored?;
            let never = censored.in_flight + censored.queued;
            grade.share(never, never + e.completed?, |share| {
                let oldest = names::time(censored.oldest_ns as f64);
                let never = names::count(never);
                format!(
                    "{never} requests ({}) never ended, the oldest after {oldest}; the quantiles leave them out",
                    percent(share)
                )
            })
        },
    },
    Rule {
        name: "generator-starved",
        compares: "receives that waited for one of the generator's own buffers, of all",
        limits: both(0.001, NEVER),
        why: "each is some microseconds of the generator in the response times; one in a thousand is the p99.9",
        judge: |e, grade| {
            let (starved, receives) = e.starved?;
            grade.share(starved, receives, |share| {
                let (starved, share) = (names::count(starved), percent(share));
                format!(
                    "received bytes waited {starved} times for one of the generator's buffers (about {share} of the receives)"
                )
            })
        },
    },
    Rule {
        name: "listen-overflows",
        compares: "connections that a full listen queue on this host kept waiting, per response",
        limits: both(0.001, NEVER),
        why: "a wait is a fifth of a second or more, so one in a thousand is the p99.9. The kernel does not \
              say whose queue it was: no more can have been ours than connections were opened",
        judge: |e, grade| {
            let o = e.overflows?;
            let ours = o.seen.min(o.opened);
            grade.share(ours, o.responses, |_| {
                let [seen, ours] = [o.seen, ours].map(names::count);
                format!(
                    "{seen} connections on this host found the listener's queue full and waited for a retransmission, \
                     up to {ours} of them this trial's (net.core.somaxconn, `backlog`)"
                )
            })
        },
    },
    Rule {
        name: "connections-missing",
        compares: "connections that were not open when the trial began, of those wanted",
        limits: [limits(0.001, NEVER), limits(0.001, 0.05)],
        why: "a load of fewer connections is another load; in a study it is its arm that lets no more of them be open, \
              and how it answers then is part of its result. One that is renewed may be closed at any moment, and one \
              for each request is not open before",
        judge: |e, grade| {
            let (wanted, open) = (e.asking?.wanted, e.asking?.open_at_start);
            grade.share(wanted.saturating_sub(open), wanted, |_| {
                let [wanted, open] = [wanted, open].map(names::count);
                format!("of {wanted} connections only {open} were open when the trial began")
            })
        },
    },
    Rule {
        name: "held-connections",
        compares: "held connections that were not open from the start to the end, of those wanted",
        limits: both(0.001, 0.05),
        why: "as for `connections-missing`; those that were closed were not held",
        judge: |e, grade| {
            let held = e.held?;
            let lost = held.opened.saturating_sub(held.open_at_start);
            let least = held.open_at_start.min(held.open_at_end);
            let missing = held.wanted.saturating_sub(least).max(lost);
            grade.share(missing, held.wanted, |_| {
                let [wanted, start, end, lost] =
                    [held.wanted, held.open_at_start, held.open_at_end, lost].map(names::count);
                format!(
                    "of {wanted} connections to be held {start} were open at the start and {end} at the end, and {lost} were \
                     lost in between"
                )
            })
        },
    },
    Rule {
        name: "bypass-idle",
        compares: "bytes of a hop that went by TCP though the arm is to go past it",
        limits: study(0.5, BYPASSED),
        why: "below one half an effect is mostly TCP's; without a byte there is none",
        judge: |e, grade| {
            let hop = e.hop?;
            let (past, by_tcp) = (hop.redirected_bytes as f64, hop.tcp_bytes as f64);
            let share = match hop.redirected_bytes {
                0 => 1.0,
                _ => (by_tcp / (past + by_tcp)).min(BYPASSED),
            };
            grade.of(share, || match hop.redirected_bytes {
                0 => format!(
                    "not a byte of the {} hop bypassed TCP, although this arm is about that",
                    hop.name
                ),
                _ => format!(
                    "only {} of the bytes of the {} hop bypassed TCP ({} messages by TCP, of {})",
                    percent(1.0 - share),
                    hop.name,
                    names::count(hop.tcp),
                    names::count(hop.tcp + hop.redirected)
                ),
            })
        },
    },
    Rule {
        name: "bypass-refused",
        compares: "sockets of a hop that the bypass had no place for",
        limits: study(0.0, NEVER),
        why: "their bytes went by TCP and are in no share, so the first one is said",
        judge: |e, grade| {
            let (hop, refused) = (e.hop?, e.hop?.refused);
            grade.share(refused, refused + hop.sockets, |share| {
                format!(
                    "{} sockets of the {} hop ({}) were refused by the bypass; what they sent went by TCP and is not counted",
                    names::count(refused),
                    hop.name,
                    percent(share)
                )
            })
        },
    },
];
