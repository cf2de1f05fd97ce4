//! Machines that a workload needs, from what runs measured.
//!
//! Each resource is predicted from the times in which an arm carried a load ([`weir_stats::plane`]), up to twice the
//! highest rate and number of connections that were measured. A larger workload is shared by machines of which none has
//! more than was measured. That they do not share a limit is an assumption, and said to be one.

use weir_model::record::Validity;
use weir_model::study::Arm;
use weir_record::Run;
use weir_stats::clusters::INSTANCE_SD;
use weir_stats::plane::{NoPlane, Plane, PlanePoint, fit_plane};

use crate::findings::{
    Findings, Need, NeedUnknown, NodeBound, Nodes, SizeBasis, SizeFindings, SizedResource,
    Workload, WorkloadVariable,
};
use crate::limiter::{CarriedWindow, windows};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Largest extrapolation of a variable, as a multiple of its highest measured value.
const FARTHEST: f64 = 2.0;
/// Share of a machine's memory that the proxy may have.
const MEMORY_SHARE: f64 = 0.8;
/// Relative difference up to which a variable counts as the one that was measured.
const SAME: f64 = 0.2;
/// Maximum number of machines that are tried.
const MOST_NODES: u32 = 1_000_000;

/// Quantities of `limits/quantities.yaml` for each resource, the best one first.
const QUANTITIES: [(SizedResource, &[&str]); 4] = [
    (SizedResource::CpuTime, &["proxy_cpus", "own_cpu"]),
    (SizedResource::Memory, &["memory"]),
    (SizedResource::Network, &["bytes"]),
    (SizedResource::Sockets, &["own_sockets", "connections"]),
];

/// Reason why runs give no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// No run has the arm.
    #[error("no run has an arm `{0}`")]
    NoArm(String),
    /// No run has a time long enough for samples in which the arm carried an open load.
    #[error("`{0}` carried no open load long enough for samples, 2.2 s, in any of the runs")]
    NothingCarried(String),
}

/// Determines what a workload needs of the arm, from runs of the same proxy on the same machine, each with its findings.
pub fn size(
    runs: &[(Run, Findings)],
    arm: &str,
    workload: Workload,
) -> Result<SizeFindings, SizeError> {
    let arms: Vec<(&Run, &Arm)> = runs
        .iter()
        .filter_map(|(run, _)| {
            let arm = run.header.study.arms.iter().find(|known| known.name == arm)?;
            Some((run, arm))
        })
        .collect();
    let Some((first, of_first)) = arms.first() else {
        return Err(SizeError::NoArm(arm.to_owned()));
    };
    let all: Vec<CarriedWindow> = arms.iter().flat_map(|(run, arm)| windows(run, arm)).collect();
    let Some((rates, connections)) = ranges(&all) else {
        return Err(SizeError::NothingCarried(arm.to_owned()));
    };
    let (carried, is_capacity) = match capacity_of(runs, arm) {
        Some(low) => (low, true),
        None => (rates.1, false),
    };
    let cpus = of_first.cpus(&first.header.cpus).cpus().len();
    let basis = SizeBasis {
        windows: all.len() as u32,
        rates,
        connections,
        carried,
        is_capacity,
        busiest: busiest(&all, cpus),
        cpus: cpus as u32,
        memory_bytes: first.header.environment.memory_bytes,
    };
    let sizer = Sizer { planes: QUANTITIES.map(|(_, names)| plane_of(&all, names)), basis };
    let nodes = sizer.nodes(workload);
    Ok(SizeFindings {
        arm: arm.to_owned(),
        validity: runs
            .iter()
            .map(|(_, findings)| findings.headline.validity)
            .max()
            .unwrap_or(Validity::Invalid),
        runs: arms.iter().map(|(run, _)| run.header.run.clone()).collect(),
        workload,
        one: sizer.needs(workload),
        why_no_nodes: nodes.as_ref().err().copied(),
        nodes: nodes.ok(),
        basis: sizer.basis,
    })
}

/// Returns the lower end of the arm's capacity, the smallest of several; `None` if none was claimed.
fn capacity_of(runs: &[(Run, Findings)], arm: &str) -> Option<f64> {
    runs.iter()
        .filter_map(|(_, findings)| findings.capacity.as_ref())
        .flat_map(|capacity| &capacity.arms)
        .filter(|capacity| capacity.answer.arm == arm && capacity.claimed)
        .map(|capacity| capacity.answer.low)
        .reduce(f64::min)
}

/// Returns the ranges of rate and connections; `None` without windows.
fn ranges(windows: &[CarriedWindow]) -> Option<((f64, f64), (f64, f64))> {
    let rates = windows.iter().filter_map(|window| window.evidence.value("rate"));
    let connections = windows.iter().map(|window| window.connections);
    Some((range(rates)?, range(connections)?))
}

fn range(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
}

/// Returns the largest share of its CPUs that the proxy used while it carried a load.
fn busiest(windows: &[CarriedWindow], cpus: usize) -> Option<f64> {
    let (_, names) = QUANTITIES[0];
    windows
        .iter()
        .filter_map(|window| names.iter().find_map(|name| window.evidence.value(name)))
        .map(|cpu_time| cpu_time / cpus as f64)
        .reduce(f64::max)
}

