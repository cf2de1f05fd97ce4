//! An instance of a controller: its objects, what stands in them for an arm, and what starts it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::Value;
use weir_kube::{Asks, Changes, ObjectRef, Used, VALUE};
use weir_model::record::ObjectRecord;
use weir_model::study::{
    Arm, ExternalSpec, InstanceSpec, LoadSpec, ProxySpec, Settings, Study, server_name,
};
use weir_parameters::controller::{Given, NODE, Placed, Reads};
use weir_parameters::{Catalog, Controller};
use weir_sut::Meeting;

use super::{WORKLOAD, command};
use crate::LabError;

/// A controller's instance and its proxy.
pub(super) struct Instance {
    pub(super) at: ExternalSpec,
    /// Its objects, by what the controller's file calls them.
    pub(super) objects: BTreeMap<String, ObjectRef>,
    /// The same, and how kernel settings are given.
    means: Given,
    /// What prints what its proxy runs with; empty: it is asked in its pods.
    pub(super) read: Vec<String>,
    /// What starts it anew where it reads an object at its start only; empty: its pods are replaced.
    restart: Vec<String>,
    /// Every place that some arm sets, by object.
    pub(super) sites: BTreeMap<ObjectRef, BTreeSet<String>>,
    /// What was in force before the first change.
    pub(super) before: Settings,
    /// How many pods its workload was to have then.
    pub(super) replicas: Option<i64>,
}

/// The annotation of pods that says what their nodes were given.
const NODES_HAVE: &str = "/spec/template/metadata/annotations/weir~1sysctls";

/// A place in an object, and what stands there.
pub(super) type Change = (ObjectRef, String, Value);

impl Instance {
    /// What an arm has stand in its objects.
    pub(super) fn placed(
        &self,
        controller: &Controller,
        catalog: &Catalog,
        arm: &Arm,
    ) -> Vec<Change> {
        let placed = controller.placed(catalog, &arm.settings, &self.means);
        let each = placed.iter().filter_map(|one| {
            let (object, at) = match &*one.object {
                NODE => {
                    let sysctl = one.at.trim_start_matches('/');
                    (ObjectRef::of_node("", sysctl, ""), VALUE.to_owned())
                }
                named => (self.objects.get(named)?.clone(), one.at.clone()),
            };
            Some((object, at, one.value.clone()))
        });
        each.chain(self.starts_pods_anew(&placed)).collect()
    }

    /// A text in the template of its pods that differs where settings of their nodes do: a program has some of them, such as
    /// the length of the accept queue, from its start on.
    fn starts_pods_anew(&self, placed: &[Placed]) -> Option<Change> {
        let of_nodes = placed.iter().filter(|one| one.object == NODE);
        let said: Vec<String> = of_nodes
            .map(|one| format!("{}={}", one.at.trim_start_matches('/'), one.value))
            .collect();
        let workload = self.objects.get(WORKLOAD)?.clone();
        let said = Value::String(said.join(" "));
        (said != "").then(|| (workload, NODES_HAVE.to_owned(), said))
    }

    /// Whether its controller reads an object at its start only of which that is so.
    pub(super) fn reads_once(
        &self,
        controller: &Controller,
        is_so: impl Fn(&ObjectRef) -> bool,
    ) -> bool {
        let mut after = self.after(controller);
        after.any(|object| self.sites.contains_key(object) && is_so(object))
    }

    /// The objects that its controller reads at its start only.
    fn after(&self, controller: &Controller) -> impl Iterator<Item = &ObjectRef> {
        let after = controller.restarts.iter().flat_map(|one| &one.after);
        after.filter_map(|role| self.objects.get(role))
    }

    /// The workload that reads an object at its start only, and where another text in it starts its pods anew; `None`:
    /// nothing has to be, or the study's own command does it.
    pub(super) fn starts_anew(&self, controller: &Controller) -> Option<(ObjectRef, String)> {
        let by = &controller.restarts.as_ref()?.by;
        let object = self.objects.get(&by.object)?.clone();
        self.restart.is_empty().then(|| (object, by.at.clone()))
    }

    /// A text that differs where what is read at the start does; `None`: what was there before weir.
    pub(super) fn said_of(&self, controller: &Controller, placed: &[Change]) -> Option<Value> {
        let is_read_once = |one: &ObjectRef| self.after(controller).any(|after| after == one);
        let own = placed.iter().filter(|(object, ..)| is_read_once(object));
        let own: Vec<String> = own.map(|(_, at, value)| format!("{at}={value}")).collect();
        (!own.is_empty()).then(|| Value::String(own.join(" ")))
    }

