//! Envoy's filters: their parts that are different in a run, and their configuration in force for a route.

use serde_json::Value as Json;
use weir_configuration::asked::Request;
use weir_configuration::document::Pointer;
use weir_configuration::document::find::{field, get, is_constant, is_true, items, text};
use weir_model::record::ReplacedPart;

use super::bootstrap::kind;
use super::routes::{may_take, share};

/// Types of filters, each with the part that is different in a run.
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

/// Places of the switches and shares of requests by which a filter can be off.
const SWITCHES: [&str; 5] = [
    "/enabled",
    "/filter_enabled",
    "/filter_enforced",
    "/response_direction_config/common_config/enabled",
    "/runtime_enabled",
];

/// Returns the part of a filter that is different in a run, if the filter does anything for a request. For an HTTP
/// filter, `levels` are the places that may configure it, inner ones first.
pub(super) fn replaced(
    json: &Json,
    filter: &Pointer,
    levels: &[Pointer],
    request: &Request<'_>,
) -> Option<(&'static str, ReplacedPart)> {
    let part = FILTERS.iter().find(|(name, _)| *name == kind(json, filter))?;
    let config = get(json, filter)?;
    let is_http = text(json, filter.child("@type"))?.contains(".filters.http.");
    let is_idle = match part.0 {
        "Compressor" => !accepts(request, json, filter),
        "BandwidthLimit" => {
            field(config, "enable_mode").is_none_or(|it| is_constant(it, "DISABLED", 0))
        }
        // It limits where a route says how much; both shares are none by default.
        "LocalRateLimit" if is_http => ["token_bucket", "filter_enabled", "filter_enforced"]
            .iter()
            .any(|name| field(config, name).is_none()),
        // It asks where something describes the request.
        "RateLimit" if is_http => {
            let places = ["/rate_limits", "/route/rate_limits", "/typed_per_filter_config"];
            !is_described(config)
                && !levels
                    .iter()
                    .flat_map(|level| places.map(|place| level.join(place)))
                    .any(|at| get(json, &at).is_some_and(is_described))
        }
        _ => is_true(json, filter.child("disabled")),
    };
    let mut switches = SWITCHES.iter().filter_map(|at| get(config, &Pointer::parse(at)));
    let is_off = is_idle || switches.any(|switch| share(json, switch) == Some(false));
    (!is_off).then_some(*part)
}

/// Returns false if a request certainly does not accept the coding of a compressor (RFC 9110 section 12.5.3).
fn accepts(request: &Request<'_>, json: &Json, compressor: &Pointer) -> bool {
    let coding = match kind(json, &compressor.join("/compressor_library/typed_config")) {
        "Brotli" => "br",
        "Gzip" => "gzip",
        "Zstd" => "zstd",
        _ => return !request.is_plain(),
    };
    request.field("accept-encoding").is_none_or(|value| {
        value.split(',').filter_map(|item| item.split(';').next()).any(|name| {
            ["*", coding].iter().any(|accepted| name.trim().eq_ignore_ascii_case(accepted))
        })
    })
}

/// Returns the configurations of an HTTP filter for a request: its own, and that of the innermost level. Empty if the
/// filter is off.
pub(super) fn in_force(json: &Json, filter: &Pointer, levels: &[Pointer]) -> Vec<Pointer> {
    let config = filter.child("typed_config");
    let name = text(json, filter.child("name")).unwrap_or_default();
    let innermost = levels
        .iter()
        .map(|level| level.child("typed_per_filter_config").child(name))
        .find(|at| get(json, at).is_some());
    if is_true(json, innermost.as_ref().unwrap_or(filter).child("disabled")) {
        return Vec::new();
    }
    let unwrapped =
        innermost.map(|at| if kind(json, &at) == "FilterConfig" { at.child("config") } else { at });
    match unwrapped {
        // Such a one takes the place of the filter's own.
        Some(at) if [kind(json, &config), "RBACPerRoute"].contains(&kind(json, &at)) => vec![at],
        at => std::iter::once(config).chain(at).collect(),
    }
}

/// Returns the fetched keys by which tokens of a request are checked: those of the providers that rules for the request
/// name.
pub(super) fn fetched_keys(
    json: &Json,
    configs: &[Pointer],
    request: &Request<'_>,
) -> Vec<Pointer> {
    let Some((filter, overrides)) = configs.split_first() else {
        return Vec::new();
    };
    let mut rules = may_take(json, items(json, filter.child("rules")), request);
    rules.extend_from_slice(overrides);
    let requirements = rules.iter().filter_map(|rule| text(json, rule.child("requirement_name")));
    let requirements: Vec<Pointer> =
        requirements.map(|name| filter.child("requirement_map").child(name)).collect();
    rules.extend(requirements);
    rules.push(filter.child("filter_state_rules"));
    let providers = filter.child("providers");
    get(json, &providers)
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
        .filter(|(name, _)| {
            let quoted = format!("\"{name}\"");
            rules
                .iter()
                .any(|rule| get(json, rule).is_some_and(|it| it.to_string().contains(&quoted)))
        })
        .map(|(name, _)| providers.child(name).child("remote_jwks"))
        .filter(|keys| get(json, keys).is_some())
        .collect()
}

/// Returns true if something in a value describes requests to a service of limits.
fn is_described(value: &Json) -> bool {
    value.to_string().contains(r#""actions":"#)
}
