//! A copy of a user's Envoy bootstrap, in JSON or YAML.

use std::path::Path;

use serde_json::Value;
use weir_configuration::document::{
    Dialect as _, Format, asked, certificates, change, read, replaced, value,
};
use weir_configuration::{
    ConfigurationError, RequestOutcome, ShownCertificate, Source, Surroundings, WantedSetting,
};
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;
use weir_sut::configuration::Configuration;
use weir_sut::own::Copying;
use weir_sut::{Language, SutError, Task, UserConfiguration};

use super::Envoy;
use super::language::{Bootstrap, adapt};
use super::layout::arguments;

pub(super) fn write(
    envoy: &Envoy,
    task: &Task<'_>,
    own: UserConfiguration<'_>,
) -> Result<Configuration, SutError> {
    let [user, changed] = envoy.read(own.file, &task.wanted()?)?;
    let copying = Copying::begin(task, own, [user, changed], None)?;
    let copy = envoy.adapt(copying.changed(), &copying.surroundings(None))?;
    // Envoy takes the format from the name.
    let name = match Bootstrap.format(own.file) {
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
        let user = read(main, Bootstrap.format(main))?;
        let changed = change(&user, &Bootstrap, wanted)?;
        Ok([user, changed])
    }

    fn look_up(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<RequestOutcome>, ConfigurationError> {
        asked(source, &Bootstrap, ask)
    }

    fn replaced(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
        replaced(source, &Bootstrap, ask)
    }

    fn certificates(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ShownCertificate>, ConfigurationError> {
        certificates(source, &Bootstrap, ask)
    }

    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError> {
        adapt(source, surroundings)
    }
}

/// Reads the bootstrap of a copy that was written.
pub(super) fn bootstrap(configuration: &Configuration) -> Result<Value, SutError> {
    let file = configuration.file();
    let format = Bootstrap.format(&file);
    Ok(value(&read(&file, format)?, format)?)
}
