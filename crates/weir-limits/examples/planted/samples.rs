//! Rows that samplers would read on a host under load: counters with noise, second by second.

use std::collections::BTreeMap;

use weir_limits::{HostSamples, Role};
use weir_model::sample::{ColumnKind, Counters, SampleRow};
use weir_model::study::ProxyKind::{Envoy, Haproxy, Httpd, Nginx};

use crate::host::{Dice, Flow, Host, Layout};

/// Length of a window in seconds.
pub(crate) const SECONDS: u64 = 20;

/// Current counters, by table and keys, and the rows collected so far.
pub(crate) struct Samples<'a> {
    host: &'a Host,
    flow: &'a Flow,
    dice: &'a mut Dice,
    cells: BTreeMap<(String, Vec<String>), Vec<f64>>,
    rows: Vec<SampleRow>,
    at_ns: u64,
}

impl<'a> Samples<'a> {
    /// Returns the rows of every host for a window.
    pub(crate) fn of(host: &'a Host, flow: &'a Flow, dice: &'a mut Dice) -> Vec<HostSamples> {
        let (cells, rows) = (BTreeMap::new(), Vec::new());
        let mut samples = Samples { host, flow, dice, cells, rows, at_ns: 0 };
        let mut hosts = Vec::new();
        let roles = [Role::Proxy, Role::Generator, Role::Origin];
        for at in 0..=SECONDS {
            samples.at_ns = at * 1_000_000_000;
            samples.proxy_host();
        }
        hosts.push(HostSamples {
            roles: vec![Role::Proxy],
            rows: std::mem::take(&mut samples.rows),
            ..HostSamples::default()
        });
        for role in &roles[1..] {
            for at in 0..=SECONDS {
                samples.at_ns = at * 1_000_000_000;
                samples.other_host(*role);
            }
            let rows = std::mem::take(&mut samples.rows);
            hosts.push(HostSamples { roles: vec![*role], rows, ..HostSamples::default() });
        }
        if host.layout == Layout::Apart {
            return hosts;
        }
        let mut merged = HostSamples { roles: roles.to_vec(), ..HostSamples::default() };
        for (role, host) in roles.into_iter().zip(hosts) {
            let mut cpus: Vec<u64> = host
                .rows
                .iter()
                .filter_map(|row| row.keys.first().filter(|_| row.table == "cpus")?.parse().ok())
                .collect();
            cpus.sort_unstable();
            cpus.dedup();
            // Together there are no other CPUs than the proxy's.
            if !cpus.is_empty() {
                merged.cpus.insert(role, cpus);
            }
            merged.rows.extend(host.rows);
        }
        if samples.host.layout == Layout::Together {
            merged.cpus.clear();
        }
        merged.rows.sort_by_key(|row| row.at_ns);
        vec![merged]
    }

    /// Adds a row. The value of a counter is its growth per second, that of a gauge its level.
    fn put(&mut self, table: &str, keys: &[&str], values: &[(&str, f64)]) {
        let counters = Counters::builtin();
        let schema = counters.table(table).expect("a table");
        let is_pair = keys.first().is_some_and(|key| ["accepts", "handled"].contains(key));
        let kind = counters
            .proxy_counters
            .iter()
            .find(|name| keys.first().is_some_and(|key| name.name == *key))
            .filter(|_| table == "proxy")
            .map(|one| one.kind);
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let columns: Vec<_> =
            schema.columns.iter().filter(|column| column.kind != ColumnKind::Key).collect();
        let fresh: Vec<f64> = columns.iter().map(|_| (self.dice.0.unit() * 1e6).round()).collect();
        let cell = self.cells.entry((table.to_owned(), keys.clone())).or_insert(fresh);
        let mut row = Vec::new();
        for (column, sum) in columns.iter().zip(cell) {
            let value =
                values.iter().find(|(name, _)| *name == column.name).map(|(_, value)| *value);
            let is_time =
                ["_ns", "_us", "_ms", "_bytes"].iter().any(|unit| column.name.ends_with(unit));
            row.push(value.filter(|value| value.is_finite()).map(|value| {
                match kind.unwrap_or(column.kind) {
                    ColumnKind::Counter => {
                        let noise = 1.0 + 0.03 * self.dice.normal();
                        *sum += if is_time {
                            (value * noise).max(0.0)
                        } else if is_pair {
                            // These two count the same connections.
                            value.round()
                        } else {
                            self.dice.count(value)
                        };
                        *sum as u64
                    }
                    _ => value.max(0.0).round() as u64,
                }
            }));
        }
        self.rows.push(SampleRow {
            table: table.to_owned(),
            at_ns: self.at_ns,
            arm: String::new(),
            keys,
            values: row,
        });
    }

