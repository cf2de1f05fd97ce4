//! Proxies and the origin server of one host, from their start to their end.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use weir_host::journal::Restored;
use weir_model::study::{LauncherSpec, ProxyKind};
use weir_origin::{Origin, OriginConfig};
use weir_parameters::Catalog;
use weir_sut::{Certificate, Launcher, WorkFolder};

use super::arm::{Arm, ArmPlace};
use super::load::{self, Place};
use super::networks::{Networks, origin_address};
use super::once;
use super::settings::HostSettings;
use super::transport::{Sides, Transport, unavailable};
use super::watch::Watcher;
use crate::message::{
    ArmJob, ArmRenewed, ArmStarted, Failure, Missing, NetworksJob, OnceJob, OriginJob, Program,
    SettingsJob, Wanted, WatchJob,
};

/// All that one host has been asked to start.
pub(super) struct Bench {
    launcher: Launcher,
    catalog: Catalog,
    // The order is the order of the end: proxies before their origin server, the namespaces and the
    // folder last.
    arms: Vec<Arm>,
    transport: Transport,
    origin: Option<Arc<Origin>>,
    certificate: Option<Certificate>,
    networks: Option<Networks>,
    settings: Option<Arc<HostSettings>>,
    folder: Option<WorkFolder>,
}

/// A proxy's program and its version.
pub(super) fn program(kind: ProxyKind, executable: Option<&Path>) -> Result<Program, Failure> {
    let version = match kind.is_started() {
        true => weir_sut::find(kind, executable)?.version().to_owned(),
        false => String::new(),
    };
    Ok(Program {
        name: kind.name().to_owned(),
        version,
    })
}

/// What is not there of what arms are to be started with.
pub(super) fn missing(wanted: &Wanted) -> Missing {
    let launchers = wanted.launchers.iter();
    let missing = |(name, spec): (&String, &LauncherSpec)| {
        let why = weir_sut::launcher_missing(spec)?;
        Some((name.clone(), why))
    };
    Missing {
        launchers: launchers.filter_map(missing).collect(),
        sockmap: wanted.sockmap.then(unavailable).flatten(),
    }
}

impl Bench {
    pub(super) fn new(launcher: Launcher, catalog: Catalog) -> Bench {
        Bench {
            launcher,
            catalog,
            arms: Vec::new(),
            transport: Transport::default(),
            origin: None,
            certificate: None,
            networks: None,
            settings: None,
            folder: None,
        }
    }

    /// Knows the rows of a user's files as well.
    pub(super) fn add_rows(&mut self, files: &[(String, String)]) -> Result<(), Failure> {
        for (file, text) in files {
            let catalog = self.catalog.clone().with_rows(file, text);
            self.catalog = catalog.map_err(Failure::other)?;
        }
        Ok(())
    }

    pub(super) fn change_settings(&mut self, job: &SettingsJob) -> Result<(), Failure> {
        self.settings = Some(Arc::new(HostSettings::begin(job, &self.catalog)?));
        Ok(())
    }

    pub(super) fn put_back(&mut self) -> Vec<Restored> {
        let settings = self.settings.take();
        settings.map_or_else(Vec::new, |settings| settings.put_back())
    }

    /// What is read when a process or a socket is made must be the arm's by then.
    fn turn_to(&self, arm: usize) -> Result<(), Failure> {
        match &self.settings {
            Some(settings) => settings.turn_to(arm),
            None => Ok(()),
        }
    }

    pub(super) fn make_networks(&mut self, job: &NetworksJob) -> Result<(), Failure> {
        self.networks = Some(Networks::make(job)?);
        Ok(())
    }

    /// The folder of all proxies, made when it is first needed.
    fn folder(&mut self) -> Result<&WorkFolder, Failure> {
        if self.folder.is_none() {
            WorkFolder::sweep();
            self.folder = Some(WorkFolder::create()?);
        }
        let missing = || Failure::other("there is no work folder");
        self.folder.as_ref().ok_or_else(missing)
    }

    /// Makes a certificate and gives its PEM text, which clients are to trust.
    pub(super) fn make_certificate(&mut self, name: &str) -> Result<String, Failure> {
        let certificate = Certificate::make(self.folder()?.path(), name)?;
        let pem = fs::read_to_string(certificate.file()).map_err(Failure::other)?;
        self.certificate = Some(certificate);
        Ok(pem)
    }

