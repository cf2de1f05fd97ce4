//! The smaller sections: `origin`, `blocks`, `objective`, `cpus`, `network`, `compare`, `until` and `budget`.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use weir_model::limit::Limit;
use weir_model::quantity::CpuSet;
use weir_model::study::{
    ArmRole, BlockSpec, Compare, CpuRoles, DelaySpec, Metric, NetworkKind, NetworkSpec, Objective,
    OriginSpec, SearchSpec, Until,
};

use crate::check::{Checker, Fields, MAX_CONTENT, short};
use crate::machine::CheckContext;
use crate::proxy::Draft;
use crate::tree::{Node, Value};
use crate::{arms, load};

/// Metrics, by their names in studies.
pub(crate) const METRICS: [(&str, Metric); 5] = [
    ("rate", Metric::Rate),
    ("received-bytes", Metric::ReceivedBytes),
    ("cpu-per-request", Metric::CpuPerRequest),
    ("response-p50", Metric::ResponseP50),
    ("response-p99", Metric::ResponseP99),
];
/// Maximum budget: a week.
const MOST_BUDGET: Duration = Duration::from_secs(7 * 24 * 3600);
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

pub(crate) fn origin(node: Option<&Node>, check: &mut Checker) -> OriginSpec {
    let mut origin = OriginSpec::default();
    let keys = [&OF_WEIRS_ORIGIN[..], &["address"]].concat();
    let Some(fields) = node.and_then(|node| Fields::known(node, "an origin", &keys, check)) else {
        return origin;
    };
    if let Some(node) = fields.get("address") {
        origin.address = users_origin(node, &fields, check);
        return origin;
    }
    if let Some(node) = fields.get("status") {
        // 1xx is no final response (RFC 9110 §15.2), so it cannot be all that an origin answers.
        origin.status = check.whole(node, 200..=599).map_or(200, |status| status as u16);
    }
    let size = fields.get("size");
    // 204 and 304 never have content (RFC 9110 §15.3.5, §15.4.5).
    let empty = matches!(origin.status, 204 | 304);
    origin.size = match size {
        Some(node) => check.bytes(node, MAX_CONTENT).unwrap_or(0),
        None if empty => 0,
        None => origin.size,
    };
    if empty
        && origin.size > 0
        && let Some(node) = size
    {
        let message = format!("a response with status {} has no body", origin.status);
        check.error(node.span.clone(), message).hint("write `size: 0`");
    }
    if let Some(node) = fields.get("delay") {
        origin.delay = delay(node, check).unwrap_or(DelaySpec::None);
    }
    if let Some(node) = fields.get("concurrency") {
        origin.concurrency = check.whole(node, 1..=10_000).map(|at_once| at_once as u32);
        if origin.delay == DelaySpec::None {
            check
                .error(node.span.clone(), "without a delay no request waits")
                .hint("write `delay: 2ms` beside it: 500 requests/s, one after the other");
        }
    }
    if let Some(node) = fields.get("content-type")
        && let Some(content_type) = check.text(node)
    {
        if !content_type.contains('/') || content_type.chars().any(char::is_control) {
            let message = format!("`{}` is not a media type", short(&content_type));
            check.error(node.span.clone(), message).hint("for example text/plain");
        }
        origin.content_type = content_type;
    }
    origin
}

/// Keys that apply only to the origin server that weir starts.
const OF_WEIRS_ORIGIN: [&str; 5] = ["size", "status", "delay", "concurrency", "content-type"];

/// Reads the address of a user's server.
fn users_origin(node: &Node, fields: &Fields<'_>, check: &mut Checker) -> Option<SocketAddr> {
    if let Some((name, other)) =
        OF_WEIRS_ORIGIN.iter().find_map(|name| Some((name, fields.get(name)?)))
    {
        let message = format!("weir does not start the server at `address`, so it has no `{name}`");
        check.error(other.span.clone(), message).hint("leave out one of them");
    }
    let text = check.text(node)?;
    let address = text
        .parse::<SocketAddr>()
        .ok()
        .filter(|address| address.ip().is_loopback() && address.port() > 0);
    if address.is_none() {
        let message =
            format!("`{}` is not an address and a port of the proxies' own host", short(&text));
        check.error(node.span.clone(), message).hint("for example 127.0.0.1:3000");
    }
    address
}

