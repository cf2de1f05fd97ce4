//! Tests of the kernel's rows against the running kernel.

use std::fs;
use std::process::Command;

use weir_model::study::ProxyKind::Nginx;
use weir_parameters::{Catalog, EffectiveFrom, Kubernetes, LevelKind, Parameter, Scope};

fn file(row: &Parameter) -> String {
    match &row.effective {
        EffectiveFrom::Sysctl { name } => format!("/proc/sys/{}", name.replace('.', "/")),
        _ => "/proc/sys/".to_owned(),
    }
}

/// Compares the lines read in a namespace with the levels of the rows.
#[track_caller]
fn must_read_back<'r>(rows: impl Iterator<Item = (&'r Parameter, Option<String>)>, said: &str) {
    for ((row, level), found) in rows.zip(said.lines()) {
        assert_eq!(row.read_back(Some(found)), level, "{}: {found}", row.id);
    }
}

/// Runs a shell script in a new network namespace and returns its output. `None` if no namespace can be created.
#[allow(clippy::print_stdout, reason = "a test that is skipped says why")]
fn in_a_namespace(script: &str) -> Option<String> {
    let output = Command::new("unshare").args(["--net", "sh", "-c", script]).output().ok()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        println!("skipped: no network namespace can be made here: {stderr}");
        return None;
    }
    String::from_utf8(output.stdout).ok()
}

#[test]
fn every_parameter_of_the_published_studies_has_a_row() {
    let catalog = Catalog::builtin();
    let all = "fs.file-max fs.nr_open rlimit_nofile net.core.somaxconn net.core.netdev_max_backlog \
                   net.core.rmem_max net.core.wmem_max net.ipv4.ip_local_port_range \
                   net.ipv4.tcp_max_syn_backlog net.ipv4.tcp_tw_reuse net.ipv4.tcp_fin_timeout \
                   net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_mem net.netfilter.nf_conntrack_max";
    for id in all.split(' ') {
        assert!(catalog.get(Nginx, id).is_some(), "{id} is missing");
    }
}

/// Namespaced rows exist in a new namespace and can be written. Rows of the host do not exist there, or cannot be
/// written.
#[test]
fn a_new_namespace_owns_what_rows_say_it_owns() {
    let catalog = Catalog::builtin();
    let kernel: Vec<_> = catalog.host_parameters().filter(|row| row.scope.is_kernel()).collect();
    let mut script = String::new();
    for row in &kernel {
        // Only what has been seen to be the namespace's own is opened for writing.
        let (id, file) = (&row.id, file(row));
        script += &format!(
            "if [ ! -e {file} ]; then echo '{id} absent'; \
             elif [ -w {file} ]; then echo '{id} own'; else echo '{id} shown'; fi\n"
        );
    }
    let Some(said) = in_a_namespace(&script) else {
        return;
    };
    assert_eq!(said.lines().count(), kernel.len());
    for (row, line) in kernel.iter().zip(said.lines()) {
        let (id, found) = line.split_once(' ').expect("an id and a word");
        assert_eq!(id, row.id);
        let optional = row.needs.is_some() || fs::metadata(file(row)).is_err();
        match row.scope {
            // Outside of `net.` nothing belongs to a namespace: the file is the host's.
            Scope::KernelHost if !row.id.starts_with("net.") => {}
            Scope::KernelHost => assert_ne!(found, "own", "{id}"),
            _ if optional && found == "absent" => {}
            _ => assert_eq!(found, "own", "{id}"),
        }
    }
}

/// The kernel accepts the smallest, largest and default level of every namespaced row, and returns them as they were
/// written.
#[test]
fn the_kernel_takes_what_rows_allow() {
    let catalog = Catalog::builtin();
    let tried: Vec<(&Parameter, String)> = catalog
        .host_parameters()
        .filter(|row| row.scope == Scope::KernelNetns)
        .filter(|row| {
            fs::metadata(file(row)).is_ok() && row.id != "net.ipv4.tcp_congestion_control"
        })
        .flat_map(|row| ends(row).into_iter().map(move |level| (row, level)))
        .collect();
    let mut script = String::from("echo 500 > /proc/sys/net/ipv4/ip_unprivileged_port_start\n");
    for (row, level) in &tried {
        let path = file(row);
        script += &format!("printf '%s' '{level}' > {path} || echo refused; cat {path}\n");
        if row.id == "net.ipv4.ip_unprivileged_port_start" {
            script += &format!("echo 500 > {path}\n");
        }
    }
    let Some(said) = in_a_namespace(&script) else {
        return;
    };
    assert_eq!(said.lines().count(), tried.len(), "{said}");
    must_read_back(tried.into_iter().map(|(row, level)| (row, Some(level))), &said);
}

fn ends(row: &Parameter) -> Vec<String> {
    let mut levels = match &row.level {
        // Ports that need privilege must not reach into the range of local ports.
        LevelKind::Integer { min, .. } if row.id.ends_with("ip_unprivileged_port_start") => {
            vec![min.to_string(), "1024".to_owned()]
        }
        LevelKind::Integer { min, max, .. } => vec![min.to_string(), max.to_string()],
        LevelKind::Integers { .. } if row.id.ends_with("port_range") => {
            vec!["1024 65535".to_owned(), "500 500".to_owned()]
        }
        LevelKind::Integers { names, min, max } => {
            [min, max].map(|number| vec![number.to_string(); names.len()].join(" ")).to_vec()
        }
        LevelKind::Ports => vec!["1,9000-9010,65535".to_owned()],
        _ => Vec::new(),
    };
    let defaults = row.default.all().iter();
    levels.extend(defaults.filter_map(|default| default.level.clone()));
    levels
}

/// A new namespace starts with the defaults of the running kernel's version, unless it takes them from the host.
#[test]
fn a_new_namespace_begins_with_the_defaults_of_its_kernel() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let catalog = Catalog::builtin().for_kernel(release.trim());
    let defaults = catalog.kernel_defaults();
    let rows: Vec<_> = catalog
        .host_parameters()
        .filter(|row| {
            let note = row.default.newest().note.as_deref().unwrap_or_default();
            row.scope == Scope::KernelNetns && !note.contains("host's")
        })
        .filter(|row| defaults.contains_key(&row.id))
        .filter(|row| fs::metadata(file(row)).is_ok())
        .collect();
    let script: String = rows.iter().map(|row| format!("cat {}\n", file(row))).collect();
    let Some(said) = in_a_namespace(&script) else {
        return;
    };
    assert_eq!(said.lines().count(), rows.len());
    assert!(rows.len() > 20);
    let expected = rows.iter().map(|row| (*row, defaults.get(&row.id).cloned()));
    must_read_back(expected, &said);
}

#[test]
fn kubernetes_calls_few_safe() {
    let catalog = Catalog::builtin();
    let support = |id| catalog.get(Nginx, id).and_then(Parameter::kubernetes);
    let safe = |id| matches!(support(id), Some(Kubernetes::Safe(_)));
    assert!(safe("net.ipv4.ip_local_port_range") && safe("net.ipv4.tcp_keepalive_time"));
    assert_eq!(support("net.core.somaxconn"), Some(Kubernetes::Unsafe));
    assert_eq!(support("fs.file-max"), Some(Kubernetes::None));
    assert_eq!(support("net.core.rmem_max"), Some(Kubernetes::None));
    assert_eq!((support("gzip"), support("rlimit_nofile")), (None, None));
    let all = catalog.host_parameters().filter(|row| row.safe_on_kubernetes.is_some());
    assert_eq!(all.count(), 12);
}
