//! Tests of proxies that a controller of a cluster configures.

use weir_model::study::SysctlMeans;
use weir_parameters::{Catalog, Controller};
use weir_study::CheckContext;

use crate::{messages_of, read};

fn contour_study(more: &str) -> String {
    let objects =
        format!("is: contour, namespace: projectcontour, workload: daemonset/envoy{more}");
    study(&objects, "arms: [{name: a, settings: {max_connections: 7}}]")
        .replace("kind: nginx", "kind: envoy")
}

fn arm_with(setting: &str) -> String {
    format!("arms: [{{name: a, settings: {{{setting}}}}}]")
}

fn with_sysctls(means: &str) -> String {
    format!("{WHOLE}, sysctls: {means}")
}

/// Returns a study with a controller and arms in these words.
fn study(controller: &str, arms: &str) -> String {
    format!(
        "weir: 1\nname: example\nquestion: Does it matter?\n\
         proxy: {{kind: nginx, address: '10.96.7.7:80', controller: {{{controller}}}}}\n\
         loads:\n- {{name: closed, closed: true, connections: 20, duration: 1m}}\n{arms}\n"
    )
}

const WHOLE: &str = "is: ingress-nginx, namespace: ingress-nginx, config: configmap/settings, workload: deployment/controller";
const ARMS: &str = "one-at-a-time: {keepalive_requests: [100, 10000], net.core.somaxconn: [32768]}";

#[test]
fn arms_are_settings_of_the_controller_s_objects() {
    let study = read(&study(WHOLE, ARMS)).unwrap();
    let (proxy, controller) = study.controlled().unwrap();
    assert_eq!(controller.first.objects["config"], "configmap/settings");
    assert!(
        !proxy.is_started() && proxy.settings.is_empty(),
        "nothing is taken for stock: {proxy:?}"
    );
    let names: Vec<&str> = study.arms.iter().map(|arm| &*arm.name).collect();
    // What the program does by itself is not what the controller has it do.
    let expected = [
        "baseline",
        "same-as-baseline",
        "keepalive_requests=100",
        "keepalive_requests=10000",
        "net.core.somaxconn=32768",
    ];
    assert_eq!(names, expected);
}

