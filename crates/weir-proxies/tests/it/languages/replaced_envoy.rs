//! Parts that copies of Envoy's bootstrap replace, on ways through listeners, clusters and filters.

use weir_configuration::document;
use weir_envoy::language as envoy;
use weir_envoy::language::Bootstrap;

use crate::languages::asked::ask;
use crate::languages::replaced::{must_be, paths};
use crate::languages::support::{make_prefix, make_source, of_a_test, text};

const FILTERS: &str = r#"
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          tracing: {random_sampling: {value: 5}}
          http_filters:
          - {name: rate, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit}}
          - name: jwt
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
              providers:
                one: {remote_jwks: {http_uri: {cluster: keys}}}
                two: {remote_jwks: {http_uri: {cluster: keys}}}
              rules: [{match: {prefix: /free}}, {match: {prefix: /api}, requires: {provider_name: one}}]
              requirement_map: {more: {provider_name: two}}
          - name: gzip
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor
              compressor_library: {typed_config: {"@type": type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip}}
          - name: open
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.decompressor.v3.Decompressor
              response_direction_config: {common_config: {enabled: {default_value: false, runtime_key: a.decompressing}}}
          - name: local
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              token_bucket: {max_tokens: 9}
              filter_enabled: {default_value: {numerator: 100}}
          - {name: auth, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz}}
          - {name: tags, disabled: true, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.ip_tagging.v3.IPTagging}}
          - {name: roles, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC}}
          route_config:
            virtual_hosts:
            - name: off
              domains: [off.example]
              typed_per_filter_config: {auth: &off {"@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true}}
              routes:
              - match: {prefix: /}
                tracing: {random_sampling: {numerator: 100}}
                route: {cluster: app, request_mirror_policies: [{cluster: app, runtime_fraction: {default_value: {numerator: 0}}}]}
            - name: "on"
              domains: [on.example]
              typed_per_filter_config:
                auth: *off
                tags: {"@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, config: {}}
                jwt: {"@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.PerRouteConfig, requirement_name: more}
                roles:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute
                  rbac: {matcher: {matcher_tree: {input: {typed_config: {"@type": type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.SourceIPInput}}}}}
              rate_limits: [{actions: [{generic_key: {descriptor_value: a}}]}]
              routes: [{match: {prefix: /}, route: {cluster: app}}]
            - name: shares
              domains: [shares.example]
              routes:
              - match: {prefix: /}
                route:
                  weighted_clusters:
                    clusters:
                    - {name: app, weight: 9, typed_per_filter_config: {auth: *off}}
                    - {name: tls, weight: 0}
  clusters:
  - {name: app, load_assignment: &one {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 80}}}}]}]}}
  - {name: tls, transport_socket: {name: tls}, load_assignment: *one}
"#;

#[test]
fn envoy_s_filters_count_for_the_requests_that_they_are_on_for() {
    let configuration = make_source("envoy.yaml", FILTERS);
    must_be(
        &|ask| document::replaced(&configuration, &Bootstrap, ask),
        "
        :80 off.example =>
        :80 off.example /free =>
        :80 off.example /api => service 17 remote_jwks
        :80 off.example Accept-Encoding=br =>
        :80 off.example Accept-Encoding=br,gzip;q=1 => content 23 Compressor
        :80 on.example => service 12 RateLimit; service 18 remote_jwks; client_address 35 IPTagging; client_address 54 RBACPerRoute by address
        :80 shares.example =>
        ",
    );
    // The runtime may switch on what is off, and a tracer has what is traced.
    let traced = FILTERS.replace("tracing: {random", "tracing: {provider: {name: a}, random");
    let layers = "layered_runtime: {layers: [{name: a, static_layer: {a: {decompressing: true}}}]}";
    let configuration = make_source("envoy.yaml", &format!("{traced}{layers}\n"));
    must_be(
        &|ask| document::replaced(&configuration, &Bootstrap, ask),
        ":80 off.example => service 10 tracing; content 27 Decompressor",
    );
}

