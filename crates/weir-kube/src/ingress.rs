//! An Ingress as the URL that it serves: its host and path, its address, and the pods behind the address.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::asked::ProxyPods;
use crate::cluster::Cluster;
use crate::error::KubeError;
use crate::inner::Inner;
use crate::rights;

/// Annotation that names the class if the specification does not; older than `ingressClassName`.
const CLASS: &str = "kubernetes.io/ingress.class";
/// Annotation of the class that applies to an Ingress which names none.
const DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";
/// Labels that a class shares with the Service of its controller if both come from one chart or manifest.
const COMMON: [&str; 2] = ["app.kubernetes.io/name", "app.kubernetes.io/instance"];

/// URL that an Ingress serves, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// URL, from host and path of the first rule.
    pub url: String,
    /// Address that serves the URL, with its port.
    pub to: String,
    /// Pods of the controller's proxy; `None` if they were not found.
    pub pods: Option<ProxyPods>,
    /// Explanation for the user how each of these was found.
    pub said: Vec<String>,
}

/// First rule of an Ingress.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    /// Host; `None`: any.
    host: Option<String>,
    path: String,
    is_secure: bool,
}

impl Rule {
    fn port(&self) -> u16 {
        if self.is_secure { 443 } else { 80 }
    }
}

impl Cluster {
    /// Determines the URL that an Ingress serves, and its address and pods. `namespace` is `None` for the cluster's
    /// own.
    ///
    /// # Errors
    /// The Ingress does not exist, its first rule is not a URL, or its address is unknown. The error says what is
    /// missing, and what to do.
    pub fn ingress(&self, namespace: Option<&str>, name: &str) -> Result<Served, KubeError> {
        let inner = &self.inner;
        let namespace = namespace.unwrap_or(inner.namespace.as_str());
        let ingress_name = format!("ingress/{namespace}/{name}");
        let doing = format!("read {ingress_name}");
        let check = rights::check_ingress(inner, namespace);
        inner.run("ask what this user may do", check)?;
        let api: Api<Ingress> = Api::namespaced(inner.client.clone(), namespace);
        let answer = inner.run(&doing, async {
            let answer = api.get_opt(name).await;
            answer.map_err(|error| inner.failed(&doing, error))
        })?;
        let ingress = answer.ok_or_else(|| unclear(&ingress_name, "does not exist".to_owned()))?;
        let rule = first_rule(&ingress).map_err(|why| unclear(&ingress_name, why))?;
        let services = list_services(inner);
        let address = status_address(&ingress);
        let (service, how) = match (&address, &services) {
            (Some(address), Ok(all)) => {
                let service = all.iter().find(|service| has_address(service, address));
                (service, "the Service with that address".to_owned())
            }
            (None, Ok(all)) => of_class(inner, &ingress, all, &rule)
                .unwrap_or_else(|error| (None, error.to_string())),
            (_, Err(_)) => (None, String::new()),
        };
        let controller = ControllerMatch {
            ingress_name: &ingress_name,
            service,
            how: &how,
            unlisted: services.as_ref().err().map(ToString::to_string),
        };
        let (at, from) = controller.address(address)?;
        let pods = service.and_then(pods_of);
        let host = rule.host.clone().unwrap_or_else(|| bracketed(&at));
        let scheme = if rule.is_secure { "https" } else { "http" };
        let url = format!("{scheme}://{host}{}", rule.path);
        Ok(Served {
            said: vec![
                format!("URL: {url} (the first rule of {ingress_name})"),
                format!("Address: {at} ({from})"),
                format!("Proxy: {}", controller.describe_pods(pods.as_ref(), &at)),
            ],
            url,
            to: format!("{}:{}", bracketed(&at), rule.port()),
            pods,
        })
    }
}

/// The controller of an Ingress, as far as it was found.
struct ControllerMatch<'f> {
    /// Name of the Ingress, with its namespace.
    ingress_name: &'f str,
    service: Option<&'f v1::Service>,
    /// Explanation how the Service was found, or why it was not.
    how: &'f str,
    /// Reason why Services could not be listed; `None`: they were.
    unlisted: Option<String>,
}

impl ControllerMatch<'_> {
    /// Returns the address to send requests to, and its origin in words.
    fn address(&self, of_status: Option<String>) -> Result<(String, String), KubeError> {
        let (ingress_name, how) = (self.ingress_name, self.how);
        match (of_status, self.service) {
            (Some(address), _) => Ok((address, format!("the status of {ingress_name}"))),
            (None, Some(service)) => Ok((
                cluster_ip(service).unwrap_or_default(),
                format!(
                    "{}, {how}; {ingress_name} has none in its status",
                    describe_service(service)
                ),
            )),
            (None, None) => {
                let why = self.unlisted.as_deref().unwrap_or(how);
                let why = format!(
                    "has no address in its status, and its controller's Service is not found: {why}"
                );
                Err(unclear(ingress_name, why))
            }
        }
    }

    /// Describes the proxy's pods, or the reason why they are unknown.
    fn describe_pods(&self, pods: Option<&ProxyPods>, at: &str) -> String {
        let why = match (pods, self.service, &self.unlisted) {
            (Some(pods), Some(service), _) => {
                return format!("pods {pods} ({})", describe_service(service));
            }
            (_, Some(service), _) => format!("{} selects none", describe_service(service)),
            (_, None, Some(error)) => format!("Services cannot be listed ({error})"),
            (_, None, None) => format!("no Service has the address {at}"),
        };
        format!("its pods are not known, because {why}; --proxy-pods names them")
    }
}

