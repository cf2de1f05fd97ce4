//! `weir restore`: undoes changes that a killed weir has left on this host.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use weir_agent::message::Restore;
use weir_host::journal::{self, Journal, JournalError, Outcome, Restored, put_back_command};
use weir_model::foreign::in_a_line;
use weir_objects::PutBack;
use weir_sut::WorkFolder;

use crate::args::{RestoreArgs, TextOrJson};
use crate::commands::{kube, place};
use crate::failure::{FAILED, Failure};
use crate::terminal;

/// Number of characters of a value from which on it is shortened.
const LONGEST_VALUE: usize = 200;

/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-restore/1";

/// Settings and folders that were restored or removed on a host, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Undone {
    format: &'static str,
    dry_run: bool,
    settings: Vec<Restored>,
    /// Work folders of weir processes that no longer run.
    removed: Vec<PathBuf>,
}

/// Name and version of the JSON output's format for a cluster.
pub(crate) const FORMAT_OF_CLUSTER: &str = "weir-restore-cluster/1";

/// Objects that were removed or restored in a namespace, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Cleared {
    format: &'static str,
    dry_run: bool,
    context: String,
    namespace: String,
    removed: Vec<Object>,
    /// Objects that weir had changed.
    objects: Vec<PutBack>,
}

/// An object of the cluster that was removed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Object {
    kind: &'static str,
    name: String,
}

pub(crate) fn run(args: &RestoreArgs) -> Result<ExitCode, Failure> {
    if let Some(on) = &args.on {
        return restore_cluster(on, args);
    }
    let undone = match &args.host {
        Some(host) => undo_at(host, args)?,
        None => undo(&Journal::default_folder(), args.dry_run).map_err(refused)?,
    };
    match args.format {
        TextOrJson::Text => {
            terminal::print(&text(&undone))?;
            let here = args.host.is_none();
            for on in here
                .then(|| weir_objects::left_by_the_dead(&Journal::default_folder()))
                .into_iter()
                .flatten()
            {
                terminal::tell(&format!(
                    "Objects of a cluster are left changed too: weir restore {on}\n"
                ));
            }
        }
        TextOrJson::Json => {
            let json = serde_json::to_string_pretty(&undone)
                .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
            terminal::print(&format!("{json}\n"))?;
        }
    }
    let mut outcomes = undone.settings.iter().map(|setting| &setting.outcome);
    Ok(if outcomes.all(Outcome::is_restored) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Removes everything that runs have left in a namespace of a cluster.
fn restore_cluster(on: &str, args: &RestoreArgs) -> Result<ExitCode, Failure> {
    let cluster = kube::connect(on)?;
    let undo = || {
        let undone = weir_objects::undo(&cluster, &Journal::default_folder(), args.dry_run);
        undone.map_err(kube::refused)
    };
    // First of all, so that nothing that cannot be listed or does not go keeps objects changed.
    let mut undone = undo();
    let removal = cluster
        .check_namespace()
        .and_then(|()| weir_kube::remove(&cluster, args.dry_run))
        .map_err(kube::refused);
    if undone.is_err() {
        // A run that goes on has them in hand, and ends with its pods.
        undone = undo();
    }
    let mut failures = Vec::new();
    let removed = removal.unwrap_or_else(|failure| {
        failures.push(failure);
        Vec::new()
    });
    let objects = undone.unwrap_or_else(|failure| {
        failures.push(failure);
        Vec::new()
    });
    let failed = Failure::all(failures);
    let cleared = Cleared {
        format: FORMAT_OF_CLUSTER,
        dry_run: args.dry_run,
        context: cluster.context().to_owned(),
        namespace: cluster.namespace().to_owned(),
        removed: removed
            .into_iter()
            .map(|object| Object { kind: object.kind, name: object.name })
            .collect(),
        objects,
    };
    match args.format {
        // What is not gone is told as an error.
        TextOrJson::Text if failed.is_some() && cleared.is_empty() => {}
        TextOrJson::Text => terminal::print(&cleared.text())?,
        TextOrJson::Json => {
            let json = serde_json::to_string_pretty(&cleared)
                .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
            terminal::print(&format!("{json}\n"))?;
        }
    }
    match failed {
        Some(failed) => Err(failed),
        None if cleared.objects.iter().all(PutBack::is_whole) => Ok(ExitCode::SUCCESS),
        None => Ok(ExitCode::from(FAILED)),
    }
}

/// Describes the result for an object of a cluster, and the steps that are left to the user.
pub(crate) fn object(one: &PutBack, dry_run: bool) -> String {
    let name = in_a_line(&one.object.to_string());
    let (would, is_left) =
        if dry_run { ("would be ", "would be left alone") } else { ("", "is left alone") };
    let put_back =
        one.put_back.iter().map(|at| format!("{name}: {would}put back: {}\n", in_a_line(at)));
    let left_alone = one.left.iter().map(|left| {
        if left.at.is_empty() {
            return format!(
                "{name}: somebody has deleted it since, or put another of its name in its place: there is nothing to put back\n"
            );
        }
        let [before, now] = [&left.before, &left.now].map(|value| shown(value));
        let at = in_a_line(&left.at);
        format!(
            "{name}: somebody else has changed it since, and it {is_left}: {at}\n  before weir  {before}\n  \
             now          {now}\n"
        )
    });
    let failed = one.failed.iter().map(|why| {
        format!("{name}: not put back: {}; `weir restore --on` tries it again\n", in_a_line(why))
    });
    put_back.chain(left_alone).chain(failed).collect()
}

impl Cleared {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.objects.is_empty()
    }

    fn text(&self) -> String {
        let objects = self.objects.iter().map(|record| object(record, self.dry_run));
        let objects: String = objects.collect();
        if self.removed.is_empty() && !objects.is_empty() {
            return objects;
        }
        if self.removed.is_empty() {
            let (namespace, context) = (&self.namespace, &self.context);
            return format!(
                "Nothing to remove: weir has nothing in namespace {namespace} of context {context}.\n"
            );
        }
        let outcome = if self.dry_run { "would be removed" } else { "removed" };
        let removed: String = self
            .removed
            .iter()
            .map(|object| format!("{} {}: {outcome}\n", object.kind, in_a_line(&object.name)))
            .collect();
        removed + &objects
    }
}

fn undo(folder: &Path, dry_run: bool) -> Result<Undone, JournalError> {
    let (settings, removed) = if dry_run {
        let pending = journal::pending(folder)?;
        if pending.held {
            let holder = pending.holder;
            return Err(JournalError::Held(holder));
        }
        (pending.settings, WorkFolder::abandoned())
    } else {
        (journal::restore(folder)?, WorkFolder::sweep())
    };
    Ok(Undone { format: FORMAT, dry_run, settings, removed })
}

/// Restores another host, by an agent there.
fn undo_at(host: &str, args: &RestoreArgs) -> Result<Undone, Failure> {
    let (dry_run, agent) = (args.dry_run, place::connect(host, &args.ssh)?);
    let restored = agent.ask(Restore { dry_run }).map_err(|error| {
        let hint = error.hint();
        Failure::failed(error).maybe_hint(hint)
    })?;
    if let Some(holder) = restored.held {
        let words =
            format!("settings of {host} are in use by a weir that is still running: {holder}");
        return Err(Failure::input(words));
    }
    Ok(Undone { format: FORMAT, dry_run, settings: restored.settings, removed: restored.folders })
}

pub(crate) fn refused(error: JournalError) -> Failure {
    let hint = error.hint();
    match error {
        JournalError::Io { .. } => Failure::failed(error),
        _ => Failure::input(error),
    }
    .maybe_hint(hint)
}

fn text(undone: &Undone) -> String {
    if undone.settings.is_empty() && undone.removed.is_empty() {
        return "Nothing to restore: no weir has left a setting changed or a folder behind.\n"
            .to_owned();
    }
    let mut text = String::new();
    for setting in &undone.settings {
        text.push_str(&describe_setting(setting, undone.dry_run));
    }
    let removed = if undone.dry_run { "would be removed" } else { "removed" };
    for folder in &undone.removed {
        let folder = in_a_line(&folder.display().to_string());
        text.push_str(&format!("{folder}: {removed}\n"));
    }
    text
}

/// Returns a value in one line, shortened if nobody would read all of it.
fn shown(value: &str) -> String {
    let line = in_a_line(value);
    match line.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}… ({} characters)", &line[..end], line.chars().count()),
        None => line,
    }
}

