//! Runs with servers that weir does not start: what `weir capacity URL` and `weir compare` have in common.

use std::net::SocketAddr;
use std::path::Path;

use weir_hosts::Options;
use weir_lab::LabError;
use weir_model::quantity::CpuSet;
use weir_model::study::{CpuRoles, Study};

use crate::commands::{flag, load};
use crate::failure::Failure;

/// Returns the CPUs of the generator: the named ones, or all. `None` if the server needs some of them or generators are
/// on other hosts.
pub(super) fn choose_cpus(
    wanted: Option<&str>,
    mut servers: impl Iterator<Item = SocketAddr>,
    options: &Options,
) -> Result<Option<CpuRoles>, Failure> {
    let is_own = servers.any(|peer| weir_hosts::is_own(peer.ip()));
    let is_here = options.places.sends_from_here();
    let generator = match wanted {
        Some(text) => flag("--cpus", text.parse::<CpuSet>())?,
        // The lab shares them out.
        None if is_own || !is_here => return Ok(None),
        None => cpus_of_this_host(options)?,
    };
    let server_cpus = if is_here { generator.clone() } else { cpus_of_this_host(options)? };
    Ok(Some(CpuRoles { proxy: server_cpus.clone(), origin: server_cpus, generator }))
}

fn cpus_of_this_host(options: &Options) -> Result<CpuSet, Failure> {
    let facts = weir_hosts::facts(options).map_err(|error| Failure::of_run(error, None))?;
    Ok(facts.cpus)
}

/// Returns the command line as a comment, to be kept in place of a study's text.
pub(super) fn command_line() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words = std::iter::once("weir").chain(words.iter().map(String::as_str));
    let line = shlex::try_join(words).unwrap_or_else(|_| "weir".to_owned());
    format!("# {}\n", line.replace('\n', " "))
}

/// Converts an error of the run to a failure, in the words of `weir load` if the server did not answer as it should.
pub(super) fn explained(error: LabError, study: &Study, folder: &Path) -> Failure {
    let external = match &error {
        LabError::Unexpected { arm, .. } | LabError::Answer { arm, .. } => {
            let arm = study.arms.iter().find(|one| one.name == *arm);
            arm.and_then(|arm| study.proxy_of(arm).external.as_ref())
        }
        _ => None,
    };
    let url = external.and_then(|server| server.named.as_deref()).unwrap_or_default();
    match error {
        LabError::Unexpected { status, expected, .. } => {
            let (to, elsewhere) = external
                .filter(|_| (300..400).contains(&status))
                .map(|server| {
                    let flow = &study.loads[0].main;
                    let requests = server.requests.as_ref().map(|requests| requests.flow(flow));
                    load::about_redirect(requests.as_ref().unwrap_or(flow), server.address, status)
                })
                .unwrap_or_default();
            let message = format!(
                "{url} answers with status {status}{to}, which is an error: {expected} is expected"
            );
            Failure::failed(message).hint(match status {
                300..=399 => elsewhere,
                100..=599 => format!("if that is right: -e status={status}"),
                _ => "that is no status of HTTP (RFC 9110 section 15): is this the right server?"
                    .to_owned(),
            })
        }
        LabError::Answer { what, .. } => {
            let hint = load::hint(&what).unwrap_or("is this the right server?");
            Failure::failed(format!("{url}: {what}")).hint(hint)
        }
        error => Failure::of_run(error, Some(folder)),
    }
}
