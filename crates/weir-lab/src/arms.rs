//! All arms of a study, started side by side and proved to answer.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_http::response::{Progress, ResponseParser};
use weir_model::load::{Arrivals, RequestSpec};
use weir_model::quantity::CpuSet;
use weir_model::record::{ProxyRecord, Record};
use weir_model::study::{Arm, CpuRoles, LoadSpec, ProxyRole, Study};
use weir_origin::{Origin, OriginConfig};
use weir_parameters::Catalog;
use weir_record::RunWriter;
use weir_sut::{
    Certificate, Configuration, Launch, Launcher, Nginx, RunningProxy, Site, SutError, TlsListener,
    WorkFolder, free_ports,
};

use crate::flows::{Doors, Flow, HOST, flow, plan};
use crate::measure::Counters;
use crate::{Event, LabError};

/// Soft limit of open descriptors that proxies start with: what systemd gives a service
/// (DefaultLimitNOFILE=1024:524288 in systemd-system.conf(5)), so that a stock proxy meets here
/// what it meets there.
pub const STOCK_NOFILE: u64 = 1024;

/// How long an arm's first answer may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Arms that run. Dropping it ends all processes and removes their folder.
pub(crate) struct Arms {
    names: Vec<String>,
    // The order is the order of the end: proxies before their origin, the folder last.
    proxies: Vec<RunningProxy>,
    starters: Vec<Starter>,
    origin: Option<Arc<Origin>>,
    /// What all proxies show to clients that ask over TLS, when some load does.
    certificate: Option<Certificate>,
    /// What the kernel has for each source address.
    local_ports: u64,
    folder: WorkFolder,
}

/// How one arm's proxy is started, once and again.
struct Starter {
    nginx: Nginx,
    configuration: Configuration,
    launcher: Launcher,
    launch: Launch,
    /// What its last instance is running with.
    record: ProxyRecord,
}

impl Starter {
    fn start(&self) -> Result<RunningProxy, SutError> {
        self.nginx
            .start(&self.configuration, &self.launcher, &self.launch)
    }
}

/// What all arms are started with.
struct Bench<'a> {
    cpus: &'a CpuSet,
    launcher: &'a Launcher,
    session: u32,
    nginx: Nginx,
    catalog: Catalog,
    /// Sizes of files that loads ask for.
    sizes: Vec<u64>,
}

impl Arms {
    /// Starts everything, writes what each proxy really runs with, and asks each arm once.
    pub(crate) fn start(
        study: &Study,
        roles: &CpuRoles,
        launcher: &Launcher,
        session: u32,
        writer: &mut RunWriter,
        events: &mut dyn FnMut(Event),
    ) -> Result<Arms, LabError> {
        WorkFolder::sweep();
        let bench = Bench {
            cpus: &roles.proxy,
            launcher,
            session,
            nginx: Nginx::find(study.proxy.executable.as_deref())?,
            catalog: Catalog::builtin(),
            sizes: sizes(study),
        };
        let folder = WorkFolder::create()?;
        let certificate = match study.loads.iter().any(|load| load.tls.is_some()) {
            true => Some(Certificate::make(folder.path(), HOST)?),
            false => None,
        };
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let origin = match study.proxy.role {
            ProxyRole::ReverseProxy => Some(Arc::new(start_origin(study, roles, loopback)?)),
            ProxyRole::StaticFiles { .. } => None,
        };
        // For each arm a port to be asked in clear and one for TLS.
        let of_arm = 1 + usize::from(certificate.is_some());
        let ports = free_ports(loopback, study.arms.len() * of_arm)?;
        let mut arms = Arms {
            names: Vec::new(),
            proxies: Vec::new(),
            starters: Vec::new(),
            origin,
            certificate,
            local_ports: weir_probe::local_ports(),
            folder,
        };
        for (index, (arm, ports)) in study.arms.iter().zip(ports.chunks(of_arm)).enumerate() {
            let prefix = arms.folder.prefix(&arm.name);
            let listen = SocketAddr::new(loopback, ports[0]);
            let tls = arms.certificate.as_ref().zip(ports.get(1));
            let site = Site {
                tls: tls.map(|(certificate, &port)| TlsListener {
                    listen: SocketAddr::new(loopback, port),
                    certificate,
                }),
                sizes: &bench.sizes,
                ..Site::new(
                    &study.proxy.role,
                    listen,
                    arms.origin.as_ref().map(|origin| origin.addresses()[index]),
                )
            };
            let (proxy, starter, remarks) = bench.start(arm, &prefix, &site, writer)?;
            arms.names.push(arm.name.clone());
            arms.proxies.push(proxy);
            arms.starters.push(starter);
            for load in &study.loads {
                ask_once(&arm.name, &arms.flow(load, index)?, load, study)?;
            }
            let (arm, address) = (arm.name.clone(), listen.to_string());
            events(Event::ArmReady {
                arm,
                address,
                remarks,
            });
        }
        Ok(arms)
    }