    pub(super) fn start_origin(&mut self, job: &OriginJob) -> Result<Vec<SocketAddr>, Failure> {
        // What is missing shows as connections that are not accepted.
        let _ = weir_load::descriptors::make_room(job.descriptors);
        let own = self.networks.as_ref().map(|networks| &networks.origin);
        let listen = (0..job.arms).map(|arm| match own {
            Some(_) => origin_address(arm),
            None => SocketAddr::new(job.address, 0),
        });
        let mut config = OriginConfig::from_spec(&job.spec, listen.collect());
        config.cpus = job.cpus.cpus().to_vec();
        config.sizes.clone_from(&job.sizes);
        let start = || Origin::start(config);
        // Its threads come from the one that starts it, and are where that is.
        let origin = match own {
            Some(network) => network.within(start)?,
            None => start(),
        };
        let words = |error| Failure::other(format!("the origin server does not start: {error}"));
        let origin = Arc::new(origin.map_err(words)?);
        let addresses = origin.addresses().to_vec();
        self.origin = Some(origin);
        Ok(addresses)
    }

    pub(super) fn start(&mut self, job: ArmJob) -> Result<ArmStarted, Failure> {
        let next = self.arms.len();
        if job.index != next || self.arms.iter().any(|arm| arm.name() == job.name) {
            return Err(Failure::other(format!(
                "arm {} (`{}`) cannot be started: the next one is arm {next}, with a name of its own",
                job.index, job.name
            )));
        }
        self.turn_to(job.index)?;
        let network = match &self.networks {
            Some(networks) => Some(networks.arms.get(job.index).cloned().ok_or_else(|| {
                Failure::other(format!("arm {} has no network namespace", job.index))
            })?),
            None => None,
        };
        let networks = self.networks.as_ref();
        let sides = Sides {
            client: networks.map(|networks| networks.generator.clone()),
            proxy: network,
            origin: networks.map(|networks| networks.origin.clone()),
        };
        let place = ArmPlace {
            prefix: self.folder()?.prefix(&job.name),
            sides,
            certificate: self.certificate.clone().filter(|_| job.tls),
            catalog: self.catalog.clone(),
            launcher: self.launcher.clone(),
        };
        let (arm, started) = Arm::start(job, place, &mut self.transport)?;
        self.arms.push(arm);
        Ok(started)
    }

    fn arm(&mut self, index: usize) -> Result<&mut Arm, Failure> {
        let missing = || Failure::other(format!("there is no arm {index}"));
        self.arms.get_mut(index).ok_or_else(missing)
    }

    pub(super) fn renew(&mut self, index: usize) -> Result<ArmRenewed, Failure> {
        self.arm(index)?;
        self.turn_to(index)?;
        let launcher = self.launcher.clone();
        let pid = self.arm(index)?.renew(&launcher)?;
        Ok(ArmRenewed { pid })
    }

    /// Every proxy still runs as it was started; or else the name of the arm whose does not, and why.
    pub(super) fn alive(&mut self) -> Result<(), Failure> {
        for arm in &mut self.arms {
            arm.alive().map_err(|error| Failure {
                hint: error.hint(),
                ..Failure::other(format!("arm `{}`: {error}", arm.name()))
            })?;
        }
        Ok(())
    }

    pub(super) fn log(&mut self, index: usize) -> Result<String, Failure> {
        Ok(self.arm(index)?.log())
    }

    pub(super) fn counters(&mut self, index: usize) -> Result<BTreeMap<String, u64>, Failure> {
        let arm = self.arm(index)?;
        let (mut counters, hops) = (arm.counters()?, arm.bypassed().clone());
        counters.extend(self.transport.counters(&hops)?);
        Ok(counters)
    }

    pub(super) fn once(&self, job: &OnceJob) -> Result<u16, Failure> {
        let requests = load::requests(&job.flow, None, &job.files)?;
        let ask = || once::status(job, requests.get(0));
        let answer = match &self.networks {
            Some(networks) => networks.generator.within(ask)?,
            None => ask(),
        };
        answer.map_err(Failure::other)
    }

    /// Where a load is made.
    pub(super) fn generator_place(&mut self) -> Result<Place, Failure> {
        Ok(Place {
            network: self.networks.as_ref().map(|own| own.generator.clone()),
            folder: self.folder()?.path().to_owned(),
        })
    }

    /// Readers of all counters that a watch asks for.
    pub(super) fn watcher(&self, job: &WatchJob) -> Result<Watcher, Failure> {
        let proxies: Vec<Vec<u32>> = match job.proxies {
            Some(_) => self.arms.iter().map(Arm::processes).collect(),
            None => Vec::new(),
        };
        let netstats = match (&self.networks, &job.proxies) {
            (Some(_), Some(_)) => {
                let open = |arm: &Arm| arm.keeper().run(weir_probe::NetstatReader::open);
                let opened: Result<Result<Vec<_>, _>, Failure> =
                    self.arms.iter().map(open).collect();
                opened??
            }
            _ => Vec::new(),
        };
        let origin = self.origin.clone().filter(|_| job.origin);
        let settings = self.settings.clone().filter(|_| job.proxies.is_some());
        Ok(Watcher::open(job, &proxies, netstats, origin, settings)?)
    }

    /// Ends everything, in order.
    pub(super) fn end(mut self) {
        self.arms.iter_mut().for_each(Arm::end);
    }
}
