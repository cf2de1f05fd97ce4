//! Settings of hosts and clusters that a session changed, for the record of its end.

use weir_host::journal::{Outcome, Restored};
use weir_model::record::{ChangedSetting, SettingEnd};
use weir_objects::PutBack;

use crate::Event;

/// Returns the settings that an event says were put back, or could not be.
pub(crate) fn changed_settings(event: &Event) -> Vec<ChangedSetting> {
    match event {
        Event::PutBack { settings } => settings.iter().map(of_host).collect(),
        Event::ObjectsPutBack { objects } => objects.iter().flat_map(of_object).collect(),
        _ => Vec::new(),
    }
}

fn of_host(setting: &Restored) -> ChangedSetting {
    ChangedSetting {
        name: setting.key.to_string(),
        before: Some(setting.before.clone()),
        given: setting.given.clone(),
        end: match &setting.outcome {
            Outcome::PutBack | Outcome::Already => SettingEnd::PutBack,
            Outcome::Gone | Outcome::OtherBoot => SettingEnd::Gone,
            Outcome::Differs { found } => SettingEnd::LeftAlone { found: found.clone() },
            Outcome::Elsewhere { namespace } => SettingEnd::Failed {
                why: format!("it is of another network namespace, {namespace}"),
            },
            Outcome::Failed { words } => SettingEnd::Failed { why: words.clone() },
        },
    }
}

fn of_object(object: &PutBack) -> Vec<ChangedSetting> {
    let name = object.object.to_string();
    let put_back = object
        .put_back
        .iter()
        .map(|path| of_place(format!("{name}: {path}"), None, SettingEnd::PutBack));
    let foreign_changes = object.left.iter().map(|change| {
        let end = SettingEnd::LeftAlone { found: change.now.clone() };
        of_place(format!("{name}: {}", change.at), Some(change.before.clone()), end)
    });
    let failed = object
        .failed
        .iter()
        .map(|why| of_place(name.clone(), None, SettingEnd::Failed { why: why.clone() }));
    put_back.chain(foreign_changes).chain(failed).collect()
}

fn of_place(name: String, before: Option<String>, end: SettingEnd) -> ChangedSetting {
    ChangedSetting { name, before, given: Vec::new(), end }
}

#[cfg(test)]
mod tests {
    use weir_host::journal::Key;

    use super::*;

    #[test]
    fn what_became_of_a_setting_is_recorded() {
        let (value, words) = ("9".to_owned(), "EPERM".to_owned());
        for (outcome, end) in [
            (Outcome::PutBack, SettingEnd::PutBack),
            (Outcome::Already, SettingEnd::PutBack),
            (Outcome::Gone, SettingEnd::Gone),
            (Outcome::Differs { found: value.clone() }, SettingEnd::LeftAlone { found: value }),
            (Outcome::Failed { words: words.clone() }, SettingEnd::Failed { why: words }),
        ] {
            let restored = Restored {
                key: Key::Sysctl("net.core.somaxconn".to_owned()),
                before: "4096".to_owned(),
                given: vec!["128".to_owned()],
                outcome,
            };
            let [setting] = &changed_settings(&Event::PutBack { settings: vec![restored] })[..]
            else {
                panic!("one setting");
            };
            assert_eq!(setting.name, "net.core.somaxconn");
            assert_eq!(
                (setting.before.as_deref(), &setting.given[..]),
                (Some("4096"), &["128".to_owned()][..])
            );
            assert_eq!(setting.end, end);
        }
    }
}
