//! Parts that a copy of a bootstrap may keep: extensions that are known to contact only clusters and to write only to
//! places that the adaptation has moved; no address, and no configuration from elsewhere.

use weir_configuration::document::Value;
use weir_configuration::document::kept::{ForeignCheck, RetainedValue};
use weir_configuration::place::is_among;

/// Families of extensions that are all harmless, by the beginnings of their names.
#[rustfmt::skip]
const FAMILIES: [&str; 29] = [
    "envoy.extensions.access_loggers.filters.", "envoy.extensions.clusters.aggregate.",
    "envoy.extensions.compression.", "envoy.extensions.early_data.", "envoy.extensions.formatter.",
    "envoy.extensions.health_check.event_sinks.file.", "envoy.extensions.health_checkers.",
    "envoy.extensions.http.cache.simple_http_cache.", "envoy.extensions.http.early_header_mutation.", "envoy.extensions.http.header_formatters.",
    "envoy.extensions.http.header_validators.", "envoy.extensions.http.original_ip_detection.",
    "envoy.extensions.http.stateful_session.", "envoy.extensions.internal_redirect.",
    "envoy.extensions.load_balancing_policies.", "envoy.extensions.matching.",
    "envoy.extensions.path.", "envoy.extensions.rbac.", "envoy.extensions.request_id.",
    "envoy.extensions.resource_monitors.", "envoy.extensions.retry.",
    "envoy.extensions.tracers.opentelemetry.", "envoy.extensions.transport_sockets.proxy_protocol.",
    "envoy.extensions.transport_sockets.raw_buffer.", "envoy.extensions.transport_sockets.tls.", "envoy.extensions.upstreams.", "envoy.type.",
    "google.protobuf.", "xds.type.matcher.",
];

/// Known HTTP filters, by the part of their name between `envoy.extensions.filters.http.` and the version.
const HTTP_FILTERS: &str = "adaptive_concurrency, admission_control, bandwidth_limit, basic_auth, buffer, \
     cache, cdn_loop, compressor, cors, csrf, decompressor, ext_authz, fault, grpc_http1_bridge, \
     grpc_http1_reverse_bridge, grpc_json_transcoder, grpc_stats, grpc_web, header_mutation, \
     header_to_metadata, health_check, ip_tagging, json_to_metadata, jwt_authn, local_ratelimit, oauth2, \
     ratelimit, rbac, router, set_filter_state, set_metadata, stateful_session, upstream_codec";

/// Known filters of connections, by the part of their name between `envoy.extensions.filters.network.` and the version.
const NETWORK_FILTERS: &str = "connection_limit, direct_response, echo, ext_authz, http_connection_manager, \
     local_ratelimit, ratelimit, rbac, sni_cluster, tcp_proxy";

/// Known filters of listeners, by the part of their name between `envoy.extensions.filters.listener.` and the version.
const LISTENER_FILTERS: &str =
    "http_inspector, local_ratelimit, original_dst, proxy_protocol, tls_inspector";

/// Further known messages, by the part of their name after `envoy.`.
const OTHERS: &str = "extensions.access_loggers.file.v3.FileAccessLog, \
     extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig, \
     extensions.access_loggers.grpc.v3.TcpGrpcAccessLogConfig, \
     extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig, \
     extensions.access_loggers.stream.v3.StderrAccessLog, \
     extensions.access_loggers.stream.v3.StdoutAccessLog, \
     extensions.filters.udp.udp_proxy.v3.UdpProxyConfig, \
     extensions.transport_sockets.quic.v3.QuicDownstreamTransport, config.trace.v3.DatadogConfig, \
     config.trace.v3.LightstepConfig, config.trace.v3.OpenTelemetryConfig, \
     config.trace.v3.SkyWalkingConfig, config.trace.v3.ZipkinConfig, config.rbac.v3.Action, \
     config.route.v3.FilterConfig";

