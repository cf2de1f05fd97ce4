//! A proxy that a controller of a cluster configures: an arm's settings go into objects of the cluster, and are waited
//! for until the data plane has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_host::journal::Journal;
use weir_kube::{Changes, Cluster, KubeError, ObjectRef};
use weir_model::study::{Arm, ExternalSpec, LoadSpec, ProxySpec, Settings, Study};
use weir_parameters::controller::sysctl_path;
use weir_parameters::{Catalog, Controller, Parameter};

use crate::options::Options;
use crate::{Event, LabError};

mod command;

/// How often is looked whether settings are in force.
const LOOK: Duration = Duration::from_millis(300);
/// What pods belong to.
const WORKLOAD: &str = "workload";

/// Proxies that a controller configures. What was changed is put back when this is dropped.
pub(crate) struct Controlled {
    cluster: Cluster,
    controller: &'static Controller,
    /// The one proxy that arms have in turn; or several, of which each arm has one.
    instances: Vec<Instance>,
    /// Whether clients talk TLS to them.
    tls: bool,
    within: Duration,
    catalog: Catalog,
    changes: Changes,
    /// All that some arm sets.
    ids: BTreeSet<String>,
    interrupted: Arc<AtomicBool>,
}

/// A controller's instance and its proxy.
struct Instance {
    at: ExternalSpec,
    /// Its objects, by what the controller's file calls them.
    objects: BTreeMap<String, ObjectRef>,
    /// What prints what its proxy runs with; empty: it is asked in its pods.
    read: Vec<String>,
    /// Every place that some arm sets, by object.
    sites: BTreeMap<ObjectRef, BTreeSet<String>>,
    /// What was in force before the first change.
    before: Settings,
}

/// What was read of the data plane.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InForce {
    pub(crate) levels: Settings,
    /// What it printed.
    pub(crate) text: String,
}

impl Controlled {
    /// Takes a study's controller in hand, where it has one, and reads what is in force.
    ///
    /// # Errors
    /// No cluster is named; the user may not change its objects; another weir does, or has left them changed; or nothing
    /// can be read.
    pub(crate) fn open(study: &Study, options: &Options) -> Result<Option<Controlled>, LabError> {
        let Some((_, spec)) = study.controlled() else {
            return Ok(None);
        };
        let unknown = || LabError::Controller(format!("`{}` is no controller", spec.is));
        let controller = Controller::named(&spec.is).ok_or_else(unknown)?;
        let cluster = options.places.cluster.clone();
        let cluster = cluster.ok_or_else(|| {
            let words = "the study changes objects of a cluster, and no --on names one";
            LabError::Controller(words.to_owned())
        })?;
        let catalog = options.catalog.clone();
        let mut instances = instances(&study.proxy, controller);
        for instance in &mut instances {
            for arm in &study.arms {
                for (object, at, _) in instance.placed(controller, &catalog, arm) {
                    instance.sites.entry(object).or_default().insert(at);
                }
            }
        }
        let used: Vec<ObjectRef> = instances
            .iter()
            .flat_map(|instance| instance.objects.values().cloned())
            .collect();
        cluster.check_changes(&used)?;
        let purpose = format!("weir run {}", study.name);
        let folder = Journal::default_folder();
        let arms = study.arms.iter();
        let mut controlled = Controlled {
            changes: Changes::open(&cluster, &folder, &purpose)?,
            cluster,
            controller,
            instances,
            tls: study.loads.iter().all(LoadSpec::is_secure),
            within: spec.within.unwrap_or(controller.in_force_within),
            catalog,
            ids: arms.flat_map(|arm| arm.settings.keys().cloned()).collect(),
            interrupted: Arc::clone(&options.stop),
        };
        for place in 0..controlled.instances.len() {
            let each = controlled.read(&controlled.instances[place])?;
            let first = each.into_iter().next().unwrap_or_default();
            controlled.instances[place].before = first.1.levels;
        }
        Ok(Some(controlled))
    }

    /// How many arms can stand side by side.
    pub(crate) fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Where an instance's proxy is.
    pub(crate) fn at(&self, place: usize) -> &ExternalSpec {
        &self.instances[place].at
    }

