//! A copy of a user's Envoy bootstrap, in JSON or YAML.

use std::path::Path;

use serde_json::Value;
use weir_configuration::document::{Dialect, Format, adapt_envoy, change, listeners, read, value};
use weir_model::study::{ProxyKind, Settings};
use weir_parameters::Catalog;

use super::layout::arguments;
use crate::configuration::{Configuration, wanted};
use crate::own::Copying;
use crate::{Own, Site, SutError};

pub(super) fn write(
    prefix: &Path,
    settings: &Settings,
    site: &Site<'_>,
    own: Own<'_>,
    catalog: &Catalog,
) -> Result<Configuration, SutError> {
    const KIND: ProxyKind = ProxyKind::Envoy;
    let wanted = wanted(KIND, settings, catalog)?;
    let format = Dialect::Envoy.format(own.file);
    let user = read(own.file, format)?;
    let changed = change(&user, Dialect::Envoy, &wanted)?;
    let copying = Copying::begin(KIND, prefix, site, own, [user, changed], None)?;
    let copy = adapt_envoy(copying.changed(), &copying.surroundings(None))?;
    let listeners = listeners(&copy, Dialect::Envoy)?;
    let addresses = listeners.iter().map(|listener| &*listener.address);
    let is_in_clear = copying.is_asked_in_clear(addresses);
    // Envoy takes the format from the name.
    let name = match format {
        Format::Json => "envoy.json",
        Format::Yaml => "envoy.yaml",
    };
    Ok(Configuration {
        arguments: arguments(settings, catalog)?,
        ..copying.finish(copy, Some(name), is_in_clear)?
    })
}

/// The bootstrap of a copy that was written.
pub(super) fn bootstrap(configuration: &Configuration) -> Result<Value, SutError> {
    let file = configuration.file();
    let format = Dialect::Envoy.format(&file);
    Ok(value(&read(&file, format)?, format)?)
}
