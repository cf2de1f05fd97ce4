//! A proxy that a controller of a cluster configures: an arm's settings go into objects of the cluster, and are waited
//! for until the data plane has them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_host::journal::Journal;
use weir_kube::{Asks, Changes, Cluster, KubeError, ObjectRef};
use weir_model::study::{Arm, ControllerSpec, LoadSpec, ProxySpec, Settings, Study, server_name};
use weir_parameters::controller::{Placed, Reads, ReadsCommand, ReadsPort, sysctl_path};
use weir_parameters::{Catalog, Controller, EffectiveFrom, Parameter};
use weir_sut::Meeting;

use crate::options::Options;
use crate::{Event, LabError};

mod command;
mod pods;

/// How often is looked whether settings are in force.
const LOOK: Duration = Duration::from_millis(300);
/// What pods belong to.
const WORKLOAD: &str = "workload";
/// What is no pod, among what is read.
const PROXY: &str = "the proxy";

/// A proxy that a controller configures. What was changed is put back when this is dropped.
pub(crate) struct Controlled {
    cluster: Cluster,
    controller: &'static Controller,
    spec: ControllerSpec,
    meeting: Meeting,
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
        let meeting = address.map(|at| meeting(study, at)).ok_or_else(unknown)?;
        let catalog = options.catalog.clone();
        let arms = study.arms.iter();
        let ids = arms.flat_map(|arm| arm.settings.keys().cloned()).collect();
        let sites = sites(study, controller, &catalog);
        let used: Vec<ObjectRef> = objects(proxy)
            .into_iter()
            .map(|(_, object)| object)
            .collect();
        cluster.check_changes(&used, asks(controller))?;
        let purpose = format!("weir run {}", study.name);
        let folder = Journal::default_folder();
        let mut controlled = Controlled {
            changes: Changes::open(&cluster, &folder, &purpose)?,
            cluster,
            controller,
            spec: spec.clone(),
            meeting,
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
        if let Some(by) = self.starts_anew(&objects) {
            // Ahead of what it reads, so that it is put back after that.
            let nothing = BTreeMap::new();
            self.changes.set(&by.0, &nothing).map_err(refused)?;
        }
        let mut changed = BTreeSet::new();
        for (object, places) in self.sites.clone() {
            let wanted = places.into_iter().map(|at| {
                let mut own = placed.iter();
                let own = own.find(|one| one.at == at && objects.get(&one.object) == Some(&object));
                (at, own.map(|own| own.value.clone()))
            });
            let wanted = wanted.collect();
            if self.changes.set(&object, &wanted).map_err(refused)? {
                changed.insert(object);
            }
        }
        if let Some((by, at)) = self.starts_anew(&objects) {
            let wanted = BTreeMap::from([(at, said_of(self.controller, &placed))]);
            self.changes.set(&by, &wanted).map_err(refused)?;
            self.await_rolled_out(&by).map_err(refused)?;
        }
        self.restart(|after| changed.contains(after))?;
        if let Some(workload) = objects.get(WORKLOAD) {
            self.await_rolled_out(workload).map_err(refused)?;
        }
        self.await_in_force(arm)
    }

    fn await_rolled_out(&self, workload: &ObjectRef) -> Result<(), KubeError> {
        let within = self.controller.rolled_out_within;
        self.changes.rolled_out(workload, within, &self.interrupted)
    }

    /// [`starts_anew`], where some arm sets what is read once.
    fn starts_anew(&self, objects: &BTreeMap<String, ObjectRef>) -> Option<(ObjectRef, String)> {
        let after = &self.controller.restarts.as_ref()?.after;
        let is_read = self.sites.contains_key(objects.get(after)?);
        starts_anew(self.controller, &self.spec, objects).filter(|_| is_read)
    }