/// Describes a Service by namespace and name.
fn describe_service(service: &v1::Service) -> String {
    let namespace = service.namespace().unwrap_or_default();
    format!("Service {namespace}/{}", service.name_any())
}

/// Formats an address for use in a URL.
fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

/// Creates the error for an Ingress whose URL or address is unknown.
fn unclear(ingress_name: &str, why: String) -> KubeError {
    KubeError::Ingress { what: format!("{ingress_name} {why}") }
}

/// Reads the first rule; fails if it is not a single URL.
fn first_rule(ingress: &Ingress) -> Result<Rule, String> {
    let spec = ingress.spec.clone().unwrap_or_default();
    let first = spec.rules.clone().unwrap_or_default().into_iter().next();
    let Some(first) = first else {
        return match spec.default_backend {
            Some(_) => Ok(Rule {
                host: None,
                path: "/".to_owned(),
                is_secure: spec.tls.is_some_and(|tls| !tls.is_empty()),
            }),
            None => Err("has no rule".to_owned()),
        };
    };
    let host = first.host.filter(|host| !host.is_empty());
    if let Some(host) = host.as_ref().filter(|host| host.contains('*')) {
        return Err(format!("has the pattern {host} as the host of its first rule"));
    }
    let paths = first.http.map(|http| http.paths).unwrap_or_default();
    let path = paths
        .into_iter()
        .next()
        .and_then(|path| path.path)
        .filter(|path| !path.is_empty())
        .unwrap_or_else(|| "/".to_owned());
    if !path.starts_with('/')
        || !path.chars().all(|c| c.is_ascii_alphanumeric() || "/-._~%!$&'+,;=:@".contains(c))
    {
        return Err(format!("has the pattern {path} as the path of its first rule"));
    }
    let is_secure = spec
        .tls
        .iter()
        .flatten()
        .any(|tls| covers(tls.hosts.as_deref().unwrap_or_default(), host.as_deref()));
    Ok(Rule { host, path, is_secure })
}

/// Returns true if a certificate for these names serves a host.
fn covers(names: &[String], host: Option<&str>) -> bool {
    names.is_empty() || host.is_some_and(|host| names.iter().any(|name| is_for(name, host)))
}

/// Returns true if a name of a certificate matches a host; its first label may be a star.
fn is_for(name: &str, host: &str) -> bool {
    name == host
        || name
            .strip_prefix("*.")
            .is_some_and(|star| host.split_once('.').is_some_and(|(_, rest)| rest == star))
}

/// Returns the address that the controller has written to the Ingress's status.
fn status_address(ingress: &Ingress) -> Option<String> {
    let status = ingress.status.as_ref()?.load_balancer.as_ref()?;
    let first = status.ingress.as_ref()?.first()?;
    first.ip.clone().or_else(|| first.hostname.clone())
}

/// Lists the Services of all namespaces.
fn list_services(inner: &Inner) -> Result<Vec<v1::Service>, KubeError> {
    let api: Api<v1::Service> = Api::all(inner.client.clone());
    let doing = "list services of all namespaces";
    let list = inner.run(doing, async {
        let list = api.list(&ListParams::default()).await;
        list.map_err(|error| inner.failed(doing, error))
    });
    Ok(list?.items)
}

/// Returns true if a Service is reached at an address.
fn has_address(service: &v1::Service, address: &str) -> bool {
    let spec = service.spec.clone().unwrap_or_default();
    let balanced = service.status.as_ref().and_then(|status| {
        let all = status.load_balancer.as_ref()?.ingress.as_ref()?;
        Some(all.iter().any(|one| {
            one.ip.as_deref() == Some(address) || one.hostname.as_deref() == Some(address)
        }))
    });
    let outside = spec.external_ips.unwrap_or_default();
    cluster_ip(service).as_deref() == Some(address)
        || balanced == Some(true)
        || outside.iter().any(|ip| ip == address)
}

fn cluster_ip(service: &v1::Service) -> Option<String> {
    let ip = service.spec.as_ref()?.cluster_ip.clone();
    ip.filter(|ip| ip != "None" && !ip.is_empty())
}

