//! `--place generator=HOST,HOST`, `--on kubernetes:CONTEXT`: other hosts send the load together, and their counts are
//! added.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use weir_agent::message::{LoadEnd, LoadEvent, LoadJob, WholeEnd};
use weir_hosts::{PlaceSpec, Role};
use weir_lab::{Generators, Threads};
use weir_load::engine::FlowTotals;
use weir_load::{Control, Errors, Io, Outcome, Plan, SliceData};
use weir_model::load_report::{GeneratorReport, LoadGenerator};
use weir_model::quantity::CpuSet;
use weir_model::record::GeneratorStart;
use weir_model::room::most_threads;
use weir_report::load::time_report;

use super::Job;
use crate::args::{IoChoice, LoadArgs};
use crate::commands::{flag, kube, place, run};
use crate::failure::Failure;

/// Result of a load test.
pub(super) struct Carried {
    pub(super) outcome: Outcome,
    /// Report about all generators together.
    pub(super) generator: GeneratorReport,
    /// Report about each generator, if there are several on other hosts.
    pub(super) generators: Vec<LoadGenerator>,
}

impl Carried {
    /// Returns the result of a load that this host has sent.
    pub(super) fn here(outcome: Outcome) -> Carried {
        Carried { outcome, generator: GeneratorReport::default(), generators: Vec::new() }
    }
}

/// Generators on other hosts, and the job of each.
pub(super) struct Distant {
    generators: Generators,
    jobs: Vec<LoadJob>,
}

/// Returns the hosts of the generators and of the server.
///
/// # Errors
/// An option names another role, asks for something that only this host can do, or the cluster does not answer.
pub(super) fn places(args: &LoadArgs) -> Result<PlaceSpec, Failure> {
    let places = place::roles(&args.place, &args.ssh)?;
    if places.host_of(Role::Origin).is_some() {
        let message = "--place: weir load starts no origin server";
        return Err(Failure::input(message).hint("--place generator=HOST, --place proxy=HOST"));
    }
    if places.host_of(Role::Proxy).is_some() && !args.observe {
        let message = "--place: proxy=HOST is the server's host for --observe, which is not given";
        return Err(Failure::input(message).hint("add --observe, or name generators"));
    }
    let wanted = &args.pods.wanted;
    let is_placed = places.host_of(Role::Generator).is_some();
    let is_in_pods = args.pods.on.is_some() && wanted.generators != Some(0);
    if args.observe && is_in_pods && wanted.proxy_pods.is_none() {
        let message = "--observe: with generators in pods, it is the proxy's pods that are looked at, and none are named";
        return Err(Failure::input(message).hint("--proxy-pods NAMESPACE/KEY=VALUE"));
    }
    if args.pods.on.is_some() && !is_in_pods && !(args.observe && wanted.proxy_pods.is_some()) {
        let message =
            "--generators 0: the load comes from this host, and nothing of it is in a cluster";
        return Err(Failure::input(message).hint(
            "--observe --proxy-pods NAMESPACE/KEY=VALUE looks at the proxy's pods meanwhile",
        ));
    }
    let is_distant = is_in_pods || is_placed;
    let only_here = [
        (args.observe && is_placed, "--observe"),
        (args.calibrate, "--calibrate"),
        (args.floor, "--floor"),
        (args.io != IoChoice::Auto, "--io"),
    ];
    match only_here.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) if is_distant => Err(Failure::input(format!(
            "{flag}: not with generators on other hosts (--place, --on)"
        ))),
        _ => kube::places(&args.pods, places, false),
    }
}

impl Distant {
    /// Connects to the hosts and divides the load among them; sets the plan's CPUs to all of their threads.
    ///
    /// # Errors
    /// A host cannot be reached, or has no room for its share.
    pub(super) fn of(
        job: &mut Job,
        args: &LoadArgs,
        places: PlaceSpec,
    ) -> Result<Distant, Failure> {
        let cpus = match &args.cpus {
            Some(text) => Some(flag("--cpus", text.parse::<CpuSet>())?),
            None => None,
        };
        let wanted = |places: &[Option<u32>]| -> Option<Threads> {
            if let Some(set) = &cpus {
                return Some(set.cpus().iter().copied().map(Some).collect());
            }
            // What is too many is refused, not made.
            let most = most_threads(places.len());
            let count = (args.threads?.max(1) as usize).min(most + 1);
            Some(places.iter().copied().cycle().take(count).collect())
        };
        let generators = Generators::open(&run::options_at(places)?)
            .map_err(|error| Failure::of_run(error, None))?;
        let jobs = generators
            .jobs((&job.spec, &job.asked[..]), &job.plan, &wanted)
            .map_err(|error| Failure::of_run(error, None))?;
        let threads = jobs.iter().flat_map(|job| job.threads.iter().copied());
        job.plan.cpus = threads.collect();
        Ok(Distant { generators, jobs })
    }

    /// Returns the hosts that send the load.
    pub(super) fn generators(&self) -> &Generators {
        &self.generators
    }

