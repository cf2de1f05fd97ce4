//! A load test by generators on other hosts, without a lab around it: `weir load --place generator=...`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use weir_agent::message::{LoadEnd, LoadEvent, LoadJob, SliceJob};
use weir_agent::{AgentError, Part};
use weir_hosts::start::Start;
use weir_hosts::{Host, HostError, HostEvent, Hosts, Options, preflight};
use weir_load::Plan;
use weir_model::deal::OtherThreads;
use weir_model::flow::LoadSpec;
use weir_model::record::GeneratorStart;
use weir_model::room::{Descriptors, most_threads};
use weir_proposers::arrivals::When;

use crate::LabError;
use crate::flows::{Doors, Flows, From};

/// Interval between checks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Hosts that generate load.
pub struct Generators(Hosts);

/// A generator's threads, each with its CPU.
pub type Threads = Vec<Option<u32>>;

/// Target of a flow.
#[derive(Debug, Clone)]
pub struct FlowTarget {
    /// Addresses, used in turn; at least one.
    pub peers: Vec<SocketAddr>,
    /// Server name and port for Host fields.
    pub authority: String,
    /// Server name for TLS handshakes, unless the flow gives another.
    pub name: String,
}

impl Generators {
    /// Connects to every host.
    ///
    /// # Errors
    /// A host cannot be reached.
    pub fn open(options: &Options) -> Result<Generators, HostError> {
        Hosts::open(options).map(Generators)
    }

    /// Returns the hosts of the generators and the other roles.
    pub(crate) fn hosts(&self) -> &Hosts {
        &self.0
    }

    /// Builds the jobs of all generators for a load with this plan. `wanted` gets a generator's places for threads and
    /// returns the threads to use; `None`: as many as are useful.
    ///
    /// # Errors
    /// There are not enough connections, descriptors or ports, or a file cannot be read.
    pub fn jobs(
        &self,
        (load, asked): (&LoadSpec, &[FlowTarget]),
        plan: &Plan,
        wanted: &dyn Fn(&[Option<u32>]) -> Option<Threads>,
    ) -> Result<Vec<LoadJob>, LabError> {
        let hosts = self.0.generators();
        let count = hosts.len();
        let fewest = load.flows().map(|flow| flow.connections).min().unwrap_or(1);
        let most = fewest as usize / count;
        let threads: Vec<Threads> = hosts
            .clone()
            .map(|host| {
                let places = host.places_of_threads();
                wanted(&places).unwrap_or_else(|| {
                    let threads = room_of(load, host, count)
                        .threads(host.is.most_descriptors, places.len() as u64);
                    places.iter().copied().cycle().take(most.min(threads as usize)).collect()
                })
            })
            .collect();
        if most == 0 || threads.iter().any(|threads| threads.len() > most) {
            return Err(LabError::Request {
                load: load.name.clone(),
                what: format!(
                    "{fewest} connections are fewer than the threads of {count} generators"
                ),
            });
        }
        for (host, threads) in hosts.clone().zip(&threads) {
            let possible = most_threads(host.is.cpus.cpus().len());
            if threads.len() > possible {
                return Err(LabError::Request {
                    load: load.name.clone(),
                    what: format!(
                        "more threads than the {possible} that {} can use",
                        host.called()
                    ),
                });
            }
        }
        let job = whole(load, asked, plan)?;
        let mut neighbours =
            OtherThreads { before: 0, behind: threads.iter().map(Vec::len).sum::<usize>() as u32 };
        let mut jobs = Vec::new();
        for (host, threads) in hosts.zip(threads) {
            let allowed = host.allowed().cpus();
            if let Some(cpu) = threads.iter().flatten().find(|cpu| !allowed.contains(cpu)) {
                return Err(HostError::Cpus {
                    host: host.called().to_owned(),
                    wanted: cpu.to_string(),
                    allowed: host.allowed().to_string(),
                }
                .into());
            }
            preflight::enough(room_of(load, host, count).for_each_of(threads.len() as u64), host)?;
            preflight::ports(load, &self.0, host)?;
            let thread_count = threads.len() as u32;
            neighbours.behind -= thread_count;
            jobs.push(LoadJob {
                threads,
                descriptors: room_of(load, host, count).at_most(),
                others: neighbours,
                ..job.clone()
            });
            neighbours.before += thread_count;
        }
        Ok(jobs)
    }

