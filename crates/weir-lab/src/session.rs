//! One weir process at work on a run: everything is started, a proposer's cells are measured one after the other, and
//! everything is ended and restored.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use weir_hosts::{Hosts, Options};
use weir_model::record::{EndRecord, NetworkUsed, Outcome, Record, RunHeader, SessionRecord};
use weir_proposers::{
    History, MakeProposer, Proposer, Step, alone, budget, length_of_stretches, longest_search,
};
use weir_record::RunWriter;

use crate::arms::{Arms, Bench};
use crate::changed::changed_settings;
use crate::controlled::Controlled;
use crate::feed::Feed;
use crate::lab::Lab;
use crate::sampling::Sampled;
use crate::{Event, LabError, settings};

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The run's folder.
    pub folder: PathBuf,
    /// Complete or interrupted.
    pub outcome: Outcome,
    /// Length of this session, by the clock of the hosts.
    pub took: Duration,
}

/// One weir process at work on a run.
pub(crate) struct Session<'a> {
    pub(crate) header: &'a RunHeader,
    pub(crate) options: &'a Options,
    pub(crate) number: u32,
    pub(crate) writer: RunWriter,
    pub(crate) history: History,
    /// Controller of the proxy in a cluster; `None` without one.
    pub(crate) controlled: Option<Controlled>,
    /// Start of the session, by the clock of the hosts.
    pub(crate) begun: Duration,
}

impl Session<'_> {
    /// Starts everything, measures the proposed cells, and ends everything.
    pub(crate) fn run(
        &mut self,
        mut hosts: Hosts,
        make_proposer: MakeProposer<'_>,
        events: &mut dyn FnMut(Event),
    ) -> Result<Summary, LabError> {
        let begun = self.begun;
        let at = Timestamp::now().to_string();
        self.writer.append(&Record::Session(SessionRecord { session: self.number, at }))?;
        let folder = self.options.folder.clone();
        let before = weir_probe::allowed_cpus();
        let own_cpus = hosts.own_cpus(&self.header.cpus);
        events(Event::Begun {
            folder: folder.clone(),
            is_resumed: self.number > 0,
            remarks: self.header.remarks.clone(),
            takes: takes(
                self.header,
                &self.history,
                budget::RENEWAL * self.header.study.arms.len() as u32,
                self.options.is_sampled(),
            ),
            cpus: own_cpus.cloned(),
        });
        if let Some(cpus) = own_cpus {
            // Off the proxy's CPUs. If one has gone offline since the check, any will do.
            let _ = weir_probe::keep_to(None, cpus.cpus());
        }
        let mut proposer = make_proposer(self.header, self.number);
        let mut changed = Vec::new();
        let result = self.work(&mut hosts, begun, &mut *proposer, &mut |event| {
            changed.extend(changed_settings(&event));
            events(event);
        });
        // Another run of this process is to find the CPUs that this one has found.
        if let Ok(before) = before {
            let _ = weir_probe::keep_to(None, before.cpus());
        }
        let took = hosts.now().saturating_sub(begun);
        // All processes end, and all settings are put back, before the run is said to have ended.
        drop(hosts);
        let (outcome, error) = match &result {
            Ok(()) if self.is_interrupted() => (Outcome::Interrupted, String::new()),
            Ok(()) => (Outcome::Complete, String::new()),
            Err(error) => (Outcome::Failed, error.to_string()),
        };
        let at = Timestamp::now().to_string();
        let end = self.writer.append(&Record::End(EndRecord { at, outcome, error, changed }));
        result?;
        end?;
        Ok(Summary { folder, outcome, took })
    }

    /// Returns the options of sampling, if samples are wanted. In a resumed run, samples count their time from its
    /// first start.
    fn sampled(&self) -> Option<Sampled> {
        let interval = self.options.samples?;
        let begun: Option<Timestamp> = self.header.started_at.parse().ok();
        let since = begun.map_or(0, |begun| begun.duration_until(Timestamp::now()).as_nanos());
        let now = i64::try_from(weir_agent::monotonic_ns()).unwrap_or(i64::MAX);
        Some(Sampled {
            interval,
            requests: self.options.where_time_goes,
            begun_ns: now.saturating_sub(i64::try_from(since.max(0)).unwrap_or(0)),
        })
    }

    fn is_interrupted(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    fn work(
        &mut self,
        hosts: &mut Hosts,
        begun: Duration,
        proposer: &mut dyn Proposer,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        let (study, roles) = (&self.header.study, &self.header.cpus);
        hosts.settle(roles)?;
        if let NetworkUsed::Namespaces { mtu } = self.header.network {
            hosts.make_networks(study, mtu)?;
        }
        settings::begin(study, hosts, self.options)?;
        let mut controlled = self.controlled.take();
        let bench = Bench {
            study,
            request_log: self.options.where_time_goes,
            roles,
            hosts,
            catalog: &self.options.catalog,
            session: self.number,
            interrupted: &self.options.stop,
        };
        let mut arms = Arms::new(bench, controlled.as_mut())?;
        self.history.added.iter().cloned().for_each(|arm| arms.add(arm));
        let sampled = self.sampled();
        let mut lab = Lab {
            header: self.header,
            session: self.number,
            hosts,
            arms,
            writer: &mut self.writer,
            history: &mut self.history,
            events,
            begun,
            sampled,
            proxy_pods: self.options.places.pods_of_proxy(),
            is_observed: self.options.is_sampled(),
            interrupted: &self.options.stop,
            before: BTreeMap::new(),
            feed: Feed::default(),
        };
        let worked = match follow(proposer, &mut lab) {
            // What there is then is reported, as wherever the user stops a run.
            Err(LabError::Interrupted) => Ok(()),
            worked => worked,
        };
        // A host that is gone has no logs to give; why it is gone is what matters then.
        let logs = lab.arms.keep_logs(lab.writer);
        drop(lab);
        let objects = match &mut controlled {
            Some(controlled) => controlled.put_back(events),
            None => Ok(()),
        };
        let put_back = settings::put_back(hosts, events);
        worked.and(logs).and(objects).and(put_back)
    }
}

