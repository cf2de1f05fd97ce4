//! A copy of a user's Envoy bootstrap, in JSON or YAML.

use serde_json::Value;
use weir_configuration::document::{Dialect, Format, adapt_envoy, change, listeners, read, value};

use super::layout::arguments;
use crate::configuration::Configuration;
use crate::own::Copying;
use crate::{Own, SutError, Task};

pub(super) fn write(task: &Task<'_>, own: Own<'_>) -> Result<Configuration, SutError> {
    let wanted = task.wanted()?;
    let format = Dialect::Envoy.format(own.file);
    let user = read(own.file, format)?;
    let changed = change(&user, Dialect::Envoy, &wanted)?;
    let copying = Copying::begin(task, own, [user, changed], None)?;
    let copy = adapt_envoy(copying.changed(), &copying.surroundings(None))?;
    let listeners = listeners(&copy, Dialect::Envoy)?;
    let addresses = listeners.into_iter().map(|listener| listener.address);
    // Envoy takes the format from the name.
    let name = match format {
        Format::Json => "envoy.json",
        Format::Yaml => "envoy.yaml",
    };
    Ok(Configuration {
        arguments: arguments(&task.directives()?)?,
        ..copying.finish(copy, Some(name), addresses)?
    })
}

/// The bootstrap of a copy that was written.
pub(super) fn bootstrap(configuration: &Configuration) -> Result<Value, SutError> {
    let file = configuration.file();
    let format = Dialect::Envoy.format(&file);
    Ok(value(&read(&file, format)?, format)?)
}