    /// Ends all proxies and starts new instances of them, on the same ports.
    pub(crate) fn renew(&mut self, writer: &mut RunWriter) -> Result<(), LabError> {
        self.proxies.drain(..).for_each(RunningProxy::stop);
        for (name, starter) in self.names.iter().zip(&mut self.starters) {
            let at_arm = |source| LabError::Arm {
                arm: name.clone(),
                source,
            };
            let proxy = starter.start().map_err(at_arm)?;
            starter.record.pid = proxy.master_pid();
            self.proxies.push(proxy);
            // The configuration is the same file, so what was read back of it holds on.
            writer.append(&Record::Proxy(starter.record.clone()))?;
        }
        Ok(())
    }

    /// The generator's side of each arm, or of the first `only`.
    pub(crate) fn flows(
        &self,
        load: &LoadSpec,
        arrivals: &Arrivals,
        only: usize,
    ) -> Result<Vec<weir_load::Flow>, LabError> {
        let mut flows = Vec::new();
        for arm in 0..self.proxies.len().min(only) {
            flows.extend(plan(self.flow(load, arm)?, arm, load, arrivals)?);
        }
        // The flows that ask come first: their places among those of their arm are 0.
        flows.sort_by_key(weir_load::Flow::is_held);
        Ok(flows)
    }

    /// What the engine has to know about an arm under a load.
    fn flow(&self, load: &LoadSpec, arm: usize) -> Result<Flow, LabError> {
        let configuration = &self.starters[arm].configuration;
        let trust = self.certificate.as_ref().map(Certificate::file);
        let doors = Doors {
            clear: configuration.listen(),
            tls: configuration.tls_listen().zip(trust),
        };
        flow(load, doors, self.local_ports)
    }

    /// Readers of all counters that a trial needs.
    pub(crate) fn counters(&self, roles: &CpuRoles) -> Result<Counters, LabError> {
        let pids: Vec<Vec<u32>> = self
            .proxies
            .iter()
            .map(|proxy| {
                std::iter::once(proxy.master_pid())
                    .chain(proxy.worker_pids())
                    .collect()
            })
            .collect();
        let origin = self.origin.clone();
        let threads = origin
            .as_ref()
            .map_or_else(Vec::new, |origin| origin.thread_ids().to_vec());
        let seen = move |arm: usize| {
            let counters = origin.as_ref().map(|origin| origin.counters(arm));
            counters.map_or((0, 0), |counters| (counters.requests, counters.connections))
        };
        let (proxy, generator) = (&roles.proxy, &roles.generator);
        Ok(Counters::open(
            &pids,
            Arc::new(seen),
            &threads,
            proxy,
            generator,
        )?)
    }

    /// Every proxy still runs as it was started.
    ///
    /// # Errors
    /// One has ended, or lost a worker.
    pub(crate) fn alive(&mut self) -> Result<(), LabError> {
        for (name, proxy) in self.names.iter().zip(&mut self.proxies) {
            let at_arm = |source: SutError| LabError::Arm {
                arm: name.clone(),
                source,
            };
            proxy.alive().map_err(at_arm)?;
        }
        Ok(())
    }

    /// Keeps the end of each proxy's error log in the run folder.
    pub(crate) fn keep_logs(&self, writer: &mut RunWriter) -> Result<(), LabError> {
        for (name, proxy) in self.names.iter().zip(&self.proxies) {
            let tail = proxy.error_log_tail();
            if !tail.is_empty() {
                writer.write_file(&format!("arms/{name}/error.log"), tail.as_bytes())?;
            }
        }
        Ok(())
    }
}