/// Carries out a proposer's steps until there are no more or the user stops the run.
///
/// # Errors
/// A host is lost, a record cannot be written, or an arm does not start; or the proposer refuses an outcome.
fn follow(proposer: &mut dyn Proposer, lab: &mut Lab<'_>) -> Result<(), LabError> {
    let mut is_promised = false;
    let unmeasured = 1.0 - lab.header.study.blocks.discard;
    let before = lab.history.measured.div_f64(unmeasured);
    while !lab.interrupted.load(Ordering::Relaxed) {
        lab.history.passed = before + lab.hosts.now().saturating_sub(lab.begun);
        match proposer.next(lab.history) {
            Step::Arms(arms) => {
                lab.only(&arms)?;
                if !std::mem::replace(&mut is_promised, true) {
                    let renewal = lab.arms.renewal();
                    let study = &lab.header.study;
                    let remaining = takes(lab.header, lab.history, renewal, lab.is_observed);
                    let passed = lab.hosts.now().saturating_sub(lab.begun);
                    // However slow its arms are, a run ends with its budget.
                    let most = study.budget.map(|budget| budget.saturating_sub(before));
                    let takes = (passed + remaining).min(most.unwrap_or(Duration::MAX));
                    let until = study.until;
                    (lab.events)(Event::Takes { takes, until });
                    if !study.capacity.is_empty() {
                        let at_most = longest_search(study).max(remaining);
                        let takes = passed + at_most;
                        (lab.events)(Event::TakesAtMost { takes });
                    }
                }
            }
            Step::Add(arm, cpus) => lab.add(*arm, cpus)?,
            Step::Measure(cell) => {
                let outcome = lab.measure(&cell, &mut |block| proposer.go_on(block))?;
                proposer.outcome(outcome)?;
            }
            Step::Record(record) => lab.record(&record)?,
            Step::Tell(announcement) => (lab.events)(Event::Announced(announcement)),
            Step::Fail(error) => return Err(error.into()),
            Step::Done => break,
        }
    }
    Ok(())
}

/// Estimates how long the rest of a run takes after earlier sessions; new instances of all arms take `renewal`.
fn takes(header: &RunHeader, history: &History, renewal: Duration, is_observed: bool) -> Duration {
    let study = &header.study;
    let mut takes = budget::takes(study, history, renewal);
    if header.check_alone {
        let start = renewal / (study.arms.len() as u32).max(1);
        takes += alone::takes(study, history, start);
    }
    if is_observed {
        takes += length_of_stretches(study);
    }
    takes
}
