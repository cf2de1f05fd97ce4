//! Proxies and the origin server of one host, from start to end.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use weir_host::journal::Restored;
use weir_model::record::HostFacts;
use weir_model::room::FOR_SAMPLES;
use weir_model::study::is_arm_name;
use weir_origin::{Origin, OriginConfig};
use weir_parameters::Catalog;
use weir_probe::sample::Sampler;
use weir_sut::{
    Certificate, CertificateKind, Certificates, Launcher, PlacedCopy, SutError, WorkFolder,
};

use super::arm::{Arm, ArmPlace};
use super::external::ExternalProxy;
use super::load::{self, LoadEnvironment};
use super::networks::{MOST_ARMS, Networks, origin_address, run_within};
use super::samples::{self, Sampling};
use super::settings::{self, HostSettings};
use super::transport::{Sides, Transport, unavailable};
use super::watch::{SharedMeter, Watcher};
use super::{describe, facts, link, once};
use crate::message::{
    Alive, ArmJob, ArmRenewed, ArmStarted, CopyJob, Counters, Describe, Description, End, FactsJob,
    Failure, FailureKind, FindProgram, Hands, HostRequirements, HostSettingsJob, Leftovers,
    LinkFigures, LinkJob, LinkListener, Log, MakeCertificates, Missing, NetworksJob, OnceJob,
    OriginJob, OriginListener, Program, PutBack, Renew, Restore, Rows, SampleJob, Settle, WatchJob,
};
use crate::sha256::sum_of_file;
use weir_probe::waits::Listens;

/// Everything that was started on one host.
pub(super) struct Bench {
    launcher: Launcher,
    catalog: Catalog,
    // The order is the order of the end: proxies before their origin server, the namespaces and the
    // folder last.
    /// Arms by slot.
    arms: BTreeMap<usize, Arm>,
    transport: Transport,
    origin: Option<RunningOrigin>,
    certificates: Option<Certificates>,
    networks: Option<Networks>,
    settings: Option<Arc<HostSettings>>,
    meter: SharedMeter,
    folder: Option<WorkFolder>,
    /// Set when the question that is being answered has no one who waits for it any more.
    pub(super) stop: Arc<AtomicBool>,
}

/// The origin server, and the address that it listens on if it has no namespace of its own.
struct RunningOrigin {
    server: Arc<Origin>,
    address: IpAddr,
}

impl Bench {
    pub(super) fn new(launcher: Launcher, catalog: Catalog) -> Bench {
        Bench {
            launcher,
            catalog,
            arms: BTreeMap::new(),
            transport: Transport::default(),
            origin: None,
            certificates: None,
            networks: None,
            settings: None,
            meter: SharedMeter::default(),
            folder: None,
            stop: Arc::default(),
        }
    }

    /// Applies the host settings of the arm in a slot. They must be in force before the arm's processes and sockets are
    /// created.
    fn turn_to(&self, slot: usize) -> Result<(), Failure> {
        match &self.settings {
            Some(settings) => settings.turn_to(slot),
            None => Ok(()),
        }
    }

    /// Returns the folder of all proxies; creates it at first use.
    fn folder(&mut self) -> Result<&WorkFolder, Failure> {
        if self.folder.is_none() {
            WorkFolder::sweep();
            self.folder = Some(WorkFolder::create()?);
        }
        self.folder.as_ref().ok_or_else(|| Failure::other("there is no work folder"))
    }

    fn arm(&mut self, slot: usize) -> Result<&mut Arm, Failure> {
        self.arms
            .get_mut(&slot)
            .ok_or_else(|| Failure::other(format!("there is no arm in slot {slot}")))
    }

    /// Checks that an arm may be started: its slot is free, and no other arm has its name.
    fn check_free(&self, job: &ArmJob) -> Result<(), Failure> {
        let (slot, name) = (job.slot, &job.name);
        let fault = if slot >= MOST_ARMS {
            format!("slot {slot}, and {MOST_ARMS} arms can run at the same time")
        } else if self.arms.contains_key(&slot) {
            format!("slot {slot} is another arm's")
        } else if !is_arm_name(name) {
            // It becomes a folder's, beside files of weir's own.
            "this is not a valid name for an arm".to_owned()
        } else if self.arms.values().any(|arm| arm.name().eq_ignore_ascii_case(name)) {
            "another arm has this name".to_owned()
        } else {
            return Ok(());
        };
        Err(Failure::other(format!("arm `{name}`: {fault}")))
    }

