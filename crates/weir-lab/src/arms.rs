//! All arms of a study, started side by side and proved to answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use weir_agent::message::{ArmJob, ArmRenewed, ArmStarted, Ask, FlowJob, OnceJob, OriginJob};
use weir_agent::{AgentError, Client};
use weir_model::load::Arrivals;
use weir_model::record::{Inert, ProxyRecord, Record};
use weir_model::study::{Arm, CpuRoles, LoadSpec, ProxyKind, ProxyRole, Settings, Study};
use weir_parameters::Catalog;
use weir_record::RunWriter;

use crate::flows::{Doors, HOST, flow};
use crate::left_out::is_bypassed_inbound;
use crate::places::{Places, Role};
use crate::{Event, LabError, preflight};

/// Soft limit of open descriptors that proxies start with: what systemd gives a service
/// (DefaultLimitNOFILE=1024:524288 in systemd-system.conf(5)), so that a stock proxy meets here
/// what it meets there.
pub const STOCK_NOFILE: u64 = 1024;

/// Where a run folder keeps, below an arm's folder, what was changed in the user's configuration.
pub const PATCH: &str = "patch.diff";
/// And what changes it back.
pub const REVERT: &str = "revert.diff";
/// And sums of the user's files, by which a run that goes on knows them again.
const SUMS: &str = "configuration.sha256";

/// How long an arm's first answer may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Arms that run. Their agent ends them.
pub(crate) struct Arms<'a> {
    places: &'a Places,
    started: Vec<Started>,
    /// What all proxies show to clients that ask over TLS, when some load does; PEM.
    certificate: Option<String>,
    /// Some arm's client sockets go past the kernel's TCP and cannot drop content there. Then none
    /// does: what the generator does with content is to be the same for all arms.
    keeps_content: bool,
}

/// One arm.
struct Started {
    name: String,
    listen: SocketAddr,
    tls_listen: Option<SocketAddr>,
    /// What its last instance is running with.
    record: ProxyRecord,
}

/// What all arms are started from.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub(crate) study: &'a Study,
    pub(crate) roles: &'a CpuRoles,
    pub(crate) places: &'a Places,
    pub(crate) catalog: &'a Catalog,
    pub(crate) session: u32,
}