/// Fields that make Envoy fetch its configuration, or its servers, from elsewhere.
const DISCOVERY: &str = "ads, ads_config, api_config_source, api_config_sources, cds_config, \
     config_discovery, config_sources, default_config_source, dynamic_resources, eds_cluster_config, \
     leds_cluster_locality_config, lds_config, load_stats_config, rds, rtds_layer, scoped_routes, \
     srds_resources_locator, vhds, xds_config_tracker_extension, xds_delegate_extension";

/// Fields that name a server by its address, or a library to be loaded.
const SERVERS: &str = "google_grpc, grpc_async_client_manager_config, pipe, upstream_bind_config";

/// Fields that name a file to be written.
const WRITTEN: &str =
    "access_log_path, event_log_path, key_log, perf_tracing_file_path, profile_path";

pub(super) const KNOWN: ForeignCheck = ForeignCheck {
    foreign,
    hint: "; clusters are to be in static_resources, with their endpoints",
};

/// Returns the reason why a copy must not keep a value; None if it may.
fn foreign(kept: &RetainedValue<'_>) -> Option<String> {
    let key = kept.key;
    if kept.has("port_value") || kept.has("named_port") {
        return Some(format!("`{key}` is an address that is not the copy's own"));
    }
    if key == "@type" {
        let name = kept.text();
        if name.contains("envoy.extensions.filters.http.ext_proc.") {
            return Some(
                "`ext_proc` asks a processor about every request, and the study's origin server does not speak its \
                 protocol"
                    .to_owned(),
            );
        }
        let is_listed = name.rsplit('/').next().is_some_and(is_known);
        return (!is_listed).then(|| {
            format!("weir does not know what the extension `{name}` contacts or writes, so a copy must not have it")
        });
    }
    // An empty object, or nothing, is as if it were not there.
    if is_empty(kept) {
        return None;
    }
    // Certificates may be read from a file, by whatever name that is asked for.
    let is_other_file =
        kept.is("path_config_source") && !matches!(kept.outer, "sds_config" | "sdsConfig");
    // Those of a known type are replaced.
    let is_discovered = kept.outer == "clusters" && kept.is("type");
    let is_untyped = kept.is("cluster_type") && !kept.has("typed_config");
    // Of all that is known an access log alone has such a field.
    let is_log = kept.is("path") && matches!(kept.outer, "typed_config" | "typedConfig");
    match () {
        () if kept.is(DISCOVERY) || is_other_file || is_discovered || is_untyped => Some(format!(
            "`{key}` makes Envoy fetch its configuration from elsewhere, so weir does not know which servers a copy would contact"
        )),
        () if kept.is(SERVERS) => {
            Some(format!("`{key}` names a server or a library by itself, which a copy must not do"))
        }
        () if kept.is(WRITTEN) || is_log => {
            Some(format!("`{key}` names a file that Envoy writes, which a copy must not do"))
        }
        () => None,
    }
}

fn is_empty(kept: &RetainedValue<'_>) -> bool {
    match &kept.node.value {
        Value::Scalar { text, .. } => matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"),
        Value::List(items) => items.is_empty(),
        // The object `ads: {}` means something.
        Value::Map { entries, .. } => entries.is_empty() && kept.key != "ads",
        Value::Alias(_) => false,
    }
}

/// Returns true if a message of this name belongs to a harmless extension.
fn is_known(name: &str) -> bool {
    let filters = [
        ("envoy.extensions.filters.http.", HTTP_FILTERS),
        ("envoy.extensions.filters.network.", NETWORK_FILTERS),
        ("envoy.extensions.filters.listener.", LISTENER_FILTERS),
    ];
    // In some families there is one that runs code of somebody's.
    if name.contains("dynamic_modules") {
        return false;
    }
    FAMILIES.iter().any(|family| name.starts_with(family))
        || filters.iter().any(|(family, known)| {
            name.strip_prefix(family)
                .and_then(|tail| tail.split('.').next())
                .is_some_and(|filter| is_among(filter, known))
        })
        || name.strip_prefix("envoy.").is_some_and(|rest| is_among(rest, OTHERS))
}