    /// Starts an arm in a free slot.
    fn begin(&mut self, job: ArmJob) -> Result<ArmStarted, Failure> {
        let slot = job.slot;
        self.turn_to(slot)?;
        let network = match &mut self.networks {
            Some(networks) => Some(networks.arm(slot)?),
            None => None,
        };
        let certificate = self.certificate_of(&job)?;
        let pem = certificate
            .as_ref()
            .map(|it| fs::read_to_string(it.file()))
            .transpose()
            .map_err(Failure::other)?;
        let networks = self.networks.as_ref();
        let sides = Sides {
            client: networks.map(|networks| networks.generator.clone()),
            proxy: network,
            origin: networks.map(|networks| networks.origin.clone()),
        };
        let environment = ArmPlace {
            prefix: self.folder()?.prefix(&job.name),
            sides,
            certificate,
            catalog: self.catalog.clone(),
            launcher: self.launcher.clone(),
        };
        let (arm, started) = Arm::start(job, environment, &mut self.transport)?;
        self.arms.insert(slot, arm);
        Ok(ArmStarted { certificate: pem, ..started })
    }

    /// Returns the certificate that an arm shows, of the usual kind or, for a copy of a user's configuration, of the
    /// same kind as the user's.
    fn certificate_of(&mut self, job: &ArmJob) -> Result<Option<Certificate>, Failure> {
        let is_shown = job.tls && job.external.is_none();
        let Some(certificates) = self.certificates.as_mut().filter(|_| is_shown) else {
            return Ok(None);
        };
        let kind = match &job.own {
            Some(own) => {
                let program = weir_proxies::find(job.kind, job.executable.as_deref())?;
                let settings = self.catalog.split(job.kind, &job.settings).proxy;
                program.certificate_kind(&own.file, &settings, &job.asks, &self.catalog)?
            }
            None => CertificateKind::USUAL,
        };
        Ok(Some(certificates.of_kind(kind)?.clone()))
    }

    /// Plans the copy of a user's configuration for an arm; nothing is written.
    fn place(&self, job: &CopyJob) -> Result<PlacedCopy, SutError> {
        let program = weir_proxies::find(job.kind, job.executable.as_deref())?;
        let settings = self.catalog.split(job.kind, &job.settings).proxy;
        program.place(&job.main, &settings, &job.asks, &self.catalog)
    }

    /// Removes what an arm has in its slot besides its proxy: host settings, origin listener and network links.
    fn forget(&mut self, slot: usize) -> Result<(), Failure> {
        let put_back = match &self.settings {
            Some(settings) => settings.remove(slot),
            None => Ok(()),
        };
        if let Some(origin) = &self.origin {
            origin.server.close(slot);
        }
        let removed = match &mut self.networks {
            Some(networks) => networks.remove(slot),
            None => Ok(()),
        };
        put_back.and(removed)
    }

    /// Returns the network namespace and the folder of the generator.
    pub(super) fn generator_place(&mut self) -> Result<LoadEnvironment, Failure> {
        Ok(LoadEnvironment {
            network: self.networks.as_ref().map(|own| own.generator.clone()),
            folder: self.folder()?.path().to_owned(),
        })
    }

    fn arms_in(&self, slots: &[usize]) -> Result<Vec<&Arm>, Failure> {
        slots
            .iter()
            .map(|slot| {
                self.arms
                    .get(slot)
                    .ok_or_else(|| Failure::other(format!("there is no arm in slot {slot}")))
            })
            .collect()
    }

    /// Opens readers of everything that is sampled.
    pub(super) fn sampling(&self, job: &SampleJob) -> Result<Sampling, Failure> {
        samples::check(job)?;
        // What is not there is left out of the samples.
        let _ = weir_load::descriptors::make_room(FOR_SAMPLES);
        let arms = self.arms_in(&job.proxies)?;
        let networks = self.networks.as_ref();
        let generator =
            job.generator.then(|| samples::generator(networks.map(|networks| &networks.generator)));
        let origin = job.origin.then(|| samples::origin(networks.map(|networks| &networks.origin)));
        let arms_places = arms.iter().map(|arm| samples::arm(arm));
        let external = job.external.map(ExternalProxy::at);
        let listening = external.as_ref().map(|proxy| &proxy.processes[..]);
        let cpus = weir_probe::cpus_of(listening.unwrap_or_default());
        let observed = external.as_ref().and_then(ExternalProxy::observed);
        let settings = observed.as_ref().map(|proxy| proxy.settings.clone());
        let places = generator
            .into_iter()
            .chain(arms_places)
            .chain(external.as_ref().map(|proxy| proxy.place("")))
            .chain(origin)
            .collect::<Result<_, _>>()?;
        let counting = external.zip(observed).map(|(proxy, observed)| proxy.counting("", observed));
        let of_arms = arms.iter().filter_map(|arm| arm.own_counters());
        Ok(Sampling {
            sampler: Sampler::open(places),
            settings: settings.unwrap_or_default(),
            cpus,
            proxies: of_arms.chain(counting).collect(),
            listens: if job.requests { listens(&arms)? } else { Vec::new() },
        })
    }