    /// Runs the study's command that starts the controller anew, where what it reads at its start has changed.
    fn restart(&self, is_changed: impl Fn(&ObjectRef) -> bool) -> Result<(), LabError> {
        let objects = by_role(&self.spec, self.controller);
        let restarts = self.controller.restarts.as_ref();
        let after = restarts.and_then(|restarts| objects.get(&restarts.after));
        match (after, self.spec.restart.split_first()) {
            (Some(after), Some((program, words))) if is_changed(after) => {
                command::run("restart", program, words).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn await_in_force(&self, arm: &Arm) -> Result<InForce, LabError> {
        let within = self.spec.within.unwrap_or(self.controller.in_force_within);
        let until = Instant::now() + within;
        let mut refusal = None;
        loop {
            let what = match self.read() {
                Ok(each) => match self.lacking(arm, &each) {
                    None => return Ok(each.into_iter().next().unwrap_or_default().1),
                    Some(what) => what,
                },
                Err(error @ LabError::Kube(KubeError::Unreachable { .. }))
                    if Instant::now() > until =>
                {
                    return Err(error);
                }
                // Pods come and go.
                Err(error) => error.to_string(),
            };
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(KubeError::Interrupted.into());
            }
            // Twice the same: a controller may need a moment for several objects.
            let before = std::mem::replace(&mut refusal, self.refusal());
            if let Some(what) = refusal.clone().filter(|_| refusal == before) {
                return Err(LabError::NotInForce {
                    arm: arm.name.clone(),
                    what,
                    hint: None,
                });
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

    /// What the controller says against an object that has settings of some arm.
    fn refusal(&self) -> Option<String> {
        let mut objects = self.sites.keys();
        objects.find_map(|object| {
            // What cannot be read now is looked at again.
            let said = weir_kube::not_taken(&self.cluster, object).ok().flatten()?;
            let title = &self.controller.title;
            Some(format!("{title} does not take {object}: {said}"))
        })
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
        let printed = match self.spec.read.split_first() {
            Some((program, words)) => {
                let text = command::run("read", program, words)?;
                vec![(PROXY.to_owned(), text)]
            }
            None => match &self.controller.reads {
                Reads::Command(ReadsCommand { command, .. }) => self.in_pods(command)?,
                Reads::Port(port) => self.over_port(port)?,
            },
        };
        let mut each = BTreeMap::new();
        for (of, text) in printed {
            let found = weir_sut::told(self.controller.proxy, text, &self.meeting, &self.catalog);
            let found = found.map_err(|error| {
                LabError::Controller(format!("what {of} prints of its configuration: {error}"))
            })?;
            let in_force = InForce {
                levels: found.levels,
                text: found.text,
            };
            each.insert(of, in_force);
        }
        self.read_pods(&mut each)?;
        // What a command beside the pods has printed is of all of them.
        if each.len() > 1
            && let Some(printed) = each.remove(PROXY)
        {
            for of_pod in each.values_mut() {
                of_pod.levels.extend(printed.levels.clone());
                of_pod.text.clone_from(&printed.text);
            }
        }
        Ok(each.into_iter().collect())
    }

    /// What is read of the pods besides, by the pod's name: kernel settings, and what the workload says of them.
    fn read_pods(&self, each: &mut BTreeMap<String, InForce>) -> Result<(), LabError> {
        let workload = by_role(&self.spec, self.controller).remove(WORKLOAD);
        let Some((workload, container)) = workload.zip(self.controller.container()) else {
            return Ok(());
        };
        for row in self.ids.iter().filter_map(|id| self.row(id)) {
            let of_pods = match (&row.effective, sysctl_path(row)) {
                (EffectiveFrom::Workload(place), _) => {
                    pods::levels(&self.cluster, &workload, container, (row, place))?
                }
                (_, Some(path)) => {
                    self.in_pods(&["cat".to_owned(), format!("/proc/sys/{path}")])?
                }
                _ => continue,
            };
            for (pod, level) in of_pods {
                let levels = &mut each.entry(pod).or_default().levels;
                levels.insert(row.id.clone(), level.trim().to_owned());
            }
        }
        Ok(())
    }

    /// What a command prints in each pod of the workload.
    fn in_pods(&self, command: &[String]) -> Result<Vec<(String, String)>, LabError> {
        let workload = by_role(&self.spec, self.controller).remove(WORKLOAD);
        match (workload, &self.controller.reads) {
            (Some(workload), Reads::Command(ReadsCommand { container, .. })) => Ok(
                weir_kube::in_pods(&self.cluster, &workload, container, command)?,
            ),
            _ => Ok(Vec::new()),
        }
    }

    /// The documents at a port of each pod of the workload, one after the other.
    fn over_port(&self, of: &ReadsPort) -> Result<Vec<(String, String)>, LabError> {
        let workload = by_role(&self.spec, self.controller).remove(WORKLOAD);
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (path, workload) in of.paths.iter().zip(workload.iter().cycle()) {
            let asks = weir_sut::admin::asks(path);
            for (pod, answer) in weir_kube::ask_port(&self.cluster, workload, of.port, &asks)? {
                let text = weir_sut::admin::answer(&*answer).map_err(|error| {
                    let at = format!("{path} at port {} of pod {pod}", of.port);
                    LabError::Controller(format!("{at}: {error}"))
                })?;
                *all.entry(pod).or_default() += &text;
            }
        }
        Ok(all.into_iter().collect())
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
        let was_put_back = |object: &ObjectRef| {
            let mut own = objects.iter().filter(|one| one.object == *object);
            own.any(|one| !one.put_back.is_empty())
        };
        let restarted = self.restart(was_put_back);
        if !objects.is_empty() {
            events(Event::ObjectsPutBack { objects });
        }
        match failed {
            0 => restarted,
            objects => Err(LabError::Kube(KubeError::NotPutBack {
                context: self.cluster.context().to_owned(),
                namespace: self.cluster.namespace().to_owned(),
                objects,
            })),
        }
    }
}

/// Where the first load of a study meets the proxy.
fn meeting(study: &Study, at: SocketAddr) -> Meeting {
    let flow = study.loads.first().map(|load| &load.main);
    let target = flow.and_then(|flow| flow.requests.first());
    Meeting {
        at,
        is_secure: study.loads.iter().all(LoadSpec::is_secure),
        host: flow.map_or_else(String::new, |flow| server_name(flow).to_owned()),
        target: target.map_or_else(String::new, |one| one.request.target.clone()),
    }
}

/// The objects that grant a user what the arms of a proxy's controller need, as YAML documents; empty without one.
pub fn rights_of(proxy: &ProxySpec, user: &str) -> String {
    let spec = proxy.controller.as_ref();
    let controller = spec.and_then(|spec| Controller::named(&spec.is));
    controller.map_or_else(String::new, |controller| {
        let objects: Vec<ObjectRef> = objects(proxy).into_iter().map(|(_, one)| one).collect();
        weir_kube::manifest_of(&objects, asks(controller), user)
    })
}

/// How a controller's pods are asked.
fn asks(controller: &Controller) -> Asks {
    match controller.reads {
        Reads::Command(_) => Asks::Command,
        Reads::Port(_) => Asks::Port,
    }
}

/// The objects that a controller's study names, by what it calls them.
fn by_role(spec: &ControllerSpec, controller: &Controller) -> BTreeMap<String, ObjectRef> {
    let object = |(role, text): (&String, &String)| {
        let (kind, namespace, name) = controller.object(role, text)?;
        let object = ObjectRef {
            api: kind.api.clone(),
            kind: kind.kind.clone(),
            resource: kind.resource.clone(),
            namespace: namespace.unwrap_or(&spec.namespace).to_owned(),
            name: name.to_owned(),
        };
        Some((role.clone(), object))
    };
    spec.objects.iter().filter_map(object).collect()
}

/// The objects that a proxy's controller has settings in, by what its study calls them.
fn objects(proxy: &ProxySpec) -> Vec<(String, ObjectRef)> {
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

/// The workload that reads an object at its start only, and where another text in it starts its pods anew; `None`: nothing
/// has to be, or the study's own command does it.
fn starts_anew(
    controller: &Controller,
    spec: &ControllerSpec,
    objects: &BTreeMap<String, ObjectRef>,
) -> Option<(ObjectRef, String)> {
    let by = &controller.restarts.as_ref()?.by;
    let object = objects.get(&by.object)?.clone();
    spec.restart.is_empty().then(|| (object, by.at.clone()))
}

/// A text that differs where what is read at the start does; `None`: what was there before weir.
fn said_of(controller: &Controller, placed: &[Placed]) -> Option<Value> {
    let restarts = controller.restarts.as_ref()?;
    let own = placed.iter().filter(|one| one.object == restarts.after);
    let own: Vec<String> = own.map(|one| format!("{}={}", one.at, one.value)).collect();
    (!own.is_empty()).then(|| Value::String(own.join(" ")))
}

/// What an arm has stand in objects of the cluster: the object, the place in it, and the value.
pub fn changes_of(study: &Study, catalog: &Catalog, arm: &Arm) -> Vec<(ObjectRef, String, Value)> {
    let spec = study.proxy.controller.as_ref();
    let known = spec.and_then(|spec| Some((spec, Controller::named(&spec.is)?)));
    let Some((spec, controller)) = known else {
        return Vec::new();
    };
    let mut changes = changed(&study.proxy, controller, catalog, arm);
    let by = starts_anew(controller, spec, &by_role(spec, controller));
    let said = said_of(controller, &controller.placed(catalog, &arm.settings));
    changes.extend(
        by.zip(said)
            .map(|((object, at), value)| (object, at, value)),
    );
    changes
}

fn changed(
    proxy: &ProxySpec,
    controller: &Controller,
    catalog: &Catalog,
    arm: &Arm,
) -> Vec<(ObjectRef, String, Value)> {
    let objects: BTreeMap<String, ObjectRef> = objects(proxy).into_iter().collect();
    let placed = controller.placed(catalog, &arm.settings).into_iter();
    let placed = placed.filter_map(|one| {
        let object = objects.get(&one.object)?.clone();
        Some((object, one.at, one.value))
    });
    placed.collect()
}