impl<'a> Arms<'a> {
    /// Starts everything, writes what each proxy really runs with, and asks each arm once.
    pub(crate) fn start(
        bench: Bench<'a>,
        writer: &mut RunWriter,
        events: &mut dyn FnMut(Event),
    ) -> Result<Arms<'a>, LabError> {
        let (study, places) = (bench.study, bench.places);
        let proxy = places.agent(Role::Proxy);
        let certificate = match study.loads.iter().any(|load| load.tls.is_some()) {
            true => Some(proxy.ask(Ask::Certificate(HOST.to_owned()))?),
            false => None,
        };
        let origins = match Places::has_origin(study) {
            true => bench.start_origin()?.into_iter().map(Some).collect(),
            false => vec![None; study.arms.len()],
        };
        let mut arms = Arms {
            places,
            started: Vec::new(),
            certificate,
            keeps_content: is_bypassed_inbound(study, bench.catalog),
        };
        for (index, origin) in origins.into_iter().enumerate() {
            let of_arm = study.proxy_of(&study.arms[index]);
            let origin = origin.filter(|_| of_arm.kind.is_started());
            let (started, remarks) = arms.start_one(bench, index, origin, writer)?;
            let (arm, address) = (started.name.clone(), started.listen.to_string());
            arms.started.push(started);
            for load in &study.loads {
                arms.ask_once(study, load, index)?;
            }
            events(Event::ArmReady {
                arm,
                address,
                remarks,
            });
        }
        Ok(arms)
    }

    /// Starts the proxy of one arm, and keeps in the run folder what was written and what the proxy
    /// made of it. Gives the proxy's remarks too.
    fn start_one(
        &self,
        bench: Bench<'_>,
        index: usize,
        origin: Option<SocketAddr>,
        writer: &mut RunWriter,
    ) -> Result<(Started, Vec<String>), LabError> {
        let arm = &bench.study.arms[index];
        let job = bench.job(index, self.certificate.is_some(), origin)?;
        let at_arm = |source| LabError::Arm {
            arm: arm.name.clone(),
            source,
        };
        let started: ArmStarted = self
            .proxy()
            .ask(Ask::Start(Box::new(job)))
            .map_err(at_arm)?;
        let in_arm = |name: &str| format!("arms/{}/{name}", arm.name);
        let sums = in_arm(SUMS);
        must_be_as_before(&writer.dir().join(&sums), &started.sums)?;
        if !started.sums.is_empty() {
            writer.write_file(&sums, started.sums.as_bytes())?;
        }
        for (name, text) in &started.written {
            writer.write_file(&in_arm(name), text.as_bytes())?;
        }
        if !started.effective_text.is_empty() {
            writer.write_file(&in_arm("effective.conf"), started.effective_text.as_bytes())?;
        }
        if let Some((forward, revert)) = &started.patch {
            writer.write_file(&in_arm(PATCH), forward.as_bytes())?;
            writer.write_file(&in_arm(REVERT), revert.as_bytes())?;
        }
        let kind_of = |arm: &Arm| bench.study.proxy_of(arm).kind;
        let against = self.started.get(arm.against).map(|against| {
            let kind = kind_of(&bench.study.arms[arm.against]);
            (kind, &against.record.effective)
        });
        let ours = (kind_of(arm), &started.effective);
        let inert = inert(bench.catalog, &arm.changes, ours, against);
        let record = ProxyRecord {
            session: bench.session,
            arm: arm.name.clone(),
            address: started.listen.to_string(),
            program: started.program,
            effective: started.effective,
            nofile: started.nofile,
            pid: started.pid,
            inert,
        };
        writer.append(&Record::Proxy(record.clone()))?;
        let started_arm = Started {
            name: arm.name.clone(),
            listen: started.listen,
            tls_listen: started.tls_listen,
            record,
        };
        Ok((started_arm, started.remarks))
    }

    fn proxy(&self) -> &Client {
        self.places.agent(Role::Proxy)
    }

    /// Ends all proxies and starts new instances of them, at the same addresses.
    pub(crate) fn renew(&mut self, writer: &mut RunWriter) -> Result<(), LabError> {
        for index in 0..self.started.len() {
            let at_arm = |source| LabError::Arm {
                arm: self.started[index].name.clone(),
                source,
            };
            let renewed: ArmRenewed = self.proxy().ask(Ask::Renew(index)).map_err(at_arm)?;
            let record = &mut self.started[index].record;
            record.pid = renewed.pid;
            // The configuration is the same file, so what was read back of it holds on.
            writer.append(&Record::Proxy(record.clone()))?;
        }
        Ok(())
    }

    /// The generator's side of each arm, or of the first `only`, all with the same arrivals.
    pub(crate) fn flows(
        &self,
        load: &LoadSpec,
        only: usize,
        arrivals: &Arrivals,
    ) -> Result<Vec<FlowJob>, LabError> {
        let arms = 0..self.started.len().min(only);
        arms.map(|arm| {
            Ok(FlowJob {
                arrivals: arrivals.clone(),
                ..self.flow(load, arm)?
            })
        })
        .collect()
    }

    /// What the engine has to know about an arm under a load.
    fn flow(&self, load: &LoadSpec, arm: usize) -> Result<FlowJob, LabError> {
        let started = &self.started[arm];
        let doors = Doors {
            clear: started.listen,
            tls: started.tls_listen.zip(self.certificate.as_deref()),
        };
        let local_ports = self.places.host(Role::Generator).is.local_ports;
        let mut flow = flow(load, arm, doors, &self.places.sources(arm), local_ports)?;
        flow.keeps_content = self.keeps_content;
        Ok(flow)
    }

    /// Sends one request and looks at the response as the engine would. It is sent in clear whatever
    /// the load does: both listeners are one server to the proxy. To a configuration of the user's they
    /// need not be: there may be none in clear, or one that sends everybody to the other.
    fn ask_once(&self, study: &Study, load: &LoadSpec, index: usize) -> Result<(), LabError> {
        let (arm, flow) = (&self.started[index], self.flow(load, index)?);
        let at = arm.listen;
        let proxy = study.proxy_of(&study.arms[index]);
        let is_other = proxy.configuration.is_some() && load.tls.is_some();
        if is_other && Some(at) == arm.tls_listen {
            return Ok(());
        }
        let wrong = |what: String| LabError::Answer {
            arm: arm.name.clone(),
            what,
            is_started: proxy.kind.is_started(),
        };
        let job = OnceJob {
            address: at,
            request: flow.request,
            head: flow.head,
            timeout: FIRST_ANSWER,
        };
        let asked: Result<u16, AgentError> = self.places.agent(Role::Generator).ask(Ask::Once(job));
        let status = match asked {
            Ok(status) => status,
            Err(AgentError::Failed(error)) => {
                let load = &load.name;
                return Err(wrong(format!("{error} (asked {at} under load `{load}`)")));
            }
            Err(error) => return Err(error.into()),
        };
        let expected = match proxy.role {
            // What somebody else's proxy answers is known to somebody else.
            _ if !proxy.kind.is_started() && (200..400).contains(&status) => status,
            _ if is_other && (300..400).contains(&status) => status,
            ProxyRole::ReverseProxy if proxy.kind.is_started() => study.origin.status,
            ProxyRole::ReverseProxy | ProxyRole::StaticFiles { .. } => 200,
        };
        if status == expected {
            return Ok(());
        }
        Err(wrong(format!(
            "status {status} instead of {expected}, under load `{}`",
            load.name
        )))
    }

    /// Every proxy still runs as it was started.
    ///
    /// # Errors
    /// One has ended, or lost a worker.
    pub(crate) fn alive(&self) -> Result<(), LabError> {
        Ok(self.proxy().ask(Ask::Alive)?)
    }

    /// What each proxy has counted of itself, in the order of the arms.
    ///
    /// # Errors
    /// One does not answer: that it has ended, if it has.
    pub(crate) fn counters(&self) -> Result<Vec<BTreeMap<String, u64>>, LabError> {
        let of_arm = |(index, arm): (usize, &Started)| {
            let counted = self.proxy().ask(Ask::Counters(index));
            counted.map_err(|source| LabError::Arm {
                arm: arm.name.clone(),
                source,
            })
        };
        let counted: Result<_, LabError> = self.started.iter().enumerate().map(of_arm).collect();
        if counted.is_err() {
            self.alive()?;
        }
        counted
    }

    /// Keeps the end of each proxy's error log in the run folder.
    pub(crate) fn keep_logs(&self, writer: &mut RunWriter) -> Result<(), LabError> {
        for (index, arm) in self.started.iter().enumerate() {
            let tail: String = self.proxy().ask(Ask::Log(index))?;
            if !tail.is_empty() {
                let name = format!("arms/{}/error.log", arm.name);
                writer.write_file(&name, tail.as_bytes())?;
            }
        }
        Ok(())
    }
}

