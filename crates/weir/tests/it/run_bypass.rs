//! `weir run` with arms whose bytes go past the kernel's TCP: what is carried on which hop, and that
//! nothing of it outlives weir.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::Signal;
use weir_analysis::analyze;
use weir_model::record::{ProxyRecord, Record, TrialRecord, Validity};
use weir_record::Run;

use crate::place::{Place, proxy_of};
use crate::places_support::{Lan, Like};
use crate::program::{Running, remarks_of, wait_until};
use crate::run_own;

const ARMS: [&str; 3] = ["sockmap", "sockmap-inbound", "sockmap-outbound"];

/// All levels, under loads of every kind.
fn study(network: &str) -> String {
    format!(
        "weir: 1\n\
         name: bypass\n\
         question: Are bytes carried by what is said to carry them?\n\
         proxy: {{kind: nginx, settings: {{worker_processes: 1, origin_keepalive: 16, access_log: off}}}}\n\
         loads:\n  \
         - {{name: small, closed: true, connections: 4, size: 1KiB, duration: 3s}}\n  \
         - {{name: renewed, closed: true, connections: 4, connection: per-request, size: 1KiB, duration: 3s}}\n  \
         - {{name: large, closed: true, connections: 4, size: 1MiB, duration: 6s, timeout: 10s}}\n  \
         - {{name: secure, closed: true, connections: 4, size: 1KiB, tls: true, duration: 3s}}\n\
         baseline: tcp\n\
         a/a: false\n\
         one-at-a-time: {{transport: [sockmap, sockmap-inbound, sockmap-outbound]}}\n\
         network: {{kind: {network}}}\n\
         blocks: {{slice: 50ms, at-least: 6, instances: 1}}\n"
    )
}

/// Two arms for as long as it takes to be stopped, whose connections nginx keeps as long.
const LONG: &str = "\
weir: 1
name: stopped
question: Is anything left attached?
proxy: {kind: nginx, settings: {worker_processes: 1, keepalive_requests: 100000000}}
loads:
  - {name: closed, closed: true, connections: 4, duration: 60s}
a/a: false
arms:
  - {name: past, settings: {transport: sockmap}}
blocks: {slice: 50ms, at-least: 6, instances: 1}
";

#[allow(clippy::print_stderr)]
fn may_bypass() -> bool {
    let available = weir_bypass::available();
    available
        .inspect_err(|why| eprintln!("skipped: {why}"))
        .is_ok()
}

#[allow(clippy::print_stderr)]
fn may_have_networks() -> bool {
    let may = weir_host::may_have_networks();
    may.inspect_err(|why| eprintln!("skipped: {why}")).is_ok()
}

/// What an arm counted under a load, by counter.
fn counted(run: &Run, load: &str, arm: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for record in &run.records {
        let Record::Counters(own) = record else {
            continue;
        };
        if own.load == load && own.arm == arm {
            for (name, count) in &own.counted {
                *sums.entry(name.clone()).or_default() += count;
            }
        }
    }
    sums
}

fn trials<'r>(run: &'r Run, load: &str, arm: &str) -> Vec<&'r TrialRecord> {
    let trials = run.trials();
    let own = trials.filter(|trial| trial.load == load && trial.arm == arm);
    own.collect()
}

fn proxy<'r>(run: &'r Run, arm: &str) -> &'r ProxyRecord {
    proxy_of(run, arm).expect("each arm has a record")
}

/// Whether an arm's bytes are to go past TCP on a hop.
fn is_bypassed(arm: &str, hop: &str) -> bool {
    arm == "transport=sockmap" || arm == format!("transport=sockmap-{hop}")
}

fn carries_what_it_says(network: &str) {
    let place = Place::new();
    let ended = place.run(&study(network)).end().with_code(0);
    place.assert_clean();
    let run = place.records();
    let arms: Vec<&str> = run.header.study.arms.iter().map(|arm| &*arm.name).collect();
    assert_eq!(arms.len(), 4, "{}", ended.stderr);
    for load in ["small", "renewed", "large", "secure"] {
        for arm in &arms {
            no_response_is_wrong(&run, load, arm);
            each_hop_is_counted(&run, load, arm);
        }
    }
    assert_eq!(proxy(&run, "tcp").effective["transport"], "tcp");
    for level in ARMS {
        let record = proxy(&run, &format!("transport={level}"));
        assert_eq!(record.effective["transport"], level);
    }
    for load in analyze(&run).loads {
        assert_ne!(load.validity, Validity::Invalid, "{:?}", load.reasons);
        // Of 1 MiB at a time the most part may find queues full.
        let idle = load
            .reasons
            .iter()
            .filter(|r| r.reason.rule == "bypass-idle");
        let idle: Vec<_> = idle.collect();
        assert!(idle.is_empty() || load.load == "large", "{idle:?}");
    }
}

fn no_response_is_wrong(run: &Run, load: &str, arm: &str) {
    let trials = trials(run, load, arm);
    assert!(trials.len() >= 6, "{load}, {arm}: {}", trials.len());
    let mut answered = 0;
    for trial in trials {
        assert_eq!(trial.errors, [], "{load}, {arm}");
        let [.., two, three, four, five] = trial.status_classes;
        assert_eq!([three, four, five], [0; 3], "{load}, {arm}");
        answered += two;
    }
    assert!(answered > 0, "{load}, {arm}");
}