/// Describes the result for a setting, and the steps that are left to the user. The values may come from an agent: line
/// breaks in them are removed.
pub(crate) fn describe_setting(setting: &Restored, dry_run: bool) -> String {
    let key = in_a_line(&setting.key.to_string());
    let before = shown(&setting.before);
    let by_weir = shown(&setting.given.join(" or "));
    let values = |now: &str| {
        format!(
            "  before weir    {before}\n  given by weir  {by_weir}\n  now            {}\n  \
             to put it back: {}\n",
            shown(now),
            in_a_line(&put_back_command(&setting.key, &setting.before))
        )
    };
    match &setting.outcome {
        Outcome::PutBack if dry_run => {
            format!("{key}: would be put back to {before} (weir gave it {by_weir})\n")
        }
        Outcome::PutBack => format!("{key}: put back to {before} (weir gave it {by_weir})\n"),
        Outcome::Already => format!("{key}: already has its earlier value, {before}\n"),
        Outcome::Gone => format!("{key}: there is no such setting any more\n"),
        Outcome::OtherBoot => {
            format!("{key}: was undone by a reboot (weir gave it {by_weir})\n")
        }
        Outcome::Differs { found } => format!(
            "{key}: left alone, since somebody else has changed it after weir\n{}",
            values(found)
        ),
        Outcome::Elsewhere { namespace } => format!(
            "{key}: left alone, since it was changed in another network namespace, {}\n  \
             to put it back: run `weir restore` in that namespace; nsenter(1) enters it\n",
            in_a_line(namespace)
        ),
        Outcome::Failed { words } => {
            let words = in_a_line(words);
            format!("{key}: NOT put back: {words}\n{}", values("unknown"))
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_host::journal::Key;

    use super::*;

    /// Checks that no text from an agent on another host can begin a line of its own.
    #[test]
    fn what_is_told_of_a_setting_stays_in_its_lines() {
        let foreign = "a\nb: put back";
        let outcomes = [
            Outcome::PutBack,
            Outcome::Already,
            Outcome::Differs { found: foreign.to_owned() },
            Outcome::Elsewhere { namespace: foreign.to_owned() },
            Outcome::Failed { words: foreign.to_owned() },
        ];
        for outcome in outcomes {
            let setting = Restored {
                key: Key::Sysctl(foreign.to_owned()),
                before: foreign.to_owned(),
                given: vec![foreign.to_owned()],
                outcome,
            };
            let text = describe_setting(&setting, false);
            assert!(!text.contains("\nb: put back"), "{text}");
        }
    }

    #[test]
    fn a_long_value_is_shortened() {
        for (length, shortened) in [(200, false), (201, true), (5_000_000, true)] {
            let text = shown(&"é".repeat(length));
            assert_eq!(text.ends_with(&format!("… ({length} characters)")), shortened, "{length}");
            assert!(text.chars().count() < 230, "{length}");
        }
    }
}