    /// Puts an arm's settings into force in an instance, in place of those of the arm before, and waits until the data plane
    /// has them.
    ///
    /// # Errors
    /// [`LabError::NotInForce`] says what was read instead, or what the cluster says; or the user stopped the run.
    pub(crate) fn apply(&mut self, arm: &Arm, place: usize) -> Result<InForce, LabError> {
        let refused = |error: KubeError| match error {
            KubeError::Interrupted | KubeError::Unreachable { .. } => LabError::Kube(error),
            error => LabError::NotInForce {
                arm: arm.name.clone(),
                hint: error.hint(),
                what: error.to_string(),
            },
        };
        let instance = &self.instances[place];
        let placed = instance.placed(self.controller, &self.catalog, arm);
        for (object, places) in &instance.sites {
            let wanted = places.iter().map(|at| {
                let mut own = placed.iter();
                let own = own.find(|one| one.1 == *at && one.0 == *object);
                (at.clone(), own.map(|own| Value::String(own.2.clone())))
            });
            let wanted = wanted.collect();
            self.changes.set(object, &wanted).map_err(refused)?;
        }
        if let Some(workload) = instance.objects.get(WORKLOAD) {
            let within = self.controller.rolled_out_within;
            let done = self.changes.rolled_out(workload, within, &self.interrupted);
            done.map_err(refused)?;
        }
        self.await_in_force(arm, instance)
    }

