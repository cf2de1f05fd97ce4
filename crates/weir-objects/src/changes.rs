//! Objects of a cluster that weir changes, and puts back in any case.
//!
//! An object goes through the same steps as a setting of the kernel (`weir_host::journal`):
//!
//! 1. its former text, identity and version are written to the journal, and each value before it is applied, all synced
//!    to disk;
//! 2. the object is changed by an update that the API server accepts only if nobody has changed the object since it was
//!    read;
//! 3. a place with a value of weir's gets its former value again. Any other value is somebody else's decision: it is
//!    reported and left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use weir_host::journal::JournalError;
use weir_host::journal::ledger::{self, Ledger};
use weir_kube::Cluster;
use weir_kube::KubeError;
use weir_kube::ObjectRef;
use weir_kube::inner::Inner;

use crate::object_path::{self, ObjectPath};
use crate::{node, roll_out};

mod entry;
mod left;
mod object;

use entry::is_same;
pub use left::{left_by_the_dead, left_by_this_process};

/// Name and version of the journal's format.
const FORMAT: &str = "weir-kubernetes-journal/1";
/// Number of attempts if somebody else changes the object at the same moment.
const ATTEMPTS: u32 = 8;
/// Text for an object that no longer exists.
const GONE: &str = "somebody has deleted it, or put another of its name in its place";
/// Text for an absent value.
const NOTHING: &str = "nothing";

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// First line: the format, the process that owns the journal, and the API server.
    Head {
        journal: String,
        cluster: String,
        pid: u32,
        since: String,
        purpose: String,
        /// Argument of `--on` with which `weir restore` finds the cluster.
        on: String,
    },
    /// An object before weir has changed anything in it.
    Ahead(Former),
    /// A value that a place of the object may have from now on.
    Giving { object: ObjectRef, at: String, value: Value },
    /// The object is put back, and no longer concerns the journal.
    Closed { object: ObjectRef },
}

/// An object before weir has changed anything in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Former {
    object: ObjectRef,
    uid: String,
    resource_version: String,
    /// Names of a Deployment's ReplicaSets, or of a DaemonSet's ControllerRevisions.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    replica_sets: BTreeSet<String>,
    text: Value,
}

/// An object that is still to be put back.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    former: Former,
    /// Values that weir has applied or announced, by place.
    given: BTreeMap<String, Vec<Value>>,
    /// Places that were asked for. The other places in `given` are defaults that the cluster has added.
    asked: BTreeSet<String>,
}

/// Outcome of putting an object back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PutBack {
    /// The object.
    pub object: ObjectRef,
    /// Places that have their former value again, or would have after a dry run.
    pub put_back: Vec<String>,
    /// Places that somebody else has changed; they were left alone.
    pub left: Vec<ForeignChange>,
    /// Reason why the object could not be put back; the next `weir restore` tries again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A place that somebody else has changed since weir did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignChange {
    /// Path of the place within the object.
    pub at: String,
    /// Value before weir.
    pub before: String,
    /// Present value.
    pub now: String,
}

impl PutBack {
    /// Returns true if everything is as before.
    pub fn is_whole(&self) -> bool {
        self.left.is_empty() && self.failed.is_none()
    }
}

/// Objects of a cluster that one weir changes. Changes are put back when this is dropped.
pub struct Changes {
    inner: Arc<Inner>,
    ledger: Ledger,
    open: Vec<Entry>,
    is_begun: bool,
    /// True if the API server did not answer while changes were put back, so that further requests would only take
    /// time.
    is_given_up: bool,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Changes").finish_non_exhaustive()
    }
}

/// Returns the folder of a cluster's journal, below the folder of journals. Its name is derived from the API server's
/// address.
fn folder_of(inner: &Inner, folder: &Path) -> PathBuf {
    let sum = Sha256::digest(inner.server.as_bytes());
    let sum: String = sum.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    folder.join(format!("kubernetes-{sum}"))
}

