//! Actions of an agent's host, as a simulated host performs them: at once, and without touching anything.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use weir_agent::message::{
    Alive, ArmJob, ArmRenewed, ArmStarted, Counters, Describe, Description, End, FactsJob,
    FindProgram, Hands, HostRequirements, HostSettingsJob, Leftovers, LinkFigures, LinkJob,
    LinkListener, Log, MakeCertificates, Missing, NetworksJob, OnceJob, OriginJob, OriginListener,
    Program, PutBack, Renew, Restore, Rows, Settle,
};
use weir_agent::server::networks::{arm_addresses, origin_address};
use weir_agent::{Failure, FailureKind};
use weir_model::environment::Environment;
use weir_model::quantity::CpuSet;
use weir_model::record::HostFacts;

use crate::world::{START_NS, World};

/// Reason why there are no figures of links and no facts about the host.
const NOTHING: &str = "the host is simulated";

impl World {
    /// Returns the address of the arm in a slot.
    fn address(&self, slot: usize) -> SocketAddr {
        if self.has_networks {
            arm_addresses(slot).0
        } else {
            SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000 + slot as u16))
        }
    }
}

fn no_arm(slot: usize) -> Failure {
    Failure::other(format!("there is no arm in slot {slot}"))
}

impl Hands for World {
    fn describe(&mut self, Describe: Describe) -> Result<Description, Failure> {
        let cpus = (0..self.model.machine.cpus.max(1)).collect();
        let cpus = CpuSet::new(cpus).ok_or_else(|| Failure::other("a host without CPUs"))?;
        Ok(Description {
            environment: Environment {
                kernel: "simulated".to_owned(),
                cpu_model: "simulated".to_owned(),
                cpus: cpus.to_string(),
                ..Environment::default()
            },
            cpus,
            local_ports: 28_232,
            most_descriptors: 1 << 20,
            temp_folder: "/tmp".into(),
            temp_free_bytes: u64::MAX,
            own_tables: true,
            no_networks: None,
        })
    }

    fn settle(&mut self, _: Settle) -> Result<(), Failure> {
        Ok(())
    }

    fn rows(&mut self, _: Rows) -> Result<(), Failure> {
        Ok(())
    }

    fn find_program(&mut self, wanted: FindProgram) -> Result<Program, Failure> {
        let name = wanted.kind.name().to_owned();
        let version = format!("{name}/simulated");
        Ok(Program { name, version, sum: String::new() })
    }

    fn missing(&mut self, _: HostRequirements) -> Result<Missing, Failure> {
        Ok(Missing::default())
    }

    fn make_networks(&mut self, _: NetworksJob) -> Result<(), Failure> {
        self.has_networks = true;
        Ok(())
    }

    fn begin_settings(&mut self, _: HostSettingsJob) -> Result<(), Failure> {
        Ok(())
    }

    fn put_back(&mut self, PutBack: PutBack) -> Result<Vec<weir_agent::Restored>, Failure> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _: Restore) -> Result<Leftovers, Failure> {
        Ok(Leftovers { settings: Vec::new(), held: None, folders: Vec::new() })
    }

    fn start_origin(&mut self, job: OriginJob) -> Result<(), Failure> {
        self.status = job.spec.status;
        Ok(())
    }

    fn open_origin(&mut self, at: OriginListener) -> Result<SocketAddr, Failure> {
        let ip = if self.has_networks {
            origin_address(at.slot).ip()
        } else {
            Ipv4Addr::LOCALHOST.into()
        };
        let simulated = SocketAddr::new(ip, 10_000 + at.slot as u16);
        Ok(self.model.told.origin.unwrap_or(simulated))
    }

    fn make_certificates(&mut self, _names: MakeCertificates) -> Result<(), Failure> {
        Ok(())
    }

    fn start(&mut self, job: ArmJob) -> Result<ArmStarted, Failure> {
        if self.arms.contains_key(&job.slot) {
            return Err(Failure::other(format!("slot {} is another arm's", job.slot)));
        }
        let arm = self.instance(&job.name)?;
        let (told, own) = (self.model.told, self.address(job.slot));
        let started = ArmStarted {
            listen: told.listen.unwrap_or(own),
            tls_listen: told.tls_listen.or(job.tls.then_some(own)),
            certificate: job.tls.then(|| "simulated".to_owned()),
            asked: Vec::new(),
            program: format!("{}/simulated", job.kind.name()),
            written: Vec::new(),
            patch: None,
            sums: String::new(),
            effective_text: String::new(),
            effective: job.settings,
            nofile: job.nofile,
            pid: arm.pid,
            start_ns: START_NS,
            remarks: Vec::new(),
        };
        self.arms.insert(job.slot, arm);
        Ok(started)
    }

    fn renew(&mut self, Renew(slot): Renew) -> Result<ArmRenewed, Failure> {
        let pid = self.renewed(slot)?;
        Ok(ArmRenewed { pid })
    }

    fn end_arm(&mut self, End(slot): End) -> Result<(), Failure> {
        // Its namespace ends with it.
        self.memories.remove(&slot);
        self.arms.remove(&slot).map(drop).ok_or_else(|| no_arm(slot))
    }

    fn alive(&mut self, Alive: Alive) -> Result<(), Failure> {
        let now_ns = self.now_ns;
        match self.arms.values().find(|arm| arm.has_crashed(now_ns)) {
            None => Ok(()),
            Some(arm) => Err(Failure {
                kind: FailureKind::ArmEnded,
                ..Failure::other("it has ended by itself").of_arm(&arm.name)
            }),
        }
    }

    fn log(&mut self, Log(slot): Log) -> Result<String, Failure> {
        let arm = self.arms.get(&slot).ok_or_else(|| no_arm(slot))?;
        Ok(if arm.has_crashed(self.now_ns) {
            format!("{} has crashed\n", arm.name)
        } else {
            String::new()
        })
    }

    fn counters(&mut self, Counters(slot): Counters) -> Result<BTreeMap<String, u64>, Failure> {
        let arm = self.arms.get(&slot).ok_or_else(|| no_arm(slot))?;
        Ok(BTreeMap::from([("requests".to_owned(), arm.requests)]))
    }

    fn listen_for_link(&mut self, _: LinkListener) -> Result<SocketAddr, Failure> {
        Err(Failure::other(NOTHING))
    }

    fn measure_link(&mut self, _: LinkJob) -> Result<LinkFigures, Failure> {
        Err(Failure::other(NOTHING))
    }

    fn facts(&mut self, _: FactsJob) -> Result<HostFacts, Failure> {
        Err(Failure::other(NOTHING))
    }

    fn once(&mut self, job: OnceJob) -> Result<u16, Failure> {
        let now_ns = self.now_ns;
        let addressed = self.arms.iter().find(|(slot, _)| self.address(**slot) == job.address);
        match addressed {
            Some((_, arm)) if !arm.has_crashed(now_ns) => Ok(self.status),
            _ => Err(Failure::other("Connection refused (os error 111)")),
        }
    }
}
