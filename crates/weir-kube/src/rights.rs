//! Rights that weir needs in a cluster, and checks for them.

use std::collections::BTreeMap;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::asked::ProxyPods;
use crate::error::KubeError;
use crate::inner::Inner;
use crate::object_ref::ObjectRef;
use crate::objects::{self, MANAGED_BY};

/// Rights on one kind of object in a namespace.
#[derive(Clone, Copy)]
struct Rule<'r> {
    group: &'r str,
    resource: &'r str,
    verbs: &'r [&'r str],
    /// Name of the only object; `None`: all objects.
    name: Option<&'r str>,
}

/// Rights that weir needs in the namespace of its generators.
const RULES: [Rule<'static>; 4] = [
    rule("batch", "jobs", &["create", "get", "list", "delete"]),
    rule("", "pods", &["create", "get", "list", "delete"]),
    EXEC,
    EVENTS,
];
// A web socket is opened by GET; newer API servers ask for `create` as well.
const EXEC: Rule<'static> = rule("", "pods/exec", &["create", "get"]);
const FORWARD: Rule<'static> = rule("", "pods/portforward", &["create", "get"]);
const PODS: Rule<'static> = rule("", "pods", &["list"]);
const EVENTS: Rule<'static> = rule("", "events", &["list"]);
/// Additional rights for roll-outs of a changed Deployment.
const REPLICA_SETS: Rule<'static> = rule("apps", "replicasets", &["list", "delete"]);

/// Rights for finding the URL of an Ingress, in the Ingress's namespace.
const INGRESSES: Rule<'static> = rule("networking.k8s.io", "ingresses", &["get"]);
/// Rights for finding the URL of an Ingress, in the whole cluster.
const OF_CONTROLLERS: [Rule<'static>; 2] =
    [rule("", "services", &["list"]), rule("networking.k8s.io", "ingressclasses", &["list"])];

/// Additional rights for roll-outs of a changed DaemonSet.
const REVISIONS: Rule<'static> = rule("apps", "controllerrevisions", &["list", "delete"]);

const fn rule<'r>(group: &'r str, resource: &'r str, verbs: &'r [&'r str]) -> Rule<'r> {
    Rule { group, resource, verbs, name: None }
}

/// Names of the roles and of their bindings.
const ROLE: &str = "weir";
const CONTROLLER_ROLE: &str = "weir-controller";
const SAMPLES_ROLE: &str = "weir-samples";
const INGRESS_ROLE: &str = "weir-ingress";

/// Way in which the pods of workloads are queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// By a command in the pod.
    Command,
    /// By a request to a port of the pod.
    Port,
}

/// Objects of others that a study uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// Objects that the study changes.
    pub changed: Vec<ObjectRef>,
    /// Workloads whose pods the study queries.
    pub asked: Vec<ObjectRef>,
    /// Way in which those pods are queried.
    pub asks: Asks,
}

/// Returns the rights that a study needs on objects of others, by namespace.
fn rules_of(used: &Used) -> BTreeMap<&str, Vec<Rule<'_>>> {
    let mut rules: BTreeMap<&str, Vec<Rule<'_>>> = BTreeMap::new();
    for object in &used.changed {
        let namespace_rules = rules.entry(&object.namespace).or_default();
        namespace_rules.push(of_object(object, &["get", "update"]));
        if object.group() == "apps" {
            add_new(namespace_rules, [PODS, REPLICA_SETS, EVENTS]);
        }
        if object.resource == "daemonsets" {
            add_new(namespace_rules, [REVISIONS]);
        }
    }
    let access = match used.asks {
        Asks::Command => EXEC,
        Asks::Port => FORWARD,
    };
    for object in &used.asked {
        let namespace_rules = rules.entry(&object.namespace).or_default();
        if !used.changed.contains(object) {
            namespace_rules.push(of_object(object, &["get"]));
        }
        add_new(namespace_rules, [PODS, access, EVENTS]);
    }
    rules
}

fn of_object<'o>(object: &'o ObjectRef, verbs: &'o [&'o str]) -> Rule<'o> {
    Rule { name: Some(&object.name), ..rule(object.group(), &object.resource, verbs) }
}

