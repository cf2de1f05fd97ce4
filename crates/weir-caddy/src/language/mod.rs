//! Caddy's JSON as users write it: the way of a request through it, and a copy that runs beside the original. (A
//! Caddyfile is converted to JSON by `caddy adapt`.)

mod document;
mod known;
mod matchers;
mod passage;
mod replaced;
mod routes;

use std::path::Path;

use serde_json::Value as Json;
use weir_configuration::asked::{Request, look_up};
use weir_configuration::document::asked::{Document, Parts};
use weir_configuration::document::find::get;
use weir_configuration::document::{Dialect, Format, Pointer};
use weir_configuration::place::like;
use weir_configuration::replaced::Replacements;
use weir_configuration::{ConfigurationError, RequestOutcome, ShownCertificate};
use weir_model::study::AskSpec;

pub use document::adapt;

/// Caddy's JSON. Contexts: `root` (the whole), `admin`, `server` (each of the app `http`), `reverse_proxy` (each such
/// handler, also inside `subroute`), `transport` (each such handler's, unless it speaks something else than HTTP),
/// among others.
#[derive(Debug, Clone, Copy)]
pub struct CaddyJson;

impl Dialect for CaddyJson {
    fn name(&self) -> &'static str {
        "Caddy"
    }

    fn format(&self, _path: &Path) -> Format {
        Format::Json
    }

    fn logs(&self) -> &'static str {
        "/var/log/caddy"
    }

    fn objects(&self, document: &Json, context: &str) -> Option<Vec<Pointer>> {
        document::objects(document, context)
    }

    fn companions(
        &self,
        document: &Json,
        context: &str,
        object: &Pointer,
        at: &str,
    ) -> Option<Vec<(Pointer, Json)>> {
        let mut values = Vec::new();
        if context != "transport" {
            return Some(values);
        }
        if get(document, object).is_none() {
            values.push((object.child("protocol"), "http".into()));
        }
        let keep_alive = object.child("keep_alive");
        if at.starts_with("/keep_alive/") && get(document, &keep_alive).is_none() {
            let defaults = document::new_keep_alive();
            values.extend(defaults.map(|(name, value)| (keep_alive.child(name), value)));
        }
        Some(values)
    }

    /// A duration gets the unit of the one that it replaces, minutes or hours, if it comes out even.
    fn in_style(&self, existing: &Json, value: String) -> String {
        const SECONDS: [(&str, u64); 2] = [("m", 60), ("h", 3600)];
        let wanted = serde_json::from_str::<String>(&value).ok();
        let seconds = wanted.and_then(|text| text.strip_suffix('s')?.parse().ok());
        let styled = seconds
            .zip(existing.as_str())
            .and_then(|(seconds, existing)| like(existing, seconds, &SECONDS));
        styled.map_or(value, |styled| Json::from(styled).to_string())
    }

    fn document<'a>(&self, parts: Parts<'a>) -> Document<'a> {
        document::document(parts, true)
    }

    /// A load in clear meets servers with automatic HTTPS in clear, if it finds its answers only there.
    fn look_up<'a>(
        &self,
        parts: Parts<'a>,
        ask: &AskSpec,
    ) -> Result<(Document<'a>, Vec<RequestOutcome>), ConfigurationError> {
        document::with_document(parts, ask.tls, |document| look_up(document, ask))
    }

    fn certificates(
        &self,
        document: &Document<'_>,
        _ask: &AskSpec,
    ) -> Result<Vec<(Pointer, Json)>, ConfigurationError> {
        let places = replaced::certificates(document.json).into_iter();
        let values = places.map(|at| {
            let value = get(document.json, &at).cloned().unwrap_or_default();
            (at, value)
        });
        Ok(values.collect())
    }

    fn automatic_certificate(
        &self,
        document: &Document<'_>,
        server_name: &str,
    ) -> Option<ShownCertificate> {
        Some(replaced::automatic_certificate(document, server_name))
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