    /// Adds the use of a set of CPUs during a second. `used`: seconds of programs, kernel and soft interrupts.
    fn cpus(&mut self, first: u64, cpus: f64, used: [f64; 3], steal: f64) -> f64 {
        let [user, system, softirq] = used;
        let one_irq = self.host.one_irq && first == 0;
        let all = (user + system + softirq) / cpus;
        for cpu in 0..cpus as u64 {
            let irq = if one_irq {
                if cpu == 0 { softirq.min(0.99) } else { 0.001 }
            } else {
                softirq / cpus
            };
            // What soft interrupts leave of a CPU is for programs.
            let room =
                (1.0 - irq) / (cpus - if one_irq { softirq.min(0.99) } else { softirq }).max(0.01);
            let stolen = steal * (all / (1.0 - steal)).min(1.0);
            let most = (1.0 - irq - stolen).max(0.0);
            let programs = ((user + system) * room).min(most);
            let part = user / (user + system).max(1e-9);
            let cells = [
                ("user_ns", programs * part * 1e9),
                ("system_ns", programs * (1.0 - part) * 1e9),
                ("softirq_ns", irq * 1e9),
                ("irq_ns", 1e6),
                ("steal_ns", stolen * 1e9),
                ("idle_ns", (most - programs) * 1e9),
            ];
            self.put("cpus", &[&(first + cpu).to_string()], &cells);
        }
        all
    }

    #[rustfmt::skip]
    fn proxy_host(&mut self) {
        let (host, flow) = (self.host, self.flow);
        let rate = flow.completed;
        let mut used = [rate * flow.user, rate * flow.kernel, rate * host.softirq];
        if host.layout == Layout::Together {
            used[0] += rate * host.origin_cpu * 0.4 + flow.offered.min(rate * 1.2) * host.generator_cpu * 0.4;
            used[1] += rate * host.origin_cpu * 0.6 + flow.offered.min(rate * 1.2) * host.generator_cpu * 0.6;
        }
        used[0] += host.crowd * host.cpus;
        let busy = self.cpus(0, host.cpus, used, host.steal);
        let is_full = host.workers >= host.cpus || host.layout == Layout::Together;
        let waiting = if is_full { busy.min(1.0).powi(4) * 0.8 } else { 0.02 };
        let is_squeezed = host.one_irq && used[2] > 0.9;
        self.put("host", &[], &[
            ("pressure_cpu_us", waiting * 1e6), ("pressure_memory_us", host.swapping * 1e6),
            ("pressure_io_us", flow.disk_use * 0.9e6 + host.swapping * 0.5e6), ("files", host.connections * 3.0 + 2000.0),
            ("files_most", 9e6), ("mem_available_bytes", 4e9), ("context_switches", rate),
        ]);
        for cpu in 0..host.cpus as u64 {
            let squeezed = if is_squeezed && cpu == 0 { 30.0 } else { 0.02 };
            self.put("softnet", &[&cpu.to_string()], &[("processed", rate), ("dropped", 0.0), ("squeezed", squeezed), ("received_rps", 0.0)]);
        }
        self.put("disks", &["sda"], &[
            ("reads", 0.1), ("writes", rate * 0.1), ("read_bytes", 0.0), ("io_ms", flow.disk_use * 1000.0),
            ("written_bytes", 2000.0 + rate * (f64::from(u8::from(host.log)) * host.log_bytes + host.temporary * host.temporary_share)),
        ]);
        self.processes(busy);
        self.sockets();
        self.own_counters();
        let limit = if host.quota.is_finite() { host.quota * 1e5 } else { f64::NAN };
        self.put("cgroups", &["proxy", "/a"], &[
            ("quota_us", limit), ("period_us", 1e5), ("throttled", flow.throttled * 10.0), ("throttled_us", flow.throttled * host.workers * 1e6),
            ("usage_us", rate * (flow.user + flow.kernel) * 1e6), ("memory_bytes", 2e8), ("memory_most_bytes", 1e9), ("oom_kills", 0.0),
        ]);
    }

