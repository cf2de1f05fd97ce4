//! Commands in the pods of a workload, and requests to their ports.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::AttachParams;
use kube::{Api, ResourceExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::Cluster;
use crate::error::KubeError;
use crate::health;
use crate::inner::Inner;
use crate::object_ref::ObjectRef;
use crate::workload::running;

/// Time limit for a command in a pod, and maximum length of its output (`MOST_PRINTED`).
pub(crate) const COMMAND: Duration = Duration::from_secs(20);
const MOST_PRINTED: u64 = 32 << 20;
/// Runs a command in every running pod of a workload. Returns the name of each pod and the output there.
///
/// # Errors
/// No pod runs, or the command fails in one.
pub fn in_pods(
    cluster: &Cluster,
    object: &ObjectRef,
    container: &str,
    command: &[String],
) -> Result<Vec<(String, String)>, KubeError> {
    let inner = &cluster.inner;
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &object.namespace);
    let doing = format!("run `{}`", command.join(" "));
    let each = running(inner, object)?.into_iter().map(|pod| {
        let name = pod.name_any();
        let printed = printed(inner, &api, (&name, container), command);
        let printed = in_time(inner, (&doing, object, &pod), printed)?;
        Ok((name, printed))
    });
    each.collect()
}

/// Runs a command in a container of a pod, and returns its output.
pub(crate) fn printed_in(
    inner: &Inner,
    (namespace, pod): (&str, &str),
    container: &str,
    command: &[String],
) -> Result<String, KubeError> {
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
    let printed = printed(inner, &api, (pod, container), command);
    inner.within(COMMAND, printed).unwrap_or_else(|| {
        Err(KubeError::Overdue {
            what: format!("run `{}` in pod {namespace}/{pod}", command.join(" ")),
            within: COMMAND,
        })
    })
}

/// Sends a request to a port of every running pod of a workload; the port may listen on the pod's loopback only.
/// Returns the name of each pod, and everything received until the connection was closed.
///
/// # Errors
/// No pod runs, or a port does not answer.
pub fn ask_port(
    cluster: &Cluster,
    object: &ObjectRef,
    port: u16,
    request: &str,
) -> Result<Vec<(String, Vec<u8>)>, KubeError> {
    let inner = &cluster.inner;
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &object.namespace);
    let doing = format!("ask port {port}");
    let each = running(inner, object)?.into_iter().map(|pod| {
        let name = pod.name_any();
        let answer = answered(inner, &api, (&name, port), request);
        let answer = in_time(inner, (&doing, object, &pod), answer)?;
        Ok((name, answer))
    });
    each.collect()
}

/// Runs a future that concerns a pod of a workload, with a time limit. If the pod's node is lost, that becomes the
/// error.
fn in_time<T>(
    inner: &Inner,
    (doing, object, pod): (&str, &ObjectRef, &v1::Pod),
    what: impl Future<Output = Result<T, KubeError>>,
) -> Result<T, KubeError> {
    let done = inner.within(COMMAND, what).unwrap_or_else(|| {
        Err(KubeError::Overdue {
            what: format!("{doing} in pod {}/{}", object.namespace, pod.name_any()),
            within: COMMAND,
        })
    });
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    done.map_err(|error| match node {
        Some(node) => health::explained(inner, node, error),
        None => error,
    })
}

/// Sends a request to a port of a pod, through the API server's port-forward, and returns the answer.
async fn answered(
    inner: &Inner,
    api: &Api<v1::Pod>,
    (pod, port): (&str, u16),
    request: &str,
) -> Result<Vec<u8>, KubeError> {
    let doing = format!("ask port {port} of pod `{pod}`");
    let forward = api.portforward(pod, &[port]).await;
    let mut forward = forward.map_err(|error| inner.failed(&doing, error))?;
    let said = forward.take_error(port);
    let mut answer = Vec::new();
    if let Some(mut stream) = forward.take_stream(port) {
        stream.write_all(request.as_bytes()).await?;
        stream.take(MOST_PRINTED).read_to_end(&mut answer).await?;
    }
    if answer.is_empty() {
        let why = match said {
            Some(said) => said.await,
            None => None,
        };
        let why = why.unwrap_or_else(|| "it was closed without a word".to_owned());
        return Err(KubeError::Request { doing: format!("cannot {doing}"), why });
    }
    Ok(answer)
}

/// Runs a command in a container of a pod and returns its output; asynchronous, and without a time limit.
pub(crate) async fn printed(
    inner: &Inner,
    api: &Api<v1::Pod>,
    (pod, container): (&str, &str),
    command: &[String],
) -> Result<String, KubeError> {
    let doing = format!("run `{}` in pod `{pod}`", command.join(" "));
    let params = AttachParams { container: Some(container.to_owned()), ..AttachParams::default() };
    let process = api.exec(pod, command.iter().map(String::as_str), &params).await;
    let mut process = process.map_err(|error| inner.failed(&doing, error))?;
    let (mut text, mut said) = (Vec::new(), Vec::new());
    let status = process.take_status();
    if let (Some(stdout), Some(stderr)) = (process.stdout(), process.stderr()) {
        let (mut out, mut err) = (stdout.take(MOST_PRINTED), stderr.take(MOST_PRINTED));
        let both = tokio::join!(out.read_to_end(&mut text), err.read_to_end(&mut said));
        both.0.and(both.1)?;
    }
    let status = match status {
        Some(status) => status.await,
        None => None,
    };
    has_ended_well(status, &said)
        .map_err(|why| KubeError::Request { doing: format!("cannot {doing}"), why })?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Checks the API server's status at the end of a command. An error is the reason, with the command's standard error
/// `said`. No status means that the stream was cut, so the output may be incomplete.
fn has_ended_well(status: Option<Status>, said: &[u8]) -> Result<(), String> {
    let message = match status {
        Some(status) if status.status.as_deref() == Some("Success") => return Ok(()),
        Some(status) => status.message.unwrap_or_default(),
        None => "the stream ended before the command did".to_owned(),
    };
    let said = String::from_utf8_lossy(said);
    Err(format!("{message}\n{}", said.trim()).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_printed_counts_where_its_end_is_told() {
        let status = |word: &str| Status {
            status: Some(word.to_owned()),
            message: Some("exit code 2".to_owned()),
            ..Status::default()
        };
        let ended = |status| has_ended_well(status, b"no file\n");
        assert_eq!(ended(Some(status("Success"))), Ok(()));
        let failed = ended(Some(status("Failure"))).unwrap_err();
        assert_eq!(failed, "exit code 2\nno file");
        let cut = has_ended_well(None, b"").unwrap_err();
        assert_eq!(cut, "the stream ended before the command did");
    }
}