fn delay(node: &Node, check: &mut Checker) -> Option<DelaySpec> {
    let bounds = Duration::ZERO..=LONGEST_DELAY;
    match &node.value {
        Value::Scalar(text) if text == "none" => Some(DelaySpec::None),
        Value::Scalar(_) => check.duration(node, bounds).map(DelaySpec::Fixed),
        Value::Empty => {
            let message = "expected `none`, a duration or a mapping, found nothing";
            check.error(node.span.clone(), message);
            None
        }
        _ => {
            let keys = ["uniform", "exponential"];
            let fields = Fields::known(node, "a delay", &keys, check)?;
            match (fields.get("uniform"), fields.get("exponential")) {
                (Some(range), None) => uniform(range, check),
                (None, Some(mean)) => check.duration(mean, bounds).map(DelaySpec::Exponential),
                _ if !fields.is_known() => None,
                _ => {
                    check
                        .error(fields.span(), "a delay needs exactly one distribution")
                        .hint("`uniform: [1ms, 5ms]` or `exponential: 2ms`");
                    None
                }
            }
        }
    }
}

fn uniform(node: &Node, check: &mut Checker) -> Option<DelaySpec> {
    let items = check.list(node, "a list of two durations")?;
    let bounds = Duration::ZERO..=LONGEST_DELAY;
    if let [low, high] = items {
        let (low, high) = (check.duration(low, bounds.clone()), check.duration(high, bounds));
        let (low, high) = (low?, high?);
        if low < high {
            return Some(DelaySpec::Uniform(low, high));
        }
    }
    check
        .error(node.span.clone(), "expected two durations, the shorter first")
        .hint("such as `uniform: [1ms, 5ms]`");
    None
}

pub(crate) fn blocks(node: Option<&Node>, check: &mut Checker) -> BlockSpec {
    let mut blocks = BlockSpec::default();
    let keys = ["slice", "discard", "at-least", "seed", "instances"];
    let Some(fields) = node.and_then(|node| Fields::known(node, "`blocks`", &keys, check)) else {
        return blocks;
    };
    if let Some(node) = fields.get("slice") {
        blocks.slice = match &node.value {
            Value::Scalar(text) if text == "auto" => None,
            _ => check.duration(node, Duration::from_millis(10)..=Duration::from_secs(600)),
        };
    }
    if let Some(node) = fields.get("discard") {
        blocks.discard = check.share(node, 0.0..0.9).unwrap_or(blocks.discard);
    }
    if let Some(node) = fields.get("instances") {
        let instances = check.whole(node, 1..=100);
        blocks.instances = instances.map_or(blocks.instances, |number| number as u32);
    }
    if let Some(node) = fields.get("at-least") {
        // Six is where an exact two-sided sign-flip test can reach 5 % at all: 2/2^6 = 0.031.
        let at_least = check.whole(node, 6..=1_000_000);
        blocks.at_least = at_least.map_or(blocks.at_least, |number| number as u32);
    }
    if let Some(node) = fields.get("seed") {
        blocks.seed = check.whole(node, 0..=u64::MAX).unwrap_or(blocks.seed);
    }
    blocks
}

/// Rounds the number of instances up, so that each arm runs equally often on each instance of a controller.
pub(crate) fn spread(blocks: BlockSpec, proxy: Option<&Draft>) -> BlockSpec {
    let controller = proxy.and_then(|draft| draft.spec.controller.as_ref());
    let places = controller.map_or(1, |controller| 1 + controller.beside.len() as u32);
    BlockSpec { instances: blocks.instances.next_multiple_of(places), ..blocks }
}

/// Reads `until` and `budget`: when loads have enough blocks, and the maximum time of a run. A limit is compared with
/// the whole run, so it cannot be decided early.
pub(crate) fn ends(
    fields: &Fields<'_>,
    objective: &Objective,
    check: &mut Checker,
) -> (Until, Option<Duration>) {
    let budget = fields
        .get("budget")
        .and_then(|node| check.duration(node, Duration::from_secs(1)..=MOST_BUDGET));
    let choices = [("planned", Until::Planned), ("decided", Until::Decided)];
    let Some(node) = fields.get("until") else {
        return (Until::Planned, budget);
    };
    let until = check.choice(node, &choices).unwrap_or_default();
    if until == Until::Decided && objective.within.is_some() {
        let message = "an objective with `within` is not decided early";
        check.error(node.span.clone(), message).hint("leave out `until`, or `within`");
    }
    (until, budget)
}

