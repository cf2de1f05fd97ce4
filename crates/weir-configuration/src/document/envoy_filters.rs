//! What Envoy's filters do for a request of a load, and which configuration of theirs is in force for its route.

use serde_json::Value as Json;

use weir_model::record::ReplacedPart;

use super::envoy_routes::{may_take, share};
use super::find::{field, get, is_constant, items};
use super::pointer::Pointer;
use crate::asked::Request;

/// Types of filters, and what of them a run has otherwise.
const FILTERS: [(&str, ReplacedPart); 12] = [
    ("AdaptiveConcurrency", ReplacedPart::Limit),
    ("AdmissionControl", ReplacedPart::Limit),
    ("BandwidthLimit", ReplacedPart::Limit),
    ("CacheConfig", ReplacedPart::Content),
    ("Compressor", ReplacedPart::Content),
    ("ConnectionLimit", ReplacedPart::Limit),
    ("Decompressor", ReplacedPart::Content),
    ("ExtAuthz", ReplacedPart::Service),
    ("IPTagging", ReplacedPart::ClientAddress),
    ("LocalRateLimit", ReplacedPart::Limit),
    ("RateLimit", ReplacedPart::Service),
    ("ProxyProtocol", ReplacedPart::ProxyProtocol),
];

/// Shares of requests and switches by which filters are off.
const SWITCHES: [&str; 5] = [
    "/enabled",
    "/filter_enabled",
    "/filter_enforced",
    "/response_direction_config/common_config/enabled",
    "/runtime_enabled",
];

/// The type of a configuration, and whether it is that of an HTTP filter.
pub(super) fn type_of(config: &Json) -> (&str, bool) {
    let message = config.get("@type").and_then(Json::as_str);
    let message = message.unwrap_or_default();
    let kind = message.rsplit('.').next().unwrap_or_default();
    (kind, message.contains(".filters.http."))
}

/// What of a filter a run has otherwise, if it does anything for a request; `levels` are the places that may configure it,
/// inner ones first, for an HTTP filter.
pub(super) fn replaced(
    json: &Json,
    config: &Json,
    levels: &[Pointer],
    request: &Request<'_>,
) -> Option<(&'static str, ReplacedPart)> {
    let (kind, is_http) = type_of(config);
    let known = FILTERS.iter().find(|(name, _)| *name == kind)?;
    let is_off = |at: &&str| {
        let said = get(config, &Pointer::parse(at));
        said.is_some_and(|said| share(json, said) == Some(false))
    };
    let is_idle = match kind {
        "Compressor" => !accepts(request, config),
        // Off by default.
        "BandwidthLimit" => {
            field(config, "enable_mode").is_none_or(|mode| is_constant(mode, "DISABLED", 0))
        }
        // It limits where a route says how much, and both shares are none by default.
        "LocalRateLimit" if is_http => ["token_bucket", "filter_enabled", "filter_enforced"]
            .iter()
            .any(|name| field(config, name).is_none()),
        // It asks where something describes the request.
        "RateLimit" if is_http => {
            let places = [
                "/rate_limits",
                "/route/rate_limits",
                "/typed_per_filter_config",
            ];
            let said = levels
                .iter()
                .flat_map(|level| places.map(|at| get(json, &level.join(at))));
            let said = said.chain([Some(config)]).flatten().map(Json::to_string);
            // An action of some rate limit.
            !said.into_iter().any(|said| said.contains(r#""actions":"#))
        }
        _ => field(config, "disabled") == Some(&Json::Bool(true)),
    };
    (!is_idle && !SWITCHES.iter().any(is_off)).then_some(*known)
}

/// Returns false if a request surely does not accept what a compressor makes (RFC 9110 section 12.5.3).
fn accepts(request: &Request<'_>, compressor: &Json) -> bool {
    let library = field(compressor, "compressor_library");
    let library = library.and_then(|library| field(library, "typed_config"));
    let coding = match library.map_or("", |library| type_of(library).0) {
        "Brotli" => "br",
        "Gzip" => "gzip",
        "Zstd" => "zstd",
        _ => return !request.is_plain(),
    };
    request.field("accept-encoding").is_none_or(|value| {
        let mut names = value
            .split(',')
            .map(|item| item.split(';').next().unwrap_or_default().trim());
        names.any(|name| name == "*" || name.eq_ignore_ascii_case(coding))
    })
}

/// Where an HTTP filter has its configuration for a request: its own, and what the innermost level says of it; nothing
/// where it is off.
pub(super) fn in_force(json: &Json, filter: &Pointer, levels: &[Pointer]) -> Vec<Pointer> {
    let name = get(json, &filter.child("name")).and_then(Json::as_str);
    let name = name.unwrap_or_default();
    let overrides = levels
        .iter()
        .map(|level| level.child("typed_per_filter_config").child(name));
    let said = overrides.into_iter().find(|at| get(json, at).is_some());
    let switch = get(json, said.as_ref().unwrap_or(filter));
    if switch.and_then(|it| field(it, "disabled")) == Some(&Json::Bool(true)) {
        return Vec::new();
    }
    let own = filter.child("typed_config");
    let type_at = |at: &Pointer| get(json, at).map_or("", |config| type_of(config).0);
    let said = said.map(|at| match type_at(&at) {
        "FilterConfig" => at.child("config"),
        _ => at,
    });
    match said.filter(|at| get(json, at).is_some()) {
        // Such a one takes the place of the filter's own.
        Some(said) if type_at(&said) == type_at(&own) || type_at(&said) == "RBACPerRoute" => {
            vec![said]
        }
        said => std::iter::once(own).chain(said).collect(),
    }
}

/// The keys by which tokens of a request are checked, where they are fetched: of the providers that rules for it name.
pub(super) fn fetched_keys(
    json: &Json,
    configs: &[Pointer],
    request: &Request<'_>,
) -> Vec<Pointer> {
    let Some(own) = configs.first() else {
        return Vec::new();
    };
    let rules = may_take(json, items(json, own.child("rules")), request);
    let others = configs.iter().skip(1).cloned();
    let mut said: Vec<Pointer> = rules.into_iter().chain(others).collect();
    let named = said
        .iter()
        .filter_map(|at| get(json, &at.child("requirement_name"))?.as_str());
    let named: Vec<Pointer> = named
        .map(|name| own.child("requirement_map").child(name))
        .collect();
    said.extend(named);
    said.push(own.child("filter_state_rules"));
    let said: Vec<String> = said
        .iter()
        .filter_map(|at| Some(get(json, at)?.to_string()))
        .collect();
    let providers = own.child("providers");
    let all = get(json, &providers)
        .and_then(Json::as_object)
        .into_iter()
        .flatten();
    all.filter(|(name, _)| {
        said.iter()
            .any(|said| said.contains(&format!("\"{name}\"")))
    })
    .map(|(name, _)| providers.child(name).child("remote_jwks"))
    .filter(|at| get(json, at).is_some())
    .collect()
}
