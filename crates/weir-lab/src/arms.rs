//! The arms of a run: started when they are needed, checked with a request, renewed, and ended when they are not
//! needed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_agent::message::{
    Alive, ArmStarted, Counters, End, FlowJob, Log, MakeCertificates, Renew,
};
use weir_hosts::asked::{addresses, of_started, where_asked};
use weir_hosts::left_out::is_bypassed_inbound;
use weir_hosts::pod_samples::ArmPods;
use weir_hosts::{Hosts, Role};
use weir_kube::KubeError;
use weir_model::quantity::CpuSet;
use weir_model::record::{ProxyRecord, Record};
use weir_model::study::{Arm, AskSpec, CpuRoles, ExternalSpec, LoadSpec, Study};
use weir_parameters::Catalog;
use weir_proposers::ArmId;
use weir_proposers::arrivals::When;
use weir_record::RunWriter;

use crate::controlled::Controlled;
use crate::first_answer::FirstAnswer;
use crate::flows::{Doors, Flows, From};
use crate::inert::inert;
use crate::sums::must_be_as_before;
use crate::{Event, LabError};

mod bench;
mod runtime;

use bench::is_shown;
use runtime::ArmRuntime;

/// Name of the file, in an arm's folder of the run folder, with the changes to the user's configuration.
pub const PATCH: &str = "patch.diff";
/// Name of the file with the patch that undoes [`PATCH`].
pub const REVERT: &str = "revert.diff";
/// Name of the file with checksums of the user's files, by which a resumed run checks that they are unchanged.
const SUMS: &str = "configuration.sha256";

/// Study, hosts and options with which all arms are started.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub(crate) study: &'a Study,
    pub(crate) roles: &'a CpuRoles,
    pub(crate) hosts: &'a Hosts,
    pub(crate) request_log: bool,
    pub(crate) catalog: &'a Catalog,
    pub(crate) session: u32,
    pub(crate) interrupted: &'a AtomicBool,
}

/// The arms of a run. The agent of the proxies' host ends those that still run.
pub(crate) struct Arms<'a> {
    bench: Bench<'a>,
    /// All arms, whether they run or not; the index is the [`ArmId`].
    specs: Vec<Arm>,
    /// Running arms.
    running: BTreeMap<ArmId, Started>,
    /// Record of the current or last instance of each arm's proxy.
    records: BTreeMap<ArmId, ProxyRecord>,
    runtime: ArmRuntime<'a>,
    has_origin: bool,
    /// True if proxies that weir starts present certificates, since some load uses TLS.
    is_shown: bool,
    /// True if client sockets of some arm bypass the kernel's TCP and cannot drop content there. Then no arm drops it,
    /// so that all are alike.
    keeps_content: bool,
}

/// Consecutive correct answers after which new settings count as settled. [`SETTLED_WITHIN`] limits how long that may
/// take.
const SETTLED: u32 = 5;
const SETTLED_WITHIN: Duration = Duration::from_secs(120);
const BETWEEN_ANSWERS: Duration = Duration::from_millis(50);

/// Estimated time that a proxy takes to end.
const ENDING: Duration = Duration::from_millis(5);

/// A running arm.
struct Started {
    /// Number that distinguishes the running arms; free again when the arm ends.
    slot: usize,
    listen: SocketAddr,
    tls_listen: Option<SocketAddr>,
    /// Certificate that the arm presents at `tls_listen`, PEM; `None`: the proxy's own.
    certificate: Option<String>,
    /// Address for each kind of request to a copy of a user's configuration.
    asked: Vec<(AskSpec, SocketAddr)>,
    /// Time that the proxy's processes took to start.
    start: Duration,
    /// Location of a proxy that weir did not start; `None` if weir started it.
    external: Option<ExternalSpec>,
    /// All addresses used for the arm, including its origin server's.
    addresses: Vec<SocketAddr>,
}

