//! Simulates a host with a proxy, an origin and a generator, by queueing theory and arithmetic. Nothing here knows the
//! rules: resources are exhausted because of demands, servers and capacities.

use weir_model::study::ProxyKind;
use weir_stats::SplitMix64;

/// Seconds for which a closed connection stays in TIME_WAIT (TCP_TIMEWAIT_LEN of Linux).
const TIME_WAIT_S: f64 = 60.0;
/// Seconds for which a closed connection stays tracked (nf_conntrack_tcp_timeout_time_wait).
const TRACKED_S: f64 = 120.0;
/// Number of the first stations that, when saturated, keep connections waiting to be accepted.
const ACCEPTING: usize = 5;

/// Random numbers of the distributions needed here.
pub(crate) struct Dice(pub(crate) SplitMix64);

impl Dice {
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// Draws from a log-uniform distribution: as likely between 1 and 10 as between 10 and 100.
    pub(crate) fn log(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.0.unit() * bound as f64) as usize
    }

    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.0.unit() < share
    }

    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.0.unit()).sum::<f64>() - 6.0
    }

    /// Draws a count with this mean (Poisson; normal if large).
    pub(crate) fn count(&mut self, mean: f64) -> f64 {
        if mean > 30.0 {
            return (mean + mean.sqrt() * self.normal()).max(0.0).round();
        }
        let (least, mut product, mut count) = ((-mean).exp(), self.0.unit(), 0.0);
        while product > least {
            product *= self.0.unit();
            count += 1.0;
        }
        count
    }
}

/// Sharing of hosts and CPUs between the roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each role has its own host.
    Apart,
    /// One host, with separate CPUs for each role.
    Sets,
    /// One host, with all CPUs shared by all roles.
    Together,
}

/// Parameters of a host and its processes. Times are in seconds per request, unless stated otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) proxy: ProxyKind,
    pub(crate) layout: Layout,
    pub(crate) cpus: f64,
    pub(crate) workers: f64,
    pub(crate) user: f64,
    pub(crate) kernel: f64,
    pub(crate) softirq: f64,
    /// True if a single CPU receives all packets.
    pub(crate) one_irq: bool,
    /// Kernel time of a new connection, on either side.
    pub(crate) connecting: f64,
    pub(crate) opened_by_load: f64,
    pub(crate) closed_by_proxy: f64,
    pub(crate) opens_out: f64,
    pub(crate) tw_reuse: bool,
    pub(crate) ports: f64,
    /// Seconds since the load began.
    pub(crate) since: f64,
    /// Time to try one port.
    pub(crate) port_try: f64,
    pub(crate) connections: f64,
    pub(crate) rtt: f64,
    pub(crate) backlog: f64,
    pub(crate) syn_most: f64,
    /// Mean time between two calls of accept(2).
    pub(crate) stall: f64,
    pub(crate) descriptors: f64,
    pub(crate) connections_most: f64,
    /// Maximum number of requests that the proxy has at the origin.
    pub(crate) slots: f64,
    /// Requests per second that the proxy's configuration admits.
    pub(crate) rate_limit: f64,
    pub(crate) conntrack_most: f64,
    pub(crate) origin_cpu: f64,
    pub(crate) origin_threads: f64,
    pub(crate) origin_delay: f64,
    /// Maximum number of requests that the origin serves at once.
    pub(crate) origin_places: f64,
    pub(crate) generator_cpu: f64,
    pub(crate) generator_threads: f64,
    /// Share of the generator's CPUs that other processes use.
    pub(crate) hog: f64,
    pub(crate) bytes: f64,
    pub(crate) link: f64,
    pub(crate) loss: f64,
    pub(crate) loss_is_counted: bool,
    pub(crate) syn_loss: f64,
    pub(crate) quota: f64,
    pub(crate) steal: f64,
    /// Share of CPU time that unrelated processes take.
    pub(crate) crowd: f64,
    pub(crate) tls_full: f64,
    pub(crate) handshake: f64,
    pub(crate) gzip: f64,
    pub(crate) gzip_level: f64,
    /// True if requests accept compressed responses, even if the proxy does not compress.
    pub(crate) asks_compressed: bool,
    pub(crate) log: bool,
    pub(crate) log_bytes: f64,
    pub(crate) disk_write: f64,
    pub(crate) temporary: f64,
    pub(crate) temporary_share: f64,
    pub(crate) swapping: f64,
    pub(crate) memory_aborts: f64,
    /// Time in a section that one thread at a time executes.
    pub(crate) lock: f64,
    pub(crate) switches: f64,
}

