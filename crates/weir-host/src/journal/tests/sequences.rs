//! Property tests: whatever happens in whatever order, no value of weir's is left.

use proptest::prelude::*;

use super::*;

/// An event of a session. Values of weir's begin with `w`, values of others with `f`.
#[derive(Debug, Clone)]
enum Event {
    Change(usize, String),
    Announce(usize, Vec<String>),
    Give(usize, String),
    Foreign(usize, String),
    /// weir is dead after so many more accesses to the kernel.
    Doom(usize),
    /// weir is killed and leaves this share of a line (per mille); with a number, a restore is killed too, after so
    /// many accesses.
    Kill(usize, Option<usize>),
    /// An orderly end; false if nobody shows the outcomes of the settings.
    End(bool),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let weirs = "w[1-3]";
    let event = prop_oneof![
        4 => (0..3usize, weirs).prop_map(|(key, value)| Event::Change(key, value)),
        2 => (0..3usize, proptest::collection::vec(weirs, 1..4)).prop_map(|(key, values)| Event::Announce(key, values)),
        4 => (0..3usize, weirs).prop_map(|(key, value)| Event::Give(key, value)),
        2 => (0..3usize, "f[1-3]").prop_map(|(key, value)| Event::Foreign(key, value)),
        1 => (0..9usize).prop_map(Event::Doom),
        2 => (0..1000usize, proptest::option::of(0..12usize)).prop_map(|(share, steps)| Event::Kill(share, steps)),
        1 => any::<bool>().prop_map(Event::End),
    ];
    proptest::collection::vec(event, 0..40)
}

struct World {
    host: Host,
    journal: Option<Journal>,
}

impl World {
    fn key(index: usize) -> Key {
        key(["a", "b", "c"][index])
    }

    fn happen(&mut self, event: Event) {
        let journal = self.journal.as_mut();
        // What is refused is refused: only what becomes of the settings is looked at.
        match (event, journal) {
            (Event::Foreign(key, value), _) => self.host.settings.set(&World::key(key), &value),
            (Event::Doom(steps), _) => self.host.settings.kill_after(steps),
            (Event::Kill(share, steps), _) => self.kill(share, steps),
            (Event::End(shown), Some(journal)) => {
                if shown {
                    journal.restore();
                }
                self.journal = None;
                self.host.settings.revive();
            }
            (Event::Change(key, value), Some(journal)) => {
                let _ = journal.change(&World::key(key), &value);
            }
            (Event::Announce(key, values), Some(journal)) => {
                let _ = journal.announce(&World::key(key), &values);
            }
            (Event::Give(key, value), Some(journal)) => {
                let _ = journal.give(&World::key(key), &value);
            }
            (_, None) => self.journal = self.host.open().ok(),
        }
    }

    fn kill(&mut self, share: usize, steps: Option<usize>) {
        if let Some(journal) = self.journal.take() {
            self.host.kill(journal);
        }
        self.host.settings.revive();
        self.tear(share);
        if let Some(steps) = steps {
            self.host.settings.kill_after(steps);
            self.host.restore();
            self.host.settings.revive();
            self.tear(share);
        }
    }

    /// Appends part of a line, as if the power failed during the write.
    fn tear(&self, share: usize) {
        let line = r#"{"ahead":{"key":{"sysctl":"fake.a"},"before":"w1","given":["0"]}}"#;
        if let Ok(mut bytes) = fs::read(self.host.file()) {
            bytes.extend_from_slice(&line.as_bytes()[..line.len() * share / 1000]);
            fs::write(self.host.file(), bytes).unwrap();
        }
    }

    /// Restores, and checks the outcome.
    fn settle(&mut self) {
        self.kill(0, None);
        let before = self.host.settings.state().values.clone();
        let outcomes = self.host.restore();
        let after = self.host.settings.state().values.clone();
        for (name, value) in &after {
            assert!(!value.starts_with('w'), "{name} is left at {value}; {outcomes:?}");
            let was = &before[name];
            let untouched = was.starts_with('w') || was == value;
            assert!(untouched, "{name} was {was} and is {value}");
        }
        assert_eq!(self.host.restore(), []);
        self.journal = Some(self.host.open().unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_value_of_weirs_is_ever_left(sessions in proptest::collection::vec(events(), 1..4)) {
        let host = Host::new();
        let journal = host.open().ok();
        let mut world = World { host, journal };
        for events in sessions {
            for event in events {
                world.happen(event);
            }
            world.settle();
        }
    }
}
