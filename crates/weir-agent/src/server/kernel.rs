//! What the kernel has, and is given, in an arm's namespace.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use weir_host::listeners;
use weir_host::sysctl::{self, SysctlError};
use weir_model::study::Settings;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};

/// What the kernel really keeps for the arm's listener, among its effective levels.
const LISTEN_BACKLOG: &str = "listen-backlog";
/// The range of local ports that the arm's namespace has.
const LOCAL_PORTS: &str = "local-ports";

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
        SysctlError::Absent { name } if sysctl::read(&name).is_ok() => {
            SysctlError::NotInNamespace { name }
        }
        other => other,
    }
}

/// What the kernel has in the calling thread's namespace: every setting of the catalog that it has,
/// and the accept queue of the listener at an address.
pub(super) fn levels(catalog: &Catalog, listen: SocketAddr) -> BTreeMap<String, String> {
    let level = |row: &Parameter| match &row.effective {
        EffectiveFrom::Sysctl { name } => row.read_back(Some(&sysctl::read(name).ok()?)),
        _ => None,
    };
    let mut levels: BTreeMap<String, String> = catalog
        .host_parameters()
        .filter_map(|row| Some((row.id.clone(), level(row)?)))
        .collect();
    let queues = listeners::listen_queues().unwrap_or_default();
    // With SO_REUSEPORT there is one for each worker, all alike.
    if let Some(queue) = queues.iter().find(|queue| queue.address == listen) {
        levels.insert(LISTEN_BACKLOG.to_owned(), queue.backlog.to_string());
    }
    if let Ok(range) = sysctl::read("net.ipv4.ip_local_port_range") {
        levels.insert(LOCAL_PORTS.to_owned(), range);
    }
    levels
}

/// Levels of the parameters that are limits of the process, by the limits' names.
pub(super) fn limits(catalog: &Catalog, found: &[(&str, u64)]) -> BTreeMap<String, String> {
    let level = |row: &Parameter| match &row.effective {
        EffectiveFrom::ProcessLimit { name } => {
            let (_, limit) = found.iter().find(|(limit, _)| limit == name)?;
            row.read_back(Some(&limit.to_string()))
        }
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
        let absent = |name: &str| {
            told_apart(SysctlError::Absent {
                name: name.to_owned(),
            })
        };
        let of_host = absent("net.core.somaxconn");
        assert!(matches!(of_host, SysctlError::NotInNamespace { .. }));
        let of_nobody = absent("net.core.of_no_kernel");
        assert!(matches!(of_nobody, SysctlError::Absent { .. }));
    }
}
