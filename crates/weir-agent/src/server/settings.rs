//! Settings of a whole host that differ between arms.
//!
//! A namespace cannot have its own values of these settings, so the host gets an arm's values when the arm's slices
//! begin. Every value that the host may get is written to the journal before the first one is applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use weir_host::journal::{self, Journal, Key, Restored};
use weir_host::sysctl;
use weir_parameters::{Catalog, EffectiveFrom};
use weir_sut::WorkFolder;

use crate::message::{Failure, HostSettingsJob, Leftovers};

/// Settings of the host that arms name, and their present values.
pub(super) struct HostSettings(Mutex<State>);

struct State {
    journal: Journal,
    /// Values that each arm asks for, by the arm's slot.
    arms: BTreeMap<usize, BTreeMap<String, String>>,
    /// Values before weir of each setting that some arm asks for. An arm that does not name a setting is measured with
    /// this value.
    before: BTreeMap<String, String>,
    /// Values that the host has now.
    given: BTreeMap<String, String>,
}

impl HostSettings {
    /// Opens the host's journal, for the settings that the catalog or the study has rows for.
    pub(super) fn begin(job: &HostSettingsJob, catalog: &Catalog) -> Result<HostSettings, Failure> {
        let journal = Journal::open(&Journal::default_folder(), &job.purpose)?;
        let built_in: BTreeSet<String> = Catalog::builtin().sysctls().collect();
        let added = catalog.sysctls().filter(|name| !built_in.contains(name));
        Ok(HostSettings(Mutex::new(State {
            journal: journal.listing(added),
            arms: BTreeMap::new(),
            before: BTreeMap::new(),
            given: BTreeMap::new(),
        })))
    }

    /// Adds an arm and writes the values that it asks for to the journal.
    pub(super) fn add(
        &self,
        slot: usize,
        asked: &BTreeMap<String, String>,
        catalog: &Catalog,
    ) -> Result<(), Failure> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut values = BTreeMap::new();
        for (name, value) in asked {
            let now = match state.before.get(name) {
                Some(before) => before.clone(),
                None => sysctl::read(name)?,
            };
            let value = wanted(name, value, &now, catalog);
            let key = Key::Sysctl(name.clone());
            state.journal.announce(&key, &[now.clone(), value.clone()])?;
            state.given.entry(name.clone()).or_insert_with(|| now.clone());
            state.before.insert(name.clone(), now);
            values.insert(name.clone(), value);
        }
        state.arms.insert(slot, values);
        Ok(())
    }

    /// Removes an arm. Until the next arm's turn, the host has its former values.
    pub(super) fn remove(&self, slot: usize) -> Result<(), Failure> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.arms.remove(&slot);
        state.give(&BTreeMap::new())
    }

    /// Applies an arm's values to the host. Values that the host already has are not written again.
    pub(super) fn turn_to(&self, slot: usize) -> Result<(), Failure> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = state
            .arms
            .get(&slot)
            .cloned()
            .ok_or_else(|| Failure::other(format!("slot {slot} has no settings")))?;
        state.give(&settings)
    }

    /// Puts all settings back.
    pub(super) fn put_back(&self) -> Vec<Restored> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.journal.restore()
    }
}

impl State {
    /// Applies these values to the host, and the former value of every setting that is not among them.
    fn give(&mut self, own: &BTreeMap<String, String>) -> Result<(), Failure> {
        for (name, before) in &self.before {
            let value = own.get(name).unwrap_or(before);
            if self.given.get(name) != Some(value) {
                self.journal.give(&Key::Sysctl(name.clone()), value)?;
                self.given.insert(name.clone(), value.clone());
            }
        }
        Ok(())
    }
}

/// Returns the value to apply: the value asked for, or the present one if it is higher and the setting is only ever
/// raised.
fn wanted(name: &str, value: &str, now: &str, catalog: &Catalog) -> String {
    let mut rows = catalog.host_parameters();
    let row = rows.find(
        |row| matches!(&row.effective, EffectiveFrom::Sysctl { name: of_row } if of_row == name),
    );
    let is_wanted = row.is_none_or(|row| row.is_to_be_written(value, now));
    let level = if is_wanted { value } else { now };
    level.to_owned()
}

/// Lists what an earlier weir has left on this host. Unless it is a dry run, settings are put back and folders removed.
pub(super) fn leftovers(dry_run: bool) -> Result<Leftovers, Failure> {
    let folder = Journal::default_folder();
    let pending = journal::pending(&folder)?;
    if pending.held {
        let holder = pending.holder.map(|holder| holder.to_string());
        return Ok(Leftovers {
            settings: pending.settings,
            held: Some(holder.unwrap_or_else(|| "another weir".to_owned())),
            folders: Vec::new(),
        });
    }
    let (settings, folders) = if dry_run {
        (pending.settings, WorkFolder::abandoned())
    } else {
        (journal::restore(&folder)?, WorkFolder::sweep())
    };
    Ok(Leftovers { settings, held: None, folders })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn state(folder: &Path) -> HostSettings {
        HostSettings(Mutex::new(State {
            journal: Journal::open(folder, "a test")
                .unwrap()
                .listing(["kernel.osrelease".to_owned()]),
            arms: BTreeMap::new(),
            before: BTreeMap::new(),
            given: BTreeMap::new(),
        }))
    }

    #[test]
    fn an_arm_that_does_not_name_a_setting_has_the_host_s() {
        // Nobody writes it, and everybody may read it.
        let name = "kernel.osrelease";
        let now = sysctl::read(name).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (settings, catalog) = (state(folder.path()), Catalog::builtin());
        settings.add(0, &BTreeMap::new(), &catalog).unwrap();
        settings.add(1, &BTreeMap::from([(name.to_owned(), now)]), &catalog).unwrap();
        settings.add(2, &BTreeMap::from([(name.to_owned(), "9".to_owned())]), &catalog).unwrap();
        // The first two have what there is, so nothing is written; the kernel refuses the third.
        settings.turn_to(0).unwrap();
        settings.turn_to(1).unwrap();
        assert!(settings.turn_to(2).is_err());
        settings.remove(1).unwrap();
        assert!(settings.turn_to(1).is_err(), "it is gone");
        let absent = BTreeMap::from([("no.such_setting".to_owned(), "1".to_owned())]);
        assert!(settings.add(3, &absent, &catalog).is_err());
    }
}