/// Finds the Service of the controller of an Ingress's class. Also returns, in words, how it was found or why it was
/// not.
fn of_class<'s>(
    inner: &Inner,
    ingress: &Ingress,
    services: &'s [v1::Service],
    rule: &Rule,
) -> Result<(Option<&'s v1::Service>, String), KubeError> {
    let api: Api<IngressClass> = Api::all(inner.client.clone());
    let doing = "list ingressclasses";
    let classes = inner.run(doing, async {
        let list = api.list(&ListParams::default()).await;
        list.map_err(|error| inner.failed(doing, error))
    })?;
    let spec = ingress.spec.as_ref();
    let named = spec
        .and_then(|spec| spec.ingress_class_name.as_ref())
        .or_else(|| ingress.annotations().get(CLASS));
    let class = classes.items.iter().find(|class| match named {
        Some(name) => class.name_any() == *name,
        None => class.annotations().get(DEFAULT_CLASS).is_some_and(|is| is == "true"),
    });
    let Some(class) = class else {
        let words = match named {
            Some(name) => format!("there is no IngressClass {name}"),
            None => "it names no class, and the cluster has no default one".to_owned(),
        };
        return Ok((None, words));
    };
    let name = class.name_any();
    let service = services
        .iter()
        .find(|service| is_of(service.labels(), class.labels()) && serves(service, rule.port()));
    let how = match service {
        Some(_) => format!("of the controller of IngressClass {name}, by its labels"),
        None => format!(
            "no Service with port {} has the labels {} and {} of IngressClass {name}",
            rule.port(),
            COMMON[0],
            COMMON[1]
        ),
    };
    Ok((service, how))
}

/// Returns true if two objects come from one chart or manifest.
fn is_of(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> bool {
    other.contains_key(COMMON[0]) && COMMON.iter().all(|key| one.get(*key) == other.get(*key))
}

/// Returns true if a Service has an address and the port, and is meant for clients. A webhook of the controller also
/// has port 443, but no port for clear text.
fn serves(service: &v1::Service, port: u16) -> bool {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    let numbers: Vec<i32> = ports.into_iter().flatten().map(|port| port.port).collect();
    cluster_ip(service).is_some() && numbers.contains(&port.into()) && numbers.contains(&80)
}

/// Returns the selector of a Service's pods; `None` if the Service selects none.
fn pods_of(service: &v1::Service) -> Option<ProxyPods> {
    let selector = service.spec.as_ref()?.selector.clone()?;
    (!selector.is_empty()).then_some(())?;
    Some(ProxyPods { namespace: service.namespace()?, labels: selector.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ingress(spec: Value) -> Ingress {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap()
    }

    fn rules(host: &str, path: &str) -> Value {
        json!([{"host": host,
            "http": {"paths": [{"path": path, "pathType": "Prefix", "backend": {}}]}}])
    }

    fn accepted(host: Option<&str>, path: &str, is_secure: bool) -> Result<Rule, &'static str> {
        Ok(Rule { host: host.map(str::to_owned), path: path.to_owned(), is_secure })
    }

    #[test]
    fn the_first_rule_is_a_url_or_is_refused() {
        for (spec, expected) in [
            (json!({"rules": rules("a.b", "/tea")}), accepted(Some("a.b"), "/tea", false)),
            (
                json!({"rules": rules("a.b", "/"), "tls": [{"hosts": ["x.y", "*.b"]}]}),
                accepted(Some("a.b"), "/", true),
            ),
            (
                json!({"rules": rules("a.b.c", "/"), "tls": [{"hosts": ["*.c", "b.c"]}]}),
                accepted(Some("a.b.c"), "/", false),
            ),
            (json!({"rules": rules("a.b", ""), "tls": [{}]}), accepted(Some("a.b"), "/", true)),
            (json!({"rules": [{}]}), accepted(None, "/", false)),
            (json!({"defaultBackend": {}}), accepted(None, "/", false)),
            (json!({}), Err("has no rule")),
            (json!({"rules": rules("*.b", "/")}), Err("*.b as the host")),
            (json!({"rules": rules("a.b", "/x(/|$)(.*)")}), Err("as the path")),
        ] {
            let rule = first_rule(&ingress(spec.clone()));
            match expected {
                Ok(expected) => assert_eq!(rule.as_ref(), Ok(&expected), "{spec}"),
                Err(words) => assert!(rule.is_err_and(|why| why.contains(words)), "{spec}"),
            }
        }
    }

    fn service(ports: &[u16], ip: &str) -> v1::Service {
        let ports: Vec<Value> = ports.iter().map(|port| json!({"port": port})).collect();
        serde_json::from_value(json!({"spec": {"clusterIP": ip, "ports": ports},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example"}]}}}))
        .unwrap()
    }

    #[test]
    fn the_service_of_a_controller_is_the_one_for_clients() {
        let both = service(&[80, 443], "10.96.0.1");
        for (service, port, expected) in [
            (&both, 443, true),
            (&both, 80, true),
            (&service(&[443], "10.96.0.1"), 443, false),
            (&service(&[80], "10.96.0.1"), 443, false),
            (&service(&[80, 443], "None"), 80, false),
        ] {
            assert_eq!(serves(service, port), expected, "{service:?}");
        }
        for (address, expected) in
            [("10.96.0.1", true), ("192.0.2.1", true), ("lb.example", true), ("192.0.2.2", false)]
        {
            assert_eq!(has_address(&both, address), expected, "{address}");
        }
    }
}
