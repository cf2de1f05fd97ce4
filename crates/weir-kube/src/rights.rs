//! What weir asks of a cluster, and whether it may.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::error::KubeError;
use crate::inner::Inner;
use crate::objects::{self, MANAGED_BY};

/// API group, resource and verbs: all that weir ever asks for, in one namespace.
const RULES: [(&str, &str, &[&str]); 4] = [
    ("batch", "jobs", &["create", "get", "list", "delete"]),
    ("", "pods", &["create", "get", "list", "delete"]),
    // A web socket is opened by GET; newer API servers ask for `create` as well.
    ("", "pods/exec", &["create", "get"]),
    ("", "events", &["list"]),
];

/// The name of the role and of its binding.
const ROLE: &str = "weir";

/// Asks the API server whether the user may do all that is needed.
pub(crate) async fn check(inner: &Inner) -> Result<(), KubeError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(inner.client.clone());
    let mut missing = Vec::new();
    for (group, resource, verbs) in RULES {
        for verb in verbs {
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(attributes(&inner.namespace, group, resource, verb)),
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            let answer = reviews.create(&PostParams::default(), &review).await;
            let answer =
                answer.map_err(|error| inner.failed("ask what this user may do", error))?;
            if !answer.status.is_some_and(|status| status.allowed) {
                missing.push(format!("{verb} {resource}"));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let user = user(inner).await;
    Err(KubeError::Rights {
        context: inner.context.clone(),
        namespace: inner.namespace.clone(),
        manifest: manifest(&inner.namespace, &user),
        user,
        missing,
    })
}

fn attributes(namespace: &str, group: &str, resource: &str, verb: &str) -> ResourceAttributes {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, sub)) => (resource, Some(sub.to_owned())),
        None => (resource, None),
    };
    ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        group: Some(group.to_owned()),
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
    let metadata = json!({
        "name": ROLE,
        "namespace": namespace,
        "labels": {MANAGED_BY.0: "weir-administrator"},
    });
    let rule = |(group, resource, verbs): (&str, &str, &[&str])| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": RULES.map(rule),
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE},
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
    }
}
