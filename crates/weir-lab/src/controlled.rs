//! A proxy that a controller in a cluster configures: weir writes an arm's settings into objects of the cluster, and
//! waits until the data plane has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_host::journal::Journal;
use weir_hosts::{HostError, Options};
use weir_kube::{Cluster, KubeError, ObjectRef};
use weir_model::record::ObjectRecord;
use weir_model::study::{Arm, ExternalSpec, Settings, Study};
use weir_objects::{Changes, is_rolled_out};
use weir_parameters::controller::{Reads, ReadsCommand, ReadsPort, sysctl_path};
use weir_parameters::{Catalog, Controller, EffectiveFrom, Parameter};
use weir_sut::RequestRoute;

use crate::{Event, LabError};

mod command;
mod instance;
mod nodes;
mod pods;
mod texts;

pub(crate) use instance::workloads_of;
use instance::{Instance, list_used, meeting, read_instances};
pub use instance::{changes_of, rights_of};
pub use texts::edited as edited_text;

/// Interval between checks whether settings are in force.
const LOOK: Duration = Duration::from_millis(300);
/// Role, in a controller's file, of the object that the pods belong to.
const WORKLOAD: &str = "workload";
/// JSON pointer to the number of pods in a workload.
const REPLICAS: &str = "/spec/replicas";
/// Name for readings that belong to no single pod.
const PROXY: &str = "the proxy";

/// Proxies that a controller configures. Dropping it restores everything that was changed.
pub(crate) struct Controlled {
    cluster: Cluster,
    controller: &'static Controller,
    /// The one proxy that arms have in turn, or several of which each arm has one.
    instances: Vec<Instance>,
    /// Request of the loads for which the configuration is read.
    meeting: RequestRoute,
    within: Duration,
    catalog: Catalog,
    changes: Changes,
    /// Ids of all parameters that some arm sets.
    ids: BTreeSet<String>,
    interrupted: Arc<AtomicBool>,
}

/// Settings read from the data plane.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InForce {
    pub(crate) levels: Settings,
    /// Configuration that the proxy printed.
    pub(crate) text: String,
    /// Contents of the objects before weir changed them.
    pub(crate) objects: Vec<ObjectRecord>,
}

impl Controlled {
    /// Opens a study's controller and reads the settings in force; `None` if the study has no controller.
    ///
    /// # Errors
    /// No cluster is named; the user may not change its objects; another weir is changing them, or has left them
    /// changed; an earlier roll-out does not end; or nothing can be read.
    pub(crate) fn open(
        study: &Study,
        options: &Options,
        events: &mut dyn FnMut(Event),
    ) -> Result<Option<Controlled>, LabError> {
        let Some((proxy, spec)) = study.controlled() else {
            return Ok(None);
        };
        let controller = Controller::named(&spec.is).ok_or_else(|| unknown_controller(&spec.is))?;
        let cluster = options.places.cluster.clone().ok_or_else(|| {
            let words = "the study changes objects of a cluster, and no --on names one";
            LabError::Controller(words.to_owned())
        })?;
        let catalog = options.catalog.clone();
        let address = proxy.external.as_ref().map(|external| external.address);
        let mut instances = read_instances(&study.proxy, controller);
        for instance in &mut instances {
            for arm in &study.arms {
                for (object, at, _) in instance.placed(controller, &catalog, arm) {
                    instance.sites.entry(object).or_default().insert(at);
                }
            }
        }
        let used = list_used(study, controller, &catalog);
        cluster.check_changes(&used)?;
        cluster.check_objects(&used)?;
        nodes::check(study, &instances, (&cluster, options))?;
        let purpose = format!("weir run {}", study.name);
        let folder = Journal::default_folder();
        let arms = study.arms.iter();
        let mut controlled = Controlled {
            changes: Changes::open(&cluster, &folder, &purpose)?,
            cluster,
            controller,
            instances,
            meeting: meeting(study, address.ok_or_else(|| unknown_controller(&spec.is))?),
            within: spec.within.unwrap_or(controller.in_force_within),
            catalog,
            ids: arms.flat_map(|arm| arm.settings.keys().cloned()).collect(),
            interrupted: Arc::clone(&options.stop),
        };
        for instance in &controlled.instances {
            controlled.await_roll_outs(instance, events)?;
        }
        for index in 0..controlled.instances.len() {
            let pods = controlled.read(&controlled.instances[index])?;
            let first = pods.into_iter().next().unwrap_or_default();
            let instance = &mut controlled.instances[index];
            instance.before = first.1.levels;
            if let Some(workload) = instance.objects.get(WORKLOAD) {
                instance.replicas = weir_objects::replicas(&controlled.cluster, workload)?;
            }
        }
        Ok(Some(controlled))
    }

