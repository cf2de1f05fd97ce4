//! Proxies and the origin server of one host, from their start to their end.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use weir_host::journal::Restored;
use weir_origin::{Origin, OriginConfig};
use weir_parameters::{Catalog, Scoped};
use weir_probe::process;
use weir_sut::{
    Certificate, Configuration, Launch, Launcher, Nginx, RunningProxy, Site, TlsListener,
    WorkFolder, free_ports,
};

use super::keeper::Keeper;
use super::kernel;
use super::load::Place;
use super::networks::{Networks, arm_addresses, origin_address};
use super::once;
use super::settings::HostSettings;
use super::watch::Watcher;
use crate::message::{
    ArmJob, ArmRenewed, ArmStarted, Failure, NetworksJob, OnceJob, OriginJob, Program, SettingsJob,
    WatchJob,
};

/// Name of the limit of open descriptors, also among an arm's effective levels: a worker's.
const NOFILE: &str = "nofile";

/// All that one host has been asked to start.
pub(super) struct Bench {
    launcher: Launcher,
    catalog: Catalog,
    // The order is the order of the end: proxies before their origin server, the namespaces and the
    // folder last.
    arms: Vec<Arm>,
    origin: Option<Arc<Origin>>,
    certificate: Option<Certificate>,
    networks: Option<Networks>,
    settings: Option<Arc<HostSettings>>,
    folder: Option<WorkFolder>,
}

/// One arm.
struct Arm {
    name: String,
    nginx: Nginx,
    configuration: Configuration,
    launch: Launch,
    keeper: Keeper,
    /// `None` between two instances.
    proxy: Option<RunningProxy>,
}

/// A proxy's program and its version.
pub(super) fn program(executable: Option<PathBuf>) -> Result<Program, Failure> {
    let nginx = Nginx::find(executable.as_deref())?;
    Ok(Program {
        name: "nginx".to_owned(),
        version: nginx.version().to_owned(),
    })
}