fn missing(object: &ObjectRef) -> KubeError {
    KubeError::Request {
        doing: format!("cannot change {object}"),
        why: "there is no such object".to_owned(),
    }
}

fn convert_error(inner: &Inner) -> impl Fn(JournalError) -> KubeError {
    let context = inner.context.clone();
    move |error| match error {
        JournalError::Held(holder) => KubeError::Held {
            context: context.clone(),
            holder: holder.map_or_else(String::new, |holder| format!(": {holder}")),
        },
        error => KubeError::Journal(Box::new(error)),
    }
}

fn metadata_text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}

/// Returns the objects that are still to be put back, from the lines of a journal.
fn collect_open(lines: Vec<Line>) -> Vec<Entry> {
    let mut open: Vec<Entry> = Vec::new();
    for line in lines {
        match line {
            Line::Head { .. } => {}
            Line::Ahead(former) => {
                open.push(Entry { former, given: BTreeMap::new(), asked: BTreeSet::new() });
            }
            Line::Giving { object, at, value } => {
                let entry = open.iter_mut().find(|entry| entry.former.object == object);
                if let Some(entry) = entry {
                    entry.given.entry(at).or_default().push(value);
                }
            }
            Line::Closed { object } => open.retain(|entry| entry.former.object != object),
        }
    }
    open
}

impl Changes {
    /// Opens the journal of a cluster, below a folder of journals. `purpose` is shown to others who find the journal
    /// taken.
    ///
    /// # Errors
    /// Another weir on this host has the journal, or an earlier weir has left objects changed.
    pub fn open(cluster: &Cluster, folder: &Path, purpose: &str) -> Result<Changes, KubeError> {
        let inner = &cluster.inner;
        let to_error = convert_error(inner);
        let mut ledger = Ledger::open(&folder_of(inner, folder), purpose).map_err(&to_error)?;
        let open = collect_open(ledger.read().map_err(&to_error)?);
        // Of some nothing may have been changed yet.
        let changed = open.iter().filter(|entry| !entry.given.is_empty()).count();
        match open.len().min(changed.max(1)) {
            0 => Ok(Changes {
                inner: Arc::clone(inner),
                ledger,
                open,
                is_begun: false,
                is_given_up: false,
            }),
            objects => Err(KubeError::LeftChanged {
                context: inner.context.clone(),
                namespace: inner.namespace.clone(),
                objects,
            }),
        }
    }

    fn write(&mut self, line: &Line) -> Result<(), KubeError> {
        let inner = Arc::clone(&self.inner);
        if !std::mem::replace(&mut self.is_begun, true) {
            let holder = self.ledger.holder().clone();
            let head = Line::Head {
                journal: FORMAT.to_owned(),
                cluster: inner.server.clone(),
                pid: holder.pid,
                since: holder.since,
                purpose: holder.purpose,
                on: format!("kubernetes:{}/{}", inner.context, inner.namespace),
            };
            self.ledger.begin(&head).map_err(convert_error(&inner))?;
        }
        self.ledger.append(line).map_err(convert_error(&inner))
    }

    /// Returns the index of an object among the open entries, after reading the object. Adds an entry if there is none.
    fn find_or_add(&mut self, object: &ObjectRef, now: &Value) -> Result<usize, KubeError> {
        let uid = metadata_text(now, "uid");
        let position = self.open.iter().position(|entry| entry.former.object == *object);
        if let Some(index) = position {
            let is_same = self.open[index].former.uid == uid;
            return is_same.then_some(index).ok_or_else(|| KubeError::Foreign {
                object: object.to_string(),
                what: GONE.to_owned(),
            });
        }
        let former = Former {
            object: object.clone(),
            resource_version: metadata_text(now, "resourceVersion"),
            replica_sets: roll_out::templates(&self.inner, object, &uid)?
                .into_iter()
                .map(|set| set.name)
                .collect(),
            uid,
            text: now.clone(),
        };
        self.write(&Line::Ahead(former.clone()))?;
        self.open.push(Entry { former, given: BTreeMap::new(), asked: BTreeSet::new() });
        Ok(self.open.len() - 1)
    }

