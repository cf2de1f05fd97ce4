//! What weir asks of a cluster, and whether it may.

use std::collections::BTreeMap;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::error::KubeError;
use crate::inner::Inner;
use crate::object_ref::ObjectRef;
use crate::objects::{self, MANAGED_BY};

/// What is to be allowed in a namespace.
struct Rule<'r> {
    group: &'r str,
    resource: &'r str,
    verbs: &'r [&'r str],
    /// `None`: all of them.
    name: Option<&'r str>,
}

/// All that weir asks for where its generators are.
const RULES: [Rule<'static>; 4] = [
    rule("batch", "jobs", &["create", "get", "list", "delete"]),
    rule("", "pods", &["create", "get", "list", "delete"]),
    EXEC,
    rule("", "events", &["list"]),
];
// A web socket is opened by GET; newer API servers ask for `create` as well.
const EXEC: Rule<'static> = rule("", "pods/exec", &["create", "get"]);
const FORWARD: Rule<'static> = rule("", "pods/portforward", &["create", "get"]);
/// What it asks for besides where it changes objects of a workload, and asks its pods.
const OF_WORKLOAD: [Rule<'static>; 3] = [
    rule("", "pods", &["list"]),
    rule("apps", "replicasets", &["list", "delete"]),
    rule("", "events", &["list"]),
];

/// The same of a DaemonSet's.
const REVISIONS: Rule<'static> = rule("apps", "controllerrevisions", &["list", "delete"]);

const fn rule<'r>(group: &'r str, resource: &'r str, verbs: &'r [&'r str]) -> Rule<'r> {
    Rule {
        group,
        resource,
        verbs,
        name: None,
    }
}

/// The names of the roles, and of their bindings.
const ROLE: &str = "weir";
const CONTROLLER_ROLE: &str = "weir-controller";

/// How the pods of workloads are asked what they run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// By a command in them.
    Command,
    /// Over a port of theirs.
    Port,
}

/// What changes of these objects need, by namespace.
fn rules_of(objects: &[ObjectRef], asks: Asks) -> BTreeMap<&str, Vec<Rule<'_>>> {
    let mut rules: BTreeMap<&str, Vec<Rule<'_>>> = BTreeMap::new();
    for object in objects {
        rules.entry(&object.namespace).or_default().push(Rule {
            name: Some(&object.name),
            ..rule(object.group(), &object.resource, &["get", "update"])
        });
    }
    for (namespace, rules) in &mut rules {
        let own = || objects.iter().filter(|one| one.namespace == *namespace);
        if own().any(|object| object.resource == "daemonsets") {
            rules.push(REVISIONS);
        }
        if own().any(|object| object.group() == "apps") {
            rules.extend(OF_WORKLOAD);
            rules.push(match asks {
                Asks::Command => EXEC,
                Asks::Port => FORWARD,
            });
        }
    }
    rules
}

/// Asks the API server whether the user may do all that the pods of generators need.
pub(crate) async fn check(inner: &Inner) -> Result<(), KubeError> {
    let namespace = &inner.namespace;
    let manifest = |user: &str| manifest(namespace, user);
    check_all(inner, namespace, &RULES, &manifest).await
}

/// The same of what changes of these objects need.
pub(crate) async fn check_objects(
    inner: &Inner,
    objects: &[ObjectRef],
    asks: Asks,
) -> Result<(), KubeError> {
    let manifest = |user: &str| manifest_of(objects, asks, user);
    for (namespace, rules) in rules_of(objects, asks) {
        check_all(inner, namespace, &rules, &manifest).await?;
    }
    Ok(())
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
                let name = rule
                    .name
                    .map_or_else(String::new, |name| format!(" {name}"));
                missing.push(format!("{verb} {}{name}", rule.resource));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let user = user(inner).await;
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

/// Whom the API server takes the user for.
async fn user(inner: &Inner) -> String {
    let reviews: Api<SelfSubjectReview> = Api::all(inner.client.clone());
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await;
    let name = review
        .ok()
        .and_then(|review| review.status?.user_info?.username);
    name.unwrap_or_else(|| "USER".to_owned())
}

/// The Role and the RoleBinding that grant a user what weir needs in a namespace, as YAML documents.
pub fn manifest(namespace: &str, user: &str) -> String {
    documents(ROLE, namespace, &RULES, user)
}

/// Those that grant what changes of these objects need, in each of their namespaces.
pub fn manifest_of(objects: &[ObjectRef], asks: Asks, user: &str) -> String {
    let rules = rules_of(objects, asks).into_iter();
    rules
        .map(|(namespace, rules)| documents(CONTROLLER_ROLE, namespace, &rules, user))
        .collect()
}

fn documents(role: &str, namespace: &str, rules: &[Rule<'_>], user: &str) -> String {
    let metadata = json!({
        "name": role,
        "namespace": namespace,
        "labels": {MANAGED_BY.0: "weir-administrator"},
    });
    let granted = |rule: &Rule<'_>| {
        let mut granted = json!({
            "apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs,
        });
        if let Some(name) = rule.name {
            granted["resourceNames"] = json!([name]);
        }
        granted
    };
    let name = role;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": rules.iter().map(granted).collect::<Vec<_>>(),
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject(user)],
    });
    [role, binding].iter().map(objects::yaml).collect()
}

/// Whoever has this name: service accounts have one of a form of their own.
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

    #[test]
    fn a_service_account_is_bound_as_one() {
        assert_eq!(
            subject("system:serviceaccount:ci:weir")["kind"],
            "ServiceAccount"
        );
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
        let workload = ObjectRef {
            api: "apps/v1".to_owned(),
            ..object.clone()
        };
        let text = manifest_of(std::slice::from_ref(&object), Asks::Command, "jane");
        assert!(
            text.contains("resourceNames") && !text.contains("pods"),
            "{text}"
        );
        let elsewhere = ObjectRef {
            namespace: "shop".to_owned(),
            ..object.clone()
        };
        let objects = [object, workload, elsewhere];
        for (asks, has, has_not) in [
            (Asks::Command, "pods/exec", "pods/portforward"),
            (Asks::Port, "pods/portforward", "pods/exec"),
        ] {
            let text = manifest_of(&objects, asks, "jane");
            assert!(text.contains("replicasets") && text.contains(has), "{text}");
            assert!(!text.contains(has_not), "{text}");
            let own = text.rfind("namespace: shop").unwrap_or(0);
            assert!(own > text.rfind("replicasets").unwrap_or(own), "{text}");
        }
    }
}
