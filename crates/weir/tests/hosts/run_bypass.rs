//! Tests of `weir run` with arms whose bytes bypass the kernel's TCP: the bytes carried on each hop, and that no
//! program remains in the kernel after weir.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::Signal;
use weir_analysis::analyze;
use weir_model::record::{ProxyRecord, Record, Validity};
use weir_record::Run;
use weir_testkit::lan::{Lan, Like};
use weir_testkit::own;
use weir_testkit::own_cases::SECURE;
use weir_testkit::program::{HasAll, Running, remarks_of, wait_until, within};
use weir_testkit::sandbox::{self, Sandbox, proxy_of, sum};
use weir_testkit::ssh::skipped;

const ARMS: [&str; 3] = ["sockmap", "sockmap-inbound", "sockmap-outbound"];

/// Returns a study of all levels, under loads of every kind.
fn study(network: &str) -> String {
    let loads = "\
- {name: small, closed: true, connections: 4, size: 1KiB, duration: 3s}
- {name: renewed, closed: true, connections: 4, connection: per-request, size: 1KiB, duration: 3s}
- {name: large, closed: true, connections: 4, size: 1MiB, duration: 6s, timeout: 10s}
- {name: secure, closed: true, connections: 4, size: 1KiB, tls: true, duration: 3s}";
    let more = format!(
        "baseline: tcp\na/a: false\nnetwork: {{kind: {network}}}\n\
         one-at-a-time: {{transport: [sockmap, sockmap-inbound, sockmap-outbound]}}\n"
    );
    let proxy =
        "{kind: nginx, settings: {worker_processes: 1, origin_keepalive: 16, access_log: off}}";
    sandbox::study(proxy, loads, &more)
}

/// Returns a study of two arms, long enough to be stopped, whose connections nginx keeps as long.
fn long() -> String {
    let proxy = "{kind: nginx, settings: {worker_processes: 1, keepalive_requests: 100000000}}";
    let load = "  - {name: closed, closed: true, connections: 4, duration: 60s}";
    let more = "a/a: false\narms:\n  - {name: past, settings: {transport: sockmap}}\n";
    sandbox::study(proxy, load, more)
}

fn may_bypass() -> bool {
    let available = weir_bypass::available();
    available.inspect_err(|why| skipped(&why.to_string())).is_ok()
}

fn may_have_networks() -> bool {
    let may = weir_host::may_have_networks();
    may.inspect_err(|why| skipped(&why.to_string())).is_ok()
}

/// Returns the counts of an arm under a load, by counter.
fn sum_counters(run: &Run, load: &str, arm: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for record in &run.records {
        if let Record::Counters(counters) = record
            && (&*counters.load, &*counters.arm) == (load, arm)
        {
            for (name, count) in &counters.counted {
                *sums.entry(name.clone()).or_default() += count;
            }
        }
    }
    sums
}

fn proxy<'r>(run: &'r Run, arm: &str) -> &'r ProxyRecord {
    proxy_of(run, arm).expect("each arm has a record")
}

/// Returns true if an arm's bytes should bypass TCP on a hop.
fn is_bypassed(arm: &str, hop: &str) -> bool {
    arm == "transport=sockmap" || arm == format!("transport=sockmap-{hop}")
}

fn carries_what_it_says(network: &str) {
    let sandbox = Sandbox::new();
    let (ended, run) = sandbox.measure(&study(network));
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
        let mut rules = load.reasons.iter().map(|counted| counted.reason.rule());
        assert!(load.load == "large" || rules.all(|rule| rule != "bypass-idle"));
    }
}