/// Fits the first of the quantities that is known often enough.
fn plane_of(windows: &[CarriedWindow], names: &[&str]) -> Result<Plane, NeedUnknown> {
    let mut most = 0;
    for name in names {
        let points: Vec<PlanePoint> = windows
            .iter()
            .filter_map(|window| {
                let rate = window.evidence.value("rate")?;
                let y = window.evidence.value(name)?;
                Some(PlanePoint { x: [rate, window.connections], y })
            })
            .collect();
        match fit_plane(&points) {
            Ok(plane) => return Ok(plane),
            Err(NoPlane::Entangled) => return Err(NeedUnknown::Entangled),
            Err(NoPlane::FewPoints) => most = most.max(points.len()),
        }
    }
    Err(NeedUnknown::FewWindows(most as u32))
}

/// Predictions of all resources.
struct Sizer {
    /// Planes in the order of [`QUANTITIES`].
    planes: [Result<Plane, NeedUnknown>; 4],
    basis: SizeBasis,
}

impl Sizer {
    /// Returns what one machine needs for a workload.
    fn needs(&self, workload: Workload) -> Vec<Need> {
        let mut needs = Vec::new();
        for ((resource, _), plane) in QUANTITIES.iter().zip(&self.planes) {
            let amount = match plane {
                Ok(plane) => self.predict(plane, workload),
                Err(why) => Err(*why),
            };
            needs.push(need(*resource, amount));
            if let (SizedResource::CpuTime, Some(busiest)) = (resource, self.basis.busiest) {
                let scaled = amount
                    .map(|(value, (low, high))| (value / busiest, (low / busiest, high / busiest)));
                needs.push(need(SizedResource::Cpus, scaled));
            }
        }
        needs
    }

    fn predict(&self, plane: &Plane, workload: Workload) -> Result<(f64, (f64, f64)), NeedUnknown> {
        let measured = [self.basis.rates, self.basis.connections];
        let wanted = [workload.rate, workload.connections.unwrap_or(self.basis.connections.1)];
        let variables = [WorkloadVariable::Rate, WorkloadVariable::Connections];
        for ((variable, varied), (wanted, (_, highest))) in
            variables.into_iter().zip(plane.varied).zip(wanted.into_iter().zip(measured))
        {
            if wanted > FARTHEST * highest {
                return Err(NeedUnknown::BeyondTwice { variable, measured: highest, wanted });
            }
            if !varied && (wanted - highest).abs() > SAME * highest {
                return Err(NeedUnknown::NotVaried(variable));
            }
        }
        let within = plane.predict(wanted, CONFIDENCE, INSTANCE_SD);
        Ok((within.value, (within.low, within.high)))
    }

    /// Shares a workload between machines, each of which carries its part and has the memory for it.
    fn nodes(&self, workload: Workload) -> Result<Nodes, NeedUnknown> {
        let (fewest_connections, most_connections) = self.basis.connections;
        let is_varied = most_connections > (1.0 + SAME) * fewest_connections;
        if !is_varied && workload.connections.is_some_and(|n| n > (1.0 + SAME) * most_connections) {
            return Err(NeedUnknown::NotVaried(WorkloadVariable::Connections));
        }
        let by_rate = parts(workload.rate, self.basis.carried);
        let by_connections = workload.connections.map_or(1, |n| parts(n, most_connections));
        let mut count = by_rate.max(by_connections);
        let mut bound =
            if by_connections > by_rate { NodeBound::Connections } else { NodeBound::Rate };
        loop {
            let share = Workload {
                rate: workload.rate / f64::from(count),
                connections: workload.connections.map(|n| n / f64::from(count)),
            };
            let needs = self.needs(share);
            // Whoever asks for connections must know what they take.
            if let (Some(_), Err(why)) = (workload.connections, self.memory(share)) {
                return Err(why);
            }
            let memory = SizeFindings::amount(&needs, SizedResource::Memory);
            let room = MEMORY_SHARE * self.basis.memory_bytes as f64;
            if memory.is_none_or(|(_, (_, high))| high <= room) {
                return Ok(Nodes { count, bound, each: share, needs });
            }
            bound = NodeBound::Memory;
            count = count.saturating_mul(2).min(count.saturating_add(count / 8 + 1));
            if count > MOST_NODES {
                return Err(NeedUnknown::TooLittleMemory);
            }
        }
    }

    fn memory(&self, workload: Workload) -> Result<(f64, (f64, f64)), NeedUnknown> {
        let plane = self.planes[1].as_ref().map_err(|why| *why)?;
        self.predict(plane, workload)
    }
}

fn need(resource: SizedResource, amount: Result<(f64, (f64, f64)), NeedUnknown>) -> Need {
    Need { resource, amount: amount.ok(), why_unknown: amount.err() }
}

/// Returns the number of parts into which `whole` is to be divided so that none is larger than `largest`.
fn parts(whole: f64, largest: f64) -> u32 {
    (whole / largest).ceil().clamp(1.0, f64::from(MOST_NODES)) as u32
}
