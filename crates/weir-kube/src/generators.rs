//! The generators of a run: one Job and its pods.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1;
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use kube::{Api, Resource};
use serde_json::Value;

use crate::asked::PodRequest;
use crate::error::KubeError;
use crate::exec::{self, Connected};
use crate::inner::Inner;
use crate::objects::{self, RunScope};
use crate::pods::{self, Pod};
use crate::trouble;

/// Interval at which the pods are polled.
const LOOK: Duration = Duration::from_millis(300);
/// Time limit for their removal at the end.
const REMOVAL: Duration = Duration::from_secs(5);
/// Wait after an origin server listens, before it gets requests: Services and Ingress controllers learn of it later
/// than the cluster reports it (up to 3.4 s were observed).
const KNOWN: Duration = Duration::from_secs(5);

/// The generators of a run. They are removed when this is dropped.
pub struct Generators {
    inner: Arc<Inner>,
    run: String,
    pods: Vec<Pod>,
}

impl std::fmt::Debug for Generators {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Generators").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Generators {
    pub(crate) fn start(
        inner: &Arc<Inner>,
        wanted: &PodRequest,
        interrupted: &AtomicBool,
    ) -> Result<Generators, KubeError> {
        // Removes what is made, whatever comes.
        let mut generators =
            Generators { inner: Arc::clone(inner), run: name()?, pods: Vec::new() };
        with_pods(|all| all.push(name_namespace(inner)));
        inner.run("create a Job", create(inner, wanted, &generators.run))?;
        let ready = await_pods(inner, wanted, &generators.run, interrupted);
        // The loop ends by itself; a request that hangs does not.
        let pods = inner.within(wanted.within + Duration::from_secs(15), ready);
        generators.pods = pods.unwrap_or_else(|| Err(overdue(wanted)))?;
        Ok(generators)
    }

    /// Returns the Job's name, which all its pods have as a label.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the pods by index.
    pub fn pods(&self) -> &[Pod] {
        &self.pods
    }

    /// Starts an agent in a pod. `version` is this weir's version for the greeting, and `at_most` the time limit for
    /// everything together.
    ///
    /// # Errors
    /// See [`KubeError::Agent`].
    pub fn agent(
        &self,
        pod: &Pod,
        version: &str,
        at_most: Duration,
    ) -> Result<Connected, KubeError> {
        exec::agent(&self.inner, pod, version, at_most)
    }
}

impl Drop for Generators {
    fn drop(&mut self) {
        let inner = &self.inner;
        let namespace = name_namespace(inner);
        with_pods(|all| {
            if let Some(at) = all.iter().position(|entry| *entry == namespace) {
                all.swap_remove(at);
            }
        });
        let jobs: Api<Job> = Api::namespaced(inner.client.clone(), &inner.namespace);
        // What cannot be removed ends by itself: see `weir wait`.
        let background = DeleteParams::background();
        let _ = inner.within(REMOVAL, jobs.delete(&self.run, &background));
    }
}

/// Returns the namespaces in which this process has pods, in the form that `--on` takes. Never blocks: returns nothing
/// if the list is being changed.
pub fn pods_of_this_process() -> Vec<String> {
    WITH_PODS.try_lock().map_or_else(|_| Vec::new(), |all| all.clone())
}

static WITH_PODS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn with_pods(change: impl FnOnce(&mut Vec<String>)) {
    change(&mut WITH_PODS.lock().unwrap_or_else(PoisonError::into_inner));
}

fn name_namespace(inner: &Inner) -> String {
    format!("kubernetes:{}/{}", inner.context, inner.namespace)
}

/// Creates a random name for a run.
pub fn name() -> Result<String, KubeError> {
    let mut random = [0; 4];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(format!("weir-{:08x}", u32::from_ne_bytes(random)))
}

/// Creates the Job and, if one is wanted, the origin server's pod.
async fn create(inner: &Inner, wanted: &PodRequest, run: &str) -> Result<(), KubeError> {
    let scope = RunScope { namespace: &inner.namespace, run };
    let job = objects::job(wanted, scope);
    let uid = make::<Job>(inner, scope.namespace, job, "the Job of the generators").await?;
    if let Some(origin) = objects::origin(wanted, scope, Some(&uid)) {
        let purpose = "the pod of the origin server";
        make::<v1::Pod>(inner, scope.namespace, origin, purpose).await?;
    }
    Ok(())
}

/// Creates an object exactly as rendered, since a typed object would silently lose fields that its type does not know.
/// Returns the object's uid.
pub async fn make<K>(
    inner: &Inner,
    namespace: &str,
    object: Value,
    what: &str,
) -> Result<String, KubeError>
where
    K: Resource<DynamicType = ()>,
{
    let object: DynamicObject = serde_json::from_value(object)
        .map_err(|error| KubeError::Refused { what: what.to_owned(), why: error.to_string() })?;
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(inner.client.clone(), namespace, &resource);
    match api.create(&PostParams::default(), &object).await {
        Ok(made) => Ok(made.metadata.uid.unwrap_or_default()),
        Err(kube::Error::Api(status))
            if (400..500).contains(&status.code) && status.code != 401 =>
        {
            Err(KubeError::Refused { what: what.to_owned(), why: status.message })
        }
        Err(error) => Err(inner.failed(&format!("create {what}"), error)),
    }
}

fn overdue(wanted: &PodRequest) -> KubeError {
    KubeError::Overdue {
        what: format!("{} pods do not run", wanted.generators),
        within: wanted.within,
    }
}

/// Waits until all pods run.
async fn await_pods(
    inner: &Inner,
    wanted: &PodRequest,
    run: &str,
    interrupted: &AtomicBool,
) -> Result<Vec<Pod>, KubeError> {
    let until = Instant::now() + wanted.within;
    loop {
        let pods = inner.answer("list pods", pods::of_run(inner, run)).await?;
        let running: Vec<Pod> = pods.iter().filter_map(pods::running).collect();
        let has_origin = wanted.origin.is_none() || pods.iter().any(pods::is_ready_origin);
        if running.len() == wanted.generators as usize && has_origin {
            if wanted.origin.is_some() {
                tokio::time::sleep(KNOWN).await;
            }
            return Ok(pods::sorted(running));
        }
        let is_over = Instant::now() > until;
        let troubles = pods.iter().filter_map(|pod| Some((pod, trouble::of_pod(pod)?)));
        // What is final explains the rest.
        let worst = troubles.max_by_key(|(_, trouble)| trouble.is_final);
        if let Some((pod, trouble)) = worst
            && (trouble.is_final || is_over)
        {
            let name = pod.metadata.name.clone().unwrap_or_default();
            return Err(pods::report(inner, "pod", &name, trouble).await);
        }
        let all = wanted.generators as usize + usize::from(wanted.origin.is_some());
        if pods.len() < all
            && let Some(trouble) = trouble::of_job(&pods::events(inner, run).await)
        {
            return Err(pods::report(inner, "Job", run, trouble).await);
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(KubeError::Interrupted);
        }
        if is_over {
            return Err(overdue(wanted));
        }
        tokio::time::sleep(LOOK).await;
    }
}
