//! Settings that the pods of a workload were created with.

use weir_kube::{Cluster, KubeError, ObjectRef};
use weir_parameters::{GroupLimit, InWorkload, Parameter};

/// JSON pointer to the pods' template in a workload.
const TEMPLATE: &str = "/spec/template";
/// Memory limit in bytes from which on there is no limit: cgroup v1 shows a number for that.
const UNLIMITED: u64 = 1 << 62;

/// Returns the files that have a limit of a container's cgroup, in version 2 and in version 1 (cgroups(7)).
fn files(limit: GroupLimit) -> [&'static [&'static str]; 2] {
    match limit {
        GroupLimit::Cpu => [
            &["/sys/fs/cgroup/cpu.max"],
            &["/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"],
        ],
        GroupLimit::Memory => {
            [&["/sys/fs/cgroup/memory.max"], &["/sys/fs/cgroup/memory/memory.limit_in_bytes"]]
        }
    }
}

/// Reads the level of a parameter in every running pod of a workload, by the pod's name.
pub(super) fn levels(
    cluster: &Cluster,
    workload: &ObjectRef,
    container: &str,
    (row, place): (&Parameter, &InWorkload),
) -> Result<Vec<(String, String)>, KubeError> {
    let at = place.at_of(container);
    let in_pod = at.strip_prefix(TEMPLATE);
    let path = format!("{}{}", in_pod.unwrap_or("/spec"), place.told_by);
    let values = weir_objects::of_pods(cluster, workload, &path)?;
    let count = values.len().to_string();
    let levels = values.into_iter().map(|(pod, value)| {
        let level = match (in_pod, value) {
            (None, _) => count.clone(),
            (Some(_), Some(value)) => place.level_of(row, &value),
            (Some(_), None) => place.absent.clone(),
        };
        (pod, level)
    });
    let Some(limit) = place.group else {
        return Ok(levels.collect());
    };
    // A container in which neither can be read is believed what it was made with.
    let texts = files(limit)
        .into_iter()
        .find_map(|files| {
            let words: Vec<String> = ["cat"].iter().chain(files).map(ToString::to_string).collect();
            weir_kube::in_pods(cluster, workload, container, &words).ok()
        })
        .unwrap_or_default();
    Ok(levels
        .map(|(pod, level)| {
            let text = texts.iter().find(|(name, _)| *name == pod);
            let actual =
                text.and_then(|(_, text)| limit_of(limit, text)).map(|limit| match limit {
                    Some(text) => row.check(&text).unwrap_or(text),
                    None => place.absent.clone(),
                });
            (pod, actual.unwrap_or(level))
        })
        .collect())
}

/// Parses a limit from the text of cgroup files, in the notation of Kubernetes. `None` if that fails; `Some(None)` if
/// there is no limit.
fn limit_of(limit: GroupLimit, text: &str) -> Option<Option<String>> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    if first == "max" || first == "-1" {
        return Some(None);
    }
    let first: u64 = first.parse().ok()?;
    match limit {
        GroupLimit::Memory => Some((first < UNLIMITED).then(|| first.to_string())),
        GroupLimit::Cpu => {
            let period: u64 = words.next()?.parse().ok().filter(|period| *period > 0)?;
            Some(Some(format!("{}m", first * 1000 / period)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_in_both_versions_of_control_groups() {
        use GroupLimit::{Cpu, Memory};
        for (limit, text, level) in [
            (Cpu, "50000 100000\n", Some(Some("500m"))),
            (Cpu, "max 100000\n", Some(None)),
            (Cpu, "-1\n100000\n", Some(None)),
            (Cpu, "200000\n100000\n", Some(Some("2000m"))),
            (Cpu, "50000", None),
            (Cpu, "", None),
            (Memory, "max\n", Some(None)),
            (Memory, "9223372036854771712\n", Some(None)),
            (Memory, "536870912\n", Some(Some("536870912"))),
        ] {
            let expected = level.map(|limit| limit.map(str::to_owned));
            assert_eq!(limit_of(limit, text), expected, "{text}");
        }
    }
}