/// Result of a load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow {
    pub(crate) offered: f64,
    pub(crate) completed: f64,
    pub(crate) response: f64,
    /// Share of requests whose SYN was lost.
    pub(crate) lost_syns: f64,
    pub(crate) opens_in: f64,
    pub(crate) opens_out: f64,
    pub(crate) time_wait: f64,
    pub(crate) no_port: f64,
    pub(crate) overflows: f64,
    pub(crate) queue: f64,
    pub(crate) half_open: f64,
    pub(crate) syn_drops: f64,
    pub(crate) in_flight: f64,
    pub(crate) tracked: f64,
    pub(crate) untracked: f64,
    pub(crate) refused: f64,
    /// Requests per second that were rejected.
    pub(crate) limited: f64,
    pub(crate) kernel: f64,
    pub(crate) user: f64,
    pub(crate) lag: f64,
    pub(crate) lock_use: f64,
    pub(crate) disk_use: f64,
    pub(crate) origin_time: f64,
    pub(crate) at_origin: f64,
    pub(crate) throttled: f64,
}

/// Returns the mean wait of M/M/c as a multiple of the service time (Sakasegawa 1977).
fn waits(servers: f64, used: f64) -> f64 {
    used.powf((2.0 * (servers + 1.0)).sqrt() - 1.0) / (servers * (1.0 - used))
}

impl Host {
    pub(crate) fn random(proxy: ProxyKind, dice: &mut Dice) -> Host {
        let cpus = dice.one_of(&[1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 16.0]);
        let request = dice.log(2e-5, 2e-4);
        let (user, softirq) = (dice.between(0.15, 0.45), dice.between(0.05, 0.25));
        let mut host = Host {
            proxy,
            layout: dice.one_of(&[Layout::Apart, Layout::Sets, Layout::Together]),
            cpus,
            workers: cpus,
            user: request * user,
            kernel: request * (1.0 - user - softirq),
            softirq: request * softirq,
            one_irq: false,
            connecting: dice.log(2e-5, 6e-5),
            opened_by_load: dice.one_of(&[0.0, 0.0, 0.01, 0.1, 1.0]),
            closed_by_proxy: dice.one_of(&[0.0, 0.0, 0.001, 0.01]),
            opens_out: dice.one_of(&[0.0, 0.001, 0.01, 0.02]),
            tw_reuse: dice.chance(0.5),
            ports: dice.one_of(&[28_232.0, 28_232.0, 64_511.0]),
            since: 90.0,
            port_try: dice.log(1e-8, 4e-8),
            connections: dice.log(32.0, 2000.0).round(),
            rtt: dice.log(3e-5, 1e-3),
            backlog: dice.one_of(&[511.0, 1024.0, 4096.0]),
            syn_most: 4096.0,
            stall: dice.log(2e-4, 2e-3),
            descriptors: dice.one_of(&[65_536.0, 262_144.0]),
            connections_most: 65_536.0,
            slots: f64::INFINITY,
            rate_limit: f64::INFINITY,
            conntrack_most: dice.one_of(&[262_144.0, 1e6]),
            origin_cpu: request * dice.between(0.1, 0.3),
            origin_threads: cpus,
            origin_delay: dice.log(5e-5, 1e-3),
            origin_places: f64::INFINITY,
            generator_cpu: request * dice.between(0.1, 0.3),
            generator_threads: cpus,
            hog: 0.0,
            bytes: dice.log(200.0, 5e3),
            link: 1.25e9,
            loss: 0.0,
            loss_is_counted: false,
            syn_loss: 0.0,
            quota: f64::INFINITY,
            steal: dice.one_of(&[0.0, 0.0, 0.005, 0.03]),
            crowd: 0.0,
            tls_full: 0.0,
            handshake: dice.log(3e-4, 2e-3),
            gzip: 0.0,
            gzip_level: 1.0,
            asks_compressed: dice.chance(0.3),
            log: dice.chance(0.5),
            log_bytes: dice.between(80.0, 300.0),
            disk_write: dice.log(1e-10, 1e-8),
            temporary: 0.0,
            temporary_share: 0.0,
            swapping: dice.one_of(&[0.0, 0.0, 0.0, 0.005]),
            memory_aborts: 0.0,
            lock: 0.0,
            switches: dice.log(0.1, 1.5),
        };
        host.make_room();
        host
    }

