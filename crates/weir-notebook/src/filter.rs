//! Selection of runs.

use jiff::Timestamp;

use crate::entry::RunEntry;

/// Conditions that a run has to meet, all of them.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Text in its name, study, title, question, arms, tags, note or verdict, in either case.
    pub text: Option<String>,
    /// Name of the study.
    pub study: Option<String>,
    /// Tags that it has.
    pub tags: Vec<String>,
    /// Earliest time of its start.
    pub since: Option<Timestamp>,
    /// Kind of proxy that an arm has.
    pub proxy: Option<String>,
}

impl Filter {
    /// Returns true if the run meets every condition.
    pub fn accepts(&self, run: &RunEntry) -> bool {
        self.text.as_deref().is_none_or(|text| has_text(run, text))
            && self.study.as_deref().is_none_or(|study| run.study == study)
            && self.tags.iter().all(|tag| run.tags.contains(tag))
            && self.since.is_none_or(|since| began_at_or_after(run, since))
            && self
                .proxy
                .as_deref()
                .is_none_or(|proxy| run.proxies.iter().any(|kind| kind == proxy))
    }
}

fn began_at_or_after(run: &RunEntry, since: Timestamp) -> bool {
    run.started_at.parse::<Timestamp>().is_ok_and(|began| began >= since)
}

fn has_text(run: &RunEntry, text: &str) -> bool {
    let wanted = text.to_lowercase();
    let fields = [&run.name, &run.study, &run.title, &run.question, &run.note, &run.verdict];
    fields
        .into_iter()
        .chain(&run.arms)
        .chain(&run.tags)
        .any(|field| field.to_lowercase().contains(&wanted))
}
