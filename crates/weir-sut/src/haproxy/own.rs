//! A copy of a user's haproxy.cfg.

use weir_configuration::Source;
use weir_configuration::haproxy::{Tree, adapt, change, listeners, read};

use super::layout::{ACCESS_LOG, USERS, offer_key};
use crate::configuration::Configuration;
use crate::own::Copying;
use crate::user::{Id, WorkerUser};
use crate::{Own, SutError, Task};

pub(super) fn write(task: &Task<'_>, own: Own<'_>) -> Result<Configuration, SutError> {
    let wanted = task.wanted()?;
    let user = read(own.file)?;
    let changed = change(&user, &wanted)?;
    let worker = worker_of(&changed)?;
    // The master reads everything as the user it was started by; the worker uses no more than sockets.
    let copying = Copying::begin(task, own, [user, changed], worker.as_ref())?;
    let copy = adapt(copying.changed(), &copying.surroundings(worker.as_ref()))?;
    let listeners = listeners(&copy)?;
    let addresses = listeners.into_iter().map(|listener| listener.address);
    let configuration = copying.finish(copy, None, addresses)?;
    if task.site.tls.is_some() {
        let folder = configuration.prefix().join("conf");
        offer_key(&folder).map_err(SutError::file("write", folder))?;
    }
    Ok(Configuration {
        stdout: Some(ACCESS_LOG.into()),
        workers: 1,
        // As HAProxy does by itself.
        shares_port: true,
        ..configuration
    })
}

/// The user that the workers are to become.
fn worker_of(source: &Source) -> Result<Option<WorkerUser>, SutError> {
    let tree = Tree::parse(source)?;
    let globals = || tree.of_kind("global");
    let statements = || globals().flat_map(|(_, section)| &section.statements);
    // The first of either counts.
    let [user, group] = [("user", "uid"), ("group", "gid")].map(|(name, number)| {
        statements().find_map(|statement| match statement.word(0) {
            word if word == name => Some(Id::Name(statement.word(1))),
            word if word == number => statement.word(1).parse().ok().map(Id::Number),
            _ => None,
        })
    });
    Ok(WorkerUser::named(user, group, &USERS))
}
