//! Limits to plant: each makes one resource of a random host the first to be exhausted, or reduces a capacity.

use weir_model::study::ProxyKind;
use weir_model::study::ProxyKind::{Caddy, Envoy, Haproxy, Httpd, Nginx};

use crate::host::{Dice, Host, Layout};

const ALL: &[ProxyKind] = &[Nginx, Haproxy, Envoy, Caddy, Httpd];

pub(crate) struct Plant {
    /// Name of the limiter in the rules.
    pub(crate) limiter: &'static str,
    /// Proxies that can have this limit.
    pub(crate) proxies: &'static [ProxyKind],
    /// Tables required to detect the limit.
    pub(crate) needs: &'static [&'static str],
    /// Plants the limit. Returns the rate to offer, as a share of the host's capacity afterwards.
    pub(crate) apply: fn(&mut Host, &mut Dice) -> f64,
}

#[rustfmt::skip]
pub(crate) const PLANTS: &[Plant] = &[
    Plant { limiter: "cpu", proxies: ALL, needs: &["cpus", "threads", "processes"], apply: |_, dice| too_much(dice) },
    Plant { limiter: "cpu_one_worker", proxies: &[Nginx, Haproxy, Envoy, Caddy], needs: &["cpus", "threads", "processes"], apply: one_worker },
    Plant { limiter: "generator", proxies: ALL, needs: &["processes", "cpus"], apply: generator },
    Plant { limiter: "origin", proxies: ALL, needs: &["processes", "cpus", "sockets"], apply: origin },
    Plant { limiter: "accept_queue", proxies: ALL, needs: &["network", "listeners"], apply: accept_queue },
    Plant { limiter: "syn_queue", proxies: ALL, needs: &["network"], apply: syn_queue },
    Plant { limiter: "lost_syns", proxies: ALL, needs: &["network", "listeners"], apply: lost_syns },
    Plant { limiter: "ports", proxies: ALL, needs: &["network", "proxy"], apply: ports },
    Plant { limiter: "time_wait", proxies: ALL, needs: &["network", "processes", "cpus"], apply: time_wait },
    Plant { limiter: "descriptors", proxies: ALL, needs: &["proxy", "processes"], apply: descriptors },
    Plant { limiter: "worker_connections", proxies: &[Nginx], needs: &["proxy"], apply: worker_connections },
    Plant { limiter: "maxconn", proxies: &[Haproxy, Httpd, Caddy], needs: &["proxy", "sockets", "cpus"], apply: maxconn },
    Plant { limiter: "circuit_breaker", proxies: &[Envoy], needs: &["proxy"], apply: slots },
    Plant { limiter: "rate_limit", proxies: &[Nginx, Haproxy, Envoy], needs: &["proxy"], apply: rate_limit },
    Plant { limiter: "softirq", proxies: ALL, needs: &["cpus"], apply: softirq },
    Plant { limiter: "steal", proxies: ALL, needs: &["cpus"], apply: steal },
    Plant { limiter: "crowded", proxies: ALL, needs: &["cpus"], apply: crowded },
    Plant { limiter: "quota", proxies: ALL, needs: &["cgroups"], apply: quota },
    Plant { limiter: "tls", proxies: ALL, needs: &["cpus", "processes"], apply: tls },
    Plant { limiter: "compression", proxies: ALL, needs: &["cpus", "processes"], apply: compression },
    Plant { limiter: "keepalive_inbound", proxies: ALL, needs: &["network"], apply: keepalive_inbound },
    Plant { limiter: "keepalive_origin", proxies: ALL, needs: &["network", "cpus"], apply: keepalive_origin },
    Plant { limiter: "memory", proxies: ALL, needs: &["host", "network"], apply: memory },
    Plant { limiter: "disk_log", proxies: ALL, needs: &["host", "cpus"], apply: disk_log },
    Plant { limiter: "disk_temporary", proxies: &[Nginx], needs: &["host", "cpus", "disks", "proxy"], apply: disk_temporary },
    Plant { limiter: "conntrack", proxies: ALL, needs: &["network"], apply: conntrack },
    Plant { limiter: "network", proxies: ALL, needs: &["network", "cpus"], apply: network },
    Plant { limiter: "lock", proxies: &[Haproxy, Envoy, Caddy, Httpd], needs: &["cpus", "processes"], apply: lock },
];