impl<'a> Arms<'a> {
    /// Creates the arms of a study, none of them running, and starts the origin server that they share. `controlled` is
    /// the controller, if any, that configures the one proxy of all arms.
    pub(crate) fn new(
        bench: Bench<'a>,
        controlled: Option<&'a mut Controlled>,
    ) -> Result<Arms<'a>, LabError> {
        let study = bench.study;
        let arms = Arms {
            bench,
            specs: study.arms.clone(),
            running: BTreeMap::new(),
            records: BTreeMap::new(),
            runtime: ArmRuntime::new(controlled),
            has_origin: Hosts::has_origin(study),
            is_shown: is_shown(study),
            keeps_content: is_bypassed_inbound(study, bench.catalog),
        };
        if arms.is_shown {
            bench.proxies().ask(MakeCertificates(study.server_names()))?;
        }
        if arms.has_origin {
            bench.start_origin()?;
        }
        Ok(arms)
    }

    /// Returns all arms, whether they run or not.
    pub(crate) fn all(&self) -> &[Arm] {
        &self.specs
    }

    /// Adds an arm; it is started when it is needed.
    pub(crate) fn add(&mut self, arm: Arm) {
        self.specs.push(arm);
    }

    /// Starts and stops arms until exactly those in `wanted` run.
    pub(crate) fn only(
        &mut self,
        wanted: &[ArmId],
        writer: &mut RunWriter,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        let superfluous: Vec<ArmId> = self.running.keys().copied().collect();
        for arm in superfluous.into_iter().filter(|arm| !wanted.contains(arm)) {
            self.end(arm, writer)?;
        }
        self.have(wanted, writer, events)
    }

    /// Starts the arms in `wanted` that do not run, in this order.
    pub(crate) fn have(
        &mut self,
        wanted: &[ArmId],
        writer: &mut RunWriter,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        for &arm in wanted {
            if !self.running.contains_key(&arm) {
                self.start(arm, writer, events)?;
            }
        }
        Ok(())
    }

    /// Starts an arm, records the configuration that its proxy really runs with, and sends it one request under each
    /// load.
    fn start(
        &mut self,
        id: ArmId,
        writer: &mut RunWriter,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        let (bench, arm) = (self.bench, self.specs[id].clone());
        let used_slots: BTreeSet<usize> = self.running.values().map(|arm| arm.slot).collect();
        let slot = (0..).find(|slot| !used_slots.contains(slot)).unwrap_or(0);
        let running = self.running.values();
        let mut other_addresses: BTreeSet<_> =
            running.flat_map(|arm| arm.addresses.clone()).collect();
        let origin = bench.origin_of(&arm, slot, &other_addresses)?;
        other_addresses.extend(origin);
        let mut job = bench.job(&arm, slot, self.is_shown, origin)?;
        let begun = Instant::now();
        let in_force = self.runtime.put_into_force(&arm, &mut job)?;
        let external = job.external.clone();
        let started = bench.proxies().ask(job);
        let mut started: ArmStarted = started.map_err(|error| error.of_arm(&arm.name))?;
        let is_first = !self.records.contains_key(&id);
        let mut objects = Vec::new();
        if let Some(in_force) = in_force {
            if is_first {
                objects = in_force.objects;
            }
            started.effective = in_force.levels;
            started.effective_text = in_force.text;
            started.start_ns = begun.elapsed().as_nanos() as u64;
        }
        bench.must_be_its_own(external.as_ref(), slot, &started, &other_addresses)?;
        keep_files(&arm.name, &started, writer)?;
        let record = ProxyRecord { objects, ..self.record_of(&arm, &started) };
        writer.append(&Record::Proxy(record.clone()))?;
        self.records.insert(id, record);
        let running = Started {
            slot,
            listen: started.listen,
            tls_listen: started.tls_listen,
            certificate: started.certificate.clone(),
            asked: where_asked(bench.study, &arm, &started),
            start: Duration::from_nanos(started.start_ns),
            external,
            addresses: started.addresses().chain(origin).collect(),
        };
        self.running.insert(id, running);
        if self.runtime.settles_later()
            && let Some(first) = bench.study.loads.first()
        {
            self.ask_until_settled(first, id)?;
            if !is_first {
                // That it answers under all loads was seen and said when it did for the first time.
                return Ok(());
            }
        }
        let mut remarks = std::mem::take(&mut started.remarks);
        for load in &bench.study.loads {
            remarks.extend(self.ask_once(load, id)?);
        }
        events(Event::ArmReady {
            address: started.listen.to_string(),
            asked: of_started(bench.study, &arm, &started),
            remarks,
            arm: arm.name,
        });
        Ok(())
    }

    fn record_of(&self, arm: &Arm, started: &ArmStarted) -> ProxyRecord {
        let study = self.bench.study;
        let against = self.records.get(&arm.against).map(|against| {
            let kind = study.proxy_of(&self.specs[arm.against]).kind;
            (kind, &against.effective)
        });
        let ours = (study.proxy_of(arm).kind, &started.effective);
        ProxyRecord {
            session: self.bench.session,
            arm: arm.name.clone(),
            address: started.listen.to_string(),
            program: started.program.clone(),
            effective: started.effective.clone(),
            nofile: started.nofile,
            pid: started.pid,
            inert: inert(self.bench.catalog, &arm.changes, ours, against),
            asked: of_started(self.bench.study, arm, started),
            objects: Vec::new(),
        }
    }

    /// Ends an arm, and keeps its log.
    fn end(&mut self, id: ArmId, writer: &mut RunWriter) -> Result<(), LabError> {
        self.keep_log(id, writer)?;
        if let Some(arm) = self.running.remove(&id) {
            self.bench.proxies().ask(End(arm.slot))?;
        }
        Ok(())
    }

    /// Ends the proxies of these arms and starts new instances at the same addresses. Arms that each have an instance
    /// of a controller change places instead, so that a slower instance affects all arms alike.
    pub(crate) fn renew(&mut self, arms: &[ArmId], writer: &mut RunWriter) -> Result<(), LabError> {
        if self.runtime.rotate() {
            return self.restart(arms, writer);
        }
        for id in arms {
            let Some(arm) = self.running.get(id) else {
                continue;
            };
            let renewed = self
                .bench
                .proxies()
                .ask(Renew(arm.slot))
                .map_err(|error| error.of_arm(&self.specs[*id].name))?;
            if let Some(record) = self.records.get_mut(id) {
                record.pid = renewed.pid;
                // The configuration is the same file, so what was read back of it holds on.
                writer.append(&Record::Proxy(record.clone()))?;
            }
        }
        Ok(())
    }

    /// Ends these arms and starts them anew, each in an unused network namespace: in the previous one, ended
    /// connections keep their ports for a minute.
    pub(crate) fn restart(
        &mut self,
        arms: &[ArmId],
        writer: &mut RunWriter,
    ) -> Result<(), LabError> {
        let started: Vec<ArmId> =
            arms.iter().copied().filter(|id| self.running.contains_key(id)).collect();
        for id in &started {
            self.end(*id, writer)?;
        }
        // That they run was said when they did for the first time.
        self.have(&started, writer, &mut |_| {})
    }

    /// Estimates the time that new instances of all running arms take.
    pub(crate) fn renewal(&self) -> Duration {
        self.running.values().map(|arm| arm.start + ENDING).sum()
    }

    fn running(&self, id: ArmId) -> Result<&Started, LabError> {
        self.running.get(&id).ok_or_else(|| {
            let arm = self.specs.get(id).map_or("?", |arm| &arm.name).to_owned();
            LabError::NotRunning { arm }
        })
    }

    /// Returns the known pods of these arms: those of the workload that the study names, else `named`, which are pods
    /// of all arms.
    pub(crate) fn pods(&self, arms: &[ArmId], named: Option<&ArmPods>) -> Vec<ArmPods> {
        let of_arms = arms.iter().filter_map(|id| {
            let slot = self.running.get(id)?.slot;
            self.runtime.pods(&self.specs[*id], slot)
        });
        let of_arms: Vec<ArmPods> = of_arms.collect();
        if of_arms.is_empty() { named.cloned().into_iter().collect() } else { of_arms }
    }

    pub(crate) fn slots(&self, arms: &[ArmId]) -> Result<Vec<usize>, LabError> {
        arms.iter().map(|&arm| Ok(self.running(arm)?.slot)).collect()
    }

    /// Returns the CPUs of these arms' proxies.
    pub(crate) fn cpus(&self, arms: &[ArmId]) -> Vec<CpuSet> {
        arms.iter().map(|&arm| self.specs[arm].cpus(self.bench.roles).clone()).collect()
    }

    /// Builds the engine's jobs, one for each flow of the load, for the arm at `place` in a cell. `when` has the
    /// arrivals of each flow.
    pub(crate) fn flows(
        &self,
        flows: &Flows<'_>,
        id: ArmId,
        place: usize,
        when: &[When],
    ) -> Result<Vec<FlowJob>, LabError> {
        let (started, hosts) = (self.running(id)?, self.bench.hosts);
        let external = started.external.as_ref();
        let doors = Doors {
            clear: started.listen,
            also: external.map_or(&[], |external| &external.also),
            requests: external.and_then(|external| external.requests.as_ref()),
            tls: match external {
                // Its certificate is its own.
                Some(_) => started.tls_listen.map(|door| (door, "")),
                None => started.tls_listen.zip(started.certificate.as_deref()),
            },
            asked: &self.asked(flows.load, id)?,
        };
        let from = From {
            addresses: &hosts.sources(started.slot, external),
            ports: hosts.host(Role::Generator).is.local_ports,
        };
        let mut jobs = flows.of_arm(place, when, doors, from)?;
        let keeps = self.keeps_content;
        jobs.iter_mut().for_each(|job| job.keeps_content = keeps);
        Ok(jobs)
    }

    /// Returns the address at which each flow of a load asks a copy of a user's configuration; empty for other arms.
    fn asked(&self, load: &LoadSpec, id: ArmId) -> Result<Vec<SocketAddr>, LabError> {
        let proxy = self.bench.study.proxy_of(&self.specs[id]);
        Ok(addresses(load, proxy, &self.running(id)?.asked))
    }

    /// Sends requests to an arm whose proxy has new settings until several in a row are answered correctly. Right after
    /// a reload, a wrong answer has been observed to follow a right one; right after a roll-out, nobody answers at the
    /// address of a pod that is gone.
    fn ask_until_settled(&self, load: &LoadSpec, id: ArmId) -> Result<(), LabError> {
        let (until, interrupted) = (Instant::now() + SETTLED_WITHIN, self.bench.interrupted);
        let mut right = 0;
        while right < SETTLED {
            match self.ask_once(load, id) {
                Ok(_) => right += 1,
                Err(_) if interrupted.load(Ordering::Relaxed) => {
                    return Err(KubeError::Interrupted.into());
                }
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => right = 0,
            }
            std::thread::sleep(BETWEEN_ANSWERS);
        }
        Ok(())
    }

    /// Sends one request, checks the response as the engine would, and returns a remark about it, if any. The request
    /// is sent in clear text whatever the load uses, since both listeners are one server to the proxy. In a user's
    /// configuration they may differ, so there it follows the load.
    fn ask_once(&self, load: &LoadSpec, id: ArmId) -> Result<Option<String>, LabError> {
        let (arm, started) = (&self.specs[id], self.running(id)?);
        let proxy = self.bench.study.proxy_of(arm);
        let answer = FirstAnswer {
            arm: &arm.name,
            proxy,
            origin: &self.bench.study.origin,
            load,
            at: self.asked(load, id)?.first().copied().unwrap_or(started.listen),
            tls: (proxy.configuration.is_some() || proxy.external.is_some()) && load.tls.is_some(),
            interrupted: self.bench.interrupted,
        };
        let flows = Flows::read(load, None)?;
        // When it would ask does not matter.
        let when: Vec<When> = load.flows().map(When::said).collect();
        let main = self.flows(&flows, id, 0, &when)?.swap_remove(0);
        let mut remark = None;
        for host in self.bench.hosts.generators() {
            remark = answer.ask(host, main.clone(), flows.files.clone())?;
        }
        Ok(remark)
    }

    /// Checks that every proxy still runs as it was started.
    ///
    /// # Errors
    /// A proxy has ended or lost a worker.
    pub(crate) fn alive(&self) -> Result<(), LabError> {
        Ok(self.bench.proxies().ask(Alive)?)
    }

    /// Reads the counters that each of these proxies keeps of itself.
    ///
    /// # Errors
    /// A proxy does not answer; if it has ended, the error says so.
    pub(crate) fn counters(&self, arms: &[ArmId]) -> Result<Vec<BTreeMap<String, u64>>, LabError> {
        let counted: Result<_, LabError> = arms
            .iter()
            .map(|&arm| {
                let counters = self.bench.proxies().ask(Counters(self.running(arm)?.slot));
                Ok(counters.map_err(|error| error.of_arm(&self.specs[arm].name))?)
            })
            .collect();
        if counted.is_err() {
            self.alive()?;
        }
        counted
    }

    /// Keeps the end of each running arm's error log in the run folder.
    pub(crate) fn keep_logs(&self, writer: &mut RunWriter) -> Result<(), LabError> {
        let mut running = self.running.keys();
        running.try_for_each(|&arm| self.keep_log(arm, writer))
    }

    fn keep_log(&self, id: ArmId, writer: &mut RunWriter) -> Result<(), LabError> {
        let Some(arm) = self.running.get(&id) else {
            return Ok(());
        };
        let tail = self.bench.proxies().ask(Log(arm.slot))?;
        if !tail.is_empty() {
            let name = format!("arms/{}/error.log", self.specs[id].name);
            writer.write_file(&name, tail.as_bytes())?;
        }
        Ok(())
    }
}

/// Keeps in the run folder the files written for an arm and the effective configuration of its proxy.
fn keep_files(arm: &str, started: &ArmStarted, writer: &mut RunWriter) -> Result<(), LabError> {
    let folder = format!("arms/{arm}");
    must_be_as_before(&writer.dir().join(format!("{folder}/{SUMS}")), &started.sums)?;
    let mut files: Vec<(&str, &str)> =
        started.written.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    if !started.sums.is_empty() {
        files.push((SUMS, &started.sums));
    }
    if !started.effective_text.is_empty() {
        files.push(("effective.conf", &started.effective_text));
    }
    if let Some((forward, revert)) = &started.patch {
        files.extend([(PATCH, forward.as_str()), (REVERT, revert.as_str())]);
    }
    for (name, text) in files {
        writer.write_file(&format!("{folder}/{name}"), text.as_bytes())?;
    }
    Ok(())
}
