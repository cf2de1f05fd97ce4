//! Input for writing a configuration, for any proxy.

use std::net::SocketAddr;
use std::path::Path;

use weir_configuration::WantedSetting;
use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::{Catalog, Directive};

use crate::{Site, SutError};

/// A configuration to be written: for which proxy, in which folder, and with which settings.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    pub kind: ProxyKind,
    /// Folder of the configuration.
    pub prefix: &'a Path,
    pub settings: &'a Settings,
    pub site: &'a Site<'a>,
    pub catalog: &'a Catalog,
}

/// Returns the catalog's rows for settings of a proxy.
///
/// # Errors
/// A parameter is not in the catalog for this proxy, or is not part of its configuration.
pub(crate) fn wanted<'a>(
    kind: ProxyKind,
    settings: &'a Settings,
    catalog: &'a Catalog,
) -> Result<Vec<WantedSetting<'a>>, SutError> {
    settings
        .iter()
        .map(|(id, level)| {
            let row = catalog
                .get(kind, id)
                .ok_or_else(|| SutError::UnknownParameter { kind, id: id.clone() })?;
            if row.scope.is_configuration() {
                Ok(WantedSetting { row, level })
            } else {
                Err(SutError::NotOfProxy { id: id.clone() })
            }
        })
        .collect()
}

impl<'a> Task<'a> {
    /// Checks that the proxy can do the task, before anything is written.
    pub(crate) fn check(&self) -> Result<(), SutError> {
        self.wanted()?;
        match self.site.role {
            // What a configuration of the user's serves is for that to say.
            _ if self.site.own.is_some() => Ok(()),
            ProxyRole::ReverseProxy => self.origin().map(drop),
            ProxyRole::StaticFiles { .. } if self.kind.serves_files() => Ok(()),
            ProxyRole::StaticFiles { .. } => Err(self.unable(
                "serve files: it passes requests on to an origin server and has none of its own",
            )),
        }
    }

    /// Returns the catalog's rows for the settings.
    ///
    /// # Errors
    /// A parameter is not in the catalog for this proxy, or is not part of its configuration.
    pub fn wanted(&self) -> Result<Vec<WantedSetting<'a>>, SutError> {
        wanted(self.kind, self.settings, self.catalog)
    }

    /// Returns the directives that the settings lead to, parameter by parameter. Proxies are started in the prefix,
    /// below which their logs are.
    ///
    /// # Errors
    /// Same as [`Task::wanted`].
    pub fn directives(&self) -> Result<Vec<Directive>, SutError> {
        let wanted = self.wanted()?.into_iter();
        let directives = wanted.flat_map(|wanted| wanted.row.directives(wanted.level));
        Ok(directives
            .map(|directive| Directive {
                text: directive.text.replace("{logs}", "logs"),
                ..directive
            })
            .collect())
    }

    /// Returns the address of the origin server.
    ///
    /// # Errors
    /// [`SutError::NoOrigin`].
    pub fn origin(&self) -> Result<SocketAddr, SutError> {
        self.site.origin.ok_or(SutError::NoOrigin)
    }

    /// Returns the error for something that the proxy cannot do.
    pub fn unable(&self, what: &str) -> SutError {
        SutError::Unable { kind: self.kind, what: what.to_owned() }
    }
}
