//! Sentences by which a run folder explains itself to somebody who has never seen weir.

use weir_model::record::{ChangedSetting, NetworkUsed, Outcome, RunHeader, SettingEnd};

/// Returns an introduction to a run: what weir did, and where the figures come from.
pub fn introduce(header: &RunHeader) -> String {
    let study = &header.study;
    let arms = match study.arms.len() {
        1 => "one server".to_owned(),
        count => format!("{count} arms. An arm is a proxy with certain settings"),
    };
    let method = if !study.capacity.is_empty() {
        "It looked for the highest rate of requests that each arm carries within the objective."
    } else if study.arms.len() == 1 {
        "It sent requests to it and measured rates and response times."
    } else if study.is_in_turn() {
        "The arms were measured one after the other, several times."
    } else {
        "All arms ran at the same time. One load was switched between them many times, in a balanced random order, so \
         that whatever happened to the machine happened to all of them alike."
    };
    format!(
        "This folder is one run of weir, which measures reverse proxies by experiment. This run is about {arms}. {method} \
         Every figure on this page was computed from the files in this folder, and can be computed again."
    )
}

/// Explains what the arms of a run changed, and for how long.
pub fn explain_arms(header: &RunHeader) -> String {
    let study = &header.study;
    if study.controlled().is_some() {
        return "weir did not start the proxy. It gave the settings of the arms to the proxy's controller, by objects of the \
                cluster, while they were measured."
            .to_owned();
    }
    if !study.arms.iter().any(|arm| study.proxy_of(arm).is_started()) {
        return "weir did not start the server, and did not change its configuration.".to_owned();
    }
    let network = match header.network {
        NetworkUsed::Namespaces { .. } => {
            " Kernel settings of the network were changed in the arm's own network namespace only."
        }
        NetworkUsed::Loopback | NetworkUsed::Hosts => "",
    };
    format!(
        "Each arm that weir started had its own processes and its own copy of the configuration (in `arms/`), from the start of a session to \
         its end. Files of the user's were read and not changed.{network}"
    )
}

/// Explains which settings of whole hosts and clusters a run changed.
pub fn explain_changes(changed: &[&ChangedSetting], outcome: Option<Outcome>) -> String {
    if outcome.is_none() {
        return "The run has no end, so this folder does not know what was changed outside of it and put back. `weir \
                restore --dry-run` on the host tells."
            .to_owned();
    }
    if changed.is_empty() {
        return "No setting of a whole host or of a cluster was changed.".to_owned();
    }
    let open = changed.iter().filter(|setting| !is_settled(&setting.end)).count();
    if open == 0 {
        "These settings were changed because the study asks for them. All of them were put back."
            .to_owned()
    } else {
        format!(
            "These settings were changed because the study asks for them. {open} of {} could not be put back or were left \
             alone.",
            changed.len()
        )
    }
}

fn is_settled(end: &SettingEnd) -> bool {
    matches!(end, SettingEnd::PutBack | SettingEnd::Gone)
}

/// Describes the state of a changed setting after a session.
pub fn describe_end(end: &SettingEnd) -> String {
    match end {
        SettingEnd::PutBack => "put back".to_owned(),
        SettingEnd::Gone => "it no longer exists".to_owned(),
        SettingEnd::LeftAlone { found } => {
            format!("left alone, because somebody else has changed it to {found}")
        }
        SettingEnd::Failed { why } => format!("not put back: {why}"),
    }
}

/// Describes a session's outcome.
pub fn describe_outcome(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Complete) => "complete",
        Some(Outcome::Interrupted) => "interrupted by the user",
        Some(Outcome::Failed) => "failed",
        None => "no end is recorded",
    }
}

/// Describes what a file of a run folder holds, by its path; empty for a file that weir does not write.
pub fn describe_file(path: &str) -> &'static str {
    let folder = path.split('/').next().unwrap_or_default();
    match (folder, path) {
        (_, "run.json") => "the plan as weir understood it, the hosts and programs, and remarks",
        (_, "study.yaml") => "the study as it was typed",
        (_, "records.jsonl") => "every measurement, a JSON record on each line",
        (_, "histograms.hlog") => "all response times, as an HdrHistogram log",
        (_, "run.sha256") => "sums of the plan, so that a resumed run has the same one",
        (_, "loads.sha256") => "sums of the files that the loads name",
        (_, "run.identity") => "what tells this folder from a copy",
        (_, "report.html" | "report.md") => "the whole report",
        (_, "summary.json") => "validity and verdict for `weir runs`",
        (_, "notes.json") => "tags and a note of the user's",
        (_, "README.md") => "this page",
        ("samples", "samples/missing.csv") => "counters that could not be read, and why",
        ("samples", _) => "counters of hosts and proxies over time",
        ("arms", _) => "the configuration of an arm's proxy, or what the proxy said",
        _ => "",
    }
}
