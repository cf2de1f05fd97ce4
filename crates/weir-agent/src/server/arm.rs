//! One arm: its proxy from start to end, or the address of a proxy that weir did not start.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_host::Network;
use weir_model::study::{LauncherSpec, Settings};
use weir_parameters::{Catalog, Scoped};
use weir_probe::process;
use weir_probe::waits::Listens;
use weir_sut::{
    Ask, Certificate, Configuration, Effective, Launch, Launcher, OwnCounters, Proxy, RequestLog,
    RunningProxy, Site, TlsListener, UserConfiguration, free_ports,
};

use super::counting::CountingProxy;
use super::external::ExternalProxy;
use super::keeper::Keeper;
use super::kernel;
use super::networks::{arm_addresses, asked_addresses, run_within};
use super::transport::{Hops, Sides, Transport};
use super::waits;
use crate::message::{ArmJob, ArmStarted, Failure};
use crate::sha256;

pub(super) struct Arm {
    name: String,
    keeper: Keeper,
    bypassed: Hops,
    /// The proxy, if weir started it.
    own: Option<OwnProxy>,
    /// Address of a proxy that weir did not start.
    external: Option<SocketAddr>,
}

/// A proxy that weir starts.
struct OwnProxy {
    program: Arc<dyn Proxy>,
    configuration: Configuration,
    launch: Launch,
    /// Launcher that the proxy is started through, with its name in the study; `None`: it is started directly.
    launcher: Option<(String, LauncherSpec)>,
    network: Option<Network>,
    /// Time that the proxy's processes took to start, the last time.
    start: Duration,
    /// The running instance; `None` between two instances.
    running: Option<RunningProxy>,
}

/// Environment in which an arm is started.
pub(super) struct ArmPlace {
    pub(super) prefix: PathBuf,
    pub(super) sides: Sides,
    pub(super) certificate: Option<Certificate>,
    pub(super) catalog: Catalog,
    pub(super) launcher: Launcher,
}

