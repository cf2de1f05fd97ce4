//! Evidence of findings, each in one line.

use weir_doctor::{Evidence, FileEvidence, FileLine, HostEvidence, SysctlLine};

use super::cluster;
use crate::numbers::counted;

/// Returns a piece of evidence in one line.
pub fn evidence(evidence: &Evidence) -> String {
    match evidence {
        Evidence::File(evidence) => of_file(evidence),
        Evidence::Host(evidence) => of_host(evidence),
        Evidence::Cluster(evidence) => cluster::evidence(evidence),
        Evidence::Text(text) => text.clone(),
    }
}

fn of_file(evidence: &FileEvidence) -> String {
    match evidence {
        FileEvidence::Line(line) => place(line),
        FileEvidence::Unset { name, default } => format!("{name} is not set: {default}"),
        FileEvidence::SysctlLine(line) => sysctl_line(line),
    }
}

fn place(FileLine { file, line, text }: &FileLine) -> String {
    format!("{file}:{line}: {text}")
}

fn sysctl_line(SysctlLine { file, line, key, value, .. }: &SysctlLine) -> String {
    format!("{file}:{line}: {key} = {value}")
}

fn of_host(evidence: &HostEvidence) -> String {
    match evidence {
        HostEvidence::Sysctl { name, value } => format!("{name} = {value}"),
        HostEvidence::CpusOnline { cpus } => format!("{} online", counted(*cpus, "CPU")),
        HostEvidence::CpusAllowed { cpus } => {
            format!("{} allowed (Cpus_allowed_list)", counted(*cpus, "CPU"))
        }
        HostEvidence::CpuQuota { cpus } => format!("control group quota: {cpus:.2} CPUs"),
    }
}
