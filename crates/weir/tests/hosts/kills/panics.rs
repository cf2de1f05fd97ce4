//! Tests of panics of weir itself, in any thread and whatever that holds: changes are undone before the process has
//! ended.

use super::*;

/// Places of panics with the number of the pass (`weir_probe::fault`), the network, and words that must be printed.
#[rustfmt::skip]
const FAULTS: [(&str, Network, &[&str]); 7] = [
    // The main thread, in the middle of a trial.
    ("block:2", Network::Namespaces, &["thread `main`"]),
    // The thread that started a proxy and is in its network namespace: the proxy does not end with it.
    ("arm:9", Network::Namespaces, &["thread `weir-arm`"]),
    // A thread with a table of descriptors of its own.
    ("load-thread:2", Network::Namespaces, &["at crates/weir-probe/"]),
    // What a host is asked, on one host.
    ("agent:9", Network::Loopback, &["thread `weir-agent`"]),
    // Whoever holds the lock of standard error; and then the process that puts things back, which is its end.
    ("terminal:2", Network::Loopback, &["at crates/weir-probe/"]),
    // The other host's agent loses its peer, and puts back what it has changed.
    ("block:1", Network::Ssh, &["thread `main`"]),
    // The agent itself panics, and its peer is told.
    ("agent:9", Network::Ssh, &["127.0.0.1", "thread `main`"]),
];

#[test]
fn a_panic_leaves_nothing_changed() {
    if !rustix::process::geteuid().is_root() {
        return skipped("settings of the whole host need root");
    }
    let Some(setting) =
        setting(chosen_seed() + 1).filter(|name| Some(*name) != setting(chosen_seed()))
    else {
        return skipped("no second setting of the whole host can be written here");
    };
    if let Err(error) = weir_host::may_have_networks() {
        return skipped(&error.to_string());
    }
    for (row, (fault, network, words)) in FAULTS.into_iter().enumerate() {
        let is_agents = network == Network::Ssh && fault.starts_with("agent");
        let chaos = Chaos {
            seed: chosen_seed(),
            setting,
            remote: match network {
                Network::Ssh => Remote::start(is_agents.then_some(fault)),
                _ => None,
            },
        };
        if network == Network::Ssh && chaos.remote.is_none() {
            continue;
        }
        say(&format!("{row} {network:?} {fault}"));
        chaos.panics(network, (fault, is_agents), words, row == 0);
    }
}

impl Chaos {
    fn panics(
        &self,
        network: Network,
        (fault, is_agents): (&'static str, bool),
        words: &[&str],
        resumes: bool,
    ) {
        let before = self.snapshot();
        let mut rng = SplitMix64::new(self.seed);
        let mut scene = self.scene(network, Victim::Weir, &mut rng);
        while scene.has_pilot {
            scene = self.scene(network, Victim::Weir, &mut rng);
        }
        scene.fault = Some(fault).filter(|_| !is_agents);
        let reason = "a bug in weir: a fault that a test asked for";
        let code = if is_agents { 1 } else { 101 };
        let ended = scene.run().end().with_code(code).says(&[reason]).says(words);
        if fault.starts_with("block") && network != Network::Ssh {
            // It had the setting in hand: by the moment it had given it, or was to give it again.
            ended.says(&[self.setting]);
        }
        // This host's processes have ended, and other hosts' agents are about to.
        let patience = match network {
            Network::Ssh => REST,
            _ => Duration::ZERO,
        };
        let traces = at_rest(&before, &scene, &Namespaces::default(), patience);
        assert!(traces.is_nothing(), "{fault}: {traces}");
        for restored in scene.restore() {
            let text = restored.with_code(0).stdout;
            assert!(text.starts_with("Nothing to restore"), "{text}");
        }
        if resumes {
            let recovered = recover(&scene, &whole_lines(&scene));
            assert!(recovered.faults.is_empty(), "{:?}", recovered.faults);
        }
    }
}
