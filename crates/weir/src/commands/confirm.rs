//! `--confirm`: confirms the limiters of a run, and shows what it does.

use weir_analysis::findings::Findings;
use weir_experiments::confirm::{
    ConfirmError, LENGTH, LONG, TrialEnd, TrialRunner, run_confirmations,
};
use weir_hosts::Options;
use weir_lab::Summary;
use weir_model::record::Outcome;
use weir_model::study::Study;
use weir_record::Run;
use weir_report::number;
use weir_sentences::limiter::describe_change;

use crate::commands::study::StudyFile;
use crate::commands::{report, run};
use crate::failure::Failure;
use crate::progress::Reporter;
use crate::terminal;

/// Runs trials without showing their progress.
struct ConfirmationRunner {
    is_quiet: bool,
}

impl TrialRunner for ConfirmationRunner {
    type Error = Failure;

    fn announce(&mut self, arm: &str, study: &Study) {
        if self.is_quiet {
            return;
        }
        let changes =
            study.arms.iter().filter_map(describe_change).collect::<Vec<String>>().join(" or ");
        let takes = number::length(weir_proposers::budget::length_of(study));
        terminal::tell(&format!(
            "Confirming what limits {arm}: {changes}, in a trial of {takes} at most\n"
        ));
    }

    fn run(&mut self, study: &Study, text: &str, options: &Options) -> Result<TrialEnd, Failure> {
        let read = StudyFile { study: study.clone(), text: text.to_owned() };
        match run::carry_out(options, Some(&read), Reporter::silent()?) {
            Ok(summary) => Ok(TrialEnd::Carried(summary)),
            Err(error) if error.is_refused() => Ok(TrialEnd::Refused(error.to_string())),
            Err(error) => Err(Failure::of_run(error, Some(&options.folder))),
        }
    }
}

/// Reads and analyzes a run, after the confirming trials if they are wanted. `options` are those of the trials; `None`
/// means no trials.
///
/// # Errors
/// The run cannot be read, or a trial could not be made.
pub(super) fn read(
    summary: &Summary,
    options: Option<&Options>,
    is_quiet: bool,
) -> Result<(Run, Findings), Failure> {
    let run = report::read(&summary.folder)?;
    let findings = weir_analysis::analyze(&run);
    let Some(options) = options.filter(|_| summary.outcome == Outcome::Complete) else {
        return Ok((run, findings));
    };
    let confirmed =
        run_confirmations(&run, &findings, options, &mut ConfirmationRunner { is_quiet });
    confirmed.map_err(|error| match error {
        ConfirmError::Trial(failure) => failure,
        ConfirmError::Record(error) => Failure::failed(error),
    })?;
    let run = report::read(&summary.folder)?;
    let findings = weir_analysis::analyze(&run);
    Ok((run, findings))
}

/// Prints what `--confirm` adds to a run's time, before the run begins.
pub(super) fn promise(is_quiet: bool) {
    if !is_quiet {
        let (short, long) = (number::length(LENGTH), number::length(LONG));
        terminal::tell(&format!(
            "Afterwards, --confirm tries each limit that is named: {short} to {long} of load each, and the starts of its proxies\n"
        ));
    }
}