impl Bench<'_> {
    fn job(&self, index: usize, tls: bool, origin: Option<SocketAddr>) -> Result<ArmJob, LabError> {
        let (study, arm) = (self.study, &self.study.arms[index]);
        let proxy = study.proxy_of(arm);
        let launcher = self.catalog.split(proxy.kind, &arm.settings).launcher;
        Ok(ArmJob {
            index,
            name: arm.name.clone(),
            kind: proxy.kind,
            executable: proxy.executable.clone(),
            role: proxy.role.clone(),
            settings: arm.settings.clone(),
            own: proxy.configuration.clone(),
            external: proxy.external,
            launcher: launcher.and_then(|name| study.launchers.get(&name).cloned()),
            address: self.places.address(Role::Proxy, Role::Generator)?,
            tls,
            origin,
            sizes: sizes(study),
            cpus: self.roles.proxy.clone(),
            nofile: STOCK_NOFILE,
        })
    }

    fn start_origin(&self) -> Result<Vec<SocketAddr>, LabError> {
        let job = OriginJob {
            spec: self.study.origin.clone(),
            sizes: sizes(self.study),
            arms: self.study.arms.len(),
            address: self.places.address(Role::Origin, Role::Proxy)?,
            cpus: self.roles.origin.clone(),
            descriptors: preflight::descriptors_of_origin(self.study),
        };
        Ok(self.places.agent(Role::Origin).ask(Ask::Origin(job))?)
    }
}