/// Adds rules for resources that have none yet.
fn add_new<'r, const N: usize>(rules: &mut Vec<Rule<'r>>, more: [Rule<'r>; N]) {
    for new in more {
        if !rules.iter().any(|rule| rule.resource == new.resource && rule.name.is_none()) {
            rules.push(new);
        }
    }
}

/// Checks that the user has all rights that the pods of generators need.
pub(crate) async fn check(inner: &Inner) -> Result<(), KubeError> {
    let namespace = &inner.namespace;
    check_all(inner, namespace, &RULES, &|user: &str| manifest(namespace, user)).await
}

/// Checks that the user has all rights that a study needs on objects of others.
pub(crate) async fn check_used(inner: &Inner, used: &Used) -> Result<(), KubeError> {
    for (namespace, rules) in rules_of(used) {
        check_all(inner, namespace, &rules, &|user: &str| manifest_of(used, user)).await?;
    }
    Ok(())
}

/// Checks that the user may read the Ingresses of a namespace. Rights in the whole cluster are not checked, since they
/// are optional.
pub(crate) async fn check_ingress(inner: &Inner, namespace: &str) -> Result<(), KubeError> {
    let render = &|user: &str| manifest_of_ingress(namespace, user);
    check_all(inner, namespace, &[INGRESSES], render).await
}