    /// Sets values in an object, by place. `None` restores the value before weir; `null` removes the value, and for a
    /// place within an element of a list the whole element. `{"$from": POINTER}` within a value stands for the value at
    /// that place of the object before weir. Returns true if anything had to be changed.
    ///
    /// # Errors
    /// The object does not exist, has a value that is neither the former one nor weir's, or the cluster refuses the
    /// change.
    pub fn set(
        &mut self,
        object: &ObjectRef,
        values: &BTreeMap<String, Option<Value>>,
    ) -> Result<bool, KubeError> {
        for _ in 0..ATTEMPTS {
            let now = object::now(&self.inner, object)?.ok_or_else(|| missing(object))?;
            let index = self.find_or_add(object, &now)?;
            self.open[index].asked.extend(values.keys().cloned());
            let values = &self.open[index].resolved(values)?;
            let wanted = self.open[index].wanted(&now, values)?;
            if is_same(&wanted, &now) {
                return Ok(false);
            }
            // The cluster may put defaults beside a value, which have to go with it, and write the value otherwise.
            let Some(rehearsed) = object::rehearse(&self.inner, object, &wanted)? else {
                continue;
            };
            let settings: Vec<_> = values
                .iter()
                .filter_map(|(at, value)| Some((at, value.as_ref()?)))
                .map(|(at, value)| (at, value, ObjectPath::parse(at).get(&rehearsed)))
                .collect();
            let dropped =
                settings.iter().find(|(_, value, kept)| kept.is_none() && !value.is_null());
            if let Some((at, ..)) = dropped {
                return Err(KubeError::Refused {
                    what: format!("{at} in {object}"),
                    why: "this cluster's definition of such objects has no such field".to_owned(),
                });
            }
            if is_same(&rehearsed, &now) {
                return Ok(false);
            }
            for (at, value, kept) in settings {
                self.announce(index, at, value)?;
                self.announce(index, at, kept.unwrap_or(value))?;
            }
            let former = &self.open[index].former.text;
            for (at, value) in object_path::added(&wanted, &rehearsed, former) {
                self.announce(index, &at, &value)?;
            }
            if object::replace(&self.inner, object, (&now, &wanted))?.is_some() {
                return Ok(true);
            }
        }
        Err(KubeError::Foreign {
            object: object.to_string(),
            what: "somebody else changes it all the time".to_owned(),
        })
    }

    /// Returns an object as it was before weir, and records the object in the journal.
    ///
    /// # Errors
    /// See [`Changes::set`].
    pub fn former(&mut self, object: &ObjectRef) -> Result<&Value, KubeError> {
        self.set(object, &BTreeMap::new())?;
        let entry = self.open.iter().find(|one| one.former.object == *object);
        entry.map(|entry| &entry.former.text).ok_or_else(|| missing(object))
    }

    /// Returns an object as it was before weir; `None` if the object is not in the journal.
    pub fn before(&self, object: &ObjectRef) -> Option<&Value> {
        let mut open = self.open.iter();
        let entry = open.find(|entry| entry.former.object == *object)?;
        Some(&entry.former.text)
    }

    fn announce(&mut self, index: usize, at: &str, value: &Value) -> Result<(), KubeError> {
        let entry = &self.open[index];
        if entry.given.get(at).is_some_and(|announced| announced.contains(value)) {
            return Ok(());
        }
        self.write(&Line::Giving {
            object: entry.former.object.clone(),
            at: at.to_owned(),
            value: value.clone(),
        })?;
        self.open[index].given.entry(at.to_owned()).or_default().push(value.clone());
        Ok(())
    }

    /// Prepares access to all nodes whose settings are among these objects, to all of them at once.
    ///
    /// # Errors
    /// A node cannot be reached.
    pub fn reach(&self, objects: &[ObjectRef]) -> Result<(), KubeError> {
        node::reach(&self.inner, objects).map_or(Ok(()), Err)
    }

