//! Spelling of the rows in the objects that Kubernetes controllers read.

use serde_json::{Value, json};
use weir_model::study::ProxyKind;
use weir_parameters::controller::{ControllerMeans, Placed};
use weir_parameters::{Catalog, Controller, EffectiveFrom, InWorkload, Parameter, Spelling};

fn find_spelling(kind: ProxyKind, id: &str, controller: &str) -> Spelling {
    let catalog = Catalog::builtin();
    let row = catalog.get(kind, id).expect("a row");
    row.controllers[controller].clone()
}

/// Returns the place and the value of a level. `None` if the controller cannot spell it.
fn written(id: &str, controller: &str, level: &str) -> Option<(String, String)> {
    let spelling = find_spelling(ProxyKind::Nginx, id, controller);
    Some((spelling.key.clone(), spelling.value(level)?))
}

#[test]
fn levels_become_values_in_the_controller_s_own_units_and_words() {
    let community = "ingress-nginx";
    #[rustfmt::skip]
    let rows = [
        ("worker_connections", "1024", "max-worker-connections", "1024"),
        ("keepalive_timeout", "75s", "keep-alive", "75"),
        ("gzip_min_length", "1k", "gzip-min-length", "1024"),
        ("gzip", "on", "use-gzip", "true"),
        ("access_log", "off", "disable-access-log", "true"),
        ("origin_keepalive", "64", "upstream-keepalive-connections", "64"),
    ];
    for (id, level, key, value) in rows {
        let expected = (key.to_owned(), value.to_owned());
        assert_eq!(written(id, community, level), Some(expected), "{id}");
    }
    let inc = "nginx-ingress";
    for (id, level, key, value) in [
        ("keepalive_timeout", "75s", "keepalive-timeout", "75s"),
        ("origin_keepalive", "64", "keepalive", "64"),
        ("proxy_buffering", "off", "proxy-buffering", "false"),
    ] {
        let expected = (key.to_owned(), value.to_owned());
        assert_eq!(written(id, inc, level), Some(expected), "{id}");
    }
}

#[test]
fn a_level_that_a_controller_cannot_say_has_no_value() {
    assert_eq!(written("access_log", "ingress-nginx", "buffered"), None);
    let contour = find_spelling(ProxyKind::Envoy, "tls_minimum_protocol_version", "contour");
    assert_eq!(contour.value("TLSv1_2").as_deref(), Some("1.2"));
    assert_eq!(contour.value("TLSv1_0"), None);
    // Which would be a word where a number is to stand.
    for (id, word) in
        [("keepalive_requests", "unlimited"), ("origin_keepalive_requests", "unlimited")]
    {
        let contour = find_spelling(ProxyKind::Envoy, id, "contour");
        assert_eq!(contour.value(word), None, "{id}");
        assert_eq!(contour.value("7").as_deref(), Some("7"), "{id}");
    }
    let contour = find_spelling(ProxyKind::Envoy, "stream_idle_timeout", "contour");
    assert_eq!(contour.value("0s").as_deref(), Some("infinity"));
    assert_eq!(contour.value("5s").as_deref(), Some("5s"));
}