    /// Opens readers of all counters that a watch asks for.
    pub(super) fn watcher(&self, job: &WatchJob) -> Result<Watcher, Failure> {
        let arms = match job.proxies {
            Some(_) => self.arms_in(&job.slots)?,
            None => Vec::new(),
        };
        let proxies: Vec<Vec<u32>> = arms.iter().map(|arm| arm.processes()).collect();
        let netstats = match &self.networks {
            Some(_) => {
                let opened: Result<Result<Vec<_>, _>, Failure> = arms
                    .iter()
                    .map(|arm| arm.keeper().run(weir_probe::NetstatReader::open))
                    .collect();
                opened??
            }
            None => Vec::new(),
        };
        let origin =
            self.origin.as_ref().filter(|_| job.origin).map(|origin| Arc::clone(&origin.server));
        let settings = self.settings.clone().filter(|_| job.proxies.is_some());
        let meter = Arc::clone(&self.meter);
        let watcher = Watcher::open(job, &proxies, netstats, origin, meter)?;
        Ok(watcher.with_settings(settings))
    }

    /// Ends the proxies; the rest ends when the fields are dropped, in their order.
    pub(super) fn end(mut self) {
        self.arms.values_mut().for_each(Arm::end);
    }
}

/// Returns name and listeners of each arm that weir has started.
fn listens(arms: &[&Arm]) -> Result<Vec<(String, Listens)>, Failure> {
    arms.iter()
        .filter_map(|arm| {
            let listens = arm.listens()?;
            Some(listens.map(|listens| (arm.name().to_owned(), listens)))
        })
        .collect()
}

impl Hands for Bench {
    fn describe(&mut self, Describe: Describe) -> Result<Description, Failure> {
        describe()
    }

    fn settle(&mut self, cpus: Settle) -> Result<(), Failure> {
        // The set was checked; if a CPU has gone offline since, the kernel's choice is as good.
        let _ = weir_probe::keep_to(None, cpus.0.cpus());
        Ok(())
    }

    fn rows(&mut self, files: Rows) -> Result<(), Failure> {
        for (file, text) in &files.0 {
            let catalog = self.catalog.clone().with_rows(file, text);
            self.catalog = catalog.map_err(Failure::other)?;
        }
        Ok(())
    }

    fn find_program(&mut self, wanted: FindProgram) -> Result<Program, Failure> {
        let kind = wanted.kind;
        let name = kind.name().to_owned();
        if !kind.is_started() {
            return Ok(Program { name, version: String::new(), sum: String::new() });
        }
        let proxy = weir_proxies::find(kind, wanted.executable.as_deref())?;
        // A program that may be run and not read has none.
        let sum = sum_of_file(proxy.program()).unwrap_or_default();
        Ok(Program { name, version: proxy.version().to_owned(), sum })
    }

    fn missing(&mut self, wanted: HostRequirements) -> Result<Missing, Failure> {
        let launchers = wanted.launchers.iter();
        let mut missing = Missing {
            launchers: launchers
                .filter_map(|(name, spec)| Some((name.clone(), weir_sut::launcher_missing(spec)?)))
                .collect(),
            sockmap: wanted.sockmap.then(unavailable).flatten(),
            ..Missing::default()
        };
        let mut all = BTreeMap::new();
        for (arm, job) in wanted.copies {
            match self.place(&job) {
                Ok(placed) => drop(all.insert(arm, placed)),
                Err(e) => drop(missing.copies.insert(arm, (e.to_string(), e.hint()))),
            }
        }
        missing.vanished = weir_sut::vanished(&all);
        for (arm, placed) in all {
            missing.hashes.insert(arm.clone(), placed.hashes);
            missing.asked.insert(arm, placed.asked);
        }
        Ok(missing)
    }

    fn make_networks(&mut self, job: NetworksJob) -> Result<(), Failure> {
        self.networks = Some(Networks::make(&job)?);
        Ok(())
    }

    fn begin_settings(&mut self, job: HostSettingsJob) -> Result<(), Failure> {
        self.settings = Some(Arc::new(HostSettings::begin(&job, &self.catalog)?));
        Ok(())
    }

    fn put_back(&mut self, PutBack: PutBack) -> Result<Vec<Restored>, Failure> {
        let settings = self.settings.take();
        Ok(settings.map_or_else(Vec::new, |settings| settings.put_back()))
    }

    fn restore(&mut self, how: Restore) -> Result<Leftovers, Failure> {
        settings::leftovers(how.dry_run)
    }

    /// Stores the host names for certificates. Each certificate is made when an arm needs its kind.
    fn make_certificates(
        &mut self,
        MakeCertificates(names): MakeCertificates,
    ) -> Result<(), Failure> {
        self.certificates = Some(Certificates::new(self.folder()?.path(), names));
        Ok(())
    }