pub(crate) fn compare(node: Option<&Node>, check: &mut Checker) -> Compare {
    let choices =
        [("against", Compare::Against), ("pairs", Compare::Pairs), ("overall", Compare::Overall)];
    node.and_then(|node| check.choice(node, &choices)).unwrap_or_default()
}

/// Checks that a study with `compare: overall` has one change, and loads that each count for themselves.
pub(crate) fn check_overall(
    node: Option<&Node>,
    compare: Compare,
    arms: &[arms::Draft],
    loads: &[load::Draft],
    check: &mut Checker,
) {
    let Some(node) = node.filter(|_| compare == Compare::Overall) else { return };
    let changes = arms.iter().filter(|draft| draft.arm.role == ArmRole::Change).count();
    if changes != 1 {
        check
            .error(
                node.span.clone(),
                format!("`overall` is about one change, and there are {changes}"),
            )
            .hint("leave one arm, or write `compare: against`: each arm by the objective's metric");
    }
    if loads.iter().any(|draft| draft.spec.cell.is_some()) {
        check
            .error(node.span.clone(), "`overall` does not go with a matrix of loads")
            .hint("write the loads one by one, or `compare: against`");
    }
}

pub(crate) fn objective(
    node: Option<&Node>,
    loads: &[load::Draft],
    check: &mut Checker,
) -> (Objective, Vec<Limit>, SearchSpec) {
    let mut objective = Objective::default();
    let keys = ["metric", "band", "confidence", "within", "capacity", "precision", "hold", "burst"];
    let fields = node.and_then(|node| Fields::known(node, "an objective", &keys, check));
    if let Some(fields) = &fields {
        if let Some(node) = fields.get("metric") {
            let metric = check.choice(node, &METRICS);
            objective.metric = metric.unwrap_or(Metric::CpuPerRequest);
            check_metric(node, objective.metric, loads, check);
        }
        if let Some(node) = fields.get("band") {
            objective.band = check.share(node, 0.0..0.5).unwrap_or(objective.band);
        }
        if let Some(node) = fields.get("confidence") {
            objective.confidence = check.share(node, 0.5..1.0).unwrap_or(objective.confidence);
        }
    }
    // Nobody asked for the rate by name: a study with open loads only is judged by what they show.
    if fields.as_ref().is_none_or(|fields| fields.get("metric").is_none())
        && !loads.is_empty()
        && !loads.iter().any(is_closed)
    {
        objective.metric = Metric::ResponseP99;
    }
    if let Some(node) = fields.as_ref().and_then(|fields| fields.get("within")) {
        objective.within = within(node, objective.metric, check);
    }
    let limits = fields
        .as_ref()
        .and_then(|fields| fields.get("capacity"))
        .map(|node| capacity(node, loads, check));
    let search = fields.map_or_else(SearchSpec::default, |fields| search(&fields, check));
    (objective, limits.unwrap_or_default(), search)
}

/// Reads the parameters of the search for the highest rate.
fn search(fields: &Fields<'_>, check: &mut Checker) -> SearchSpec {
    let mut search = SearchSpec::default();
    let [precision, hold, burst] = ["precision", "hold", "burst"].map(|key| {
        let node = fields.get(key)?;
        if fields.get("capacity").is_none() {
            check
                .error(node.span.clone(), format!("`{key}` is for a capacity"))
                .hint("write `capacity: 'p99 < 30ms'` beside it");
        }
        Some(node)
    });
    if let Some(node) = precision {
        search.precision = check.share(node, 0.01..0.5).unwrap_or(search.precision);
    }
    let bounds = Duration::from_secs(1)..=Duration::from_secs(3600);
    if let Some(node) = hold {
        search.hold = check.duration(node, bounds.clone()).unwrap_or(search.hold);
    }
    search.burst = burst.and_then(|node| check.duration(node, bounds));
    search
}

