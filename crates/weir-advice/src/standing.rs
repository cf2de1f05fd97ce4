//! Reasons why a recommendation cannot be tried on a host.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_model::study::{ProxyKind, Settings};
use weir_parameters::{Catalog, Scope, is_version_at_least};

use crate::book::{About, Book, Recommendation, Situation};
use crate::findings::Untried;

/// Properties of a host that recommendations depend on.
#[derive(Debug, Clone, Default)]
pub struct Installed {
    /// Program and version of each proxy that is installed: `nginx/1.22.1`.
    pub programs: BTreeMap<ProxyKind, String>,
    /// Release of the kernel.
    pub kernel: String,
    /// True if weir may change settings of the whole host.
    pub allows_host_settings: bool,
    /// True if recommendations are tried on a user's configuration, whose contents are not known.
    pub is_own: bool,
}

/// Standing of a recommendation on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It can be tried.
    Applies,
    /// The distribution's configuration has the recommended levels already.
    Stock,
    /// It cannot be tried.
    Untried(Untried),
}

impl Installed {
    /// Returns true if the subject of a recommendation has changed since so that there is no reason for it any more.
    pub fn is_obsolete(&self, advice: &Recommendation) -> bool {
        let version = match advice.about {
            About::Kernel => Some(&*self.kernel),
            About::Proxy(kind) => {
                self.programs.get(&kind).and_then(|program| program.rsplit('/').next())
            }
        };
        let since = advice.obsolete.as_ref().map(|obsolete| &*obsolete.since);
        version.zip(since).is_some_and(|(version, since)| is_version_at_least(version, since))
    }
}

/// Returns the standing of a recommendation on a host.
pub fn standing(advice: &Recommendation, catalog: &Catalog, installed: &Installed) -> Standing {
    if let Some(why) = &advice.not_here {
        return Standing::Untried(why.clone());
    }
    let scopes: Vec<Scope> =
        advice.changes.keys().filter_map(|id| catalog.scope(advice.proxy, id)).collect();
    if scopes.contains(&Scope::Workload) {
        return Standing::Untried(Untried::Kubernetes);
    }
    let Some(program) = installed.programs.get(&advice.proxy) else {
        return Standing::Untried(Untried::NotInstalled);
    };
    if scopes.contains(&Scope::KernelHost) && !installed.allows_host_settings {
        return Standing::Untried(Untried::HostSettings);
    }
    if installed.is_own {
        let situation = Book::builtin().situations.get(&advice.load);
        let is_possible = situation.is_some_and(Situation::suits_any_configuration);
        return if is_possible { Standing::Applies } else { Standing::Untried(Untried::Load) };
    }
    let of_versions =
        catalog.clone().for_proxy(advice.proxy, program).for_kernel(&installed.kernel);
    if is_stock(advice, &of_versions) { Standing::Stock } else { Standing::Applies }
}

/// Returns true if the distribution's configuration, with the defaults behind it, has all recommended levels.
fn is_stock(advice: &Recommendation, catalog: &Catalog) -> bool {
    let kind = advice.proxy;
    let mut stock: Settings = catalog.kernel_defaults();
    stock.extend(catalog.defaults(kind));
    stock.extend(catalog.stock(kind));
    advice.changes.iter().all(|(id, (_, to))| {
        let level = catalog.get(kind, id).and_then(|row| row.check(to).ok());
        level.is_some() && stock.get(id) == level.as_ref()
    })
}
