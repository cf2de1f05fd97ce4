//! Settings of a whole host that differ between arms.
//!
//! A namespace cannot have its own, so the host is given the arm's when its slices begin. Every value
//! that it may get stands in the journal before it gets the first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use weir_host::journal::{self, Journal, Key, Restored};
use weir_host::sysctl;
use weir_parameters::{Catalog, EffectiveFrom};
use weir_sut::WorkFolder;

use crate::message::{Failure, Leftovers, SettingsJob};

/// The host's settings as the arms want them.
pub(super) struct HostSettings {
    arms: Vec<BTreeMap<String, String>>,
    state: Mutex<State>,
}

struct State {
    journal: Journal,
    /// The arm whose values the host has.
    arm: usize,
}

impl HostSettings {
    /// Takes the host's journal, and gives the host the first arm's values.
    pub(super) fn begin(job: &SettingsJob, catalog: &Catalog) -> Result<HostSettings, Failure> {
        let mut journal = Journal::open(&Journal::default_folder(), &job.purpose)?;
        let arms = completed(&job.arms, catalog)?;
        let first = arms.first().cloned().unwrap_or_default();
        for (name, value) in &first {
            let values: BTreeSet<String> = arms
                .iter()
                .filter_map(|arm| arm.get(name).cloned())
                .collect();
            let key = Key::Sysctl(name.clone());
            journal.announce(&key, &values.into_iter().collect::<Vec<_>>())?;
            journal.give(&key, value)?;
        }
        Ok(HostSettings {
            arms,
            state: Mutex::new(State { journal, arm: 0 }),
        })
    }

    /// Gives the host an arm's values. What it has already costs nothing.
    pub(super) fn turn_to(&self, arm: usize) -> Result<(), Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { journal, arm: now } = &mut *state;
        if *now == arm {
            return Ok(());
        }
        let Some((before, after)) = self.arms.get(*now).zip(self.arms.get(arm)) else {
            return Err(Failure::other(format!("arm {arm} has no settings")));
        };
        for (name, value) in after {
            if before.get(name) != Some(value) {
                journal.give(&Key::Sysctl(name.clone()), value)?;
            }
        }
        *now = arm;
        Ok(())
    }

    /// Puts everything back.
    pub(super) fn put_back(&self) -> Vec<Restored> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.journal.restore()
    }
}

/// Every arm with a value for each setting that any of them names: one that does not name it is
/// measured with what the host has.
fn completed(
    arms: &[BTreeMap<String, String>],
    catalog: &Catalog,
) -> Result<Vec<BTreeMap<String, String>>, Failure> {
    let names: BTreeSet<&String> = arms.iter().flat_map(BTreeMap::keys).collect();
    let mut completed = vec![BTreeMap::new(); arms.len()];
    for name in names {
        let now = sysctl::read(name)?;
        for (arm, asked) in completed.iter_mut().zip(arms) {
            let value = match asked.get(name) {
                Some(value) => wanted(name, value, &now, catalog),
                None => now.clone(),
            };
            arm.insert(name.clone(), value);
        }
    }
    Ok(completed)
}

/// The value that a setting is to have: what is asked for, or what there is where that is higher and
/// the setting is one that is only raised.
fn wanted(name: &str, value: &str, now: &str, catalog: &Catalog) -> String {
    let mut rows = catalog.host_parameters();
    let row = rows.find(
        |row| matches!(&row.effective, EffectiveFrom::Sysctl { name: of_row } if of_row == name),
    );
    let is_wanted = row.is_none_or(|row| row.is_to_be_written(value, now));
    let level = if is_wanted { value } else { now };
    level.to_owned()
}

/// What an earlier weir has left here; put back and removed unless it is only to be told.
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
    let (settings, folders) = match dry_run {
        true => (pending.settings, WorkFolder::abandoned()),
        false => (journal::restore(&folder)?, WorkFolder::sweep()),
    };
    Ok(Leftovers {
        settings,
        held: None,
        folders,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_that_does_not_name_a_setting_has_the_host_s() {
        // Nobody writes it, and everybody may read it.
        let name = "kernel.osrelease";
        let now = sysctl::read(name).unwrap();
        let named = BTreeMap::from([(name.to_owned(), "9".to_owned())]);
        let arms = [BTreeMap::new(), named.clone()];
        let completed = completed(&arms, &Catalog::builtin()).unwrap();
        assert_eq!(completed[0], BTreeMap::from([(name.to_owned(), now)]));
        assert_eq!(completed[1], named);
        let absent = BTreeMap::from([("no.such_setting".to_owned(), "1".to_owned())]);
        assert!(super::completed(&[absent], &Catalog::builtin()).is_err());
    }
}