    /// Runs the jobs, one on each generator. Returns each generator's start if there are several, and the counts of
    /// each that belong to no slice. `hear` gets the index of a generator and its event.
    ///
    /// # Errors
    /// A generator is lost, or could not open a connection; the others are stopped.
    pub fn run(
        &self,
        jobs: &[LoadJob],
        stop: &AtomicBool,
        hear: &mut dyn FnMut(usize, LoadEvent),
    ) -> Result<(Vec<GeneratorStart>, Vec<LoadEnd>), LabError> {
        let mut going = RunningLoad {
            generators: self.0.generators().collect(),
            ids: Vec::new(),
            // Clocks are compared when all are ready.
            start: Start::of(self.0.generators().map(|host| (host, 0))),
            ends: jobs.iter().map(|_| None).collect(),
        };
        let result = going.through(jobs, stop, hear);
        if result.is_err() {
            going.stop();
        }
        result?;
        let ends = going.ends.into_iter().flatten().collect();
        Ok((going.start.starts(), ends))
    }
}

/// Returns the descriptors that a generator's share of a load needs.
fn room_of(load: &LoadSpec, host: &Host, generators: usize) -> Descriptors {
    Descriptors::of_load(load, 1, false, host.is.own_tables).dealt(generators as u64)
}

/// A running load.
struct RunningLoad<'a> {
    generators: Vec<&'a Host>,
    ids: Vec<u64>,
    start: Start<'a>,
    ends: Vec<Option<LoadEnd>>,
}

impl RunningLoad<'_> {
    fn through(
        &mut self,
        jobs: &[LoadJob],
        stop: &AtomicBool,
        hear: &mut dyn FnMut(usize, LoadEvent),
    ) -> Result<(), AgentError> {
        let (send, told) = channel();
        for (place, (host, job)) in self.generators.iter().zip(jobs).enumerate() {
            self.ids.push(host.begin_load(job.clone(), place, &send)?);
        }
        let flows = jobs.first().map_or(0, |job| job.flows.len());
        let slices = jobs.first().map_or(0, |job| job.engine_slices().len());
        let mut stopping = false;
        while self.ends.iter().any(Option::is_none) {
            if let Ok(HostEvent::Load(generator, part)) = told.recv_timeout(LOOK) {
                match part {
                    Part::Event(LoadEvent::Ready) => {
                        self.start.ready(generator, |place| self.ids[place])?;
                    }
                    Part::Event(LoadEvent::Slice { slice, flow, .. })
                        if slice >= slices || flow >= flows =>
                    {
                        return Err(AgentError::Confused {
                            place: self.generators[generator].called().to_owned(),
                            words: "a slice that the load does not have".to_owned(),
                        });
                    }
                    Part::Event(event) => {
                        if let LoadEvent::Started { at_ns } = event {
                            self.start.started(generator, at_ns);
                        }
                        hear(generator, event);
                    }
                    Part::End(end) => self.ends[generator] = Some(end?),
                }
            }
            if !stopping && stop.load(Ordering::Relaxed) {
                stopping = true;
                self.stop();
            }
        }
        Ok(())
    }

    /// Stops the generators that still run, as far as they can be reached.
    fn stop(&self) {
        self.generators
            .iter()
            .zip(&self.ids)
            .zip(&self.ends)
            .filter(|(_, end)| end.is_none())
            .for_each(|((host, id), _)| host.stop(*id));
    }
}

/// Builds the job that all generators have in common, without their shares of it.
fn whole(load: &LoadSpec, asked: &[FlowTarget], plan: &Plan) -> Result<LoadJob, LabError> {
    let flows = Flows::read(load, None)?;
    let when =
        plan.flows.iter().map(|flow| When { arrivals: flow.arrivals.clone(), every_ns: None });
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let doors = Doors { clear: any, also: &[], requests: None, tls: Some((any, "")), asked: &[] };
    // The kernel's choice of addresses: they are the generators' own.
    let from = From { addresses: &[], ports: u64::MAX };
    let mut jobs = flows.of_arm(0, &when.collect::<Vec<_>>(), doors, from)?;
    for (job, asked) in jobs.iter_mut().zip(asked) {
        job.peer = asked.peers[0];
        job.also = asked.peers[1..].to_vec();
        job.host.clone_from(&asked.authority);
        if let Some(tls) = &mut job.spec.tls {
            tls.server_name.get_or_insert_with(|| asked.name.clone());
        }
    }
    Ok(LoadJob {
        flows: jobs,
        traces: flows.traces,
        files: flows.files,
        slices: vec![SliceJob {
            arm: 0,
            start: 0,
            measure_from: plan.ramp_up.as_nanos() as u64,
            end: plan.slices.last().map_or(0, |slice| slice.end),
        }],
        drain: plan.drain,
        spin: plan.spin,
        ramp_up: plan.ramp_up,
        is_whole: true,
        ..LoadJob::default()
    })
}