/// Those of an arm's changes that change nothing against the arm that it is compared with; each is a
/// proxy's kind and what was read back of it. Between two kinds nothing is inert: what stands there is
/// the same word of two languages, and the whole proxy is the change.
fn inert(
    catalog: &Catalog,
    changes: &Settings,
    (kind, effective): (ProxyKind, &Settings),
    against: Option<(ProxyKind, &Settings)>,
) -> Vec<Inert> {
    let alike = against.filter(|(other, _)| *other == kind);
    alike.map_or_else(Vec::new, |(_, theirs)| {
        catalog.inert(kind, changes, effective, theirs)
    })
}

/// The user's files are those that the run was begun with: blocks of two baselines do not mix. A run of
/// before there were sums has none.
fn must_be_as_before(file: &Path, sums: &str) -> Result<(), LabError> {
    let before = fs::read_to_string(file).unwrap_or_else(|_| sums.to_owned());
    match changed(&before, sums) {
        Some(file) => Err(LabError::Resume(format!(
            "{file} has changed since it was begun"
        ))),
        None => Ok(()),
    }
}

/// The first file that has another sum than before, or is not among them any more.
fn changed<'a>(before: &'a str, now: &'a str) -> Option<&'a str> {
    let not_in = |sums: &'a str| move |line: &&str| !sums.lines().any(|known| known == *line);
    let line = now.lines().find(not_in(before));
    let line = line.or_else(|| before.lines().find(not_in(now)))?;
    Some(line.split_once("  ").map_or(line, |(_, file)| file))
}

/// Sizes of the content that the loads of a study ask for, each once.
fn sizes(study: &Study) -> Vec<u64> {
    let sizes: BTreeSet<u64> = study.loads.iter().filter_map(|load| load.size).collect();
    sizes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_is_named() {
        let before = "1  /etc/a b\n2  /etc/c\n";
        assert_eq!(changed(before, before), None);
        assert_eq!(changed(before, "1  /etc/a b\n3  /etc/c\n"), Some("/etc/c"));
        let more = "1  /etc/a b\n2  /etc/c\n3  /etc/d\n";
        assert_eq!(changed(before, more), Some("/etc/d"));
        assert_eq!(changed(more, before), Some("/etc/d"));
    }

    #[test]
    fn a_level_that_another_proxy_has_too_is_not_inert() {
        let catalog = Catalog::builtin();
        let off = Settings::from([("access_log".to_owned(), "off".to_owned())]);
        let found = |other| {
            let against = Some((other, &off));
            inert(&catalog, &off, (ProxyKind::Haproxy, &off), against).len()
        };
        assert_eq!(found(ProxyKind::Haproxy), 1);
        assert_eq!(found(ProxyKind::Nginx), 0);
        assert_eq!(inert(&catalog, &off, (ProxyKind::Haproxy, &off), None), []);
    }
}