    /// Returns the number of generators.
    pub(super) fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Sends the load. Passes each slice to `take`, by flow, with all generators added.
    ///
    /// # Errors
    /// A generator is lost, or no connection could be opened.
    pub(super) fn carry_out(
        &self,
        plan: &Plan,
        control: &Control,
        mut take: impl FnMut(usize, &[SliceData]),
    ) -> Result<Carried, Failure> {
        let flows = plan.flows.len();
        let mut by_generator = vec![SliceData::new(); self.jobs.len()];
        let mut started = 0;
        // Slices that not all have told of: what was counted, by flow, and how often somebody has told of one.
        let mut pending: BTreeMap<usize, (Vec<SliceData>, usize)> = BTreeMap::new();
        let mut hear = |generator: usize, event: LoadEvent| match event {
            LoadEvent::Ready => {}
            LoadEvent::Started { .. } => {
                started += 1;
                if started == self.jobs.len() {
                    has_started(plan, control);
                }
            }
            LoadEvent::Slice { slice, flow, data } => {
                by_generator[generator].add(&data);
                self.progress(control, generator, &by_generator[generator]);
                let (together, told) =
                    pending.entry(slice).or_insert_with(|| (vec![SliceData::new(); flows], 0));
                together[flow].add(&data);
                *told += 1;
                if *told == flows * self.jobs.len()
                    && let Some((together, _)) = pending.remove(&slice)
                {
                    take(slice, &together);
                }
            }
        };
        let run = self.generators.run(&self.jobs, &control.stop, &mut hear);
        // The input was right: what is wrong happened on the way.
        let ran = run.map_err(|error| Failure::failed(&error).maybe_hint(error.hint()))?;
        // A generator that has sent its share early, or was stopped, never came to the last slices.
        for (slice, (together, _)) in pending {
            take(slice, &together);
        }
        let carried = self.carried(ran, &by_generator);
        match carried.outcome.ended_at {
            0 => Err(Failure::interrupted("interrupted before the generators had started")),
            _ => Ok(carried),
        }
    }

    /// Updates the progress of a running generator from its slices.
    fn progress(&self, control: &Control, generator: usize, own: &SliceData) {
        let progress = &control.progress[generator];
        // Of each of its threads: none of them is busier than it can be.
        let cpu_ns = own.cpu_ns / self.jobs[generator].threads.len().max(1) as u64;
        for (to, value) in [
            (&progress.completed, own.completed_whole),
            (&progress.errors, own.errors.total()),
            (&progress.received_bytes, own.received_bytes),
            (&progress.cpu_ns, cpu_ns),
        ] {
            to.store(value, Ordering::Relaxed);
        }
    }

    /// Combines the results of all generators into one, and keeps each one's own if there are several.
    fn carried(
        &self,
        (starts, ends): (Vec<GeneratorStart>, Vec<LoadEnd>),
        by_generator: &[SliceData],
    ) -> Carried {
        let mut outcome = Outcome {
            ended_at: 0,
            flows: Vec::new(),
            errors: Errors::default(),
            cpu_ns: Vec::new(),
            spun_ns: Vec::new(),
            woken_late: [0; 2],
            longest_gap_ns: Vec::new(),
            starved: 0,
            io: Io::Auto,
        };
        let mut all = GeneratorReport::default();
        let wholes = ends.into_iter().map(|end| {
            outcome.errors.add(&Errors::told(&end.errors));
            let total = end.whole.unwrap_or_default();
            outcome.ended_at = outcome.ended_at.max(total.ended_at);
            outcome.cpu_ns.extend(&total.cpu_ns);
            add_flows(&mut outcome.flows, &total.flows);
            add(&mut all, &total.generator);
            total
        });
        let wholes: Vec<Box<WholeEnd>> = wholes.collect();
        let generators =
            starts.into_iter().zip(wholes).zip(self.jobs.iter().zip(by_generator)).map(
                |((start, whole), (job, data))| LoadGenerator {
                    start,
                    cpus: job.threads.clone(),
                    cpu_ns: whole.cpu_ns,
                    due: data.due,
                    offered: data.offered,
                    dropped: data.dropped,
                    queued: data.queued,
                    completed: data.completed,
                    response_time: time_report(&data.histograms.response),
                    dispatch_lag: time_report(&data.histograms.dispatch_lag),
                    generator: whole.generator,
                },
            );
        Carried { generators: generators.collect(), outcome, generator: all }
    }
}

/// Marks the load as started: connections are open, and the measuring begins.
fn has_started(plan: &Plan, control: &Control) {
    let connections = plan.flows.iter().map(|flow| u64::from(flow.connections));
    let open = &control.progress[0].open;
    open.store(connections.sum(), Ordering::Relaxed);
    let now = weir_agent::monotonic_ns();
    control.started_at.store(now, Ordering::Relaxed);
}

fn add_flows(all: &mut Vec<FlowTotals>, flows: &[FlowTotals]) {
    if all.is_empty() {
        all.extend_from_slice(flows);
    } else {
        all.iter_mut().zip(flows).for_each(|(all, one)| all.add(one));
    }
}

/// Adds one generator's report to that of all. Counts are added; for late wake-ups and stolen CPU time the worst value
/// is kept.
fn add(all: &mut GeneratorReport, one: &GeneratorReport) {
    all.io.clone_from(&one.io);
    all.spun_ns.extend(&one.spun_ns);
    all.longest_gap_ns.extend(&one.longest_gap_ns);
    all.starved += one.starved;
    all.listen_overflows += one.listen_overflows;
    all.steal = all.steal.max(one.steal);
    all.woken_late_ns = match (all.woken_late_ns, one.woken_late_ns) {
        (Some(all), Some(one)) => Some([0, 1].map(|at| all[at].max(one[at]))),
        (all, one) => all.or(one),
    };
}