#[test]
fn a_level_stands_in_the_object_that_has_its_field() {
    let catalog = Catalog::builtin();
    let (gateway, contour) = ("envoy-gateway", "contour");
    let annotation = "/metadata/annotations/projectcontour.io~1max-connections";
    let bytes = "/spec/envoy/listener/per-connection-buffer-limit-bytes";
    #[rustfmt::skip]
    let rows = [
        (gateway, "max_connections: 77", "backend", "/spec/circuitBreaker/maxConnections", json!(77)),
        (gateway, "keepalive_timeout: 1500ms", "client", "/spec/timeout/http/idleTimeout", json!("1500ms")),
        (gateway, "max_connections_to_accept_per_socket_event: all", "client",
         "/spec/connection/maxAcceptPerSocketEvent", json!(0)),
        (gateway, "access_log: off", "proxy", "/spec/telemetry/accessLog/disable", json!(true)),
        (gateway, "gzip: on", "backend", "/spec/compressor/[type=Gzip]/gzip", json!({})),
        (gateway, "gzip: off", "backend", "/spec/compressor/[type=Gzip]/gzip", json!(null)),
        (gateway, "gzip_min_length: 1k", "backend", "/spec/compressor/[type=Gzip]/minContentLength", json!("1024")),
        (contour, "max_connections: 77", "service", annotation, json!("77")),
        (contour, "per_connection_buffer_limit: 32k", "config", bytes, json!(32768)),
        (contour, "route_timeout: 0s", "route", "/spec/routes/0/timeoutPolicy/response", json!("infinity")),
        ("ingress-nginx", "gzip: on", "config", "/data/use-gzip", json!("true")),
        ("ingress-nginx", "replicas: 3", "workload", "/spec/replicas", json!(3)),
        ("ingress-nginx", "host_network: on", "workload", "/spec/template/spec/hostNetwork", json!(true)),
        ("ingress-nginx", "node_selector: zone=a,pool=x", "workload", "/spec/template/spec/nodeSelector",
         json!({"pool": "x", "zone": "a"})),
        ("ingress-nginx", "tolerations: a:NoExecute,b=1:NoSchedule", "workload", "/spec/template/spec/tolerations",
         json!([{"key": "a", "operator": "Exists", "effect": "NoExecute"},
                {"key": "b", "operator": "Equal", "value": "1", "effect": "NoSchedule"}])),
        ("nginx-ingress", "cpu_limit: 500m", "workload",
         "/spec/template/spec/containers/[name=nginx-ingress]/resources/limits/cpu", json!("500m")),
    ];
    for (controller, setting, object, at, value) in rows {
        let controller = Controller::named(controller).unwrap();
        let (id, level) = setting.split_once(": ").unwrap();
        let row = catalog.get(controller.proxy, id).unwrap();
        let expected = Placed { object: object.to_owned(), at: at.to_owned(), value };
        let placement = controller.place(row, level, &ControllerMeans::default());
        assert_eq!(placement, Ok(expected), "{id}");
    }
}

/// Returns a row and its place in the workload of ingress-nginx.
fn in_workload(id: &str) -> (Parameter, InWorkload) {
    let controller = Controller::named("ingress-nginx").expect("a controller");
    let catalog = Catalog::builtin();
    let row = catalog.get(controller.proxy, id).expect("a row").clone();
    let EffectiveFrom::Workload(place) = row.effective.clone() else {
        panic!("it is of a workload");
    };
    (row, place)
}

/// Reads levels from pods. A value of no level is returned as it is.
#[test]
fn where_pods_are_placed_is_read_in_them() {
    let set = json!([{"key": "a", "operator": "In", "values": ["b"]}]);
    for (id, told, expected) in [
        ("node_selector", json!({"pool": "x"}), "pool=x".to_owned()),
        ("node_selector", json!({}), "none".to_owned()),
        (
            "tolerations",
            json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]),
            "none".to_owned(),
        ),
        (
            "pod_affinity",
            affinity_term(json!({"matchLabels": {"app": "web"}})),
            "app=web".to_owned(),
        ),
        (
            "pod_anti_affinity",
            affinity_term(json!({"matchExpressions": set})),
            affinity_term(json!({"matchExpressions": set})).to_string(),
        ),
        (
            "pod_anti_affinity",
            affinity_term(json!({"matchLabels": {"app": "web"}, "matchExpressions": set})),
            affinity_term(json!({"matchLabels": {"app": "web"}, "matchExpressions": set}))
                .to_string(),
        ),
    ] {
        let (row, place) = in_workload(id);
        assert_eq!(place.level_of(&row, &told), expected, "{id}");
    }
    let (row, place) = in_workload("pod_affinity");
    let controller = Controller::named("ingress-nginx").unwrap();
    let placed = controller.place(&row, "app=web", &ControllerMeans::default()).unwrap();
    assert_eq!(placed.value, affinity_term(json!({"matchLabels": {"app": "web"}})));
    assert_eq!(placed.at, place.at);
}

fn affinity_term(selector: Value) -> Value {
    json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector})
}

/// Reads the level from one field of a pod, although it is written as several.
#[test]
fn pods_are_spread_by_a_constraint_with_the_selector_of_their_workload() {
    let controller = Controller::named("ingress-nginx").unwrap();
    let (row, place) = in_workload("spread");
    for (level, when) in [("preferred", "ScheduleAnyway"), ("required", "DoNotSchedule")] {
        let placed = controller.place(&row, level, &ControllerMeans::default()).unwrap();
        assert_eq!(placed.value["labelSelector"], json!({"$from": "/spec/selector"}));
        assert_eq!(placed.value["whenUnsatisfiable"], when);
        assert_eq!(place.level_of(&row, &json!(when)), level);
    }
    assert_eq!(place.level_of(&row, &json!("Never")), "Never");
}