async fn check_all(
    inner: &Inner,
    namespace: &str,
    rules: &[Rule<'_>],
    manifest: &dyn Fn(&str) -> String,
) -> Result<(), KubeError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(inner.client.clone());
    let mut missing = Vec::new();
    for rule in rules {
        for verb in rule.verbs {
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(attributes(namespace, rule, verb)),
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            let answer = reviews.create(&PostParams::default(), &review).await;
            let answer =
                answer.map_err(|error| inner.failed("ask what this user may do", error))?;
            if !answer.status.is_some_and(|status| status.allowed) {
                let name = rule.name.map_or_else(String::new, |name| format!(" {name}"));
                missing.push(format!("{verb} {}{name}", rule.resource));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let user = ask_user(inner).await;
    Err(KubeError::Rights {
        context: inner.context.clone(),
        namespace: namespace.to_owned(),
        manifest: manifest(&user),
        user,
        missing,
    })
}

fn attributes(namespace: &str, rule: &Rule<'_>, verb: &str) -> ResourceAttributes {
    let (resource, subresource) = match rule.resource.split_once('/') {
        Some((resource, sub)) => (resource, Some(sub.to_owned())),
        None => (rule.resource, None),
    };
    ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        group: Some(rule.group.to_owned()),
        name: rule.name.map(str::to_owned),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    }
}

/// Returns the user's name as the API server knows it; `USER` if the query fails.
async fn ask_user(inner: &Inner) -> String {
    let reviews: Api<SelfSubjectReview> = Api::all(inner.client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let name = review.ok().and_then(|review| review.status?.user_info?.username);
    name.unwrap_or_else(|| "USER".to_owned())
}

/// Renders the Role and the RoleBinding that grant a user the rights that weir needs in a namespace, as YAML documents.
pub fn manifest(namespace: &str, user: &str) -> String {
    render_in_namespace(ROLE, namespace, &RULES, user)
}

/// Renders the Roles and RoleBindings that grant a user the rights that a study needs on objects of others, in each of
/// their namespaces.
pub fn manifest_of(used: &Used, user: &str) -> String {
    let rules = rules_of(used).into_iter();
    rules
        .map(|(namespace, rules)| render_in_namespace(CONTROLLER_ROLE, namespace, &rules, user))
        .collect()
}

/// Renders the Role and the RoleBinding that let a user sample pods of a proxy.
pub fn manifest_of_samples(pods: &ProxyPods, user: &str) -> String {
    render_in_namespace(SAMPLES_ROLE, &pods.namespace, &[PODS, EXEC], user)
}

/// Renders the roles and bindings that let a user find the URL and the address of an Ingress in a namespace. They
/// include a ClusterRole, since the controller may be in any namespace.
pub fn manifest_of_ingress(namespace: &str, user: &str) -> String {
    let in_namespace = render_in_namespace(INGRESS_ROLE, namespace, &[INGRESSES], user);
    let in_cluster = render_role((INGRESS_ROLE, None), &OF_CONTROLLERS, user);
    in_namespace + &in_cluster
}

fn render_in_namespace(role: &str, namespace: &str, rules: &[Rule<'_>], user: &str) -> String {
    render_role((role, Some(namespace)), rules, user)
}

/// Renders a role of a namespace, or of the whole cluster if `namespace` is `None`, and its binding.
fn render_role((role, namespace): (&str, Option<&str>), rules: &[Rule<'_>], user: &str) -> String {
    let mut metadata = json!({
        "name": role,
        "labels": {MANAGED_BY.0: "weir-administrator"},
    });
    let kind = match namespace {
        Some(namespace) => {
            metadata["namespace"] = json!(namespace);
            "Role"
        }
        None => "ClusterRole",
    };
    let name = role;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": rules.iter().map(render_rule).collect::<Vec<_>>(),
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [subject(user)],
    });
    [role, binding].iter().map(objects::yaml).collect()
}

fn render_rule(rule: &Rule<'_>) -> Value {
    let mut granted = json!({
        "apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs,
    });
    if let Some(name) = rule.name {
        granted["resourceNames"] = json!([name]);
    }
    granted
}

/// Renders the subject of a binding. Service accounts are recognized by the form of their names.
fn subject(user: &str) -> Value {
    let account = user.strip_prefix("system:serviceaccount:");
    match account.and_then(|account| account.split_once(':')) {
        Some((namespace, name)) => {
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        None => json!({"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_changes(changed: &[&ObjectRef], asked: Option<(&ObjectRef, Asks)>) -> String {
        let used = Used {
            changed: changed.iter().copied().cloned().collect(),
            asked: asked.iter().map(|(object, _)| (*object).clone()).collect(),
            asks: asked.map_or(Asks::Command, |(_, asks)| asks),
        };
        manifest_of(&used, "jane")
    }

    #[test]
    fn a_service_account_is_bound_as_one() {
        assert_eq!(subject("system:serviceaccount:ci:weir")["kind"], "ServiceAccount");
        assert_eq!(subject("jane")["kind"], "User");
        let text = manifest("bench", "jane");
        assert_eq!(text.matches("---\n").count(), 2, "{text}");
        assert!(text.contains("pods/exec"), "{text}");
        let object = ObjectRef {
            api: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            resource: "configmaps".to_owned(),
            namespace: "ingress".to_owned(),
            name: "settings".to_owned(),
        };
        let workload = ObjectRef { api: "apps/v1".to_owned(), ..object.clone() };
        let elsewhere = ObjectRef { namespace: "shop".to_owned(), ..object.clone() };
        for (changed, asks, has, has_not) in [
            (vec![&object], None, "resourceNames", "pods"),
            (vec![&object, &workload], Some(Asks::Command), "pods/exec", "portforward"),
            (vec![&workload], None, "replicasets", "pods/exec"),
            (vec![&object], Some(Asks::Port), "pods/portforward", "replicasets"),
            (vec![&object, &elsewhere], None, "namespace: shop", "pods"),
            (vec![], Some(Asks::Port), "- get", "- update"),
        ] {
            let text = render_changes(&changed, asks.map(|asks| (&workload, asks)));
            assert!(text.contains(has) && !text.contains(has_not), "{text}");
        }
        // One for each namespace, and each rule once.
        let command = Some((&workload, Asks::Command));
        let text = render_changes(&[&object, &elsewhere, &workload], command);
        assert_eq!(text.matches("kind: RoleBinding").count(), 2, "{text}");
        assert_eq!(text.matches("- events").count(), 1, "{text}");
    }

    #[test]
    fn what_is_only_read_is_granted_to_be_read() {
        let text = manifest_of_samples(&"ingress/app=a".parse().unwrap(), "jane");
        assert!(text.contains("namespace: ingress") && text.contains("pods/exec"), "{text}");
        assert!(!text.contains("- delete"), "{text}");
        let text = manifest_of_ingress("shop", "jane");
        for (words, times) in
            [("kind: ClusterRole\n", 2), ("kind: Role\n", 2), ("namespace: shop", 2)]
        {
            assert_eq!(text.matches(words).count(), times, "{words}: {text}");
        }
    }
}