/// A search in turn has an A/A arm by default, because it alone shows the changes between two searches.
#[test]
fn capacities_in_turn_have_an_a_a_arm_by_themselves() {
    let arms = "arms: [{name: a, settings: {keepalive_requests: 7}}]";
    for (arms, same, count) in [(arms, "", 3), (arms, "\na/a: false", 2), ("", "", 1)] {
        let sections = format!("{arms}{same}\nobjective: {{capacity: 'p99 < 30ms'}}");
        let text = study(WHOLE, &sections).replace(", duration: 1m", "");
        let study = read(&text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
        assert_eq!(study.arms.len(), count, "{sections}");
    }
}

/// A second instance of the controller.
const BESIDE: &str =
    "beside: [{address: '10.96.7.8:80', config: configmap/b, workload: deployment/b}]";

#[test]
fn each_arm_has_each_instance_of_a_controller_equally_often() {
    let text = study(
        &format!("{WHOLE}, {BESIDE}"),
        "arms: [{name: a, settings: {keepalive_requests: 7}}]",
    );
    let study = read(&format!("{text}a/a: false\nblocks: {{instances: 5}}\n")).unwrap();
    let (_, controller) = study.controlled().unwrap();
    assert_eq!(controller.beside[0].instance.namespace, "ingress-nginx");
    assert_eq!(controller.beside[0].instance.objects["config"], "configmap/b");
    assert!(!study.is_in_turn());
    assert_eq!(study.blocks.instances, 6);
    let unread = "beside: [{address: '10.96.7.8:80', config: configmap/b}]";
    let in_common = BESIDE.replace("configmap/b", "configmap/settings");
    let one_proxy = BESIDE.replace("10.96.7.8", "10.96.7.7");
    for (beside, message) in [
        (
            &*in_common,
            "two instances of the controller have configmap/settings in ingress-nginx in common",
        ),
        (&one_proxy, "two instances of the controller have 10.96.7.7:80 in common"),
        (unread, "weir could not tell whether a setting is in force"),
        (
            BESIDE,
            "5 arms (the baseline and the A/A arm included) and 2 instances of the controller",
        ),
    ] {
        is_refused(&self::study(&format!("{WHOLE}, {beside}"), ARMS), message);
    }
}

/// Changes the text of a controller and expects an error.
#[test]
fn a_controller_is_named_with_its_objects() {
    let gzip = "arms: [{name: a, settings: {gzip: on}}]";
    let no_workload = WHOLE.replace(", workload: deployment/controller", "");
    for (controller, arms, message) in [
        (
            WHOLE.replace("is: ingress-nginx,", "is: ingres-nginx,"),
            ARMS,
            "`ingres-nginx` is not `contour`, `envoy-gateway`, `ingress-nginx` or `nginx-ingress` [ingress-nginx]",
        ),
        (
            WHOLE.replace("namespace: ingress-nginx, ", ""),
            ARMS,
            "a controller needs the key `namespace`",
        ),
        (
            WHOLE.replace("config: configmap/settings, ", ""),
            ARMS,
            "a controller needs the key `config`, the ConfigMap that the controller is started",
        ),
        (WHOLE.replace("configmap/", "secret/"), ARMS, "`secret/settings` is not `configmap/NAME`"),
        (
            WHOLE.replace("configmap/settings", "settings"),
            ARMS,
            "`settings` is not `configmap/NAME`",
        ),
        (
            WHOLE.replace("configmap/settings", "configmap/a/b/c"),
            ARMS,
            "`configmap/a/b/c` is not `configmap/NAME`",
        ),
        (format!("{WHOLE}, wrkload: x"), ARMS, "a controller has no key `wrkload`"),
        (format!("{WHOLE}, within: 1ms"), ARMS, "`1ms` is not a duration"),
        (no_workload.clone(), gzip, "weir could not tell whether a setting is in force"),
        (
            format!("{no_workload}, read: [nginx, -T]"),
            ARMS,
            "`net.core.somaxconn` is set in the `workload`, which is not named",
        ),
    ] {
        is_refused(&study(&controller, arms), message);
    }
    let text = study(WHOLE, ARMS).replace("kind: nginx", "kind: envoy");
    assert!(messages_of(&text)[0].starts_with("ingress-nginx configures nginx, not Envoy"));
    let text = study(WHOLE, ARMS).replace("address: '10.96.7.7:80', ", "");
    assert_eq!(messages_of(&text), ["a proxy needs the key `address`"]);
}

/// Names objects in several namespaces, for a controller that reads one of them at its start only.
#[test]
fn what_reads_an_object_once_has_to_be_started_anew() {
    let study = read(&contour_study(", service: service/shop/web")).unwrap();
    let (_, controller) = study.controlled().unwrap();
    assert_eq!(controller.first.objects["service"], "service/shop/web");
    is_refused(
        &contour_study(", service: service/shop/web, config: contourconfiguration/contour"),
        "Contour reads the `config` at its start only",
    );
    is_refused(
        &contour_study(", service: service/shop/web, file: configmap/contour"),
        "Contour reads the `file` at its start only",
    );
    for more in ["contour: deployment/contour", "restart: [systemctl, restart, contour]"] {
        let text = contour_study(&format!(
            ", service: service/shop/web, config: contourconfiguration/contour, {more}"
        ));
        read(&text).unwrap();
    }
    is_refused(&contour_study(""), "`max_connections` is set in the `service`, which is not named");
}

#[test]
fn what_a_controller_cannot_set_is_refused() {
    for (arm, message) in [
        ("settings: {sendfile: off}", "ingress-nginx cannot set `sendfile`"),
        ("settings: {fs.file-max: 1048576}", "ingress-nginx cannot set `fs.file-max`"),
        (
            "settings: {access_log: buffered}",
            "ingress-nginx has no word for `access_log: buffered`",
        ),
        ("settings: {cpu_limit: 5m}", "`cpu_limit`: `5m` is not a number of CPUs"),
        ("proxy: haproxy", "an arm has a proxy of its own, and the study's has a controller"),
    ] {
        is_refused(&study(WHOLE, &format!("arms: [{{name: a, {arm}}}]")), message);
    }
}

/// Parameters of pods need a controller, and `replicas` needs a Deployment.
#[test]
fn what_pods_have_is_of_a_workload() {
    let arms = "arms: [{name: a, settings: {replicas: 3, cpu_limit: 500m}}]";
    read(&study(WHOLE, arms)).unwrap();
    let daemonset = WHOLE.replace("deployment/", "daemonset/");
    let message = "`replicas` is of a Deployment, and `daemonset/controller` is none";
    is_refused(&study(&daemonset, arms), message);
    // Where pods are placed is for both kinds, and a level is refused by its grammar.
    for placed in [
        "node_selector: 'pool=ingress,zone=a'",
        "tolerations: 'dedicated=ingress:NoSchedule'",
        "pod_affinity: app=origin",
        "pod_anti_affinity: app=other",
    ] {
        read(&study(WHOLE, &arm_with(placed))).unwrap();
        read(&study(&daemonset, &arm_with(placed))).unwrap();
        let id = placed.split(':').next().unwrap_or_default();
        let nowhere = WHOLE.replace(", workload: deployment/controller", "");
        let message = format!("`{id}` is set in the `workload`, which is not named");
        is_refused(&study(&format!("{nowhere}, read: [nginx, -T]"), &arm_with(placed)), &message);
    }
    for (setting, message) in [
        ("node_selector: ingress", "`node_selector`: `ingress` is not labels with their values"),
        ("tolerations: 'node.kubernetes.io/not-ready:NoExecute'", "`tolerations`: "),
        ("pod_affinity: 'app in (a)'", "`pod_affinity`: "),
    ] {
        is_refused(&study(WHOLE, &arm_with(setting)), message);
    }
    let text = study(WHOLE, arms)
        .replace(&format!(", address: '10.96.7.7:80', controller: {{{WHOLE}}}"), "");
    is_refused(&text, "`cpu_limit` is of pods, and the proxy has no `controller`");
}

/// The means of setting the kernel decide which settings are possible, and where. An Ingress that a study names is one
/// of its objects.
#[test]
fn the_kernel_is_set_by_the_means_that_a_study_names() {
    let host = "arms: [{name: a, settings: {net.core.netdev_max_backlog: 5000}}]";
    for (means, expected) in [
        ("pods", SysctlMeans::Pods),
        ("init-container", SysctlMeans::InitContainer),
        ("node", SysctlMeans::Node),
    ] {
        let study = read(&study(&with_sysctls(means), ARMS)).unwrap();
        assert_eq!(study.controlled().unwrap().1.sysctls, expected);
        let remarks = weir_study::remarks(&study, &Catalog::builtin(), &crate::context());
        let is_told = remarks.iter().any(|remark| remark.text.contains("privileged"));
        assert_eq!(is_told, expected != SysctlMeans::Pods, "{means}: {remarks:?}");
    }
    read(&study(&with_sysctls("node"), host)).unwrap();
    let cannot = "ingress-nginx cannot set `net.core.netdev_max_backlog`";
    is_refused(&study(&with_sysctls("init-container"), host), cannot);
    is_refused(&study(WHOLE, host), cannot);
    is_refused(&study(&with_sysctls("nobody"), ARMS), "`nobody` is not `pods`");
    let unnamed = WHOLE.replace(", workload: deployment/controller", ", read: [nginx, -T]");
    let message = "`net.core.somaxconn` is set in the `workload`, which is not named";
    for means in ["pods", "init-container", "node"] {
        is_refused(&study(&format!("{unnamed}, sysctls: {means}"), ARMS), message);
    }
    let beside = study(&format!("{}, {BESIDE}", with_sysctls("node")), ARMS);
    is_refused(&beside, "instances on one node have `net.core.somaxconn` in common");
    // Nobody has allowed it.
    let context = CheckContext { node_sysctls: false, ..crate::context() };
    let refused = |means: &str| {
        let text = study(&with_sysctls(means), ARMS);
        weir_study::parse(&text, "study.yaml", &Catalog::builtin(), &context)
    };
    refused("init-container").unwrap();
    let errors = refused("node").unwrap_err();
    let first = &errors.errors()[0];
    assert!(first.message.contains("the kernel of the cluster's nodes"), "{first:?}");
}

#[test]
fn an_ingress_is_an_object_of_the_study() {
    let arms = "arms: [{name: a, settings: {proxy_buffering: on}}]";
    let with_ingress = format!("{WHOLE}, ingress: ingress/shop/web");
    let parsed = read(&study(&with_ingress, arms)).unwrap();
    assert_eq!(parsed.controlled().unwrap().1.first.objects["ingress"], "ingress/shop/web");
    let wrong = format!("{WHOLE}, ingress: httpproxy/web");
    is_refused(&study(&wrong, arms), "`httpproxy/web` is not `ingress/NAME`");
    // What one instance has by its Ingress, the other must not have by its ConfigMap.
    let beside = study(&format!("{with_ingress}, {BESIDE}"), arms);
    is_refused(&beside, "`proxy_buffering` is set in the `ingress`, which is not named");
}

#[track_caller]
fn is_refused(text: &str, message: &str) {
    let messages = messages_of(text);
    assert!(messages.iter().any(|one| one.starts_with(message)), "{message}: {messages:?}");
}

/// Every controller's file has a place for each of its rows, and the rows name existing objects.
#[test]
fn every_row_of_a_controller_has_a_place() {
    let catalog = weir_parameters::Catalog::builtin();
    for controller in Controller::all() {
        let mut placed = 0;
        let means = weir_parameters::controller::ControllerMeans::default();
        for id in controller.can_set(&catalog, means.sysctls) {
            let row = catalog.get(controller.proxy, id).unwrap();
            let mut levels = row.default.all().iter().filter_map(|default| default.level.clone());
            let placement = levels.find_map(|level| controller.place(row, &level, &means).ok());
            let Some(placement) = placement else {
                continue;
            };
            assert!(controller.objects.contains_key(&placement.object), "{id}: {placement:?}");
            assert!(
                placement.at.starts_with('/') && !placement.at.contains('{'),
                "{id}: {placement:?}"
            );
            placed += 1;
        }
        assert!(placed > 10, "{}: {placed}", controller.name);
    }
}