impl Arm {
    pub(super) fn start(
        job: ArmJob,
        place: ArmPlace,
        transport: &mut Transport,
    ) -> Result<(Arm, ArmStarted), Failure> {
        let keeper = Keeper::start(place.sides.proxy.as_ref())?;
        if let Some(external) = job.external {
            let arm = Arm {
                name: job.name,
                keeper,
                bypassed: Hops::default(),
                own: None,
                external: Some(external.address),
            };
            let started = ArmStarted {
                listen: external.address,
                tls_listen: Some(external.address),
                certificate: None,
                asked: Vec::new(),
                program: String::new(),
                written: Vec::new(),
                patch: None,
                sums: String::new(),
                effective_text: String::new(),
                effective: ExternalProxy::at(external.address)
                    .observed()
                    .map_or_else(BTreeMap::new, |proxy| proxy.settings),
                nofile: 0,
                pid: 0,
                start_ns: 0,
                remarks: Vec::new(),
            };
            return Ok((arm, started));
        }
        let catalog = &place.catalog;
        let scoped = catalog.split(job.kind, &job.settings);
        let changed = scoped.netns.clone();
        if place.sides.proxy.is_none() {
            must_be_none(&changed)?;
        }
        let written = keeper.run(move || kernel::write_all(&changed))?;
        written.map_err(kernel::told_apart)?;
        let (mut own, remarks) = OwnProxy::prepare(&job, &place, &scoped, &keeper)?;
        // Before the proxy is there, so that no connection of it is older.
        let bypassed = own.hops(job.origin).only(&scoped.bypassed);
        let begun = transport
            .bypass(&bypassed, &place.sides)
            .and_then(|()| own.start(&keeper, &place.launcher))
            .and_then(|()| own.describe(&keeper, catalog, remarks));
        let mut started = begun.inspect_err(|_| {
            own.end();
            transport.leave(&bypassed);
        })?;
        let level =
            catalog.level_bypassing(&bypassed.sides()).map(|(id, level)| (id.to_owned(), level));
        started.effective.extend(level);
        let arm = Arm { name: job.name, keeper, bypassed, own: Some(own), external: None };
        Ok((arm, started))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the thread that runs in the arm's network namespace.
    pub(super) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Ends the proxy and starts a new instance. Returns its process number, or 0 if weir did not start the proxy.
    pub(super) fn renew(&mut self, launcher: &Launcher) -> Result<u32, Failure> {
        let Some(own) = &mut self.own else {
            return Ok(0);
        };
        own.end();
        own.start(&self.keeper, launcher)?;
        Ok(own.running.as_ref().map_or(0, RunningProxy::master_pid))
    }

    /// Fails unless the proxy still runs as it was started.
    pub(super) fn alive(&mut self) -> Result<(), Failure> {
        let running = match &mut self.own {
            None => return Ok(()),
            Some(own) => own.running.as_mut(),
        };
        // One that could not be renewed is not there.
        Ok(running.ok_or_else(|| Failure::other("the proxy does not run"))?.alive()?)
    }

    /// Returns the end of the proxy's error log.
    pub(super) fn log(&self) -> String {
        let running = self.own.as_ref().and_then(|own| own.running.as_ref());
        running.map_or_else(String::new, RunningProxy::error_log_tail)
    }

    /// Returns the addresses whose connections bypass the kernel's TCP.
    pub(super) fn bypassed(&self) -> &Hops {
        &self.bypassed
    }

    /// Reads the counters that the proxy keeps.
    pub(super) fn counters(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let Some(own) = &self.own else {
            return Ok(BTreeMap::new());
        };
        let (program, configuration) = (Arc::clone(&own.program), own.configuration.clone());
        Ok(self.keeper.run(move || program.counters(&configuration))??)
    }

    /// Opens a reader of the proxy's own counters, or of its error log if weir did not start the proxy. Returns `None`
    /// if such a proxy has no log that can be read.
    pub(super) fn own_counters(&self) -> Option<CountingProxy> {
        let Some(own) = self.own.as_ref() else {
            let external = self.external()?;
            let observed = external.observed()?;
            return Some(external.counting(&self.name, observed));
        };
        Some(CountingProxy {
            arm: self.name.clone(),
            network: own.network.clone(),
            counters: OwnCounters::open(Arc::clone(&own.program), own.configuration.clone()),
            requests: RequestLog::open(Arc::clone(&own.program), &own.configuration),
        })
    }

    /// Returns the listeners of the proxy; `None` if weir did not start it.
    pub(super) fn listens(&self) -> Option<Result<Listens, Failure>> {
        let proxy = self.own.as_ref()?;
        let addresses = proxy.configuration.addresses();
        Some(waits::listens(self, addresses, proxy.network.is_some()))
    }

    /// Looks up the proxy as it is now; `None` if weir started it.
    pub(super) fn external(&self) -> Option<ExternalProxy> {
        self.external.map(ExternalProxy::at)
    }

    /// Returns the process numbers of the proxy, the master process first; empty if weir did not start it.
    pub(super) fn processes(&self) -> Vec<u32> {
        let Some(running) = self.own.as_ref().and_then(|own| own.running.as_ref()) else {
            return Vec::new();
        };
        let workers = running.worker_pids();
        std::iter::once(running.master_pid()).chain(workers).collect()
    }

    pub(super) fn end(&mut self) {
        if let Some(own) = &mut self.own {
            own.end();
        }
    }
}

impl OwnProxy {
    /// Writes the configuration and lets the proxy check it. Also returns the proxy's remarks.
    fn prepare(
        job: &ArmJob,
        place: &ArmPlace,
        scoped: &Scoped,
        keeper: &Keeper,
    ) -> Result<(OwnProxy, Vec<String>), Failure> {
        let program = weir_proxies::find(job.kind, job.executable.as_deref())?;
        let (listen, tls_listen) = match &place.sides.proxy {
            Some(_) => arm_addresses(job.slot),
            None => free_addresses(job.address)?,
        };
        let tls = place
            .certificate
            .as_ref()
            .map(|certificate| TlsListener { listen: tls_listen, certificate });
        let addresses = match &place.sides.proxy {
            Some(_) => asked_addresses(job.slot, job.asks.len()),
            None => asked_ports(job.address, job.asks.len())?,
        };
        let asks = job.asks.iter().cloned().zip(addresses);
        let asks: Vec<Ask> = asks.map(|(spec, at)| Ask { spec, at }).collect();
        let user_files =
            job.own.as_ref().map(|own| UserConfiguration { file: &own.file, asks: &asks });
        let site = Site {
            tls,
            sizes: &job.sizes,
            request_log: job.request_log && user_files.is_none(),
            own: user_files,
            ..Site::new(&job.role, listen, job.origin)
        };
        let configuration = program.write(&place.prefix, &scoped.proxy, &site, &place.catalog)?;
        // To check a configuration is to bind its addresses, and those are the namespace's.
        let (checks, checked) = (Arc::clone(&program), configuration.clone());
        let remarks = keeper.run(move || checks.check(&checked))??;
        let launcher = scoped.launcher.clone().zip(job.launcher.clone());
        let launch = Launch {
            cpus: Some(job.cpus.clone()),
            nofile: Some(scoped.nofile.unwrap_or(job.nofile)),
            ..Launch::default()
        };
        let launch = match &launcher {
            Some((_, spec)) => launch.through(spec),
            None => launch,
        };
        let proxy = OwnProxy {
            program,
            configuration,
            launch,
            launcher,
            network: place.sides.proxy.clone(),
            start: Duration::ZERO,
            running: None,
        };
        Ok((proxy, remarks))
    }

    fn hops(&self, origin: Option<SocketAddr>) -> Hops {
        Hops { inbound: self.configuration.addresses(), outbound: origin }
    }

    fn start(&mut self, keeper: &Keeper, launcher: &Launcher) -> Result<(), Failure> {
        let (program, configuration) = (Arc::clone(&self.program), self.configuration.clone());
        let (launcher, launch) = (launcher.clone(), self.launch.clone());
        let begun = Instant::now();
        let running = keeper
            .run(move || weir_sut::start(&*program, &configuration, &launcher, &launch))??;
        self.start = begun.elapsed();
        if let Some((name, spec)) = &self.launcher {
            running.was_started_through(name, spec)?;
        }
        self.running = Some(running);
        Ok(())
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }

