//! A changed object: computation of its next text, and putting it back.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_kube::KubeError;
use weir_kube::inner::Inner;

use super::{ATTEMPTS, Entry, ForeignChange, NOTHING, PutBack, object};
use crate::object_path::{self, ObjectPath};
use crate::roll_out;

/// Returns true if two texts of an object are equal, apart from fields that the API server updates at every change.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    without_updated_fields(one) == without_updated_fields(other)
}

fn without_updated_fields(object: &Value) -> Value {
    let mut stripped = object.clone();
    if let Some(metadata) = stripped["metadata"].as_object_mut() {
        metadata.retain(|key, _| {
            !["managedFields", "resourceVersion", "generation"].contains(&key.as_str())
        });
    }
    stripped
}

impl Entry {
    /// Replaces references to other places of the object by the values there.
    pub(super) fn resolved(
        &self,
        values: &BTreeMap<String, Option<Value>>,
    ) -> Result<BTreeMap<String, Option<Value>>, KubeError> {
        let former = &self.former.text;
        values
            .iter()
            .map(|(at, value)| {
                let resolved = value
                    .as_ref()
                    .map(|value| object_path::resolved(value, former))
                    .transpose()
                    .map_err(|missing| KubeError::Request {
                        doing: format!("cannot change {}", self.former.object),
                        why: format!("nothing stands at {missing}"),
                    })?;
                Ok((at.clone(), resolved))
            })
            .collect()
    }

    /// Returns the present object with these values, and without the defaults that the cluster has added to weir's
    /// values; the cluster adds them again.
    pub(super) fn wanted(
        &self,
        now: &Value,
        values: &BTreeMap<String, Option<Value>>,
    ) -> Result<Value, KubeError> {
        let mut wanted = now.clone();
        let beside = self.given.keys().filter(|at| !self.asked.contains(*at));
        for at in beside.chain(values.keys()) {
            let pointer = ObjectPath::parse(at);
            self.must_know(at, &pointer, now)?;
            pointer.put_back(&mut wanted, &self.former.text);
        }
        for (at, value) in values {
            let Some(value) = value else { continue };
            if value.is_null() {
                ObjectPath::parse(at).remove(&mut wanted);
                continue;
            }
            if !ObjectPath::parse(at).set(&mut wanted, value.clone()) {
                return Err(KubeError::Foreign {
                    object: self.former.object.to_string(),
                    what: format!("there is no place for {at}"),
                });
            }
        }
        Ok(wanted)
    }

    /// Fails if the value at a place is neither the former one nor weir's.
    pub(super) fn must_know(
        &self,
        at: &str,
        pointer: &ObjectPath,
        now: &Value,
    ) -> Result<(), KubeError> {
        match self.is_foreign(at, pointer, now) {
            None => Ok(()),
            Some(left) => Err(KubeError::Foreign {
                object: self.former.object.to_string(),
                what: format!(
                    "{at} was {}, and is {} now, which weir has not given",
                    left.before, left.now
                ),
            }),
        }
    }

    fn is_foreign(&self, at: &str, pointer: &ObjectPath, now: &Value) -> Option<ForeignChange> {
        let (before, now) = (pointer.get(&self.former.text), pointer.get(now));
        let announced = self.given.get(at);
        let is_ours = match now {
            Some(now) => announced.is_some_and(|values| values.contains(now)),
            None => self.is_taken(pointer),
        };
        (before != now && !is_ours).then(|| ForeignChange {
            at: at.to_owned(),
            before: before.map_or(NOTHING.to_owned(), Value::to_string),
            now: now.map_or(NOTHING.to_owned(), Value::to_string),
        })
    }

    /// Returns true if weir has removed the value at a place.
    fn is_taken(&self, pointer: &ObjectPath) -> bool {
        self.given.iter().any(|(at, values)| {
            values.contains(&Value::Null) && ObjectPath::parse(at).takes(pointer)
        })
    }

    /// Puts the object back; a dry run only lists what would be put back.
    pub(super) fn put_back(&self, inner: &Inner, dry_run: bool) -> PutBack {
        let mut became = PutBack {
            object: self.former.object.clone(),
            put_back: Vec::new(),
            left: Vec::new(),
            failed: None,
        };
        if let Err(error) = self.try_to_put_back(inner, dry_run, &mut became) {
            became.put_back.clear();
            became.failed = Some(error.to_string());
        }
        became
    }

    /// Returns the outcome if the API server has just failed to answer, without asking again, which would take long
    /// each time.
    pub(super) fn given_up(&self, inner: &Inner) -> PutBack {
        PutBack {
            object: self.former.object.clone(),
            put_back: Vec::new(),
            left: Vec::new(),
            failed: Some(inner.silent("put it back").to_string()),
        }
    }

    fn try_to_put_back(
        &self,
        inner: &Inner,
        dry_run: bool,
        became: &mut PutBack,
    ) -> Result<(), KubeError> {
        let object = &self.former.object;
        if dry_run && object.is_of_node() {
            // Whoever would look makes a pod.
            became.put_back = self.given.keys().cloned().collect();
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            (became.put_back, became.left) = (Vec::new(), Vec::new());
            let now = object::now(inner, object)?;
            let Some(now) = now.filter(|now| now["metadata"]["uid"] == *self.former.uid) else {
                became.left.push(ForeignChange {
                    at: String::new(),
                    before: format!("the object {}", self.former.uid),
                    now: "deleted, or another of its name".to_owned(),
                });
                return Ok(());
            };
            let mut wanted = now.clone();
            for at in self.given.keys() {
                let pointer = ObjectPath::parse(at);
                match self.is_foreign(at, &pointer, &now) {
                    Some(left) => became.left.push(left),
                    None if pointer.get(&now) != pointer.get(&self.former.text) => {
                        pointer.put_back(&mut wanted, &self.former.text);
                        became.put_back.push(at.clone());
                    }
                    None => {}
                }
            }
            if dry_run {
                return Ok(());
            }
            if wanted == now || object::replace(inner, object, (&now, &wanted))?.is_some() {
                let sets = (&self.former.replica_sets, &self.given);
                return roll_out::forget(inner, object, &self.former.uid, sets);
            }
        }
        Err(KubeError::Foreign {
            object: object.to_string(),
            what: "somebody else changes it all the time".to_owned(),
        })
    }
}