fn each_hop_is_counted(run: &Run, load: &str, arm: &str) {
    let counted = counted(run, load, arm);
    let loads = run.header.study.loads.iter();
    let size = loads
        .filter(|own| own.name == load)
        .find_map(|own| own.size);
    let trials = trials(run, load, arm);
    let slices = trials.iter().flat_map(|trial| &trial.slices);
    let content =
        slices.map(|slice| slice.completed).sum::<u64>() * size.expect("a load with a size");
    for hop in ["inbound", "outbound"] {
        let of = |name: &str| counted.get(&format!("sockmap.{hop}.{name}")).copied();
        if !is_bypassed(arm, hop) {
            assert_eq!(of("sockets"), None, "{load}, {arm}: {hop} is TCP's");
            continue;
        }
        assert_eq!(of("refused"), Some(0), "{load}, {arm}: {counted:?}");
        let (past, by_tcp) = (
            of("redirected_bytes").expect("counted"),
            of("tcp_bytes").expect("counted"),
        );
        assert!(past > 0, "{load}, {arm}: {counted:?}");
        // All content came by this hop, one way or the other.
        assert!(
            past + by_tcp >= content,
            "{load}, {arm}: {content} {counted:?}"
        );
        if load != "large" {
            assert!(past > by_tcp, "{load}, {arm}: {counted:?}");
        }
    }
}

#[test]
fn on_loopback_each_arm_is_carried_by_what_it_says() {
    if may_bypass() {
        carries_what_it_says("loopback");
    }
}

#[test]
fn between_namespaces_each_arm_is_carried_by_what_it_says() {
    if may_bypass() && may_have_networks() {
        carries_what_it_says("namespaces");
    }
}

/// Two at a time have the same addresses, in namespaces of their own.
#[test]
fn two_runs_side_by_side_count_their_own() {
    if !may_bypass() || !may_have_networks() {
        return;
    }
    let text = LONG.replace("60s", "3s");
    let places = [Place::new(), Place::new()];
    let running = [0, 1].map(|i| places[i].run(&text));
    for run in running {
        run.end().with_code(0);
    }
    for place in &places {
        place.assert_clean();
        let run = place.records();
        let counted = counted(&run, "closed", "past");
        no_response_is_wrong(&run, "closed", "past");
        // Counted from before the load's connections were opened: the first messages may find a peer
        // that is not taken in yet.
        let [past, by_tcp] = ["redirected_bytes", "tcp_bytes"]
            .map(|name| counted[&format!("sockmap.inbound.{name}")]);
        assert!(past > by_tcp, "{counted:?}");
    }
}

/// A configuration may have no listener but the one with TLS.
#[test]
fn a_user_s_only_listener_is_bypassed_once() {
    if !may_bypass() {
        return;
    }
    let place = Place::new();
    let text = "events {}\nhttp {\n    server {\n        listen 18443 ssl;\n        ssl_certificate \
                /nowhere/shop.pem;\n        ssl_certificate_key /nowhere/shop.key;\n        location / { \
                proxy_pass http://192.0.2.1; }\n    }\n}\n";
    let user = run_own::User::new(&place, &[("nginx.conf", text)]);
    let main = user.path("nginx.conf");
    let proxy = format!(
        "{{kind: nginx, configuration: {}, port: 18443}}",
        main.display()
    );
    let arms = "- {name: past, settings: {transport: sockmap}}\n";
    let text = run_own::study(&proxy, arms)
        .replace("timeout: 10s", "timeout: 10s, tls: true")
        .replace("50ms", "250ms")
        .replace("duration: 2s", "duration: 4s");
    let (_, run) = place.measured(&text);
    no_response_is_wrong(&run, "closed", "past");
    assert_eq!(self::proxy(&run, "past").effective["transport"], "sockmap");
    let counted = counted(&run, "closed", "past");
    for hop in ["inbound", "outbound"] {
        let past = counted[&format!("sockmap.{hop}.redirected_bytes")];
        assert!(past > 0, "{hop}: {counted:?}");
    }
}

/// The programs that links of a process hold, from the descriptors' own words (proc(5)).
fn attached(run: &Running) -> BTreeSet<u32> {
    let folder = fs::read_dir(format!("/proc/{}/fdinfo", run.pid()));
    let texts = (folder.into_iter().flatten().flatten())
        .filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let links = texts.filter(|text| text.contains("link_type:\tcgroup"));
    let program = |text: String| {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("prog_id:"));
        line?.trim().parse().ok()
    };
    links.filter_map(program).collect()
}

/// All programs that the kernel has.
fn loaded() -> BTreeSet<u32> {
    let programs = aya::programs::loaded_programs().filter_map(Result::ok);
    programs.map(|program| program.id()).collect()
}

#[test]
fn nothing_stays_attached_however_weir_ends() {
    if !may_bypass() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let place = Place::new();
        let mut run = place.run(LONG);
        run.wait_until("two blocks", |_| {
            place.records_with(r#""record":"trial""#) >= 4
        });
        let own = attached(&run);
        assert_eq!(own.len(), 1, "one program on one group, for all arms");
        assert!(own.is_subset(&loaded()));
        let proxies = place.proxies();
        run.signal(signal);
        let ended = run.end();
        if signal != Signal::KILL {
            ended.with_code(130);
        }
        place.await_end_of(&proxies);
        wait_until("the end of the programs", || loaded().is_disjoint(&own));
    }
}

#[test]
fn between_hosts_there_is_no_way_past_tcp() {
    let Some(lan) = Lan::of(&[Like::default()]) else {
        return;
    };
    let text = LONG.replace("60s", "2s").replace(
        "arms:\n",
        "arms:\n  - {name: keeps-origin, settings: {origin_keepalive: 8}}\n",
    );
    let ended = lan.run(&text, &["--place", "proxy=web1"]).end();
    ended.with_code(0);
    let run = lan.records();
    let remarks = remarks_of(&run);
    let said =
        "arm `past` is left out: bytes go past the kernel's TCP only between sockets of one host";
    assert!(remarks.contains(said), "{remarks}");
    assert!(run.header.study.arms.iter().all(|arm| arm.name != "past"));
    lan.assert_clean();
}
