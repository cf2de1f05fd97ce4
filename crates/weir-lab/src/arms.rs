//! The arms of a run: started when they are needed, proved to answer, renewed, and ended when they are not.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_agent::message::{
    Alive, ArmJob, ArmStarted, Counters, End, FlowJob, Log, MakeCertificates, Renew,
};
use weir_kube::KubeError;
use weir_model::quantity::CpuSet;
use weir_model::record::{ProxyRecord, Record};
use weir_model::study::{Arm, AskSpec, CpuRoles, ExternalSpec, LoadSpec, Study};
use weir_parameters::Catalog;
use weir_record::RunWriter;

use crate::arrivals::When;
use crate::asked::{addresses, of_started, where_asked};
use crate::cell::ArmId;
use crate::controlled::{Controlled, InForce};
use crate::first_answer::FirstAnswer;
use crate::flows::{Doors, Flows, From};
use crate::hosts::Hosts;
use crate::inert::inert;
use crate::left_out::is_bypassed_inbound;
use crate::options::Role;
use crate::sums::must_be_as_before;
use crate::{Event, LabError};

mod bench;
mod pods;

use bench::is_shown;

/// Soft limit of open descriptors that proxies start with: what systemd gives a service (DefaultLimitNOFILE=1024:524288 in
/// systemd-system.conf(5)), so that a stock proxy meets here what it meets there.
pub const STOCK_NOFILE: u64 = 1024;

/// Where a run folder keeps, below an arm's folder, what was changed in the user's configuration.
pub const PATCH: &str = "patch.diff";
/// And what changes it back.
pub const REVERT: &str = "revert.diff";
/// And sums of the user's files, by which a run that goes on knows them again.
const SUMS: &str = "configuration.sha256";

/// What all arms are started from.
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

/// The arms of a run. Their agent ends those that run.
pub(crate) struct Arms<'a> {
    bench: Bench<'a>,
    /// All of them, whether they run or not; the place is the [`ArmId`].
    specs: Vec<Arm>,
    /// Those that run.
    running: BTreeMap<ArmId, Started>,
    /// What the last instance of each arm is, or was, running with.
    records: BTreeMap<ArmId, ProxyRecord>,
    /// What puts the settings of each into force in a cluster, in place of those of the one before.
    controlled: Option<&'a mut Controlled>,
    /// By how many places the arms have moved on among the instances of a controller.
    moved: usize,
    has_origin: bool,
    /// True if proxies that weir starts show certificates, since some load asks over TLS.
    is_shown: bool,
    /// Some arm's client sockets go past the kernel's TCP and cannot drop content there. Then none does: the same for all.
    keeps_content: bool,
}

/// Right answers in a row after which new settings are held to have settled, and how long that may take.
const SETTLED: u32 = 5;
const SETTLED_WITHIN: Duration = Duration::from_secs(120);
const BETWEEN_ANSWERS: Duration = Duration::from_millis(50);

/// How long a proxy takes to end, about.
const ENDING: Duration = Duration::from_millis(5);

/// An arm that runs.
struct Started {
    /// What tells it from the others that run; free again when it ends.
    slot: usize,
    listen: SocketAddr,
    tls_listen: Option<SocketAddr>,
    /// The certificate that it shows there; `None`: its own. PEM.
    certificate: Option<String>,
    /// Where a copy of a user's configuration is asked, by what is asked for.
    asked: Vec<(AskSpec, SocketAddr)>,
    /// What its processes took to start.
    start: Duration,
    /// Where it is, if weir did not start it.
    external: Option<ExternalSpec>,
    /// Every address that is asked for it, its origin server's among them.
    addresses: Vec<SocketAddr>,
}