/// Limits that no rule knows, and no limit at all: any finding is wrong.
#[rustfmt::skip]
pub(crate) const UNKNOWN: &[Plant] = &[
    // The proxy has a few requests at the origin at once, and counts nothing of it (max_conns of nginx).
    Plant { limiter: "unknown", proxies: &[Nginx], needs: &[], apply: slots },
    // Something turns requests away and writes it nowhere.
    Plant { limiter: "unknown", proxies: &[Caddy, Httpd], needs: &[], apply: rate_limit },
    Plant { limiter: "unknown", proxies: ALL, needs: &[], apply: |_, dice| dice.between(0.3, 0.85) },
];

fn too_much(dice: &mut Dice) -> f64 {
    dice.between(1.03, 1.3)
}

/// Draws a share of the capacity that the host could carry if no capacity had been reduced.
fn within(dice: &mut Dice) -> f64 {
    dice.between(0.5, 0.85)
}

/// Draws the rate at which a resource is to be exhausted: well before the host is.
fn target(host: &Host, dice: &mut Dice) -> f64 {
    host.capacity() * dice.between(0.3, 0.75)
}

fn several_cpus(host: &mut Host, dice: &mut Dice) {
    let cpus = dice.one_of(&[4.0, 8.0, 16.0]);
    (host.cpus, host.workers, host.origin_threads, host.generator_threads) =
        (cpus, cpus, cpus, cpus);
    host.make_room();
}

fn one_worker(host: &mut Host, dice: &mut Dice) -> f64 {
    several_cpus(host, dice);
    host.workers = 1.0;
    too_much(dice)
}

fn generator(host: &mut Host, dice: &mut Dice) -> f64 {
    several_cpus(host, dice);
    host.generator_threads = 1.0;
    if dice.chance(0.4) {
        host.layout = dice.one_of(&[Layout::Apart, Layout::Sets]);
        host.hog = dice.between(0.5, 0.9);
        host.generator_cpu = (1.0 - host.hog) / target(host, dice);
    } else {
        host.generator_cpu = 1.0 / target(host, dice);
    }
    too_much(dice)
}

fn origin(host: &mut Host, dice: &mut Dice) -> f64 {
    several_cpus(host, dice);
    if dice.chance(0.4) {
        host.origin_threads = 1.0;
        host.origin_cpu = 1.0 / target(host, dice);
    } else {
        host.origin_delay = dice.log(2e-3, 5e-2);
        host.origin_places = (target(host, dice) * host.origin_delay).max(1.0).ceil();
        host.connections = host.connections.max(2.0 * host.origin_places);
    }
    too_much(dice)
}

fn accept_queue(host: &mut Host, dice: &mut Dice) -> f64 {
    host.opened_by_load = dice.one_of(&[1.0, 0.3]);
    host.stall = dice.log(1e-3, 5e-3);
    let share = within(dice);
    let arrive = host.capacity() * share * host.opened_by_load * host.stall;
    host.backlog = (arrive * dice.between(0.2, 1.0)).max(1.0).floor();
    share
}

fn syn_queue(host: &mut Host, dice: &mut Dice) -> f64 {
    host.opened_by_load = 1.0;
    host.rtt = dice.log(0.02, 0.2);
    let share = within(dice);
    host.syn_most = (host.capacity() * share * host.rtt * dice.between(0.3, 0.9)).max(1.0).floor();
    share
}

fn lost_syns(host: &mut Host, dice: &mut Dice) -> f64 {
    host.opened_by_load = dice.one_of(&[1.0, 0.3]);
    host.syn_loss = dice.log(0.003, 0.05);
    within(dice)
}

fn ports(host: &mut Host, dice: &mut Dice) -> f64 {
    host.opens_out = dice.between(0.6, 1.0);
    host.tw_reuse = false;
    let range = dice.one_of(&[200.0, 2000.0, 28_232.0]);
    let share = within(dice);
    host.ports = range;
    host.port_try = 1e-9;
    host.ports = host.ports.min(host.capacity() * share * 60.0 * host.opens_out * 0.8).floor();
    share
}

fn time_wait(host: &mut Host, dice: &mut Dice) -> f64 {
    let cpus = dice.one_of(&[1.0, 2.0]);
    (host.cpus, host.workers) = (cpus, cpus);
    (host.opens_out, host.tw_reuse) = (1.0, true);
    let before = host.capacity();
    host.tw_reuse = false;
    host.since = host.ports * dice.between(0.65, 1.0) / before;
    too_much(dice).min(1.1)
}

fn descriptors(host: &mut Host, dice: &mut Dice) -> f64 {
    host.connections = host.connections.max(100.0);
    host.descriptors = (host.connections * dice.between(0.6, 1.8)).floor();
    within(dice)
}