    /// Describes the running proxy: the levels in force, addresses, files and process.
    fn describe(
        &self,
        keeper: &Keeper,
        catalog: &Catalog,
        remarks: Vec<String>,
    ) -> Result<ArmStarted, Failure> {
        let running =
            self.running.as_ref().ok_or_else(|| Failure::other("the proxy does not run"))?;
        let nofile = running.nofile()?;
        let program = &self.program;
        let proxy_catalog = catalog.clone().for_proxy(program.kind(), program.version());
        let understood = self.effective(running, &proxy_catalog)?;
        let mut effective = understood.levels;
        let (rows, listen) = (catalog.clone(), running.address());
        let of_kernel = keeper.run(move || kernel::levels(&rows, listen, nofile))?;
        effective.extend(of_kernel);
        let started_with = process::nofile(running.master_pid())?.0;
        effective.extend(kernel::limits(catalog, started_with));
        if let Some(row) = catalog.launcher() {
            let level = self
                .launcher
                .as_ref()
                .map(|(name, _)| name.clone())
                .or_else(|| row.read_back(None));
            effective.extend(level.map(|level| (row.id.clone(), level)));
        }
        if let Some(row) = catalog.cpus() {
            let cpus = weir_probe::cpus_of(&running.worker_pids()).len();
            effective.insert(row.id.clone(), cpus.to_string());
        }
        let patch = self.configuration.patch();
        let originals = self.configuration.originals();
        Ok(ArmStarted {
            listen: self.configuration.listen(),
            tls_listen: self.configuration.tls_listen(),
            certificate: None,
            asked: self.configuration.asked().to_vec(),
            program: self.program.version().to_owned(),
            written: self.configuration.texts()?,
            patch: patch.map(|patch| (patch.forward.clone(), patch.revert.clone())),
            sums: sha256::sums(originals.iter().map(|(path, text)| (&**path, text.as_bytes()))),
            effective_text: understood.text,
            effective,
            nofile,
            pid: running.master_pid(),
            start_ns: self.start.as_nanos() as u64,
            remarks,
        })
    }

    fn effective(&self, running: &RunningProxy, catalog: &Catalog) -> Result<Effective, Failure> {
        Ok(run_within(self.network.as_ref(), || {
            self.program.effective(&self.configuration, Some(running), catalog)
        })??)
    }
}

/// Refuses namespace settings for an arm without a namespace: they would be applied to the host, and nothing would put
/// them back.
fn must_be_none(settings: &Settings) -> Result<(), Failure> {
    let names: Vec<&str> = settings.keys().map(String::as_str).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(Failure::other(format!(
            "{} cannot be set without a network namespace of the arm's own",
            names.join(", ")
        )))
    }
}

/// Returns two free addresses of this host.
fn free_addresses(address: IpAddr) -> Result<(SocketAddr, SocketAddr), Failure> {
    let ports = free_ports(address, 2)?;
    Ok((SocketAddr::new(address, ports[0]), SocketAddr::new(address, ports[1])))
}

/// Returns free addresses of this host, for requests to a user's configuration.
fn asked_ports(address: IpAddr, count: usize) -> Result<Vec<SocketAddr>, Failure> {
    let ports = free_ports(address, count)?.into_iter();
    Ok(ports.map(|port| SocketAddr::new(address, port)).collect())
}

#[cfg(test)]
mod tests {
    use weir_host::sysctl;
    use weir_model::quantity::CpuSet;
    use weir_model::study::{ProxyKind, ProxyRole};

    use super::*;

    /// Creates a job that sets a kernel setting to its present value, so that nothing would change.
    fn with_its_own(setting: &str) -> ArmJob {
        let now = sysctl::read(setting).unwrap();
        ArmJob {
            slot: 0,
            name: "queue".to_owned(),
            kind: ProxyKind::Nginx,
            executable: None,
            role: ProxyRole::ReverseProxy,
            settings: Settings::from([(setting.to_owned(), now)]),
            own: None,
            request_log: false,
            asks: Vec::new(),
            external: None,
            launcher: None,
            address: IpAddr::from([127, 0, 0, 1]),
            tls: false,
            origin: None,
            sizes: Vec::new(),
            cpus: CpuSet::new(vec![0]).unwrap(),
            nofile: 1024,
        }
    }

    #[test]
    fn an_arm_without_a_namespace_sets_nothing_of_the_kernel_s() {
        let folder = tempfile::tempdir().unwrap();
        let environment = ArmPlace {
            prefix: folder.path().join("queue"),
            sides: Sides::default(),
            certificate: None,
            catalog: Catalog::builtin(),
            launcher: Launcher::new("/nonexistent".into()),
        };
        let job = with_its_own("net.core.somaxconn");
        let started = Arm::start(job, environment, &mut Transport::default());
        let words = started.err().unwrap().evidence;
        assert!(
            words.starts_with("net.core.somaxconn cannot be set without a network namespace"),
            "{words}"
        );
    }
}