/// A row with an annotation is written to the Ingress if the study names one. All other rows stay in the ConfigMap.
#[test]
fn an_annotation_is_taken_where_the_study_names_an_ingress() {
    let catalog = Catalog::builtin();
    let controller = Controller::named("ingress-nginx").unwrap();
    let annotation = "/metadata/annotations/nginx.ingress.kubernetes.io~1";
    for (setting, key, value, of_all) in [
        ("proxy_buffering: on", "proxy-buffering", "on", "on"),
        ("proxy_buffer_size: 16k", "proxy-buffer-size", "16k", "16k"),
        ("proxy_connect_timeout: 7s", "proxy-connect-timeout", "7", "7"),
        // The words are the other way round.
        ("access_log: off", "enable-access-log", "false", "true"),
        ("gzip: on", "", "", "true"),
    ] {
        let (id, level) = setting.split_once(": ").unwrap();
        let row = catalog.get(controller.proxy, id).unwrap();
        let with_config = ["config"].as_slice();
        let [(usual, has_values), (of_route, route_has_values)] =
            [with_config, &["config", "ingress"]].map(|objects| {
                let means = ControllerMeans {
                    objects: objects.iter().map(ToString::to_string).collect(),
                    ..ControllerMeans::default()
                };
                let placed = controller.place(row, level, &means).unwrap();
                let in_values = controller.place_in_values(row, level, &means);
                (placed, in_values.is_some())
            });
        assert_eq!((&*usual.object, usual.value.clone()), ("config", json!(of_all)), "{id}");
        assert!(has_values, "{id}");
        if key.is_empty() {
            assert_eq!(of_route, usual, "{id}");
            continue;
        }
        let expected = Placed {
            object: "ingress".to_owned(),
            at: format!("{annotation}{key}"),
            value: json!(value),
        };
        assert_eq!(of_route, expected, "{id}");
        assert!(!route_has_values, "{id}: the chart makes no Ingress");
    }
}

#[test]
fn what_a_controller_does_otherwise_than_its_proxy_is_said() {
    for (id, controller, default) in [
        ("worker_connections", "ingress-nginx", Some("16384")),
        ("worker_connections", "nginx-ingress", Some("1024")),
        ("origin_keepalive_requests", "ingress-nginx", Some("10000")),
        ("proxy_buffering", "ingress-nginx", Some("off")),
        ("proxy_buffering", "nginx-ingress", None),
        ("keepalive_requests", "ingress-nginx", None),
    ] {
        let spelling = find_spelling(ProxyKind::Nginx, id, controller);
        assert_eq!(spelling.default.as_deref(), default, "{id}");
    }
}

#[test]
fn a_file_is_taken_where_the_study_names_its_config_map() {
    let contour = Controller::named("contour").unwrap();
    let catalog = Catalog::builtin();
    let row = catalog.get(contour.proxy, "request_timeout").unwrap();
    for (named, at) in [
        ("config", "/spec/envoy/timeouts/requestTimeout"),
        ("file", "/data/contour.yaml#/timeouts/request-timeout"),
    ] {
        let means =
            ControllerMeans { objects: [named.to_owned()].into(), ..ControllerMeans::default() };
        let expected =
            Placed { object: named.to_owned(), at: at.to_owned(), value: json!("infinity") };
        assert_eq!(contour.place(row, "0s", &means), Ok(expected));
    }
}

#[test]
fn every_spelling_names_a_key_and_its_source() {
    let mut spelled = 0;
    for kind in ProxyKind::ALL {
        for row in Catalog::builtin().parameters(kind) {
            let spellings = row.controllers.iter().flat_map(|(name, spellings)| {
                spellings.all().map(move |spelling| (name, spelling))
            });
            for (controller, spelling) in spellings {
                let at = format!("{} of {controller}", row.id);
                assert!(spelling.source.starts_with("https://"), "{at}");
                assert!(
                    spelling.key.chars().all(|c| c.is_ascii_alphanumeric() || "-.[=]".contains(c)),
                    "{at}"
                );
                // What the proxy's own default is called is no news.
                let level = row.default.newest().level.as_deref();
                let value = level.and_then(|level| spelling.value(level));
                assert!(spelling.default.is_none() || spelling.default != value, "{at}");
                spelled += 1;
            }
        }
    }
    assert!(spelled > 90, "{spelled}");
}
