//! Conversion of events of a load or a run to series of the store.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_lab::{Event, Measured};
use weir_model::progress::{LoadState, Verdict};
use weir_model::record::{Phase, Validity};
use weir_model::sample::SampleRow;
use weir_proposers::Announcement;

use crate::samples;
use crate::store::Store;

/// Classes of status codes, from 1xx on.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// A store that is shared with those who export it.
pub type SharedStore = Arc<Mutex<Store>>;

/// Locks the store, even if a thread has panicked while it held the lock.
pub fn locked(store: &SharedStore) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes events and keeps the store up to date.
pub struct Feed {
    store: SharedStore,
    version: &'static str,
    /// Arms that have been started.
    arms: Vec<String>,
}

impl Feed {
    /// Creates a feed of a store. `version` is that of weir.
    pub fn new(store: SharedStore, version: &'static str) -> Feed {
        Feed { store, version, arms: Vec::new() }
    }

    /// Takes the names that all series have from now on.
    pub fn begin(&mut self, run: &str, study: &str) {
        let mut store = locked(&self.store);
        store.set_common(&[("run", run), ("study", study)]);
        store.set("weir_run", &[("version", self.version)], 1.0);
        // They appear before anything is counted.
        store.add("weir_series_left_out", &[], 0.0);
    }

    /// Takes what an arm or a flow has measured.
    pub fn measured(&mut self, measured: &Measured) {
        put_measured(&mut locked(&self.store), measured);
    }

    /// Takes rows of samples that a host sent.
    pub fn sampled(&mut self, host: &str, rows: &[SampleRow]) {
        samples::put(&mut locked(&self.store), host, rows);
    }

    /// Takes the state of a load.
    pub fn load_state(&mut self, state: &LoadState) {
        let mut store = locked(&self.store);
        store.set("weir_connections_open", &[], state.open as f64);
        store.set("weir_requests_in_flight", &[], state.in_flight as f64);
    }

    /// Takes the comparisons of arms so far.
    pub fn verdicts(&mut self, verdicts: &[Verdict]) {
        let mut store = locked(&self.store);
        verdicts.iter().for_each(|verdict| put_verdict(&mut store, verdict));
    }

    /// Takes an event of a run.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Begun { folder, .. } => {
                self.begin_run(folder);
                self.phase("starting");
            }
            Event::ArmReady { arm, .. } if !self.arms.contains(arm) => self.arms.push(arm.clone()),
            Event::Measured(measured) => self.measured(measured),
            Event::Sampled { host, rows } => self.sampled(host, rows),
            Event::Block { loads, done, of, .. } => {
                let mut store = locked(&self.store);
                for load in loads {
                    store.set("weir_blocks_done", &[("load", load)], f64::from(*done));
                    store.set("weir_blocks_planned", &[("load", load)], f64::from(*of));
                }
            }
            Event::Announced(announcement) => self.announced(announcement),
            _ => {}
        }
    }

    fn begin_run(&mut self, folder: &Path) {
        let header = weir_record::read_header(folder).ok();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let study = header.as_ref().map_or("", |header| &*header.study.name);
        self.begin(&name, study);
    }

    fn announced(&mut self, announcement: &Announcement) {
        match announcement {
            Announcement::PilotBegun { .. } => self.phase("pilot"),
            Announcement::TrialBegun { loads, .. } => {
                self.phase("trial");
                for load in loads {
                    self.appear(load);
                }
            }
            Announcement::Bracket { bracket, .. } => {
                self.phase("search");
                let name = "weir_search_requests_per_second";
                let mut store = locked(&self.store);
                for (bound, rate) in bracket
                    .between
                    .into_iter()
                    .flat_map(|(low, high)| [("lower", low), ("upper", high)])
                {
                    let labels =
                        [("load", &*bracket.load), ("arm", &bracket.arm), ("bound", bound)];
                    store.set(name, &labels, rate);
                }
            }
            Announcement::Capacity(found) => {
                let answer = &found.answer;
                let bounds =
                    [("lower", answer.low), ("upper", answer.high), ("verified", answer.verified)];
                let mut store = locked(&self.store);
                for (bound, rate) in bounds {
                    let labels = [("load", &*answer.load), ("arm", &answer.arm), ("bound", bound)];
                    store.set("weir_capacity_requests_per_second", &labels, rate);
                }
            }
            Announcement::AloneTurn { .. } => self.phase("alone"),
            Announcement::StretchBegun { .. } => self.phase("observation"),
            _ => {}
        }
    }

    fn phase(&mut self, phase: &str) {
        let mut store = locked(&self.store);
        store.clear("weir_phase", &[]);
        store.set("weir_phase", &[("phase", phase)], 1.0);
    }

    /// Lets the counters of a load appear at 0 before its trial: Prometheus cannot tell how much a counter grew before
    /// it saw it first.
    fn appear(&mut self, load: &str) {
        let mut store = locked(&self.store);
        for arm in &self.arms {
            appear(&mut store, load, arm, Phase::Measurement);
        }
    }
}