fn no_response_is_wrong(run: &Run, load: &str, arm: &str) {
    let trials = run.trials_of(load, arm);
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
    let counted = sum_counters(run, load, arm);
    let mut sizes =
        run.header.study.loads.iter().filter(|spec| spec.name == load).filter_map(|spec| spec.size);
    let size = sizes.next().expect("a load with a size");
    let content = size * sum(run, load, arm, |slice| slice.completed);
    for hop in ["inbound", "outbound"] {
        let [sockets, refused, past, by_tcp] =
            ["sockets", "refused", "redirected_bytes", "tcp_bytes"]
                .map(|name| counted.get(&format!("sockmap.{hop}.{name}")).copied());
        if !is_bypassed(arm, hop) {
            assert_eq!(sockets, None, "{load}, {arm}: {hop} is TCP's");
            continue;
        }
        assert_eq!(refused, Some(0), "{load}, {arm}: {counted:?}");
        let [past, by_tcp] = [past, by_tcp].map(|bytes| bytes.expect("counted"));
        assert!(past > 0, "{load}, {arm}: {counted:?}");
        // All content came by this hop, one way or the other.
        within(past + by_tcp, content..);
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

/// Runs two studies at the same time, which have the same addresses in namespaces of their own.
#[test]
fn two_runs_side_by_side_count_their_own() {
    if !may_bypass() || !may_have_networks() {
        return;
    }
    let text = long().replace("60s", "3s");
    let places = [Sandbox::new(), Sandbox::new()];
    let running = [0, 1].map(|i| places[i].run(&text));
    for run in running {
        run.end().with_code(0);
    }
    for sandbox in &places {
        sandbox.assert_clean();
        let run = sandbox.records();
        let counted = sum_counters(&run, "closed", "past");
        no_response_is_wrong(&run, "closed", "past");
        // Counted from before the load's connections were opened: the first messages may find a peer
        // that is not taken in yet.
        let [past, by_tcp] = ["redirected_bytes", "tcp_bytes"]
            .map(|name| counted[&format!("sockmap.inbound.{name}")]);
        assert!(past > by_tcp, "{counted:?}");
    }
}

/// Tests a configuration whose only listener has TLS.
#[test]
fn a_user_s_only_listener_is_bypassed_once() {
    if !may_bypass() {
        return;
    }
    let sandbox = Sandbox::new();
    let (_, name, text) = SECURE[0];
    let user = own::User::new(&sandbox, &[(name, text)]);
    let main = user.path(name);
    let proxy = format!("{{kind: nginx, configuration: {}, port: 18443}}", main.display());
    let arms = "- {name: past, settings: {transport: sockmap}}\n";
    let text = own::study(&proxy, arms)
        .replace("timeout: 10s", "timeout: 10s, tls: true")
        .replace("50ms", "250ms")
        .replace("duration: 2s", "duration: 6s");
    let (_, run) = sandbox.measure(&text);
    no_response_is_wrong(&run, "closed", "past");
    assert_eq!(self::proxy(&run, "past").effective["transport"], "sockmap");
    let counted = sum_counters(&run, "closed", "past");
    for hop in ["inbound", "outbound"] {
        let past = counted[&format!("sockmap.{hop}.redirected_bytes")];
        assert!(past > 0, "{hop}: {counted:?}");
    }
}

/// Returns the kernel programs that links of a process hold, as its descriptors show them (proc(5)).
fn attached(run: &Running) -> BTreeSet<u32> {
    let folder = fs::read_dir(format!("/proc/{}/fdinfo", run.pid()));
    let links = (folder.into_iter().flatten().flatten())
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter(|text| text.contains("link_type:\tcgroup"));
    links
        .filter_map(|text| {
            let mut lines = text.lines();
            let line = lines.find_map(|line| line.strip_prefix("prog_id:"));
            line?.trim().parse().ok()
        })
        .collect()
}

/// Returns all programs in the kernel.
fn loaded() -> BTreeSet<u32> {
    aya::programs::loaded_programs().filter_map(Result::ok).map(|program| program.id()).collect()
}

#[test]
fn nothing_stays_attached_however_weir_ends() {
    if !may_bypass() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        let mut run = sandbox.run(&long());
        sandbox.await_trials(&mut run, 4);
        let programs = attached(&run);
        assert_eq!(programs.len(), 1, "one program on one group, for all arms");
        assert!(programs.is_subset(&loaded()));
        let proxies = sandbox.proxies();
        run.signal(signal);
        let ended = run.end();
        if signal != Signal::KILL {
            ended.with_code(130);
        }
        sandbox.await_end_of(&proxies);
        wait_until("the end of the programs", || loaded().is_disjoint(&programs));
    }
}

#[test]
fn between_hosts_there_is_no_way_past_tcp() {
    let Some(lan) = Lan::of(&[Like::default()]) else {
        return;
    };
    let text = long()
        .replace("60s", "2s")
        .replace("arms:\n", "arms:\n  - {name: keeps-origin, settings: {origin_keepalive: 8}}\n");
    lan.run(&text, "--place proxy=web1").end().with_code(0);
    let run = lan.records();
    let remarks = remarks_of(&run);
    let reason =
        "arm `past` is left out: bytes go past the kernel's TCP only between sockets of one host";
    remarks.has(reason);
    assert!(run.header.study.arms.iter().all(|arm| arm.name != "past"));
    lan.assert_clean();
}