    /// Waits for roll-outs that began before weir changes anything, such as the end of an earlier run's. Otherwise pods
    /// that are going would be read, or none would run.
    fn await_roll_outs(
        &self,
        instance: &Instance,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), LabError> {
        let within = self.controller.rolled_out_within;
        let by = instance.starts_anew(self.controller).map(|(by, _)| by);
        let workload = instance.objects.get(WORKLOAD);
        for object in by.iter().chain(workload) {
            if is_rolled_out(&self.cluster, object)? {
                continue;
            }
            events(Event::RollOutAwaited { workload: object.to_string(), within });
            let done = self.changes.rolled_out(object, within, &self.interrupted);
            done.map_err(|error| match error {
                KubeError::Interrupted | KubeError::Unreachable { .. } => error.into(),
                error => LabError::Rolling { workload: object.to_string(), error: Box::new(error) },
            })?;
        }
        Ok(())
    }

    /// Returns the number of arms that can run side by side.
    pub(crate) fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Returns the location of an instance's proxy.
    pub(crate) fn at(&self, place: usize) -> &ExternalSpec {
        &self.instances[place].at
    }

    /// Returns the workload of an instance's proxy and its container in the pods, as far as known.
    pub(crate) fn pods(&self, place: usize) -> Option<(&Cluster, &ObjectRef, Option<&str>)> {
        let workload = self.instances[place].objects.get(WORKLOAD)?;
        Some((&self.cluster, workload, self.controller.container()))
    }

    /// Puts an arm's settings into force in an instance, in place of the previous arm's, and waits until the data plane
    /// has them.
    ///
    /// # Errors
    /// [`LabError::NotInForce`], with the settings read instead or the cluster's message; or the user stopped the run.
    pub(crate) fn apply(&mut self, arm: &Arm, place: usize) -> Result<InForce, LabError> {
        let refused = |error| not_in_force(arm, error);
        let instance = &self.instances[place];
        let placed = instance.placed(self.controller, &self.catalog, arm);
        let within = self.controller.rolled_out_within;
        let by = instance
            .starts_anew(self.controller)
            .filter(|_| instance.reads_once(self.controller, |_| true));
        if let Some((by, _)) = &by {
            // Ahead of what it reads, so that it is put back after that.
            self.changes.set(by, &BTreeMap::new()).map_err(refused)?;
        }
        let mut changed = BTreeSet::new();
        nodes::set(&mut self.changes, &self.cluster, (instance, &placed)).map_err(refused)?;
        let sites = instance.sites.iter();
        for (object, places) in sites.filter(|(object, _)| !object.is_of_node()) {
            let wanted = texts::whole(
                &mut self.changes,
                object,
                places
                    .iter()
                    .map(|at| {
                        let change =
                            placed.iter().find(|change| change.1 == *at && change.0 == *object);
                        (at.clone(), change.map(|change| change.2.clone()))
                    })
                    .collect(),
            );
            if self.changes.set(object, &wanted.map_err(refused)?).map_err(refused)? {
                changed.insert(object);
            }
        }
        if let Some((by, at)) = by {
            let wanted = BTreeMap::from([(at, instance.said_of(self.controller, &placed))]);
            self.changes.set(&by, &wanted).map_err(refused)?;
            let done = self.changes.rolled_out(&by, within, &self.interrupted);
            done.map_err(refused)?;
        }
        instance.restart(self.controller, |object| changed.contains(object))?;
        if let Some(workload) = instance.objects.get(WORKLOAD) {
            let done = self.changes.rolled_out(workload, within, &self.interrupted);
            done.map_err(refused)?;
            self.must_have_pods(arm, instance, workload)?;
        }
        let in_force = self.await_in_force(arm, instance)?;
        Ok(InForce { objects: instance.held(self.controller, &self.changes), ..in_force })
    }