    /// Enlarges ports, links and tables so that they are not exhausted long before the CPUs: nobody would run such a
    /// host.
    pub(crate) fn make_room(&mut self) {
        self.link = f64::INFINITY;
        let most = self.capacity();
        self.opens_out = self.opens_out.min(0.3 * self.ports / TIME_WAIT_S / most);
        self.conntrack_most = self.conntrack_most.max(2.0 * TRACKED_S * most);
        self.stall = self.stall.min(0.1 * self.backlog / most);
        self.link = (3.0 * most * self.bytes).max(1.25e9);
    }

    /// Returns the time that a connection to the origin spends on the search for a port: one parity of the range first,
    /// then the other (__inet_hash_connect of Linux). Each port in TIME_WAIT costs one failed try.
    fn port_search(&self, taken: f64) -> f64 {
        let half = self.ports / 2.0;
        // Those that may be used again are not in the way.
        let share = if self.tw_reuse { 0.0 } else { taken / half };
        let tries = if share < 1.0 {
            (1.0 / (1.0 - share)).min(half)
        } else {
            half + (1.0 / (2.0 - share).max(1e-3)).min(half)
        };
        tries * self.port_try
    }

    pub(crate) fn opens_in(&self) -> f64 {
        (self.opened_by_load + self.closed_by_proxy).min(1.0)
    }

    fn is_together(&self) -> bool {
        self.layout == Layout::Together
    }

    /// Returns the stations: number of servers, and seconds that a request spends at one. Saturation of one of the
    /// first [`ACCEPTING`] also delays accepting connections.
    fn stations(&self, ports_in_use: f64) -> Vec<(f64, f64)> {
        let mut kernel = self.kernel + (self.opens_in() + self.opens_out) * self.connecting;
        kernel += self.opens_out * self.port_search(ports_in_use);
        let proxy = self.user + kernel + self.gzip + self.tls_full * self.handshake;
        let peers = if self.is_together() { self.origin_cpu + self.generator_cpu } else { 0.0 };
        let mut stations = vec![
            (self.cpus * (1.0 - self.steal) * (1.0 - self.crowd), proxy + self.softirq + peers),
            (self.workers, proxy),
            (self.quota, proxy),
            (1.0, self.disk_time()),
            // What waits for pages does nothing else.
            (
                if self.swapping > 0.05 {
                    self.cpus * (1.0 - self.swapping) * 0.6
                } else {
                    f64::INFINITY
                },
                proxy + self.softirq + peers,
            ),
            (self.origin_threads, self.origin_cpu),
            (self.generator_threads * (1.0 - self.hog), self.generator_cpu),
            (1.0, self.bytes / self.link),
            (1.0, self.lock),
            (self.slots, self.at_origin()),
            (self.origin_places, self.at_origin()),
        ];
        if self.one_irq {
            stations.push((1.0, self.softirq));
        }
        stations
    }

    fn disk_time(&self) -> f64 {
        let log = if self.log { self.disk_write * self.log_bytes } else { 0.0 };
        log + self.temporary_share * self.temporary * self.disk_write
    }

    fn at_origin(&self) -> f64 {
        self.origin_delay + self.origin_cpu + self.rtt
    }

    /// Returns the rate at which the first station is saturated.
    pub(crate) fn capacity(&self) -> f64 {
        // The search for ports depends on the rate, and the rate on it.
        let (mut low, mut high) = (0.0, 1e7);
        for _ in 0..60 {
            let rate = 0.5 * (low + high);
            let ports_in_use = self.time_wait(rate);
            let carries = self
                .stations(ports_in_use)
                .iter()
                .all(|(servers, demand)| rate * demand <= *servers);
            if carries { low = rate } else { high = rate }
        }
        low
    }

    fn time_wait(&self, rate: f64) -> f64 {
        (rate * self.opens_out * self.since.min(TIME_WAIT_S)).min(self.ports)
    }

