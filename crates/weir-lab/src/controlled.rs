//! A proxy that a controller of a cluster configures: an arm's settings go into objects of the cluster, and are waited
//! for until the data plane has them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_host::journal::Journal;
use weir_kube::{Changes, Cluster, KubeError, ObjectRef};
use weir_model::study::{Arm, ControllerSpec, LoadSpec, ProxySpec, Settings, Study};
use weir_parameters::controller::sysctl_path;
use weir_parameters::{Catalog, Controller, Parameter};

use crate::options::Options;
use crate::{Event, LabError};

mod command;

/// How often is looked whether settings are in force.
const LOOK: Duration = Duration::from_millis(300);
/// What pods belong to.
const WORKLOAD: &str = "workload";

/// A proxy that a controller configures. What was changed is put back when this is dropped.
pub(crate) struct Controlled {
    cluster: Cluster,
    controller: &'static Controller,
    spec: ControllerSpec,
    at: (SocketAddr, bool),
    catalog: Catalog,
    changes: Changes,
    /// All that some arm sets.
    ids: BTreeSet<String>,
    /// Where that is, by object.
    sites: BTreeMap<ObjectRef, BTreeSet<String>>,
    /// What was in force before the first change.
    before: Settings,
    interrupted: Arc<AtomicBool>,
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
        let Some((proxy, spec)) = study.controlled() else {
            return Ok(None);
        };
        let unknown = || LabError::Controller(format!("`{}` is no controller", spec.is));
        let controller = Controller::named(&spec.is).ok_or_else(unknown)?;
        let cluster = options.places.cluster.clone();
        let cluster = cluster.ok_or_else(|| {
            let words = "the study changes objects of a cluster, and no --on names one";
            LabError::Controller(words.to_owned())
        })?;
        let address = proxy.external.as_ref().map(|external| external.address);
        let catalog = options.catalog.clone();
        let arms = study.arms.iter();
        let ids = arms.flat_map(|arm| arm.settings.keys().cloned()).collect();
        let sites = sites(study, controller, &catalog);
        let used: Vec<ObjectRef> = objects(proxy)
            .into_iter()
            .map(|(_, object)| object)
            .collect();
        cluster.check_changes(&used)?;
        let purpose = format!("weir run {}", study.name);
        let folder = Journal::default_folder();
        let mut controlled = Controlled {
            changes: Changes::open(&cluster, &folder, &purpose)?,
            cluster,
            controller,
            spec: spec.clone(),
            at: (
                address.ok_or_else(unknown)?,
                study.loads.iter().all(LoadSpec::is_secure),
            ),
            catalog,
            ids,
            sites,
            before: Settings::new(),
            interrupted: Arc::clone(&options.stop),
        };
        let each = controlled.read()?;
        controlled.before = each.into_iter().next().unwrap_or_default().1.levels;
        Ok(Some(controlled))
    }

    /// Puts an arm's settings into force, in place of the one before, and waits until the data plane has them.
    ///
    /// # Errors
    /// [`LabError::NotInForce`] says what was read instead, or what the cluster says; or the user stopped the run.
    pub(crate) fn apply(&mut self, arm: &Arm) -> Result<InForce, LabError> {
        let refused = |error: KubeError| match error {
            KubeError::Interrupted | KubeError::Unreachable { .. } => LabError::Kube(error),
            error => LabError::NotInForce {
                arm: arm.name.clone(),
                hint: error.hint(),
                what: error.to_string(),
            },
        };
        let placed = self.controller.placed(&self.catalog, &arm.settings);
        let objects = by_role(&self.spec, self.controller);
        for (object, places) in self.sites.clone() {
            let wanted = places.into_iter().map(|at| {
                let mut own = placed.iter();
                let own = own.find(|one| one.at == at && objects.get(&one.object) == Some(&object));
                let value = own.map(|own| Value::String(own.value.clone()));
                (at, value)
            });
            let wanted = wanted.collect();
            self.changes.set(&object, &wanted).map_err(refused)?;
        }
        if let Some(workload) = objects.get(WORKLOAD) {
            let within = self.controller.rolled_out_within;
            let done = self.changes.rolled_out(workload, within, &self.interrupted);
            done.map_err(refused)?;
        }
        self.await_in_force(arm)
    }

    fn await_in_force(&self, arm: &Arm) -> Result<InForce, LabError> {
        let within = self.spec.within.unwrap_or(self.controller.in_force_within);
        let until = Instant::now() + within;
        loop {
            let what = match self.read() {
                Ok(each) => match self.lacking(arm, &each) {
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
                let (title, seconds) = (&self.controller.title, within.as_secs());
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
    fn lacking(&self, arm: &Arm, each: &[(String, InForce)]) -> Option<String> {
        let wanted = self.ids.iter().filter_map(|id| {
            let own = arm.settings.get(id);
            Some((self.row(id)?, own.or_else(|| self.before.get(id))?))
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

    /// What the data plane runs with, of each of its pods, which stands before it.
    fn read(&self) -> Result<Vec<(String, InForce)>, LabError> {
        let reads = &self.controller.reads;
        let workload = by_role(&self.spec, self.controller).remove(WORKLOAD);
        let ask = |command: &[String]| match &workload {
            Some(workload) => {
                weir_kube::in_pods(&self.cluster, workload, &reads.container, command)
            }
            None => Ok(Vec::new()),
        };
        let printed = match self.spec.read.split_first() {
            Some((program, words)) => vec![("the proxy".to_owned(), command::run(program, words)?)],
            None => ask(&reads.command)?,
        };
        let mut each = BTreeMap::new();
        for (of, text) in printed {
            let found = weir_sut::told(self.controller.proxy, text, self.at, &self.catalog);
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

/// The objects that a controller's study names, by what it calls them.
fn by_role(spec: &ControllerSpec, controller: &Controller) -> BTreeMap<String, ObjectRef> {
    let object = |(role, text): (&String, &String)| {
        let (kind, name) = text.split_once('/')?;
        let mut kinds = controller.objects.get(role)?.kinds.iter();
        let kind = kinds.find(|one| one.kind.eq_ignore_ascii_case(kind))?;
        let object = ObjectRef {
            api: kind.api.clone(),
            kind: kind.kind.clone(),
            resource: kind.resource.clone(),
            namespace: spec.namespace.clone(),
            name: name.to_owned(),
        };
        Some((role.clone(), object))
    };
    spec.objects.iter().filter_map(object).collect()
}

/// The objects that a proxy's controller has settings in, by what its study calls them.
pub fn objects(proxy: &ProxySpec) -> Vec<(String, ObjectRef)> {
    let spec = proxy.controller.as_ref();
    let known = spec.and_then(|spec| Some((spec, Controller::named(&spec.is)?)));
    known.map_or(Vec::new(), |(spec, controller)| {
        by_role(spec, controller).into_iter().collect()
    })
}

/// Every place that some arm of a study sets, by object.
fn sites(
    study: &Study,
    controller: &Controller,
    catalog: &Catalog,
) -> BTreeMap<ObjectRef, BTreeSet<String>> {
    let mut sites: BTreeMap<ObjectRef, BTreeSet<String>> = BTreeMap::new();
    for arm in &study.arms {
        for (object, at, _) in changed(&study.proxy, controller, catalog, arm) {
            sites.entry(object).or_default().insert(at);
        }
    }
    sites
}

/// What an arm has stand in objects of the cluster: the object, the place in it, and the value.
pub fn changes_of(study: &Study, catalog: &Catalog, arm: &Arm) -> Vec<(ObjectRef, String, String)> {
    let spec = study.proxy.controller.as_ref();
    let controller = spec.and_then(|spec| Controller::named(&spec.is));
    controller.map_or(Vec::new(), |controller| {
        changed(&study.proxy, controller, catalog, arm)
    })
}

fn changed(
    proxy: &ProxySpec,
    controller: &Controller,
    catalog: &Catalog,
    arm: &Arm,
) -> Vec<(ObjectRef, String, String)> {
    let objects: BTreeMap<String, ObjectRef> = objects(proxy).into_iter().collect();
    let placed = controller.placed(catalog, &arm.settings).into_iter();
    let placed = placed.filter_map(|one| {
        let object = objects.get(&one.object)?.clone();
        Some((object, one.at, one.value))
    });
    placed.collect()
}
