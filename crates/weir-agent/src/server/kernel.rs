//! What the kernel has, and is given, in an arm's namespace.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_host::listeners;
use weir_host::sysctl::{self, SysctlError};
use weir_model::study::Settings;
use weir_parameters::{Catalog, EffectiveFrom, Parameter, ProcessLimit, Reading};

/// Sets kernel settings of the calling thread's namespace.
///
/// Some of them bound each other, in either order: what is refused is tried again as long as anything
/// else can be set meanwhile.
pub(super) fn write_all(settings: &Settings) -> Result<(), SysctlError> {
    let mut left: Vec<_> = settings.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        let mut refused = None;
        left.retain(|(name, value)| match sysctl::write(name, value) {
            Ok(()) => false,
            Err(error) => {
                refused.get_or_insert(error);
                true
            }
        });
        match refused {
            Some(error) if left.len() == before => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What a namespace does not show, and the host has, is the host's alone.
pub(super) fn told_apart(error: SysctlError) -> SysctlError {
    match error {
        SysctlError::Absent(name) if sysctl::read(&name).is_ok() => {
            SysctlError::NotInNamespace(name)
        }
        other => other,
    }
}

/// What the catalog's rows and quantities are in the calling thread's namespace, for the listener at an
/// address whose workers have this limit of descriptors.
pub(super) fn levels(
    catalog: &Catalog,
    listen: SocketAddr,
    descriptors: u64,
) -> BTreeMap<String, String> {
    let level = |row: &Parameter| match &row.effective {
        EffectiveFrom::Sysctl { name } => row.read_back(Some(&sysctl::read(name).ok()?)),
        _ => None,
    };
    let mut levels: BTreeMap<String, String> = catalog
        .host_parameters()
        .filter_map(|row| Some((row.id.clone(), level(row)?)))
        .collect();
    let measured = catalog.quantities().filter_map(|(name, quantity)| {
        let value = match quantity.read.as_ref()? {
            Reading::AcceptQueue => accept_queue(listen)?,
            Reading::WorkerDescriptors => descriptors.to_string(),
            Reading::Sysctl { name } => sysctl::read(name).ok()?,
        };
        Some((name.clone(), value))
    });
    levels.extend(measured);
    levels
}

/// How long a queue the kernel keeps for a listener.
fn accept_queue(listen: SocketAddr) -> Option<String> {
    let queues = listeners::listen_queues().unwrap_or_default();
    // With SO_REUSEPORT there is one for each worker, all alike.
    let queue = queues.iter().find(|queue| queue.address == listen)?;
    Some(queue.backlog.to_string())
}

/// Levels of the parameters that are limits of the process: it started with so many descriptors.
pub(super) fn limits(catalog: &Catalog, descriptors: u64) -> BTreeMap<String, String> {
    let level = |row: &Parameter| match &row.effective {
        EffectiveFrom::ProcessLimit {
            name: ProcessLimit::Nofile,
        } => row.read_back(Some(&descriptors.to_string())),
        _ => None,
    };
    let rows = catalog.host_parameters();
    rows.filter_map(|row| Some((row.id.clone(), level(row)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_has_and_a_namespace_has_not_is_the_hosts() {
        let absent = |name: &str| told_apart(SysctlError::Absent(name.to_owned()));
        let of_host = absent("net.core.somaxconn");
        assert!(matches!(of_host, SysctlError::NotInNamespace { .. }));
        let of_nobody = absent("net.core.of_no_kernel");
        assert!(matches!(of_nobody, SysctlError::Absent { .. }));
    }
}