/// Counts of [`Measured`] by family.
fn counts(measured: &Measured) -> [(&'static str, f64); 9] {
    let interval = &measured.interval;
    [
        ("weir_requests_due", interval.due as f64),
        ("weir_requests_sent", interval.offered as f64),
        ("weir_requests_completed", interval.completed as f64),
        ("weir_requests_queued", interval.queued as f64),
        ("weir_requests_dropped", interval.dropped as f64),
        ("weir_requests_unanswered", interval.never_ended as f64),
        ("weir_received_bytes", interval.received_bytes as f64),
        ("weir_measured_seconds", interval.seconds),
        ("weir_blocks", f64::from(measured.blocks)),
    ]
}

/// Lets the counters of an arm appear at 0.
pub(crate) fn appear(store: &mut Store, load: &str, arm: &str, phase: Phase) {
    let nothing = weir_lab::Measured {
        phase,
        ..Measured::of(load.to_owned(), arm.to_owned(), 0.0, &weir_lab::no_data())
    };
    put_measured(store, &nothing);
}

/// Adds what an arm has measured to the store.
pub(crate) fn put_measured(store: &mut Store, measured: &Measured) {
    let phase = name_of(measured.phase);
    let labels = [("load", &*measured.load), ("arm", &measured.arm), ("phase", phase)];
    for (name, count) in counts(measured) {
        store.add(name, &labels, count);
    }
    let [load, arm, in_phase] = labels;
    for (class, name) in (1..).zip(CLASSES) {
        let statuses = measured.interval.statuses.iter();
        let of_class = statuses.filter(|all| usize::from(all.status) / 100 == class);
        let count: u64 = of_class.map(|status| status.count).sum();
        store.add("weir_responses", &[load, arm, in_phase, ("code_class", name)], count as f64);
    }
    for error in &measured.interval.errors {
        store.add(
            "weir_errors",
            &[load, arm, in_phase, ("kind", error.kind.name())],
            error.count as f64,
        );
    }
    let times = &measured.times;
    store.observe("weir_request_duration_seconds", &labels, &times.response);
    store.observe("weir_request_service_time_seconds", &labels, &times.service);
    store.observe("weir_dispatch_lag_seconds", &labels, &times.dispatch_lag);
    if let Some(rate) = measured.rate_intended {
        store.set("weir_intended_requests_per_second", &labels, rate);
    }
    let validity = match measured.validity {
        Validity::Valid => 0.0,
        Validity::Suspect => 1.0,
        Validity::Invalid => 2.0,
    };
    store.set("weir_validity", &labels, validity);
}

/// Name of a phase, as in records.
fn name_of(phase: Phase) -> &'static str {
    match phase {
        Phase::Pilot => "pilot",
        Phase::WarmUp => "warm_up",
        Phase::Screening => "screening",
        Phase::Measurement => "measurement",
        Phase::Confirmation => "confirmation",
        Phase::Alone => "alone",
        Phase::Observation => "observation",
    }
}

fn put_verdict(store: &mut Store, verdict: &Verdict) {
    let labels = [
        ("load", &*verdict.load),
        ("metric", &verdict.metric),
        ("arm", &verdict.arm),
        ("against", &verdict.against),
    ];
    let [load, metric, arm, against] = labels;
    store.clear("weir_verdict", &labels);
    store.set("weir_verdict", &[load, metric, arm, against, ("verdict", &*verdict.verdict)], 1.0);
    let (lower, upper) = verdict.interval.unzip();
    for (bound, value) in [("estimate", verdict.ratio), ("lower", lower), ("upper", upper)] {
        if let Some(value) = value {
            store.set("weir_verdict_ratio", &[load, metric, arm, against, ("bound", bound)], value);
        }
    }
}
