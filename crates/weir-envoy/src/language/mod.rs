//! Envoy's bootstrap as users write it: the way of a request through it, and a copy that runs beside the original.

mod bootstrap;
mod certificates;
mod clusters;
mod filters;
mod known;
mod protocol;
mod replaced;
mod routes;

use std::path::Path;

use serde_json::Value as Json;
use weir_configuration::asked::{Request, look_up};
use weir_configuration::document::asked::{Document, Parts};
use weir_configuration::document::find::{get, is_constant};
use weir_configuration::document::{Dialect, Format, Pointer};
use weir_configuration::replaced::Replacements;
use weir_configuration::{ConfigurationError, RequestOutcome};
use weir_model::study::AskSpec;

pub use bootstrap::adapt;

/// Envoy's bootstrap, in JSON or YAML. Contexts: `bootstrap` (the whole), `listener` (each in `static_resources`),
/// `hcm` (each HttpConnectionManager), `route` (each action `route` of their virtual hosts), `cluster` (each in
/// `static_resources`), among others.
#[derive(Debug, Clone, Copy)]
pub struct Bootstrap;

impl Dialect for Bootstrap {
    fn name(&self) -> &'static str {
        "Envoy"
    }

    /// Envoy decides by the name: `.json`, otherwise YAML here.
    fn format(&self, path: &Path) -> Format {
        if path.extension().is_some_and(|extension| extension == "json") {
            Format::Json
        } else {
            Format::Yaml
        }
    }

    fn logs(&self) -> &'static str {
        "/var/log/envoy"
    }

    fn objects(&self, document: &Json, context: &str) -> Option<Vec<Pointer>> {
        bootstrap::objects(document, context)
    }

    fn companions(
        &self,
        document: &Json,
        context: &str,
        object: &Pointer,
        _at: &str,
    ) -> Option<Vec<(Pointer, Json)>> {
        if context != "upstream_http" || get(document, object).is_some() {
            return Some(Vec::new());
        }
        let fields = bootstrap::new_upstream_http(get(document, &cluster_of(object))?)?;
        Some(fields.into_iter().map(|(name, value)| (object.child(name), value)).collect())
    }

    /// A cluster itself has fields of the same names (`common_http_protocol_options`), which count without the other
    /// object.
    fn in_force(&self, document: &Json, context: &str, object: Pointer) -> Pointer {
        if context == "upstream_http" && get(document, &object).is_none() {
            cluster_of(&object)
        } else {
            object
        }
    }

    /// An item of a list may be for requests of one priority alone.
    fn is_for_all(&self, item: &Json) -> bool {
        let priority = bootstrap::present(item, "priority");
        priority.is_none_or(|priority| is_constant(priority, "DEFAULT", 0))
    }

    /// Listeners have access logs beside those of their connection managers.
    fn other_logs(&self, document: &Json) -> Vec<Pointer> {
        let listeners = bootstrap::objects(document, "listener").into_iter().flatten();
        listeners
            .map(|listener| listener.child("access_log"))
            .filter(|log| get(document, log).is_some())
            .collect()
    }

    fn document<'a>(&self, parts: Parts<'a>) -> Document<'a> {
        bootstrap::document(parts)
    }

    fn certificates(
        &self,
        document: &Document<'_>,
        ask: &AskSpec,
    ) -> Result<Vec<(Pointer, Json)>, ConfigurationError> {
        let outcomes = look_up(document, ask)?;
        let first = outcomes.first().map(|first| certificates::certificates(document, first));
        Ok(first.unwrap_or_default())
    }

    fn add_replaced(
        &self,
        document: &Document<'_>,
        way: (&Request<'_>, &RequestOutcome),
        replacements: &mut Replacements<'_>,
    ) {
        replaced::add(document, way, replacements);
    }
}

/// Returns the cluster that an object of a cluster's extension belongs to.
fn cluster_of(object: &Pointer) -> Pointer {
    object.first(object.tokens().len().saturating_sub(2))
}