/// Reads the limits that must hold at the highest rate.
fn capacity(node: &Node, loads: &[load::Draft], check: &mut Checker) -> Vec<Limit> {
    if loads.len() != 1 || !loads.iter().all(is_closed) {
        let hint =
            "give one load with `closed: true` and its connections: the search chooses the rates";
        check.error(node.span.clone(), "a capacity is searched for under one load").hint(hint);
    }
    match check.text(node).map(|text| Limit::parse_all(&text)) {
        Some(Ok(limits)) => limits,
        Some(Err(error)) => {
            check.error(node.span.clone(), error.to_string());
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// Reads the limit of a response time.
fn within(node: &Node, metric: Metric, check: &mut Checker) -> Option<Duration> {
    if metric.response_quantile().is_none() {
        check
            .error(node.span.clone(), "only a response time can have a limit")
            .hint("write `metric: response-p99` or `metric: response-p50` beside it");
    }
    check.duration(node, Duration::from_micros(1)..=Duration::from_secs(3600))
}

fn is_closed(load: &load::Draft) -> bool {
    !load.spec.is_open()
}

/// Checks that some load measures the metric.
fn check_metric(node: &Node, metric: Metric, loads: &[load::Draft], check: &mut Checker) {
    let (measured, kind, hint) = match metric {
        Metric::CpuPerRequest => return,
        Metric::Rate | Metric::ReceivedBytes => (
            loads.iter().any(is_closed),
            "closed",
            "in an open loop every arm completes the intended rate: add a load with `closed: true`",
        ),
        Metric::ResponseP50 | Metric::ResponseP99 => (
            loads.iter().any(|load| !is_closed(load)),
            "open",
            "response times are compared at equal rates only: add a load with a `rate`",
        ),
    };
    if !measured && !loads.is_empty() {
        check.error(node.span.clone(), format!("no {kind} load measures this metric")).hint(hint);
    }
}

/// Range of MTUs: the smallest that IPv4 hosts must accept whole (RFC 791 §3.1), and the largest of a virtual link.
const MTUS: RangeInclusive<u64> = 576..=65_535;

/// Reads the network. `on_host` is true if the origin is outside of network namespaces.
pub(crate) fn network(node: Option<&Node>, on_host: bool, check: &mut Checker) -> NetworkSpec {
    let mut network = NetworkSpec::default();
    if on_host {
        network.kind = NetworkKind::Loopback;
    }
    let keys = ["kind", "mtu"];
    let Some(fields) = node.and_then(|node| Fields::known(node, "`network`", &keys, check)) else {
        return network;
    };
    if let Some(node) = fields.get("kind") {
        let kinds = [
            ("auto", NetworkKind::Auto),
            ("namespaces", NetworkKind::Namespaces),
            ("loopback", NetworkKind::Loopback),
        ];
        network.kind = check.choice(node, &kinds).unwrap_or_default();
        if on_host && network.kind != NetworkKind::Loopback {
            let message = "an arm's network namespace has no route to the `address` of the origin";
            check.error(node.span.clone(), message).hint("write `kind: loopback`");
        }
    }
    if let Some(node) = fields.get("mtu") {
        if network.kind == NetworkKind::Loopback {
            check
                .error(node.span.clone(), "weir does not set the MTU of the loopback interface")
                .hint("leave it out, or write `kind: namespaces`");
        }
        let mtu = check.whole(node, MTUS);
        network.mtu = mtu.map_or(network.mtu, |mtu| mtu as u32);
    }
    network
}

pub(crate) fn cpus(
    node: Option<&Node>,
    serves_files: bool,
    context: &CheckContext,
    check: &mut Checker,
) -> Option<CpuRoles> {
    let fields = Fields::known(node?, "`cpus`", &["proxy", "generator", "origin"], check)?;
    let [proxy, generator, origin] =
        [("proxy", true), ("generator", true), ("origin", !serves_files)].map(|(key, needed)| {
            let node = if needed { fields.required(key, check)? } else { fields.get(key)? };
            cpu_set(node, context, check)
        });
    let (proxy, generator) = (proxy?, generator?);
    Some(CpuRoles { origin: origin.unwrap_or_else(|| generator.clone()), proxy, generator })
}

fn cpu_set(node: &Node, context: &CheckContext, check: &mut Checker) -> Option<CpuSet> {
    let text = check.text(node)?;
    let set: CpuSet = match text.parse() {
        Ok(set) => set,
        Err(error) => {
            check.error(node.span.clone(), format!("{error}"));
            return None;
        }
    };
    let available = if context.one_machine {
        context.cpus_available.as_ref()?
    } else {
        return Some(set);
    };
    let missing: Vec<u32> =
        set.cpus().iter().copied().filter(|cpu| !available.cpus().contains(cpu)).collect();
    if let Some(missing) = CpuSet::new(missing) {
        check
            .error(node.span.clone(), format!("weir may not use CPU {missing} on this machine"))
            .hint(format!("weir may use {available}; leave `cpus` out and weir assigns them"));
    }
    Some(set)
}
