//! Tests of kernel settings: which namespace they belong to, and why a value is refused.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use weir_host::Network;
use weir_host::sysctl::{SysctlError, read, write};

use crate::support::{again_or_skip, inside, networks_or_skip, unshared};

/// Settings that a network namespace has of its own, those of study A among them, each with a value that is not a
/// default.
const OF_A_NAMESPACE: [(&str, &str); 9] = [
    ("net.core.somaxconn", "77"),
    ("net.ipv4.ip_local_port_range", "20001 30003"),
    ("net.ipv4.tcp_max_syn_backlog", "78"),
    ("net.ipv4.tcp_tw_reuse", "0"),
    ("net.ipv4.tcp_fin_timeout", "13"),
    ("net.ipv4.tcp_rmem", "4097 131071 6291455"),
    ("net.ipv4.tcp_wmem", "4097 16383 4194303"),
    ("net.ipv4.tcp_syncookies", "2"),
    ("net.ipv4.ip_local_reserved_ports", "8081,9000-9009"),
];

#[test]
fn a_namespace_has_settings_of_its_own() {
    if !networks_or_skip() {
        return;
    }
    let (a, b) = (Network::create().unwrap(), Network::create().unwrap());
    for (name, value) in OF_A_NAMESPACE {
        let host = read(name).unwrap();
        let untouched = b.within(|| read(name).unwrap()).unwrap();
        let written = a.within(|| {
            write(name, value).unwrap();
            read(name).unwrap()
        });
        assert_eq!(written.unwrap(), value);
        assert_eq!(read(name).unwrap(), host, "the host keeps its own");
        assert_eq!(b.within(|| read(name).unwrap()).unwrap(), untouched);
    }
}

#[test]
fn blanks_tabs_and_spellings_are_no_difference() {
    inside(|| {
        #[rustfmt::skip]
        let rows = [
            ("net/ipv4/ip_local_port_range", " 20002\t 30004\n", "net.ipv4.ip_local_port_range",
             "20002 30004"),
            ("net.ipv4.ip_local_reserved_ports", "9,8,7,1", "net.ipv4.ip_local_reserved_ports",
             "1,7-9"),
            ("net.ipv4.ip_local_reserved_ports", "", "net.ipv4.ip_local_reserved_ports", ""),
            ("net.ipv4.conf.lo.rp_filter", "2", "net/ipv4/conf/lo/rp_filter", "2"),
        ];
        for (name, value, other_name, expected) in rows {
            write(name, value).unwrap();
            assert_eq!(read(other_name).unwrap(), expected);
        }
    });
}

#[test]
fn a_value_that_is_not_taken_changes_nothing() {
    inside(|| {
        for (name, value) in [
            ("net.core.somaxconn", "-1"),
            ("net.core.somaxconn", "99999999999999999999"),
            ("net.core.somaxconn", "many"),
            ("net.core.somaxconn", ""),
            ("net.ipv4.tcp_tw_reuse", "3"),
            ("net.ipv4.tcp_congestion_control", "nosuch"),
            ("net.ipv4.ip_local_port_range", "60000 1000"),
            ("net.ipv4.ip_local_reserved_ports", "70000"),
            // The kernel has stored the first number when it comes to the second.
            ("net.ipv4.tcp_rmem", "5000 x"),
        ] {
            let before = read(name).unwrap();
            let Err(error) = write(name, value) else {
                panic!("{name} took {value}");
            };
            match &error {
                SysctlError::Invalid { now, .. } => assert_eq!(*now, before, "{error}"),
                error => panic!("{name} = {value}: {error}"),
            }
            let text = error.to_string();
            assert!(text.contains(name), "{text}");
            assert!(error.hint().is_some(), "{text}");
            assert_eq!(read(name).unwrap(), before, "{name} = {value}");
        }
    });
}

