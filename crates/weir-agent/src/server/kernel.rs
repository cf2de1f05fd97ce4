//! Kernel settings of an arm's namespace, and the kernel's levels in force there.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_host::listeners;
use weir_host::sysctl::{self, SysctlError};
use weir_model::study::Settings;
use weir_parameters::{Catalog, EffectiveFrom, ProcessLimit, Reading};

/// Sets kernel settings of the calling thread's namespace.
///
/// Some settings bound each other, in either order, so refused settings are tried again as long as any other setting
/// succeeds.
pub(super) fn write_all(settings: &Settings) -> Result<(), SysctlError> {
    let mut remaining: Vec<_> = settings.iter().collect();
    while !remaining.is_empty() {
        let before = remaining.len();
        let mut refused = None;
        remaining.retain(|(name, value)| match sysctl::write(name, value) {
            Ok(()) => false,
            Err(error) => {
                refused.get_or_insert(error);
                true
            }
        });
        match refused {
            Some(error) if remaining.len() == before => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Refines an error: a setting that is absent in the namespace but exists on the host belongs to the host alone.
pub(super) fn told_apart(error: SysctlError) -> SysctlError {
    match error {
        SysctlError::Absent(name) if sysctl::read(&name).is_ok() => {
            SysctlError::NotInNamespace(name)
        }
        other => other,
    }
}

/// Reads the levels of the catalog's host parameters and quantities in the calling thread's namespace. `listen` is the
/// proxy's listener, and `descriptors` the descriptor limit of its workers.
pub(super) fn levels(
    catalog: &Catalog,
    listen: SocketAddr,
    descriptors: u64,
) -> BTreeMap<String, String> {
    let levels_of_rows = catalog.host_parameters().filter_map(|row| match &row.effective {
        EffectiveFrom::Sysctl { name } => {
            Some((row.id.clone(), row.read_back(Some(&sysctl::read(name).ok()?))?))
        }
        _ => None,
    });
    let mut levels: BTreeMap<String, String> = levels_of_rows.collect();
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

/// Returns the length of the queue that the kernel keeps for a listener; `None` if there is no such listener.
fn accept_queue(listen: SocketAddr) -> Option<String> {
    let queues = listeners::listen_queues().unwrap_or_default();
    // With SO_REUSEPORT there is one for each worker, all alike.
    let queue = queues.iter().find(|queue| queue.address == listen)?;
    Some(queue.backlog.to_string())
}

/// Returns the levels of the parameters that are process limits, for a process that started with this limit of
/// descriptors.
pub(super) fn limits(catalog: &Catalog, descriptors: u64) -> BTreeMap<String, String> {
    let levels = catalog.host_parameters().filter_map(|row| match &row.effective {
        EffectiveFrom::ProcessLimit { name: ProcessLimit::Nofile } => {
            Some((row.id.clone(), row.read_back(Some(&descriptors.to_string()))?))
        }
        _ => None,
    });
    levels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_has_and_a_namespace_has_not_is_the_hosts() {
        let of_host = told_apart(SysctlError::Absent("net.core.somaxconn".to_owned()));
        assert!(matches!(of_host, SysctlError::NotInNamespace { .. }));
        let of_nobody = told_apart(SysctlError::Absent("net.core.of_no_kernel".to_owned()));
        assert!(matches!(of_nobody, SysctlError::Absent { .. }));
    }
}