    /// Refuses a workload that somebody else, such as an autoscaler, has scaled: arms with different numbers of pods
    /// cannot be compared. If arms set the number of pods themselves, the object's own check detects such a change.
    fn must_have_pods(
        &self,
        arm: &Arm,
        instance: &Instance,
        workload: &ObjectRef,
    ) -> Result<(), LabError> {
        if instance.sites.get(workload).is_some_and(|places| places.contains(REPLICAS)) {
            return Ok(());
        }
        let (before, now) = (instance.replicas, weir_objects::replicas(&self.cluster, workload)?);
        match before.zip(now) {
            Some((before, now)) if before != now => Err(LabError::NotInForce {
                arm: arm.name.clone(),
                what: format!(
                    "{workload} is to have {now} pods, and had {before} when the run began: somebody else has scaled it"
                ),
                hint: Some(
                    "keep it from being scaled while the run goes on; `kubectl get hpa --all-namespaces` lists autoscalers"
                        .to_owned(),
                ),
            }),
            _ => Ok(()),
        }
    }

    fn await_in_force(&self, arm: &Arm, instance: &Instance) -> Result<InForce, LabError> {
        let until = Instant::now() + self.within;
        let mut refusal = None;
        loop {
            let shortfall = match self.read(instance) {
                Ok(each) => match self.lacking(arm, instance, &each) {
                    None => return Ok(each.into_iter().next().unwrap_or_default().1),
                    Some(shortfall) => shortfall,
                },
                Err(error @ LabError::Host(HostError::Kube(KubeError::Unreachable { .. })))
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
            let before = std::mem::replace(&mut refusal, self.refusal(instance));
            if let Some((what, hint)) = refusal.clone().filter(|_| refusal == before) {
                return Err(LabError::NotInForce { arm: arm.name.clone(), what, hint });
            }
            if Instant::now() > until {
                let (title, seconds) = (&self.controller.title, self.within.as_secs());
                return Err(LabError::NotInForce {
                    arm: arm.name.clone(),
                    what: format!("not in force after {seconds} s: {shortfall}"),
                    hint: Some(format!(
                        "look at the log of {title}: it may have refused the value, or taken its default in its place"
                    )),
                });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the reason why settings do not come into force, and the remedy: somebody else has changed an object that
    /// has some of them, or the controller rejects it.
    fn refusal(&self, instance: &Instance) -> Option<(String, Option<String>)> {
        let mut objects = instance.sites.keys().filter(|site| !site.is_of_node());
        objects.find_map(|object| {
            // What cannot be read now is looked at again.
            if let Some(error) = self.changes.done_by_others(object).ok().flatten() {
                return Some((error.to_string(), error.hint()));
            }
            let message = weir_objects::not_taken(&self.cluster, object).ok().flatten()?;
            let title = &self.controller.title;
            Some((format!("{title} does not take {object}: {message}"), None))
        })
    }

    /// Describes a setting of an arm that is not in force in some pod; `None` if all are in force everywhere.
    fn lacking(
        &self,
        arm: &Arm,
        instance: &Instance,
        each: &[(String, InForce)],
    ) -> Option<String> {
        let wanted = self.ids.iter().filter_map(|id| {
            let level = arm.settings.get(id).or_else(|| instance.before.get(id))?;
            Some((self.row(id)?, level))
        });
        let wanted: Vec<(&Parameter, &String)> = wanted.collect();
        let mut lacking = each.iter().flat_map(|(pod, in_force)| {
            wanted.iter().filter_map(move |(row, level)| {
                let actual = in_force.levels.get(&row.id).map_or("unknown", String::as_str);
                let is_there = Controller::is_in_force(row, level, actual);
                (!is_there).then(|| format!("{} is {actual} and not {level} in {pod}", row.id))
            })
        });
        lacking.next()
    }

    fn row(&self, id: &str) -> Option<&Parameter> {
        self.catalog.get(self.controller.proxy, id)
    }

    /// Reads the configuration that each pod of an instance's data plane runs with, by the pod's name.
    fn read(&self, instance: &Instance) -> Result<Vec<(String, InForce)>, LabError> {
        let meeting = RequestRoute { at: instance.at.address, ..self.meeting.clone() };
        let printed = match instance.read.split_first() {
            Some((program, words)) => {
                let text = command::run("read", program, words)?;
                vec![(PROXY.to_owned(), text)]
            }
            None => match &self.controller.reads {
                Reads::Command(ReadsCommand { command, .. }) => self.in_pods(instance, command)?,
                Reads::Port(port) => self.over_port(instance, port)?,
            },
        };
        let mut by_pod = BTreeMap::new();
        for (of, text) in printed {
            let reading =
                weir_proxies::read_report(self.controller.proxy, text, &meeting, &self.catalog)
                    .map_err(|error| {
                        LabError::Controller(format!(
                            "what {of} prints of its configuration: {error}"
                        ))
                    })?;
            let in_force =
                InForce { levels: reading.levels, text: reading.text, objects: Vec::new() };
            by_pod.insert(of, in_force);
        }
        self.read_pods(instance, &mut by_pod)?;
        // What a command beside the pods has printed is of all of them.
        if by_pod.len() > 1
            && let Some(printed) = by_pod.remove(PROXY)
        {
            for of_pod in by_pod.values_mut() {
                of_pod.levels.extend(printed.levels.clone());
                of_pod.text.clone_from(&printed.text);
            }
        }
        Ok(by_pod.into_iter().collect())
    }

    /// Reads further settings of the pods, those of the kernel and of the workload, and adds them to `each` by the
    /// pod's name.
    fn read_pods(
        &self,
        instance: &Instance,
        each: &mut BTreeMap<String, InForce>,
    ) -> Result<(), LabError> {
        let workload = instance.objects.get(WORKLOAD);
        let Some((workload, container)) = workload.zip(self.controller.container()) else {
            return Ok(());
        };
        for row in self.ids.iter().filter_map(|id| self.row(id)) {
            let of_pods = match (&row.effective, sysctl_path(row)) {
                (EffectiveFrom::Workload(place), _) => {
                    pods::levels(&self.cluster, workload, container, (row, place))?
                }
                (_, Some(path)) => {
                    self.in_pods(instance, &["cat".to_owned(), format!("/proc/sys/{path}")])?
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

    /// Runs a command in each pod of an instance's workload; returns the pods' names and the output.
    fn in_pods(
        &self,
        instance: &Instance,
        command: &[String],
    ) -> Result<Vec<(String, String)>, LabError> {
        match (instance.objects.get(WORKLOAD), &self.controller.reads) {
            (Some(workload), Reads::Command(ReadsCommand { container, .. })) => {
                Ok(weir_kube::in_pods(&self.cluster, workload, container, command)?)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Requests documents at a port of each pod of an instance's workload; returns the pods' names and the documents,
    /// concatenated.
    fn over_port(
        &self,
        instance: &Instance,
        of: &ReadsPort,
    ) -> Result<Vec<(String, String)>, LabError> {
        let workload = instance.objects.get(WORKLOAD);
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (path, workload) in of.paths.iter().zip(workload.into_iter().cycle()) {
            let asks = weir_sut::admin::asks(path);
            for (pod, answer) in weir_kube::ask_port(&self.cluster, workload, of.port, &asks)? {
                let text =
                    weir_sut::admin::answer(&*answer, weir_sut::admin::MOST).map_err(|error| {
                        let at = format!("{path} at port {} of pod {pod}", of.port);
                        LabError::Controller(format!("{at}: {error}"))
                    })?;
                *all.entry(pod).or_default() += &text;
            }
        }
        Ok(all.into_iter().collect())
    }

    /// Restores all objects and reports the outcome for each.
    ///
    /// # Errors
    /// Some object could not be restored, and is left to `weir restore`.
    pub(crate) fn put_back(&mut self, events: &mut dyn FnMut(Event)) -> Result<(), LabError> {
        let objects = self.changes.put_back();
        let failed = objects.iter().filter(|report| report.failed.is_some()).count();
        let put_back: BTreeSet<&ObjectRef> = objects
            .iter()
            .filter(|report| !report.put_back.is_empty())
            .map(|report| &report.object)
            .collect();
        let mut restarted = Ok(());
        for instance in &self.instances {
            restarted = restarted
                .and(instance.restart(self.controller, |object| put_back.contains(object)));
        }
        if !objects.is_empty() {
            events(Event::ObjectsPutBack { objects });
        }
        match failed {
            0 => restarted,
            objects => Err(LabError::from(KubeError::NotPutBack {
                context: self.cluster.context().to_owned(),
                namespace: self.cluster.namespace().to_owned(),
                objects,
            })),
        }
    }
}

fn unknown_controller(name: &str) -> LabError {
    LabError::Controller(format!("`{name}` is no controller"))
}

/// Makes the error of an arm whose settings the cluster refuses.
fn not_in_force(arm: &Arm, error: KubeError) -> LabError {
    match error {
        KubeError::Interrupted | KubeError::Unreachable { .. } => error.into(),
        error => LabError::NotInForce {
            arm: arm.name.clone(),
            hint: error.hint(),
            what: error.to_string(),
        },
    }
}