fn worker_connections(host: &mut Host, dice: &mut Dice) -> f64 {
    host.connections = host.connections.max(100.0);
    host.connections_most = (host.connections * dice.between(0.3, 0.9)).floor();
    within(dice)
}

fn slots(host: &mut Host, dice: &mut Dice) -> f64 {
    host.origin_delay = dice.log(1e-3, 2e-2);
    let most = target(host, dice);
    host.slots = (most * host.origin_delay).max(1.0).floor();
    host.connections = host.connections.max(2.0 * host.slots);
    too_much(dice)
}

fn maxconn(host: &mut Host, dice: &mut Dice) -> f64 {
    if host.proxy == Haproxy && dice.chance(0.5) {
        return worker_connections(host, dice);
    }
    slots(host, dice)
}

fn rate_limit(host: &mut Host, dice: &mut Dice) -> f64 {
    let share = within(dice);
    host.rate_limit = host.capacity() * share * dice.between(0.3, 0.99);
    share
}

fn softirq(host: &mut Host, dice: &mut Dice) -> f64 {
    several_cpus(host, dice);
    host.one_irq = true;
    host.softirq = 1.0 / target(host, dice);
    too_much(dice)
}

fn steal(host: &mut Host, dice: &mut Dice) -> f64 {
    host.steal = dice.between(0.2, 0.6);
    too_much(dice)
}

fn crowded(host: &mut Host, dice: &mut Dice) -> f64 {
    host.crowd = dice.between(0.2, 0.8);
    too_much(dice)
}

fn quota(host: &mut Host, dice: &mut Dice) -> f64 {
    host.quota = target(host, dice) * (host.user + host.kernel);
    too_much(dice)
}

fn tls(host: &mut Host, dice: &mut Dice) -> f64 {
    host.opened_by_load = dice.between(0.5, 1.0);
    host.tls_full = host.opened_by_load * dice.between(0.7, 1.0);
    too_much(dice)
}

fn compression(host: &mut Host, dice: &mut Dice) -> f64 {
    host.gzip_level = dice.one_of(&[1.0, 4.0, 6.0, 9.0]);
    host.gzip = (host.user + host.kernel) * dice.log(2.0, 10.0);
    too_much(dice)
}

fn keepalive_inbound(host: &mut Host, dice: &mut Dice) -> f64 {
    host.opened_by_load = 0.0;
    host.closed_by_proxy = dice.one_of(&[1.0, 1.0, 0.5]);
    too_much(dice)
}

fn keepalive_origin(host: &mut Host, dice: &mut Dice) -> f64 {
    (host.opens_out, host.tw_reuse) = (dice.between(0.6, 1.0), true);
    too_much(dice)
}

fn memory(host: &mut Host, dice: &mut Dice) -> f64 {
    if dice.chance(0.3) {
        host.memory_aborts = dice.log(0.5, 100.0);
        return within(dice);
    }
    host.swapping = dice.between(0.1, 0.6);
    too_much(dice)
}

fn disk_log(host: &mut Host, dice: &mut Dice) -> f64 {
    host.log = true;
    host.disk_write = 1.0 / (target(host, dice) * host.log_bytes);
    too_much(dice)
}

fn disk_temporary(host: &mut Host, dice: &mut Dice) -> f64 {
    host.temporary = dice.log(2e4, 5e5);
    host.temporary_share = dice.between(0.3, 1.0);
    host.log = false;
    host.disk_write = 0.0;
    host.disk_write = 1.0 / (target(host, dice) * host.temporary * host.temporary_share);
    too_much(dice)
}

fn conntrack(host: &mut Host, dice: &mut Dice) -> f64 {
    host.opened_by_load = dice.one_of(&[1.0, 0.3]);
    let share = within(dice);
    let wanted = host.capacity() * share * host.opened_by_load * 120.0;
    host.conntrack_most = (wanted * dice.between(0.3, 0.8)).floor();
    share
}

fn network(host: &mut Host, dice: &mut Dice) -> f64 {
    if dice.chance(0.4) {
        host.link = target(host, dice) * host.bytes;
        return too_much(dice);
    }
    host.loss = dice.log(0.01, 0.06);
    host.loss_is_counted = dice.chance(0.5);
    within(dice)
}

fn lock(host: &mut Host, dice: &mut Dice) -> f64 {
    several_cpus(host, dice);
    host.lock = 1.0 / target(host, dice);
    too_much(dice)
}
