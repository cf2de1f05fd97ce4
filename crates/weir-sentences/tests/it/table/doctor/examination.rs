//! The load, the verdict and the room that settings leave.

use weir_doctor::{Examination, Facts, LoadDemand, NodeTable, Reading, Room, SysctlLine, examine};
use weir_sentences::doctor::{demand, reading, room, verdict};

use crate::table::Row;

const LOAD: LoadDemand =
    LoadDemand { connections: Some(1000), rate: Some(20_000.0), connections_per_second: Some(0.5) };

fn examine_files(most: &str, asked: LoadDemand) -> Examination {
    let facts = Facts {
        asked,
        sysctls: [("fs.file-max".to_owned(), most.to_owned())].into(),
        open_files: Some(1312),
        ..Facts::default()
    };
    examine(&facts)
}

/// Facts that give a warning and a note.
fn examine_advice() -> Examination {
    let keys = ["net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_tw_reuse"];
    let lines = keys.map(|key| SysctlLine {
        file: "/etc/sysctl.d/50-tuning.conf".to_owned(),
        line: 1,
        key: key.to_owned(),
        value: "1".to_owned(),
        applied: true,
        exists: true,
    });
    examine(&Facts { asked: LOAD, sysctl_lines: lines.into(), ..Facts::default() })
}

fn clients(is_capped: bool) -> Room {
    let (workers, connections, connections_per_client) = (2, 768, 2);
    Room::Clients { amount: 768, workers, connections, is_capped, connections_per_client }
}

pub(in crate::table) fn rows() -> Vec<Row> {
    let table =
        NodeTable { node: "n1".to_owned(), cpus: 8.0, for_each_cpu: 32_768, at_least: 131_072 };
    vec![
        ("A load", demand(LOAD)),
        ("No load", demand(LoadDemand::default())),
        ("A load that is too much", verdict(&examine_files("1000", LOAD))),
        ("A load that is carried", verdict(&examine_files("100000", LOAD))),
        ("Advice that does nothing", verdict(&examine_advice())),
        ("Nothing to judge by", verdict(&examine(&Facts::default()))),
        ("Room for clients", room(&clients(false))),
        ("Room for clients, by descriptors", room(&clients(true))),
        (
            "Room for connections to origin servers",
            room(&Room::OriginConnections { amount: 470, ports: 28_232, origins: 1, held_s: 60.0 }),
        ),
        ("Room in a cluster", room(&Room::TrackedConnections { amount: 262_144, table })),
    ]
}

pub(in crate::table) fn readings() -> Vec<Row> {
    let [file, program, version] =
        ["/etc/nginx/nginx.conf", "/usr/sbin/nginx", "nginx/1.29.7"].map(str::to_owned);
    let readings = [
        ("Processes", Reading::Processes { master: 100, workers: 2 }),
        ("A configuration", Reading::Configuration { file, files: 3 }),
        ("A version", Reading::Version { program, version }),
        ("A network namespace", Reading::Network),
        ("Sysctls", Reading::Sysctls { count: 13 }),
        ("Counters", Reading::Counters),
        ("Listeners", Reading::Listeners),
        ("Control groups", Reading::ControlGroups),
        ("Sysctl files", Reading::SysctlFiles { assignments: 11 }),
        ("limits.conf", Reading::LimitsConf),
        ("A unit", Reading::Unit { name: "nginx.service".to_owned() }),
        (
            "Pods",
            Reading::Pods { namespace: "ingress".to_owned(), context: "lab".to_owned(), pods: 2 },
        ),
        ("Nodes", Reading::Nodes { names: ["n1", "n2"].map(str::to_owned).to_vec() }),
    ];
    readings.into_iter().map(|(case, one)| (case, reading(&one))).collect()
}