impl Bench<'_> {
    /// Configures, checks and starts the proxy of one arm, and keeps in the run folder what was
    /// written and what the proxy made of it. Gives the proxy and its remarks.
    fn start(
        &self,
        arm: &Arm,
        prefix: &Path,
        site: &Site<'_>,
        writer: &mut RunWriter,
    ) -> Result<(RunningProxy, Starter, Vec<String>), LabError> {
        let at_arm = |source| LabError::Arm {
            arm: arm.name.clone(),
            source,
        };
        let (nginx, catalog) = (&self.nginx, &self.catalog);
        let configuration = nginx
            .write_configuration(prefix, &arm.settings, site, catalog)
            .map_err(at_arm)?;
        let in_arm = |name: &str| format!("arms/{}/{name}", arm.name);
        let written = std::fs::read(configuration.file()).unwrap_or_default();
        writer.write_file(&in_arm("nginx.conf"), &written)?;
        let remarks = nginx.check(&configuration).map_err(at_arm)?;
        let launch = Launch {
            cpus: Some(self.cpus.clone()),
            nofile: Some(STOCK_NOFILE),
        };
        let proxy = nginx
            .start(&configuration, self.launcher, &launch)
            .map_err(at_arm)?;
        let nofile = proxy.nofile().map_err(at_arm)?;
        let effective = nginx
            .effective(&configuration, catalog, Some(nofile))
            .map_err(at_arm)?;
        writer.write_file(&in_arm("effective.conf"), effective.text.as_bytes())?;
        let record = ProxyRecord {
            session: self.session,
            arm: arm.name.clone(),
            address: site.listen.to_string(),
            effective: effective.levels,
            nofile,
            pid: proxy.master_pid(),
            inert: Vec::new(),
        };
        writer.append(&Record::Proxy(record.clone()))?;
        let starter = Starter {
            nginx: nginx.clone(),
            configuration,
            launcher: self.launcher.clone(),
            launch,
            record,
        };
        Ok((proxy, starter, remarks))
    }
}

fn start_origin(study: &Study, roles: &CpuRoles, loopback: IpAddr) -> Result<Origin, LabError> {
    let listen = vec![SocketAddr::new(loopback, 0); study.arms.len()];
    let mut config = OriginConfig::from_spec(&study.origin, listen);
    config.cpus = roles.origin.cpus().to_vec();
    Origin::start(config).map_err(LabError::Origin)
}

/// Sizes of the files that the loads of a study ask for, each once.
fn sizes(study: &Study) -> Vec<u64> {
    let sizes: BTreeSet<u64> = study.loads.iter().filter_map(|load| load.size).collect();
    sizes.into_iter().collect()
}

/// Sends one request and looks at the response as the engine would. It is sent in clear whatever
/// the load does: both listeners are one server to nginx.
fn ask_once(arm: &str, flow: &Flow, load: &LoadSpec, study: &Study) -> Result<(), LabError> {
    let at = flow.address;
    let wrong = |what: String| LabError::Answer {
        arm: arm.to_owned(),
        what,
    };
    let status = answer(at, &flow.bytes, &flow.request)
        .map_err(|error| wrong(format!("{error} (asked {at} under load `{}`)", load.name)))?;
    let expected = match study.proxy.role {
        ProxyRole::ReverseProxy => study.origin.status,
        ProxyRole::StaticFiles { .. } => 200,
    };
    if status == expected {
        return Ok(());
    }
    Err(wrong(format!(
        "status {status} instead of {expected}, under load `{}`",
        load.name
    )))
}

fn answer(at: SocketAddr, request: &[u8], spec: &RequestSpec) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&at, FIRST_ANSWER)?;
    stream.set_read_timeout(Some(FIRST_ANSWER))?;
    stream.write_all(request)?;
    let mut parser = ResponseParser::default();
    parser.begin(spec.method == "HEAD");
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            let end = parser.finish_on_close().map_err(std::io::Error::other)?;
            return Ok(end.status);
        }
        let fed = parser
            .feed(&buffer[..length])
            .map_err(std::io::Error::other)?;
        if let Progress::Complete(end) = fed.event {
            return Ok(end.status);
        }
    }
}

/// Where the proxies of a study come from, for the record.
pub(crate) fn proxy_version(executable: Option<&Path>) -> Result<(String, String), LabError> {
    let nginx = Nginx::find(executable)?;
    Ok(("nginx".to_owned(), nginx.version().to_owned()))
}