#[test]
fn a_value_that_the_kernel_changes_is_told_and_undone() {
    inside(|| {
        for (name, wanted, prefix) in [
            // The kernel takes one number and says nothing of the rest.
            ("net.core.somaxconn", "79 80", "79"),
            ("net.core.somaxconn", "0x50", "80"),
            ("net.ipv4.tcp_rmem", "4098", "4098 "),
        ] {
            let before = read(name).unwrap();
            match write(name, wanted).unwrap_err() {
                SysctlError::NotTaken { wanted: reported, got, now, .. } => {
                    assert_eq!(reported, wanted);
                    assert!(got.starts_with(prefix), "{got}");
                    assert_eq!(now, before);
                }
                error => panic!("{name} = {wanted}: {error}"),
            }
            assert_eq!(read(name).unwrap(), before);
        }
    });
}

#[test]
fn what_is_not_to_be_changed_says_why() {
    assert!(is_absent(read("net.core.nosuch").unwrap_err()));
    assert!(is_absent(write("kernel.nosuch", "1").unwrap_err()));
    assert!(is_bad_name(read("net.core").unwrap_err()));
    assert!(is_bad_name(read("net.core.somaxconn.x").unwrap_err()));
    assert!(is_bad_name(write("../../etc/hostname", "x").unwrap_err()));
    inside(|| {
        assert!(is_absent(read("net.core.nosuch").unwrap_err()));
        // Not there, though the host has it; and there to be read alone.
        assert!(is_of_host(read("net.core.netdev_max_backlog").unwrap_err()));
        assert!(is_of_host(write("net.ipv4.tcp_mem", "1 2 3").unwrap_err()));
        let readable = "net.core.rmem_max";
        if read(readable).is_ok() {
            assert!(is_of_host(write(readable, "4096").unwrap_err()));
        }
        let error = write("net.ipv4.tcp_available_congestion_control", "reno").unwrap_err();
        assert!(matches!(error, SysctlError::ReadOnly { .. }), "{error}");
        let error = write("net.ipv4.route.flush", "1").unwrap_err();
        assert!(matches!(error, SysctlError::WriteOnly { .. }), "{error}");
    });
}

fn is_absent(error: SysctlError) -> bool {
    matches!(error, SysctlError::Absent { .. })
}

fn is_of_host(error: SysctlError) -> bool {
    matches!(error, SysctlError::NotInNamespace { .. })
}

fn is_bad_name(error: SysctlError) -> bool {
    matches!(error, SysctlError::BadName { .. })
}

#[test]
fn a_container_that_has_it_all_read_only_is_told() {
    if !networks_or_skip() {
        return;
    }
    // A mount namespace of the child's own, gone with it.
    let command = unshared(&["--mount"], "mount --bind -o ro /proc/sys /proc/sys");
    let test = "sysctls::under_a_read_only_mount";
    again_or_skip(command, test, "no mount namespace to try it in");
}

#[test]
#[ignore = "started by a_container_that_has_it_all_read_only_is_told"]
fn under_a_read_only_mount() {
    let name = "net.core.somaxconn";
    inside(|| {
        let before = read(name).unwrap();
        let error = write(name, "81").unwrap_err();
        assert!(matches!(error, SysctlError::MountedReadOnly(_)), "{error}");
        assert_eq!(read(name).unwrap(), before);
    });
}

#[test]
fn whoever_may_not_is_told() {
    let mut command = Command::new("env");
    // nobody, who owns no setting.
    command.uid(65_534).gid(65_534);
    let lacking = "nobody cannot run this program";
    again_or_skip(command, "sysctls::as_nobody", lacking);
}

#[test]
#[ignore = "started by whoever_may_not_is_told"]
fn as_nobody() {
    for name in ["net.core.somaxconn", "vm.swappiness"] {
        let before = read(name).unwrap();
        let error = write(name, "1").unwrap_err();
        assert!(matches!(error, SysctlError::Denied { .. }), "{error}");
        assert_eq!(read(name).unwrap(), before);
    }
}