    /// Simulates a load of this many requests per second, after a minute of it.
    pub(crate) fn carry(&self, offered: f64, dice: &mut Dice) -> Flow {
        let capacity = self.capacity();
        let mut flow = Flow { offered, completed: offered.min(capacity), ..Flow::default() };
        let sent = (self.generator_threads * (1.0 - self.hog) / self.generator_cpu).min(offered);
        self.connections(&mut flow, sent, dice);
        let ports_in_use = self.time_wait(flow.completed);
        let mut response = self.rtt * 2.0 + self.origin_delay;
        for (servers, demand) in self.stations(ports_in_use) {
            let used = (flow.completed * demand / servers).min(0.995);
            if servers.is_finite() && demand > 0.0 {
                response += demand * (1.0 + waits(servers, used));
            }
        }
        // Whatever is too much waits, until every connection is taken.
        if offered > capacity {
            response = response.max(self.connections / capacity);
        }
        flow.response = response;
        flow.in_flight = (flow.completed * response).min(self.connections);
        flow.kernel = self.kernel
            + (self.opens_in() + self.opens_out) * self.connecting
            + self.opens_out * self.port_search(ports_in_use);
        flow.user = self.user + self.gzip + self.tls_full * self.handshake;
        flow.time_wait = ports_in_use + flow.completed * self.closed_by_proxy * TIME_WAIT_S;
        let busy = offered * self.generator_cpu / (self.generator_threads * (1.0 - self.hog));
        flow.lag = if busy < 0.99 {
            // 0.99 quantile of an exponential wait; a time slice where others run as well.

            4.6 * self.generator_cpu / (1.0 - busy) + self.hog * 0.003
        } else {
            dice.between(0.01, 1.0)
        };
        flow.lock_use = (flow.completed * self.lock).min(1.0);
        flow.disk_use = (flow.completed * self.disk_time()).min(1.0);
        let queued = if self.origin_places.is_finite() && offered > capacity {
            self.connections / capacity
        } else {
            0.0
        };
        flow.origin_time = self.at_origin().max(queued);
        flow.at_origin = (flow.completed * flow.origin_time).min(self.slots);
        let wanted = offered.min(capacity * 1.3) * (flow.user + flow.kernel);
        flow.throttled = if wanted > self.quota { (wanted - self.quota) / wanted } else { 0.0 };
        flow
    }

    /// Computes the effects of opening connections: queues, ports, tracked connections and descriptors.
    fn connections(&self, flow: &mut Flow, sent: f64, dice: &mut Dice) {
        let opens = self.opens_in();
        let wanted = sent * opens;
        flow.half_open = wanted * self.rtt;
        let dropped = (1.0 - self.syn_most / flow.half_open.max(1.0)).max(0.0);
        flow.syn_drops = wanted * dropped;
        let reached = wanted - flow.syn_drops;
        // Between two calls of accept(2) connections queue up; those that are never accepted fill the queue.
        let ports_in_use = self.time_wait(flow.completed);
        let is_held_up = self
            .stations(ports_in_use)
            .iter()
            .take(ACCEPTING)
            .any(|(servers, demand)| flow.completed * demand > 0.98 * servers);
        // No more can wait than there are connections.
        let excess = if is_held_up && self.connections > self.backlog {
            (reached - flow.completed * opens).max(0.0)
        } else {
            0.0
        };
        let calls = 400;
        let (mut lost, mut most) = (0.0, 0.0_f64);
        for _ in 0..calls {
            let pause = -self.stall * dice.0.unit().max(1e-12).ln();
            let arrived = dice.count(reached * pause);
            lost += (arrived - self.backlog - 1.0).max(0.0);
            most = most.max(arrived.min(self.backlog + 1.0));
        }
        let bursts = lost / f64::from(calls) / self.stall;
        let full = excess > 0.0 && opens > 0.0;
        flow.overflows = bursts.min(reached) + if full { excess } else { 0.0 };
        flow.queue = if full { self.backlog + 1.0 } else { most };
        flow.tracked = (self.connections + wanted * TRACKED_S).min(self.conntrack_most);
        flow.untracked = (wanted - self.conntrack_most / TRACKED_S).max(0.0);
        let held = self.connections * 2.0;
        let room = self.descriptors.min(2.0 * self.connections_most);
        flow.refused = if held > room { 20.0 + (held - room) / 10.0 } else { 0.0 };
        if held > room {
            flow.completed *= room / held;
        }
        let out = flow.completed * self.opens_out;
        let is_full = !self.tw_reuse && out * self.since.min(TIME_WAIT_S) > self.ports;
        let most_out = if is_full { self.ports / TIME_WAIT_S } else { f64::INFINITY };
        flow.no_port = (out - most_out).max(0.0);
        let answered = flow.completed;
        flow.completed -= flow.no_port;
        flow.limited = (flow.completed - self.rate_limit).max(0.0);
        flow.completed -= flow.limited;
        flow.opens_out = out.min(most_out);
        flow.opens_in = wanted - flow.overflows.min(wanted) - flow.syn_drops - flow.untracked;
        let no_answer = flow.overflows + flow.syn_drops + flow.untracked + wanted * self.syn_loss;
        flow.lost_syns = (no_answer / sent.max(answered)).min(0.9);
        flow.completed -=
            (wanted * self.syn_loss + bursts.min(reached) + flow.syn_drops + flow.untracked)
                .min(0.8 * flow.completed)
                * 0.3;
    }
}