impl Bench {
    pub(super) fn new(launcher: Launcher, catalog: Catalog) -> Bench {
        Bench {
            launcher,
            catalog,
            arms: Vec::new(),
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
        if job.index != next || self.arms.iter().any(|arm| arm.name == job.name) {
            return Err(Failure::other(format!(
                "arm {} (`{}`) cannot be started: the next one is arm {next}, with a name of its own",
                job.index, job.name
            )));
        }
        self.turn_to(job.index)?;
        let nginx = Nginx::find(job.executable.as_deref())?;
        let prefix = self.folder()?.prefix(&job.name);
        let network = match &self.networks {
            Some(networks) => Some(networks.arms.get(job.index).cloned().ok_or_else(|| {
                Failure::other(format!("arm {} has no network namespace", job.index))
            })?),
            None => None,
        };
        let keeper = Keeper::start(network.as_ref())?;
        let scoped = self.catalog.split(job.kind, &job.settings);
        let changed = scoped.netns.clone();
        let written = keeper.run(move || kernel::write_all(&changed))?;
        written.map_err(|error| Failure::other(kernel::told_apart(error)))?;
        let (listen, tls_listen) = match network {
            Some(_) => arm_addresses(job.index),
            None => free_addresses(job.address)?,
        };
        let certificate = self.certificate.as_ref().filter(|_| job.tls);
        let site = Site {
            tls: certificate.map(|certificate| TlsListener {
                listen: tls_listen,
                certificate,
            }),
            sizes: &job.sizes,
            ..Site::new(&job.role, listen, job.origin)
        };
        let configuration =
            nginx.write_configuration(&prefix, &scoped.proxy, &site, &self.catalog)?;
        let written = fs::read_to_string(configuration.file()).map_err(Failure::other)?;
        // To check a configuration is to bind its addresses, and those are the namespace's.
        let (checks, checked) = (nginx.clone(), configuration.clone());
        let remarks = keeper.run(move || checks.check(&checked))??;
        let launch = Launch {
            cpus: Some(job.cpus.clone()),
            nofile: Some(nofile(&scoped, job.nofile)),
        };
        let mut arm = Arm {
            name: job.name,
            nginx,
            configuration,
            launch,
            keeper,
            proxy: None,
        };
        arm.start(&self.launcher)?;
        let started = arm.describe(&self.catalog, written, remarks)?;
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
        let arm = self.arm(index)?;
        if let Some(proxy) = arm.proxy.take() {
            proxy.stop();
        }
        arm.start(&launcher)?;
        let pid = arm.proxy.as_ref().map_or(0, RunningProxy::master_pid);
        Ok(ArmRenewed { pid })
    }

    /// Every proxy still runs as it was started; or else the name of the arm whose does not, and why.
    pub(super) fn alive(&mut self) -> Result<(), Failure> {
        for arm in &mut self.arms {
            let Some(proxy) = &mut arm.proxy else {
                continue;
            };
            proxy.alive().map_err(|error| Failure {
                hint: error.hint(),
                ..Failure::other(format!("arm `{}`: {error}", arm.name))
            })?;
        }
        Ok(())
    }

    pub(super) fn log(&mut self, index: usize) -> Result<String, Failure> {
        let arm = self.arm(index)?;
        let tail = arm.proxy.as_ref().map(RunningProxy::error_log_tail);
        Ok(tail.unwrap_or_default())
    }

    pub(super) fn once(&self, job: &OnceJob) -> Result<u16, Failure> {
        let ask = || once::status(job);
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
        let processes = |arm: &Arm| -> Vec<u32> {
            let Some(proxy) = &arm.proxy else {
                return Vec::new();
            };
            let workers = proxy.worker_pids();
            std::iter::once(proxy.master_pid()).chain(workers).collect()
        };
        let proxies: Vec<Vec<u32>> = match job.proxies {
            Some(_) => self.arms.iter().map(processes).collect(),
            None => Vec::new(),
        };
        let netstats = match (&self.networks, &job.proxies) {
            (Some(_), Some(_)) => {
                let open = |arm: &Arm| arm.keeper.run(weir_probe::NetstatReader::open);
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
        for arm in &mut self.arms {
            if let Some(proxy) = arm.proxy.take() {
                proxy.stop();
            }
        }
    }
}

impl Arm {
    fn start(&mut self, launcher: &Launcher) -> Result<(), Failure> {
        let (nginx, configuration) = (self.nginx.clone(), self.configuration.clone());
        let (launcher, launch) = (launcher.clone(), self.launch.clone());
        let start = move || nginx.start(&configuration, &launcher, &launch);
        self.proxy = Some(self.keeper.run(start)??);
        Ok(())
    }

    /// What really is in force now that it runs.
    fn describe(
        &self,
        catalog: &Catalog,
        written: String,
        remarks: Vec<String>,
    ) -> Result<ArmStarted, Failure> {
        let missing = || Failure::other("the proxy does not run");
        let proxy = self.proxy.as_ref().ok_or_else(missing)?;
        let nofile = proxy.nofile()?;
        let (nginx, configuration) = (self.nginx.clone(), self.configuration.clone());
        let (rows, limit) = (catalog.clone(), Some(nofile));
        let understand = move || nginx.effective(&configuration, &rows, limit);
        let understood = self.keeper.run(understand)??;
        let mut effective = understood.levels;
        let (rows, listen) = (catalog.clone(), proxy.address());
        let of_kernel = self.keeper.run(move || kernel::levels(&rows, listen))?;
        effective.extend(of_kernel);
        let started_with = process::nofile(proxy.master_pid())?.0;
        effective.extend(kernel::limits(catalog, &[(NOFILE, started_with)]));
        effective.insert(NOFILE.to_owned(), nofile.to_string());
        Ok(ArmStarted {
            listen: self.configuration.listen(),
            tls_listen: self.configuration.tls_listen(),
            written,
            effective_text: understood.text,
            effective,
            nofile,
            pid: proxy.master_pid(),
            remarks,
        })
    }
}

/// The soft descriptor limit that an arm starts with.
fn nofile(scoped: &Scoped, otherwise: u64) -> u64 {
    let level = scoped.launch.get(NOFILE);
    level
        .and_then(|level| level.parse().ok())
        .unwrap_or(otherwise)
}

/// Two addresses of this host where nobody listens.
fn free_addresses(address: IpAddr) -> Result<(SocketAddr, SocketAddr), Failure> {
    let ports = free_ports(address, 2)?;
    let at = |port: u16| SocketAddr::new(address, port);
    Ok((at(ports[0]), at(ports[1])))
}
