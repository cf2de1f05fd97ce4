//! A copy of a user's Envoy bootstrap, in JSON or YAML.

use std::path::Path;

use serde_json::Value;
use weir_configuration::document::{
    Dialect, Format, adapt_envoy, asked, certificates, change, read, replaced, value,
};
use weir_configuration::{
    ConfigurationError, RequestOutcome, ShownCertificate, Source, Surroundings, WantedSetting,
};
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;

use super::Envoy;
use super::layout::arguments;
use crate::configuration::Configuration;
use crate::own::Copying;
use crate::{Language, SutError, Task, UserConfiguration};

pub(super) fn write(
    envoy: &Envoy,
    task: &Task<'_>,
    own: UserConfiguration<'_>,
) -> Result<Configuration, SutError> {
    let [user, changed] = envoy.read(own.file, &task.wanted()?)?;
    let copying = Copying::begin(task, own, [user, changed], None)?;
    let copy = envoy.adapt(copying.changed(), &copying.surroundings(None))?;
    // Envoy takes the format from the name.
    let name = match Dialect::Envoy.format(own.file) {
        Format::Json => "envoy.json",
        Format::Yaml => "envoy.yaml",
    };
    Ok(Configuration {
        arguments: arguments(&task.directives()?)?,
        ..copying.finish(envoy, copy, Some(name))?
    })
}

impl Language for Envoy {
    fn read(&self, main: &Path, wanted: &[WantedSetting<'_>]) -> Result<[Source; 2], SutError> {
        let user = read(main, Dialect::Envoy.format(main))?;
        let changed = change(&user, Dialect::Envoy, wanted)?;
        Ok([user, changed])
    }

    fn look_up(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<RequestOutcome>, ConfigurationError> {
        asked(source, Dialect::Envoy, ask)
    }

    fn replaced(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
        replaced(source, Dialect::Envoy, ask)
    }

    fn certificates(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ShownCertificate>, ConfigurationError> {
        certificates(source, Dialect::Envoy, ask)
    }

    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError> {
        adapt_envoy(source, surroundings)
    }
}

/// Reads the bootstrap of a copy that was written.
pub(super) fn bootstrap(configuration: &Configuration) -> Result<Value, SutError> {
    let file = configuration.file();
    let format = Dialect::Envoy.format(&file);
    Ok(value(&read(&file, format)?, format)?)
}