const LAYERS: &str = r#"
stats_sinks: [{name: statsd}]
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - filters: &outer
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - {match: {prefix: /inner}, route: {cluster: inner, prefix_rewrite: /api}}
              - {match: {prefix: /auto}, route: {cluster: inner, regex_rewrite: {substitution: /}}}
              - {match: {prefix: /all}, route: {cluster: all}}
              - {match: {prefix: /header}, route: {cluster_header: x-cluster}}
              - {match: {prefix: /wrapped}, route: {cluster: wrapped}}
              - {match: {prefix: /some, runtime_fraction: {default_value: {numerator: 5}}}, route: {cluster: tls}}
              - {match: {prefix: /}, route: {cluster: raw}}
  - address: {socket_address: {address: 127.0.0.1, port_value: 81}}
    additional_addresses: [{address: {socket_address: {address: "::", port_value: 8181}}}]
    filter_chains:
    - use_proxy_proto: true
      filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          access_log: [{typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig}}]
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - {match: {prefix: /api}, route: {cluster: tls}}
              - {match: {prefix: /}, route: {cluster: raw}}
  - address: {socket_address: {address: 0.0.0.0, port_value: 82}}
    filter_chain_matcher: {matcher_tree: {input: {typed_config: {"@type": type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.DestinationPortInput}}, exact_match_map: {map: {"82": {action: {name: b}}}}}}
    filter_chains:
    - {name: a, filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, cluster: raw}}]}
    - {name: b, filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, cluster: tls}}]}
    - {name: c, filters: [{typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, cluster: inner}}]}
  - address: {socket_address: {address: 0.0.0.0, port_value: 443}}
    filter_chains:
    - transport_socket:
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context: {tls_certificate_sds_secret_configs: [{name: other}, {name: site}, {name: file, sds_config: {path_config_source: {path: SDS}}}]}
      filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, cluster: raw}}]
  clusters:
  - name: inner
    transport_socket: {name: a, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport, transport_socket: {name: envoy.transport_sockets.raw_buffer}}}
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: "::1", port_value: 8181}}}}]}]}
  - {name: all, cluster_type: {typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: [raw, tls]}}}
  - name: raw
    transport_socket_matches:
    - {match: {tls: true}, transport_socket: {name: tls}}
    - {transport_socket: {name: mine, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}
    load_assignment: &one {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 80}}}}]}]}
  - name: tls
    transport_socket: {name: tls}
    typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {auto_config: {}}}
    upstream_bind_config: {freebind: true}
    load_assignment: *one
  - name: wrapped
    transport_socket: {typed_config: {"@type": a.ProxyProtocolUpstreamTransport, transport_socket: {name: tls}}}
    load_assignment: *one
  secrets:
  - {name: site, tls_certificate: {certificate_chain: {filename: site.pem}}}
"#;

#[test]
fn envoy_is_followed_through_its_own_listeners_and_clusters() {
    let folder = make_prefix();
    let secrets = folder.path().join("secrets.yaml");
    let file =
        "resources: [{name: file, tls_certificate: {certificate_chain: {filename: /file.pem}}}]\n";
    std::fs::write(&secrets, file).unwrap();
    let layers = LAYERS.replace("SDS", &secrets.display().to_string());
    let configuration = make_source("envoy.yaml", &layers);
    let sinks = r#"left_out 2 stats_sinks [{"name":"statsd"}]"#;
    let tls = r#"origin_tls 63 transport_socket {"name":"tls"}; origin_tls 64 auto_config {}"#;
    let bind = r#"left_out 65 upstream_bind_config {"freebind":true}"#;
    let before = r#"before 44 filters [{"typed_config":{"@type":"type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy","cluster":"inner"}}]"#;
    let wrapped = r#"68 transport_socket {"typed_config":{"@type":"a.ProxyProtocolUpstreamTransport","transport_socket":{"name":"tls"}}}"#;
    must_be(
        &|ask| document::replaced(&configuration, &Bootstrap, ask),
        &format!(
            "
            :80 => {sinks}
            :80 /inner => {tls}; {sinks}; {bind}; service 31 HttpGrpcAccessLogConfig
            :80 /auto => {tls}; origin_tls {wrapped}; {sinks}; {bind}; proxy_protocol {wrapped}; service 31 HttpGrpcAccessLogConfig
            :80 /all => {tls}; {sinks}; {bind}
            :80 /header x-cluster=raw => {sinks}
            :80 /header => {tls}; origin_tls {wrapped}; {sinks}; {bind}; proxy_protocol {wrapped}; service 31 HttpGrpcAccessLogConfig
            :80 /wrapped => origin_tls {wrapped}; {sinks}; proxy_protocol {wrapped}
            :80 /some => {tls}; {sinks}; {bind}
            :81 => {before}; {sinks}; proxy_protocol 26 use_proxy_proto; service 31 HttpGrpcAccessLogConfig
            :82 => {tls}; {sinks}; {bind}; service 31 HttpGrpcAccessLogConfig
            "
        ),
    );
    let shown = document::certificates(&configuration, &Bootstrap, &ask("tls :443")).unwrap();
    let shown = paths(&shown);
    assert_eq!(shown, ["50 Unknown", "50 /etc/proxy/site.pem", "50 /file.pem"]);
    let mut surroundings = of_a_test(folder.path());
    surroundings.asks[0].spec.port = Some(82);
    let copy = envoy::adapt(&configuration, &surroundings).unwrap();
    let inner = format!("{}/run/1.sock", folder.path().display());
    for kept in [
        r#""7001": {"action": {"name": "b"}}"#,
        "explicit_http_config: {http_protocol_options: {}}",
        "use_proxy_proto: true",
        "ProxyProtocolUpstreamTransport, transport_socket: {name: envoy",
        &*inner,
    ] {
        assert!(text(&copy).contains(kept), "{kept}: {}", text(&copy));
    }
}
