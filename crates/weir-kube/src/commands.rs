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
pub const COMMAND: Duration = Duration::from_secs(20);
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
    running(inner, object)?
        .into_iter()
        .map(|pod| {
            let name = pod.name_any();
            let run = run_command(inner, &api, (&name, container), command);
            let output = in_time(inner, (&doing, object, &pod), run)?;
            Ok((name, output))
        })
        .collect()
}

/// Runs a command in a container of a pod, and returns its output.
pub fn run_command_in(
    inner: &Inner,
    (namespace, pod): (&str, &str),
    container: &str,
    command: &[String],
) -> Result<String, KubeError> {
    let api: Api<v1::Pod> = Api::namespaced(inner.client.clone(), namespace);
    let run = run_command(inner, &api, (pod, container), command);
    inner.within(COMMAND, run).unwrap_or_else(|| {
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
    running(inner, object)?
        .into_iter()
        .map(|pod| {
            let name = pod.name_any();
            let exchange = send_request(inner, &api, (&name, port), request);
            let answer = in_time(inner, (&doing, object, &pod), exchange)?;
            Ok((name, answer))
        })
        .collect()
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
async fn send_request(
    inner: &Inner,
    api: &Api<v1::Pod>,
    (pod, port): (&str, u16),
    request: &str,
) -> Result<Vec<u8>, KubeError> {
    let doing = format!("ask port {port} of pod `{pod}`");
    let mut forward =
        api.portforward(pod, &[port]).await.map_err(|error| inner.failed(&doing, error))?;
    let port_error = forward.take_error(port);
    let mut answer = Vec::new();
    if let Some(mut stream) = forward.take_stream(port) {
        stream.write_all(request.as_bytes()).await?;
        stream.take(MOST_PRINTED).read_to_end(&mut answer).await?;
    }
    if answer.is_empty() {
        let message = match port_error {
            Some(message) => message.await,
            None => None,
        };
        let why = message.unwrap_or_else(|| "it was closed without a word".to_owned());
        return Err(KubeError::Request { doing: format!("cannot {doing}"), why });
    }
    Ok(answer)
}

/// Runs a command in a container of a pod and returns its output; asynchronous, and without a time limit.
pub(crate) async fn run_command(
    inner: &Inner,
    api: &Api<v1::Pod>,
    (pod, container): (&str, &str),
    command: &[String],
) -> Result<String, KubeError> {
    let doing = format!("run `{}` in pod `{pod}`", command.join(" "));
    let params = AttachParams { container: Some(container.to_owned()), ..AttachParams::default() };
    let mut process = api
        .exec(pod, command.iter().map(String::as_str), &params)
        .await
        .map_err(|error| inner.failed(&doing, error))?;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let status = process.take_status();
    if let (Some(stdout), Some(stderr)) = (process.stdout(), process.stderr()) {
        let (mut out, mut err) = (stdout.take(MOST_PRINTED), stderr.take(MOST_PRINTED));
        let both = tokio::join!(out.read_to_end(&mut output), err.read_to_end(&mut errors));
        both.0.and(both.1)?;
    }
    let status = match status {
        Some(status) => status.await,
        None => None,
    };
    check_end(status, &errors)
        .map_err(|why| KubeError::Request { doing: format!("cannot {doing}"), why })?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// Checks the API server's status at the end of a command. An error is the reason, with the command's standard error
/// `stderr`. No status means that the stream was cut, so the output may be incomplete.
fn check_end(status: Option<Status>, stderr: &[u8]) -> Result<(), String> {
    let message = match status {
        Some(status) if status.status.as_deref() == Some("Success") => return Ok(()),
        Some(status) => status.message.unwrap_or_default(),
        None => "the stream ended before the command did".to_owned(),
    };
    let stderr_text = String::from_utf8_lossy(stderr);
    Err(format!("{message}\n{}", stderr_text.trim()).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the end of a command that has printed an error.
    fn check_end_with(word: &str) -> Result<(), String> {
        let status = Status {
            status: Some(word.to_owned()),
            message: Some("exit code 2".to_owned()),
            ..Status::default()
        };
        check_end(Some(status), b"no file\n")
    }

    #[test]
    fn what_a_command_printed_counts_where_its_end_is_told() {
        assert_eq!(check_end_with("Success"), Ok(()));
        let failed = check_end_with("Failure").unwrap_err();
        assert_eq!(failed, "exit code 2\nno file");
        let cut = check_end(None, b"").unwrap_err();
        assert_eq!(cut, "the stream ended before the command did");
    }
}