impl<'a> Arms<'a> {
    /// Those of a study, none of which runs yet; and what they have in common, the origin server.
    /// `controlled` is what configures the one proxy that all of them have, where something does.
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
            controlled,
            moved: 0,
            has_origin: Hosts::has_origin(study),
            is_shown: is_shown(study),
            keeps_content: is_bypassed_inbound(study, bench.catalog),
        };
        if arms.is_shown {
            bench
                .proxies()
                .ask(MakeCertificates(study.server_names()))?;
        }
        if arms.has_origin {
            bench.start_origin()?;
        }
        Ok(arms)
    }

    /// All arms, whether they run or not.
    pub(crate) fn all(&self) -> &[Arm] {
        &self.specs
    }

    /// Knows one more arm; it is started when it is needed.
    pub(crate) fn add(&mut self, arm: Arm) {
        self.specs.push(arm);
    }

    /// Has exactly these run: ends the others, and starts those that do not.
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

    /// Starts those of these that do not run, in this order.
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

    /// Starts an arm, writes what its proxy really runs with, and asks it once under each load.
    fn start(
        &mut self,
        id: ArmId,
        writer: &mut RunWriter,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        let (bench, arm) = (self.bench, self.specs[id].clone());
        let taken: BTreeSet<usize> = self.running.values().map(|arm| arm.slot).collect();
        let slot = (0..).find(|slot| !taken.contains(slot)).unwrap_or(0);
        let running = self.running.values();
        let mut others: BTreeSet<_> = running.flat_map(|arm| arm.addresses.clone()).collect();
        let origin = bench.origin_of(&arm, slot, &others)?;
        others.extend(origin);
        let mut job = bench.job(&arm, slot, self.is_shown, origin)?;
        let begun = Instant::now();
        let in_force = self.put_into_force(&arm, &mut job)?;
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
        bench.must_be_its_own(external.as_ref(), slot, &started, &others)?;
        keep_files(&arm.name, &started, writer)?;
        let record = ProxyRecord {
            objects,
            ..self.record_of(&arm, &started)
        };
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
        if let (Some(_), Some(first)) = (&self.controlled, bench.study.loads.first()) {
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

    /// Has a controller put an arm's settings into force, where there is one, and says where the arm is then.
    fn put_into_force(&mut self, arm: &Arm, job: &mut ArmJob) -> Result<Option<InForce>, LabError> {
        let moved = self.moved;
        let Some(controlled) = &mut self.controlled else {
            return Ok(None);
        };
        let place = (job.slot + moved) % controlled.instances();
        job.external = Some(controlled.at(place).clone());
        controlled.apply(arm, place).map(Some)
    }

    fn record_of(&self, arm: &Arm, started: &ArmStarted) -> ProxyRecord {
        let kind_of = |arm: &Arm| self.bench.study.proxy_of(arm).kind;
        let against = self.records.get(&arm.against).map(|against| {
            let kind = kind_of(&self.specs[arm.against]);
            (kind, &against.effective)
        });
        let ours = (kind_of(arm), &started.effective);
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

    /// Ends the proxies of these arms and starts new instances of them, at the same addresses. Arms that have an instance
    /// of a controller each change places: so what one instance is slower by is shared by all.
    pub(crate) fn renew(&mut self, arms: &[ArmId], writer: &mut RunWriter) -> Result<(), LabError> {
        if self.controlled.is_some() {
            self.moved += 1;
            return self.restart(arms, writer);
        }
        for id in arms {
            let Some(arm) = self.running.get(id) else {
                continue;
            };
            let renewed = self.bench.proxies().ask(Renew(arm.slot));
            let renewed = renewed.map_err(|error| error.of_arm(&self.specs[*id].name))?;
            if let Some(record) = self.records.get_mut(id) {
                record.pid = renewed.pid;
                // The configuration is the same file, so what was read back of it holds on.
                writer.append(&Record::Proxy(record.clone()))?;
            }
        }
        Ok(())
    }

    /// Ends these arms and starts them anew, each in a network namespace that nobody has used: in the one before, ended
    /// connections keep their ports for a minute.
    pub(crate) fn restart(
        &mut self,
        arms: &[ArmId],
        writer: &mut RunWriter,
    ) -> Result<(), LabError> {
        let started: Vec<ArmId> = arms
            .iter()
            .copied()
            .filter(|id| self.running.contains_key(id))
            .collect();
        for id in &started {
            self.end(*id, writer)?;
        }
        // That they run was said when they did for the first time.
        self.have(&started, writer, &mut |_| {})
    }

    /// What new instances of all that run will take, about.
    pub(crate) fn renewal(&self) -> Duration {
        let each = self.running.values().map(|arm| arm.start + ENDING);
        each.sum()
    }

    fn running(&self, id: ArmId) -> Result<&Started, LabError> {
        let name = || self.specs.get(id).map_or("?", |arm| &arm.name).to_owned();
        let missing = || LabError::NotRunning { arm: name() };
        self.running.get(&id).ok_or_else(missing)
    }

    /// The slots of these arms.
    pub(crate) fn slots(&self, arms: &[ArmId]) -> Result<Vec<usize>, LabError> {
        arms.iter()
            .map(|&arm| Ok(self.running(arm)?.slot))
            .collect()
    }

    /// The CPUs that the proxies of these arms have.
    pub(crate) fn cpus(&self, arms: &[ArmId]) -> Vec<CpuSet> {
        let cpus = |&arm: &ArmId| self.specs[arm].cpus(self.bench.roles).clone();
        arms.iter().map(cpus).collect()
    }

    /// What the engine has to know about an arm that is the `place`-th of a cell. `when` says when each of
    /// the load's flows asks.
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

    /// Where each flow of a load asks a copy of a user's configuration; nothing of another.
    fn asked(&self, load: &LoadSpec, id: ArmId) -> Result<Vec<SocketAddr>, LabError> {
        let proxy = self.bench.study.proxy_of(&self.specs[id]);
        Ok(addresses(load, proxy, &self.running(id)?.asked))
    }

    /// Asks an arm whose proxy has new settings until it answers rightly several times: right after a reload a wrong
    /// answer was seen to follow a right one, and right after a roll-out nobody answers at the address of a pod that is gone.
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

    /// Sends one request and looks at the response as the engine would. It is sent in clear whatever
    /// the load does: both listeners are one server to the proxy. To a configuration of the user's they
    /// need not be. Gives a remark about the answer.
    fn ask_once(&self, load: &LoadSpec, id: ArmId) -> Result<Option<String>, LabError> {
        let (arm, started) = (&self.specs[id], self.running(id)?);
        let proxy = self.bench.study.proxy_of(arm);
        let answer = FirstAnswer {
            arm: &arm.name,
            proxy,
            origin: &self.bench.study.origin,
            load,
            at: self
                .asked(load, id)?
                .first()
                .copied()
                .unwrap_or(started.listen),
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

    /// Every proxy still runs as it was started.
    ///
    /// # Errors
    /// One has ended, or lost a worker.
    pub(crate) fn alive(&self) -> Result<(), LabError> {
        Ok(self.bench.proxies().ask(Alive)?)
    }

    /// What each of these proxies has counted of itself.
    ///
    /// # Errors
    /// One does not answer: that it has ended, if it has.
    pub(crate) fn counters(&self, arms: &[ArmId]) -> Result<Vec<BTreeMap<String, u64>>, LabError> {
        let counted = |&arm: &ArmId| {
            let counted = self.bench.proxies().ask(Counters(self.running(arm)?.slot));
            Ok(counted.map_err(|error| error.of_arm(&self.specs[arm].name))?)
        };
        let counted: Result<_, LabError> = arms.iter().map(counted).collect();
        if counted.is_err() {
            self.alive()?;
        }
        counted
    }

    /// Keeps the end of each error log in the run folder.
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

/// Keeps in the run folder what was written for an arm, and what its proxy made of it.
fn keep_files(arm: &str, started: &ArmStarted, writer: &mut RunWriter) -> Result<(), LabError> {
    let in_arm = |name: &str| format!("arms/{arm}/{name}");
    let sums = in_arm(SUMS);
    must_be_as_before(&writer.dir().join(&sums), &started.sums)?;
    let written = started.written.iter();
    let mut files: Vec<(&str, &str)> = written
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    if !started.sums.is_empty() {
        files.push((SUMS, &started.sums));
    }
    if !started.effective_text.is_empty() {
        files.push(("effective.conf", &started.effective_text));
    }
    if let Some((forward, revert)) = &started.patch {
        files.extend([(PATCH, forward.as_str()), (REVERT, revert.as_str())]);
    }
    let mut files = files.into_iter();
    Ok(files.try_for_each(|(name, text)| writer.write_file(&in_arm(name), text.as_bytes()))?)
}