    #[rustfmt::skip]
    fn processes(&mut self, busy: f64) {
        let (host, flow) = (self.host, self.flow);
        let rate = flow.completed;
        let contended = (flow.lock_use / (1.0 - flow.lock_use).max(0.05)).min(6.0);
        let switches = rate * (host.switches * (1.0 - busy).max(0.05) + contended);
        let all = [flow.user, flow.kernel, switches / rate.max(1e-9)].map(|each| each * rate);
        let (processes, threads) = match host.proxy {
            Nginx => (host.workers, 1.0),
            Httpd => (4.0, 26.0),
            _ => (1.0, host.workers + 2.0),
        };
        let written = rate * (f64::from(u8::from(host.log)) * host.log_bytes + host.temporary * host.temporary_share);
        let held = (host.connections * 2.0).min(host.descriptors) / processes;
        for process in 0..processes as u64 {
            let share = uneven_share(process as f64, processes) / processes;
            let pid = (100 + process).to_string();
            self.put("processes", &["proxy", &pid, "proxy"], &[
                ("user_ns", all[0] * share * 1e9), ("system_ns", all[1] * share * 1e9), ("wait_ns", busy.min(1.0).powi(6) * 5e8),
                ("voluntary", all[2] * share), ("involuntary", 10.0), ("descriptors", held + 1.0), ("resident_bytes", 5e7 + host.connections * 1e4),
                ("descriptors_most", (host.descriptors / processes).max(held + 1.0)), ("threads", threads), ("started_ticks", 5000.0), ("written_bytes", written * share * 1.02),
            ]);
            let workers = if host.proxy == Httpd { 25.0 } else { host.workers };
            let is_threaded = threads > 1.0;
            for thread in (0..workers as u64).filter(|_| is_threaded) {
                let thread_share = share * uneven_share(thread as f64, workers) / workers;
                let tid = (1000 * (process + 1) + thread).to_string();
                self.put("threads", &["proxy", &pid, &tid, "worker"], &[
                    ("user_ns", all[0] * thread_share * 1e9), ("system_ns", all[1] * thread_share * 1e9), ("wait_ns", busy.min(1.0).powi(6) * 2e8),
                ]);
            }
        }
    }

    #[rustfmt::skip]
    fn sockets(&mut self) {
        let (host, flow) = (self.host, self.flow);
        let resent = flow.completed * (1.0 + host.bytes / 1448.0) * host.loss;
        let drops = if host.loss_is_counted { resent } else { 0.0 };
        // One half of the hosts answers with cookies; the others just drop.
        let is_told = host.port_try > 2e-8;
        let full = if is_told { flow.syn_drops } else { 0.0 };
        self.put("network", &["proxy"], &[
            ("listen_overflows", flow.overflows), ("listen_drops", flow.overflows + flow.syn_drops), ("req_q_full_drop", full),
            ("req_q_full_cookies", 0.0), ("abort_on_memory", host.memory_aborts), ("retransmitted", resent + 0.05), ("syn_retransmitted", 0.01),
            ("active_opens", flow.opens_out), ("passive_opens", flow.opens_in), ("attempt_fails", 0.0), ("time_wait", flow.time_wait),
            ("local_ports", host.ports), ("conntrack", flow.tracked), ("conntrack_most", host.conntrack_most), ("conntrack_insert_failed", 0.0),
            ("conntrack_drop", flow.untracked), ("rx_drops", 0.0), ("tx_drops", 0.0), ("qdisc_drops", drops), ("timeouts", 0.1), ("mem_pages", 1000.0),
        ]);
        let queue = flow.queue * self.dice.between(0.7, 1.0);
        self.put("listeners", &["proxy", "80"], &[("sockets", 1.0), ("queue", queue), ("backlog", host.backlog), ("syn_recv", flow.half_open)]);
        // Connections to the origin that are kept are more than those in use.
        let idle = if host.opens_out < 0.5 { flow.at_origin * self.dice.between(0.0, 0.6) } else { 0.0 };
        let out = (flow.at_origin + idle).min(host.slots).max(1.0);
        self.put("sockets", &["proxy", "outbound", "ESTABLISHED"], &[("count", out)]);
        self.put("sockets", &["proxy", "inbound", "ESTABLISHED"], &[("count", host.connections)]);
    }