    /// Waits until all pods of a workload are of its present template and ready, or `interrupted` is set.
    ///
    /// # Errors
    /// A new pod cannot run, or the roll-out takes too long.
    pub fn rolled_out(
        &self,
        object: &ObjectRef,
        within: std::time::Duration,
        interrupted: &std::sync::atomic::AtomicBool,
    ) -> Result<(), KubeError> {
        let entry = self.open.iter().find(|entry| entry.former.object == *object);
        let before = entry.map(|entry| &entry.former.replica_sets);
        roll_out::rolled_out(&self.inner, (object, before), within, interrupted)
    }

    /// Returns the change that somebody else has made to an object since weir changed it, if it keeps weir's values
    /// from being in force.
    ///
    /// # Errors
    /// The object cannot be read.
    pub fn done_by_others(&self, object: &ObjectRef) -> Result<Option<KubeError>, KubeError> {
        let mut open = self.open.iter();
        let Some(entry) = open.find(|entry| entry.former.object == *object) else {
            return Ok(None);
        };
        let foreign =
            |what: &str| KubeError::Foreign { object: object.to_string(), what: what.to_owned() };
        let now = object::now(&self.inner, object)?;
        let Some(now) = now.filter(|now| now["metadata"]["uid"] == *entry.former.uid) else {
            return Ok(Some(foreign(GONE)));
        };
        Ok(entry
            .given
            .keys()
            .find_map(|at| entry.must_know(at, &ObjectPath::parse(at), &now).err()))
    }

    /// Puts everything back, the last object first, and returns the outcome for each.
    pub fn put_back(&mut self) -> Vec<PutBack> {
        let all = self.put_all_back();
        if !self.is_given_up {
            node::leave(&self.inner);
        }
        all
    }

    fn put_all_back(&mut self) -> Vec<PutBack> {
        let mut all = Vec::new();
        let before = self.inner.silences.load(Ordering::Relaxed);
        // A node that cannot be reached is told of each of its settings.
        let _ = node::reach(&self.inner, self.open.iter().map(|entry| &entry.former.object));
        for index in (0..self.open.len()).rev() {
            let entry = self.open[index].clone();
            self.is_given_up = self.inner.silences.load(Ordering::Relaxed) > before;
            let became = if self.is_given_up {
                entry.given_up(&self.inner)
            } else {
                entry.put_back(&self.inner, false)
            };
            if became.failed.is_none() {
                let object = entry.former.object;
                self.open.remove(index);
                // Without the line, the object is looked at once more and found to be as it was.
                let _ = self.write(&Line::Closed { object });
            }
            all.push(became);
        }
        self.is_given_up = self.inner.silences.load(Ordering::Relaxed) > before;
        all
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        // What could not be put back stays in the journal: `weir restore --on` does it, and tells.
        if !self.is_given_up {
            let _ = self.put_back();
        }
    }
}

/// Puts back what a weir that no longer runs has left changed in a cluster. A dry run only lists it.
///
/// # Errors
/// A running weir has the journal, or the journal cannot be read.
pub fn undo(cluster: &Cluster, folder: &Path, dry_run: bool) -> Result<Vec<PutBack>, KubeError> {
    let inner = &cluster.inner;
    let folder = folder_of(inner, folder);
    let to_error = convert_error(inner);
    let entries = collect_open(ledger::peek(&folder).map_err(&to_error)?);
    if entries.is_empty() || dry_run {
        return Ok(entries.iter().rev().map(|entry| entry.put_back(inner, true)).collect());
    }
    let mut ledger = Ledger::open(&folder, "weir restore").map_err(&to_error)?;
    let open = collect_open(ledger.read().map_err(&to_error)?);
    let image = open.iter().map(|entry| &entry.former.text).find_map(node::image_of);
    if let Some(image) = image {
        node::reach_by(inner, image);
    }
    let mut changes =
        Changes { inner: Arc::clone(inner), ledger, open, is_begun: true, is_given_up: false };
    let all = changes.put_all_back();
    node::await_gone(inner, &node::leave(inner));
    Ok(all)
}
