//! A copy of a user's haproxy.cfg.

use std::path::Path;

use weir_configuration::{
    ConfigurationError, RequestOutcome, ShownCertificate, Source, Surroundings, WantedSetting,
};
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;
use weir_sut::configuration::Configuration;
use weir_sut::own::Copying;
use weir_sut::user::{Id, WorkerUser};
use weir_sut::{Language, SutError, Task, UserConfiguration};

use super::Haproxy;
use super::layout::{ACCESS_LOG, USERS, offer_key};
use crate::language::{Tree, adapt, asked, certificates, change, read, replaced};

pub(super) fn write(
    haproxy: &Haproxy,
    task: &Task<'_>,
    own: UserConfiguration<'_>,
) -> Result<Configuration, SutError> {
    let [user, changed] = haproxy.read(own.file, &task.wanted()?)?;
    let worker = worker_of(&changed)?;
    // The master reads everything as the user it was started by; the worker uses no more than sockets.
    let copying = Copying::begin(task, own, [user, changed], worker.as_ref())?;
    let copy = haproxy.adapt(copying.changed(), &copying.surroundings(worker.as_ref()))?;
    let configuration = copying.finish(haproxy, copy, None)?;
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

impl Language for Haproxy {
    fn read(&self, main: &Path, wanted: &[WantedSetting<'_>]) -> Result<[Source; 2], SutError> {
        let user = read(main)?;
        let changed = change(&user, wanted)?;
        Ok([user, changed])
    }

    fn look_up(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<RequestOutcome>, ConfigurationError> {
        asked(source, ask)
    }

    fn replaced(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
        replaced(source, ask)
    }

    fn certificates(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ShownCertificate>, ConfigurationError> {
        certificates(source, ask)
    }

    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError> {
        adapt(source, surroundings)
    }
}

/// Returns the user that the workers become.
fn worker_of(source: &Source) -> Result<Option<WorkerUser>, SutError> {
    let tree = Tree::parse(source)?;
    let statements = || tree.of_kind("global").flat_map(|(_, section)| &section.statements);
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
