//! An instance of a controller: its objects, the values in them for an arm, and the means to restart it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::Value;
use weir_kube::{Asks, ObjectRef, Used};
use weir_model::record::ObjectRecord;
use weir_model::study::{
    Arm, ExternalSpec, InstanceSpec, LoadSpec, ProxySpec, Settings, Study, SysctlMeans, server_name,
};
use weir_objects::{Changes, VALUE, former_of};
use weir_parameters::controller::{ControllerMeans, NODE, Placed, Reads};
use weir_parameters::{Catalog, Controller};
use weir_sut::RequestRoute;

use super::{WORKLOAD, command};
use crate::LabError;

/// A controller's instance and its proxy.
pub(super) struct Instance {
    pub(super) at: ExternalSpec,
    /// Objects by their names in the controller's file.
    pub(super) objects: BTreeMap<String, ObjectRef>,
    /// The objects and the means of kernel settings, in the form that `Controller::placed` takes.
    means: ControllerMeans,
    /// Command that prints the configuration of the instance's proxy; empty: it is read from the pods.
    pub(super) read: Vec<String>,
    /// Command that restarts the controller if it reads an object only at its start; empty: its pods are replaced.
    restart: Vec<String>,
    /// All places that some arm sets, by object.
    pub(super) sites: BTreeMap<ObjectRef, BTreeSet<String>>,
    /// Settings in force before the first change.
    pub(super) before: Settings,
    /// Wanted number of pods in the workload before the first change.
    pub(super) replicas: Option<i64>,
}

/// JSON pointer to the pods' annotation that lists the settings of their nodes.
const NODES_HAVE: &str = "/spec/template/metadata/annotations/weir~1sysctls";

/// An object, a place in it, and the value there.
pub(super) type Change = (ObjectRef, String, Value);

impl Instance {
    /// Returns the changes of the instance's objects that an arm needs.
    pub(super) fn placed(
        &self,
        controller: &Controller,
        catalog: &Catalog,
        arm: &Arm,
    ) -> Vec<Change> {
        let placed = controller.placed(catalog, &arm.settings, &self.means);
        let changes = placed.iter().filter_map(|setting| {
            let (object, at) = match &*setting.object {
                NODE => {
                    let sysctl = setting.at.trim_start_matches('/');
                    (ObjectRef::of_node("", sysctl, ""), VALUE.to_owned())
                }
                named => (self.objects.get(named)?.clone(), setting.at.clone()),
            };
            Some((object, at, setting.value.clone()))
        });
        changes.chain(self.starts_pods_anew(&placed)).collect()
    }

    /// Returns a change of the pods' template that differs whenever settings of their nodes do, so that pods are
    /// replaced: a program reads some of them, such as the length of the accept queue, only when it starts.
    fn starts_pods_anew(&self, placed: &[Placed]) -> Option<Change> {
        let sysctls: Vec<String> = placed
            .iter()
            .filter(|setting| setting.object == NODE)
            .map(|setting| format!("{}={}", setting.at.trim_start_matches('/'), setting.value))
            .collect();
        let workload = self.objects.get(WORKLOAD)?.clone();
        let text = Value::String(sysctls.join(" "));
        (text != "").then(|| (workload, NODES_HAVE.to_owned(), text))
    }

    /// Returns true if the controller reads some object only at its start, arms set something in that object, and it
    /// satisfies the condition.
    pub(super) fn reads_once(
        &self,
        controller: &Controller,
        is_so: impl Fn(&ObjectRef) -> bool,
    ) -> bool {
        let mut after = self.after(controller);
        after.any(|object| self.sites.contains_key(object) && is_so(object))
    }

    /// Returns the objects that the controller reads only at its start.
    fn after(&self, controller: &Controller) -> impl Iterator<Item = &ObjectRef> {
        controller
            .restarts
            .iter()
            .flat_map(|one| &one.after)
            .filter_map(|role| self.objects.get(role))
    }

    /// Returns the workload that reads an object only at its start, and the place of a text in it whose change replaces
    /// its pods. `None` if no restart is needed or the study's own command does it.
    pub(super) fn starts_anew(&self, controller: &Controller) -> Option<(ObjectRef, String)> {
        let by = &controller.restarts.as_ref()?.by;
        let object = self.objects.get(&by.object)?.clone();
        self.restart.is_empty().then(|| (object, by.at.clone()))
    }

    /// Returns a text that differs whenever values that are read only at start do; `None`: the text from before weir.
    pub(super) fn said_of(&self, controller: &Controller, placed: &[Change]) -> Option<Value> {
        let values: Vec<String> = placed
            .iter()
            .filter(|(object, ..)| self.after(controller).any(|after| after == object))
            .map(|(_, at, value)| format!("{at}={value}"))
            .collect();
        (!values.is_empty()).then(|| Value::String(values.join(" ")))
    }