    fn await_in_force(&self, arm: &Arm, instance: &Instance) -> Result<InForce, LabError> {
        let until = Instant::now() + self.within;
        loop {
            let what = match self.read(instance) {
                Ok(each) => match self.lacking(arm, instance, &each) {
                    None => return Ok(each.into_iter().next().unwrap_or_default().1),
                    Some(what) => what,
                },
                // Pods come and go.
                Err(error) => error.to_string(),
            };
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(KubeError::Interrupted.into());
            }
            if Instant::now() > until {
                let (title, seconds) = (&self.controller.title, self.within.as_secs());
                return Err(LabError::NotInForce {
                    arm: arm.name.clone(),
                    what: format!("not in force after {seconds} s: {what}"),
                    hint: Some(format!(
                        "look at the log of {title}: it may have refused the value, or taken its default in its place"
                    )),
                });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What of an arm's settings is not in force everywhere, in words.
    fn lacking(
        &self,
        arm: &Arm,
        instance: &Instance,
        each: &[(String, InForce)],
    ) -> Option<String> {
        let wanted = self.ids.iter().filter_map(|id| {
            let own = arm.settings.get(id);
            Some((self.row(id)?, own.or_else(|| instance.before.get(id))?))
        });
        let wanted: Vec<(&Parameter, &String)> = wanted.collect();
        let mut lacking = each.iter().flat_map(|(of, found)| {
            wanted.iter().filter_map(move |(row, level)| {
                let found = found.levels.get(&row.id).map_or("unknown", String::as_str);
                let is_there = Controller::is_in_force(row, level, found);
                (!is_there).then(|| format!("{} is {found} and not {level} in {of}", row.id))
            })
        });
        lacking.next()
    }

    fn row(&self, id: &str) -> Option<&Parameter> {
        self.catalog.get(self.controller.proxy, id)
    }

    /// What an instance's data plane runs with, of each of its pods, which stands before it.
    fn read(&self, instance: &Instance) -> Result<Vec<(String, InForce)>, LabError> {
        let reads = &self.controller.reads;
        let workload = instance.objects.get(WORKLOAD);
        let at = (instance.at.address, self.tls);
        let ask = |command: &[String]| match workload {
            Some(workload) => {
                weir_kube::in_pods(&self.cluster, workload, &reads.container, command)
            }
            None => Ok(Vec::new()),
        };
        let printed = match instance.read.split_first() {
            Some((program, words)) => vec![("the proxy".to_owned(), command::run(program, words)?)],
            None => ask(&reads.command)?,
        };
        let mut each = BTreeMap::new();
        for (of, text) in printed {
            let found = weir_sut::told(self.controller.proxy, text, at, &self.catalog);
            let found = found.map_err(|error| {
                LabError::Controller(format!("what {of} prints of its configuration: {error}"))
            })?;
            let in_force = InForce {
                levels: found.levels,
                text: found.text,
            };
            each.insert(of, in_force);
        }
        let rows = self.ids.iter().filter_map(|id| self.row(id));
        let sysctls = rows.filter_map(|row| Some((&row.id, sysctl_path(row)?)));
        for (id, path) in sysctls {
            let command = ["cat".to_owned(), format!("/proc/sys/{path}")];
            for (of, text) in ask(&command)? {
                let levels = &mut each.entry(of).or_default().levels;
                levels.insert(id.clone(), text.trim().to_owned());
            }
        }
        Ok(each.into_iter().collect())
    }

    /// Whether the user has stopped the run.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Puts everything back, and says of each object what became of it.
    ///
    /// # Errors
    /// Some object could not be put back, and is left to `weir restore`.
    pub(crate) fn put_back(&mut self, events: &mut dyn FnMut(Event)) -> Result<(), LabError> {
        let objects = self.changes.put_back();
        let failed = objects.iter().filter(|one| one.failed.is_some()).count();
        if !objects.is_empty() {
            events(Event::ObjectsPutBack { objects });
        }
        match failed {
            0 => Ok(()),
            objects => Err(LabError::Kube(KubeError::NotPutBack {
                context: self.cluster.context().to_owned(),
                namespace: self.cluster.namespace().to_owned(),
                objects,
            })),
        }
    }
}

impl Instance {
    /// What an arm has stand in its objects: the object, the place in it, and the value.
    fn placed(
        &self,
        controller: &Controller,
        catalog: &Catalog,
        arm: &Arm,
    ) -> Vec<(ObjectRef, String, String)> {
        let placed = controller.placed(catalog, &arm.settings).into_iter();
        let placed = placed.filter_map(|one| {
            let object = self.objects.get(&one.object)?.clone();
            Some((object, one.at, one.value))
        });
        placed.collect()
    }
}

/// The instances that a study names, the proxy's own first.
fn instances(proxy: &ProxySpec, controller: &Controller) -> Vec<Instance> {
    let (Some(spec), Some(at)) = (&proxy.controller, &proxy.external) else {
        return Vec::new();
    };
    let of =
        |at: &ExternalSpec, namespace: &str, named: &BTreeMap<String, String>, read: &[String]| {
            let object = |(role, text): (&String, &String)| {
                let (kind, name) = text.split_once('/')?;
                let mut kinds = controller.objects.get(role)?.kinds.iter();
                let kind = kinds.find(|one| one.kind.eq_ignore_ascii_case(kind))?;
                let object = ObjectRef {
                    api: kind.api.clone(),
                    kind: kind.kind.clone(),
                    resource: kind.resource.clone(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                Some((role.clone(), object))
            };
            Instance {
                at: at.clone(),
                objects: named.iter().filter_map(object).collect(),
                read: read.to_owned(),
                sites: BTreeMap::new(),
                before: Settings::new(),
            }
        };
    let first = of(at, &spec.namespace, &spec.objects, &spec.read);
    let others = spec.beside.iter();
    let others = others.map(|one| of(&one.at, &one.namespace, &one.objects, &one.read));
    std::iter::once(first).chain(others).collect()
}

/// Those of a study's proxy, where it has a controller.
fn known(proxy: &ProxySpec) -> Option<(&'static Controller, Vec<Instance>)> {
    let controller = Controller::named(&proxy.controller.as_ref()?.is)?;
    Some((controller, instances(proxy, controller)))
}

/// The objects that a proxy's controllers have settings in.
pub fn objects(proxy: &ProxySpec) -> Vec<ObjectRef> {
    let instances = known(proxy).map_or(Vec::new(), |(_, instances)| instances);
    let each = instances.into_iter();
    each.flat_map(|instance| instance.objects.into_values())
        .collect()
}

/// What an arm has stand in objects of the cluster: the object, the place in it, and the value. Of arms side by side, each
/// has every instance for some time.
pub fn changes_of(study: &Study, catalog: &Catalog, arm: &Arm) -> Vec<(ObjectRef, String, String)> {
    let (controller, instances) = match known(&study.proxy) {
        Some(known) => known,
        None => return Vec::new(),
    };
    let each = instances.iter();
    each.flat_map(|instance| instance.placed(controller, catalog, arm))
        .collect()
}