    /// What its objects said before weir changed them, wherever some arm sets something. Lists of a workload's pods are left
    /// out: what is patched there are their elements.
    pub(super) fn held(&self, controller: &Controller, changes: &Changes) -> Vec<ObjectRecord> {
        let mut sites = self.sites.clone();
        if let Some((object, at)) = self.starts_anew(controller) {
            sites.entry(object).or_default().insert(at);
        }
        let of = |(object, places): (&ObjectRef, &BTreeSet<String>)| {
            let before = changes.before(object)?;
            let places = places.iter().filter(|at| {
                let is_of_pods = object.api == "apps/v1" && !weir_kube::whole(at).1.is_empty();
                !is_of_pods
            });
            let record = ObjectRecord {
                api: object.api.clone(),
                resource: object.resource.clone(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                before: places.map(|at| object.held(before, at)).collect(),
            };
            (!object.is_of_node() && !record.before.is_empty()).then_some(record)
        };
        sites.iter().filter_map(of).collect()
    }

    /// Runs the study's command that starts the controller anew, where what it reads at its start has changed.
    pub(super) fn restart(
        &self,
        controller: &Controller,
        is_changed: impl Fn(&ObjectRef) -> bool,
    ) -> Result<(), LabError> {
        match (
            self.reads_once(controller, is_changed),
            self.restart.split_first(),
        ) {
            (true, Some((program, words))) => command::run("restart", program, words).map(drop),
            _ => Ok(()),
        }
    }

    /// What an arm changes, what starts anew included.
    fn changes(&self, controller: &Controller, catalog: &Catalog, arm: &Arm) -> Vec<Change> {
        let mut changes = self.placed(controller, catalog, arm);
        let said = self.said_of(controller, &changes);
        let by = self.starts_anew(controller).zip(said);
        changes.extend(by.map(|((object, at), value)| (object, at, value)));
        changes
    }
}

/// What the first load of a study asks of a proxy.
pub(super) fn meeting(study: &Study, at: SocketAddr) -> Meeting {
    let flow = study.loads.first().map(|load| &load.main);
    let target = flow.and_then(|flow| flow.requests.first());
    Meeting {
        at,
        is_secure: study.loads.iter().all(LoadSpec::is_secure),
        host: flow.map_or_else(String::new, |flow| server_name(flow).to_owned()),
        target: target.map_or_else(String::new, |one| one.request.target.clone()),
    }
}

/// The instances that a study names, the proxy's own first.
pub(super) fn instances(proxy: &ProxySpec, controller: &Controller) -> Vec<Instance> {
    let (Some(spec), Some(at)) = (&proxy.controller, &proxy.external) else {
        return Vec::new();
    };
    let of = |(at, of): (&ExternalSpec, &InstanceSpec)| {
        let object = |(role, text): (&String, &String)| {
            let (kind, namespace, name) = controller.object(role, text)?;
            let object = ObjectRef {
                api: kind.api.clone(),
                kind: kind.kind.clone(),
                resource: kind.resource.clone(),
                namespace: namespace.unwrap_or(&of.namespace).to_owned(),
                name: name.to_owned(),
            };
            Some((role.clone(), object))
        };
        Instance {
            at: at.clone(),
            objects: of.objects.iter().filter_map(object).collect(),
            means: Given::of(&of.objects, spec.sysctls),
            read: of.read.clone(),
            restart: of.restart.clone(),
            sites: BTreeMap::new(),
            before: Settings::new(),
            replicas: None,
        }
    };
    let addresses = std::iter::once(at).chain(spec.beside.iter().map(|one| &one.at));
    addresses.zip(spec.instances()).map(of).collect()
}

/// Those of a study's proxy, where it has a controller.
fn known(proxy: &ProxySpec) -> Option<(&'static Controller, Vec<Instance>)> {
    let controller = Controller::named(&proxy.controller.as_ref()?.is)?;
    Some((controller, instances(proxy, controller)))
}

/// The workloads of the proxies of a study's controller, as far as it names them.
pub(crate) fn workloads_of(study: &Study) -> Vec<ObjectRef> {
    let instances = known(&study.proxy).map(|(_, instances)| instances);
    let each = instances.into_iter().flatten();
    each.filter_map(|instance| instance.objects.get(WORKLOAD).cloned())
        .collect()
}

/// The objects that grant a user what the arms of a study's controller need, as YAML documents; empty without one.
pub fn rights_of(study: &Study, catalog: &Catalog, user: &str) -> String {
    let controller = known(&study.proxy).map(|(controller, _)| controller);
    controller.map_or_else(String::new, |controller| {
        weir_kube::manifest_of(&used(study, controller, catalog), user)
    })
}

/// What a study has to do with objects of others.
pub(super) fn used(study: &Study, controller: &Controller, catalog: &Catalog) -> Used {
    let mut used = Used {
        changed: Vec::new(),
        asked: Vec::new(),
        asks: match controller.reads {
            Reads::Command(_) => Asks::Command,
            Reads::Port(_) => Asks::Port,
        },
    };
    for instance in instances(&study.proxy, controller) {
        let arms = study.arms.iter();
        let changed: BTreeSet<ObjectRef> = arms
            .flat_map(|arm| instance.changes(controller, catalog, arm))
            .map(|(object, ..)| object)
            .filter(|object| !object.is_of_node())
            .collect();
        used.changed.extend(changed);
        used.asked.extend(instance.objects.get(WORKLOAD).cloned());
    }
    used
}

/// What an arm has stand in objects of the cluster: the object, the place in it, and the value. Of arms side by side, each
/// has every instance for some time.
pub fn changes_of(study: &Study, catalog: &Catalog, arm: &Arm) -> Vec<(ObjectRef, String, Value)> {
    let Some((controller, instances)) = known(&study.proxy) else {
        return Vec::new();
    };
    let each = instances.iter();
    each.flat_map(|instance| instance.changes(controller, catalog, arm))
        .collect()
}