    /// Records what the objects contained before weir changed them, at every place that some arm sets. Lists of a
    /// workload's pods are left out, since their elements are patched.
    pub(super) fn held(&self, controller: &Controller, changes: &Changes) -> Vec<ObjectRecord> {
        let mut sites = self.sites.clone();
        if let Some((object, at)) = self.starts_anew(controller) {
            sites.entry(object).or_default().insert(at);
        }
        let records = sites.iter().filter_map(|(object, places)| {
            let before = changes.before(object)?;
            let values = places.iter().filter(|at| {
                let is_of_pods =
                    object.api == "apps/v1" && !weir_objects::split_whole(at).1.is_empty();
                !is_of_pods
            });
            let record = ObjectRecord {
                api: object.api.clone(),
                resource: object.resource.clone(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                before: values.map(|at| former_of(object, before, at)).collect(),
            };
            (!object.is_of_node() && !record.before.is_empty()).then_some(record)
        });
        records.collect()
    }

    /// Runs the study's command that restarts the controller, if an object that the controller reads only at its start
    /// has changed.
    pub(super) fn restart(
        &self,
        controller: &Controller,
        is_changed: impl Fn(&ObjectRef) -> bool,
    ) -> Result<(), LabError> {
        match (self.reads_once(controller, is_changed), self.restart.split_first()) {
            (true, Some((program, words))) => command::run("restart", program, words).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns all changes for an arm, including those that restart the controller.
    fn changes(&self, controller: &Controller, catalog: &Catalog, arm: &Arm) -> Vec<Change> {
        let mut changes = self.placed(controller, catalog, arm);
        let values = self.said_of(controller, &changes);
        let by = self.starts_anew(controller).zip(values);
        changes.extend(by.map(|((object, at), value)| (object, at, value)));
        changes
    }
}

/// Returns the request that a study's first load sends to a proxy.
pub(super) fn meeting(study: &Study, at: SocketAddr) -> RequestRoute {
    let flow = study.loads.first().map(|load| &load.main);
    let target = flow.and_then(|flow| flow.requests.first());
    RequestRoute {
        at,
        is_secure: study.loads.iter().all(LoadSpec::is_secure),
        host: flow.map_or_else(String::new, |flow| server_name(flow).to_owned()),
        target: target.map_or_else(String::new, |one| one.request.target.clone()),
    }
}

/// Returns the instances that a study names, the proxy's own first.
pub(super) fn read_instances(proxy: &ProxySpec, controller: &Controller) -> Vec<Instance> {
    let (Some(spec), Some(at)) = (&proxy.controller, &proxy.external) else {
        return Vec::new();
    };
    std::iter::once(at)
        .chain(spec.beside.iter().map(|beside| &beside.at))
        .zip(spec.instances())
        .map(|(at, instance)| read_instance(at, instance, controller, spec.sysctls))
        .collect()
}

fn read_instance(
    at: &ExternalSpec,
    spec: &InstanceSpec,
    controller: &Controller,
    sysctls: SysctlMeans,
) -> Instance {
    Instance {
        at: at.clone(),
        objects: spec
            .objects
            .iter()
            .filter_map(|(role, text)| {
                let (kind, namespace, name) = controller.object(role, text)?;
                let object = ObjectRef {
                    api: kind.api.clone(),
                    kind: kind.kind.clone(),
                    resource: kind.resource.clone(),
                    namespace: namespace.unwrap_or(&spec.namespace).to_owned(),
                    name: name.to_owned(),
                };
                Some((role.clone(), object))
            })
            .collect(),
        means: ControllerMeans::of(&spec.objects, sysctls),
        read: spec.read.clone(),
        restart: spec.restart.clone(),
        sites: BTreeMap::new(),
        before: Settings::new(),
        replicas: None,
    }
}

/// Returns controller and instances of a study's proxy; `None` if it has no controller.
fn known(proxy: &ProxySpec) -> Option<(&'static Controller, Vec<Instance>)> {
    let controller = Controller::named(&proxy.controller.as_ref()?.is)?;
    Some((controller, read_instances(proxy, controller)))
}

/// Returns the workloads of the proxies of a study's controller, as far as the study names them.
pub(crate) fn workloads_of(study: &Study) -> Vec<ObjectRef> {
    known(&study.proxy)
        .map(|(_, instances)| instances)
        .into_iter()
        .flatten()
        .filter_map(|instance| instance.objects.get(WORKLOAD).cloned())
        .collect()
}

/// Returns the objects that grant a user the permissions needed by the arms of a study's controller, as YAML documents;
/// empty without a controller.
pub fn rights_of(study: &Study, catalog: &Catalog, user: &str) -> String {
    let controller = known(&study.proxy).map(|(controller, _)| controller);
    controller.map_or_else(String::new, |controller| {
        weir_kube::manifest_of(&list_used(study, controller, catalog), user)
    })
}

/// Returns the objects of others that a study changes or reads.
pub(super) fn list_used(study: &Study, controller: &Controller, catalog: &Catalog) -> Used {
    let mut used = Used {
        changed: Vec::new(),
        asked: Vec::new(),
        asks: match controller.reads {
            Reads::Command(_) => Asks::Command,
            Reads::Port(_) => Asks::Port,
        },
    };
    for instance in read_instances(&study.proxy, controller) {
        let changed: BTreeSet<ObjectRef> = study
            .arms
            .iter()
            .flat_map(|arm| instance.changes(controller, catalog, arm))
            .map(|(object, ..)| object)
            .filter(|object| !object.is_of_node())
            .collect();
        used.changed.extend(changed);
        used.asked.extend(instance.objects.get(WORKLOAD).cloned());
    }
    used
}

/// Returns the changes of cluster objects for an arm: object, place in it, and value. If arms run side by side, each of
/// them uses every instance for some time.
pub fn changes_of(study: &Study, catalog: &Catalog, arm: &Arm) -> Vec<(ObjectRef, String, Value)> {
    let Some((controller, instances)) = known(&study.proxy) else {
        return Vec::new();
    };
    instances.iter().flat_map(|instance| instance.changes(controller, catalog, arm)).collect()
}