    #[rustfmt::skip]
    fn own_counters(&mut self) {
        let (host, flow) = (self.host, self.flow);
        let [files, places] = [host.descriptors, 2.0 * host.connections_most]
            .map(|most| if most < host.connections * 2.0 { flow.refused } else { 0.0 });
        let is_slotted = host.slots.is_finite() && flow.offered > flow.completed;
        let waiting = if is_slotted { (host.connections - host.slots).max(0.0) } else { 0.0 };
        let open = host.connections.min(host.connections_most);
        let worker = (flow.completed * (flow.user + flow.kernel) / host.workers).min(1.0);
        let mut counters = vec![("log.open_files", files), ("log.no_address", flow.no_port)];
        counters.extend(match host.proxy {
            Nginx => vec![
                ("log.worker_connections", places), ("log.limit_req", flow.limited), ("log.limit_req_delayed", 0.0), ("log.limit_conn", 0.0),
                ("log.no_live_upstreams", 0.0), ("log.upstream_timed_out", 0.0),
                ("log.temporary_file", flow.completed * host.temporary_share), ("accepts", flow.opens_in), ("handled", flow.opens_in),
            ],
            Haproxy => vec![
                ("Idle_pct", 100.0 * (1.0 - worker)), ("CurrConns", open), ("Maxconn", host.connections_most), ("frontend.scur", open),
                ("frontend.slim", host.connections_most), ("backend.qcur", waiting), ("frontend.dreq", flow.limited), ("frontend.dcon", 0.0),
                ("frontend.rate", flow.opens_in), ("frontend.rate_lim", 0.0),
            ],
            Envoy => vec![
                ("listener.downstream_cx_overflow", 0.0), ("listener.downstream_global_cx_overflow", 0.0),
                ("cluster.upstream_cx_overflow", if is_slotted { flow.completed * 0.2 } else { 0.0 }), ("cluster.upstream_rq_pending_overflow", 0.0),
                ("rate_limited", flow.limited),
            ],
            Httpd if host.slots.is_finite() => vec![("BusyWorkers", flow.at_origin), ("IdleWorkers", host.slots - flow.at_origin)],
            Httpd => vec![("BusyWorkers", flow.in_flight), ("IdleWorkers", 100.0)],
            _ => Vec::new(),
        });
        if host.proxy == Nginx {
            // It takes connections that it has no place for, and closes them.
            counters.iter_mut().filter(|(name, _)| *name == "accepts").for_each(|(_, value)| *value += places);
        }
        for (name, value) in counters {
            self.put("proxy", &[name], &[("value", value)]);
        }
    }

    #[rustfmt::skip]
    fn other_host(&mut self, role: Role) {
        let (host, flow) = (self.host, self.flow);
        let is_origin = role == Role::Origin;
        let (threads, each, hog) = if is_origin {


(host.origin_threads, host.origin_cpu, 0.0)

} else {


(host.generator_threads, host.generator_cpu, host.hog)

};
        let rate = if is_origin { flow.completed } else { flow.offered };
        let busy = (rate * each / threads).min(1.0 - hog);
        let crowd = if host.layout == Layout::Together {


(flow.completed * (flow.user + flow.kernel + host.softirq + host.origin_cpu + host.generator_cpu) / host.cpus).min(1.0)

} else {


0.0

};
        let wait = (hog * 0.9).max(crowd.powi(6) * 0.5);
        for thread in 0..threads as u64 {
            let tid = (if is_origin { 500 } else { 700 } + thread).to_string();
            self.put("processes", &[role.name(), &tid, "thread"], &[
                ("user_ns", busy * 0.4e9), ("system_ns", busy * 0.6e9), ("wait_ns", wait * 1e9), ("voluntary", 100.0), ("descriptors", 50.0),
                ("descriptors_most", 65_536.0), ("started_ticks", 4000.0), ("threads", 1.0), ("resident_bytes", 2e7), ("involuntary", 1.0),
            ]);
        }
        if host.layout != Layout::Together {
            let first = if is_origin { 100 } else { 200 };
            let cpus = threads.max(2.0);
            self.cpus(first, cpus, [busy * threads * 0.4 + hog * threads, busy * threads * 0.5, busy * threads * 0.1], 0.0);
        }
        let resent = flow.lost_syns * rate;
        self.put("network", &[role.name()], &[
            ("listen_overflows", 0.0), ("listen_drops", 0.0), ("syn_retransmitted", if is_origin { 0.0 } else { resent }),
            ("retransmitted", rate * host.loss + resent), ("time_wait", 10.0), ("local_ports", 64_511.0),
        ]);
        if is_origin {
            self.put("listeners", &["origin", "81"], &[("sockets", 1.0), ("queue", 0.0), ("backlog", 4096.0)]);
        }
    }
}

/// Makes a counter of an unneeded table unreadable, or resets it halfway.
pub(crate) fn spoil(hosts: &mut [HostSamples], needs: &[&str], dice: &mut Dice) {
    let tables: Vec<_> =
        Counters::builtin().tables.iter().filter(|table| !needs.contains(&&*table.name)).collect();
    let (table, host) = (dice.one_of(&tables), dice.below(hosts.len()));
    let values: Vec<&str> = table.values().collect();
    let (column, is_reset) = (dice.below(values.len()), dice.chance(0.5));
    for row in hosts[host].rows.iter_mut().filter(|row| row.table == table.name) {
        let is_late = row.at_ns > SECONDS * 500_000_000;
        let cell = &mut row.values[column];
        if !is_reset {
            *cell = None;
        } else if is_late {
            *cell = cell.map(|value| value / 1000);
        }
    }
}

fn uneven_share(index: f64, count: f64) -> f64 {
    1.0 + 0.02 * ((index + 0.5) / count - 0.5)
}