    fn start_origin(&mut self, job: OriginJob) -> Result<(), Failure> {
        // What is missing shows as connections that are not accepted.
        let _ = weir_load::descriptors::make_room(job.descriptors);
        let mut config = OriginConfig::from_spec(&job.spec, Vec::new());
        config.cpus = job.cpus.cpus().to_vec();
        config.sizes.clone_from(&job.sizes);
        // Its threads come from the one that starts it, and are where that is.
        let network = self.networks.as_ref().map(|networks| &networks.origin);
        let origin = run_within(network, || Origin::start(config))?;
        self.origin = Some(RunningOrigin {
            server: Arc::new(origin.map_err(|error| {
                Failure::other(format!("the origin server does not start: {error}"))
            })?),
            address: job.address,
        });
        Ok(())
    }

    fn open_origin(&mut self, at: OriginListener) -> Result<SocketAddr, Failure> {
        let origin =
            self.origin.as_ref().ok_or_else(|| Failure::other("there is no origin server"))?;
        // What an arm that has ended had there.
        origin.server.close(at.slot);
        origin.server.take(at.slot, at.taken);
        let opened = match &mut self.networks {
            Some(own) => {
                // The arm's link must be there before its address can be listened on.
                own.arm(at.slot)?;
                own.origin.within(|| origin.server.open(at.slot, origin_address(at.slot)))?
            }
            None => (origin.server).open(at.slot, SocketAddr::new(origin.address, 0)),
        };
        opened.map_err(|error| Failure::other(format!("the origin server: {error}")))
    }

    fn start(&mut self, job: ArmJob) -> Result<ArmStarted, Failure> {
        self.check_free(&job)?;
        let slot = job.slot;
        let host_wide = self.catalog.split(job.kind, &job.settings).host;
        match &self.settings {
            Some(settings) => settings.add(slot, &host_wide, &self.catalog)?,
            None if host_wide.is_empty() => {}
            None => {
                let names: Vec<String> = host_wide.into_keys().collect();
                return Err(Failure::other(format!(
                    "settings of the whole host without a journal: {}",
                    names.join(", ")
                )));
            }
        }
        let begun = self.begin(job);
        if begun.is_err() {
            // What was made for it must not be the next arm's in this slot. Why it failed is what matters.
            let _ = self.forget(slot);
        }
        begun
    }

    fn renew(&mut self, Renew(slot): Renew) -> Result<ArmRenewed, Failure> {
        self.arm(slot)?;
        self.turn_to(slot)?;
        let launcher = self.launcher.clone();
        let pid = self.arm(slot)?.renew(&launcher)?;
        Ok(ArmRenewed { pid })
    }

    fn end_arm(&mut self, End(slot): End) -> Result<(), Failure> {
        let arm = self.arm(slot)?;
        arm.end();
        let bypassed = arm.bypassed().clone();
        self.arms.remove(&slot);
        self.transport.leave(&bypassed);
        self.forget(slot)
    }

    /// Fails unless every proxy still runs as it was started; the failure names the arm and the reason.
    fn alive(&mut self, Alive: Alive) -> Result<(), Failure> {
        for arm in self.arms.values_mut() {
            arm.alive().map_err(|error| Failure {
                kind: FailureKind::ArmEnded,
                ..error.of_arm(arm.name())
            })?;
        }
        Ok(())
    }

    fn log(&mut self, Log(slot): Log) -> Result<String, Failure> {
        Ok(self.arm(slot)?.log())
    }

    fn counters(&mut self, Counters(slot): Counters) -> Result<BTreeMap<String, u64>, Failure> {
        let arm = self.arm(slot)?;
        let (mut counters, hops) = (arm.counters()?, arm.bypassed().clone());
        counters.extend(self.transport.counters(&hops)?);
        Ok(counters)
    }

    fn listen_for_link(&mut self, job: LinkListener) -> Result<SocketAddr, Failure> {
        link::listen(&job)
    }

    fn measure_link(&mut self, job: LinkJob) -> Result<LinkFigures, Failure> {
        link::measure(&job)
    }

    fn facts(&mut self, job: FactsJob) -> Result<HostFacts, Failure> {
        facts::facts(&job, &self.meter)
    }

    fn once(&mut self, job: OnceJob) -> Result<u16, Failure> {
        let requests = load::build_requests(&job.flow, None, &job.files)?;
        let secured = job.flow.spec.tls.as_ref().filter(|_| job.tls);
        let connector = match secured {
            Some(tls) => {
                let environment = self.generator_place()?;
                Some(load::connector(&job.files, &job.flow, tls, &environment)?)
            }
            None => None,
        };
        let network = self.networks.as_ref().map(|networks| &networks.generator);
        run_within(network, || once::status(&job, requests.get(0), connector.as_ref(), &self.stop))?
    }
}
