//! Samples of hosts and proxies (docs/samples.md) as families: under the names of node_exporter where it has one, else
//! as `weir_TABLE_COLUMN`.
//!
//! Numbers of processes and paths of control groups are no labels, because every new process would be a new series:
//! rows that differ in them alone are added up.

use std::borrow::Cow;
use std::collections::BTreeMap;

use weir_model::sample::{Column, ColumnKind, Counters, SampleRow, Table};

use crate::families::{Family, Kind};
use crate::store::Store;

/// Tables that are not exported: single requests, and threads, whose processes are.
const NOT_EXPORTED: [&str; 2] = ["requests", "threads"];

/// Keys of tables that are no labels.
const ADDED_UP: [&str; 2] = ["pid", "path"];

/// Columns without a sum or a meaning over several processes.
const NO_FAMILY: [&str; 1] = ["started_ticks"];

/// Name and label that node_exporter has for a column.
struct NodeName {
    table: &'static str,
    column: &'static str,
    /// Name of the family, without `_total`.
    name: &'static str,
    /// Value of the label `mode`, if several columns share the family.
    mode: &'static str,
}

const fn node(
    table: &'static str,
    column: &'static str,
    name: &'static str,
    mode: &'static str,
) -> NodeName {
    NodeName { table, column, name, mode }
}

#[rustfmt::skip]
const NODE_NAMES: [NodeName; 53] = [
    node("cpus", "user_ns", "node_cpu_seconds", "user"),
    node("cpus", "system_ns", "node_cpu_seconds", "system"),
    node("cpus", "softirq_ns", "node_cpu_seconds", "softirq"),
    node("cpus", "irq_ns", "node_cpu_seconds", "irq"),
    node("cpus", "steal_ns", "node_cpu_seconds", "steal"),
    node("cpus", "idle_ns", "node_cpu_seconds", "idle"),
    node("host", "pressure_cpu_us", "node_pressure_cpu_waiting_seconds", ""),
    node("host", "pressure_memory_us", "node_pressure_memory_waiting_seconds", ""),
    node("host", "pressure_io_us", "node_pressure_io_waiting_seconds", ""),
    node("host", "files", "node_filefd_allocated", ""),
    node("host", "files_most", "node_filefd_maximum", ""),
    node("host", "mem_available_bytes", "node_memory_MemAvailable_bytes", ""),
    node("host", "context_switches", "node_context_switches", ""),
    node("host", "load_hundredths", "node_load1", ""),
    node("softnet", "processed", "node_softnet_processed", ""),
    node("softnet", "dropped", "node_softnet_dropped", ""),
    node("softnet", "squeezed", "node_softnet_times_squeezed", ""),
    node("softnet", "received_rps", "node_softnet_received_rps", ""),
    node("network", "listen_overflows", "node_netstat_TcpExt_ListenOverflows", ""),
    node("network", "listen_drops", "node_netstat_TcpExt_ListenDrops", ""),
    node("network", "req_q_full_drop", "node_netstat_TcpExt_TCPReqQFullDrop", ""),
    node("network", "req_q_full_cookies", "node_netstat_TcpExt_TCPReqQFullDoCookies", ""),
    node("network", "time_wait_overflow", "node_netstat_TcpExt_TCPTimeWaitOverflow", ""),
    node("network", "abort_on_memory", "node_netstat_TcpExt_TCPAbortOnMemory", ""),
    node("network", "abort_on_timeout", "node_netstat_TcpExt_TCPAbortOnTimeout", ""),
    node("network", "backlog_drop", "node_netstat_TcpExt_TCPBacklogDrop", ""),
    node("network", "retransmitted", "node_netstat_Tcp_RetransSegs", ""),
    node("network", "syn_retransmitted", "node_netstat_TcpExt_TCPSynRetrans", ""),
    node("network", "timeouts", "node_netstat_TcpExt_TCPTimeouts", ""),
    node("network", "out_resets", "node_netstat_Tcp_OutRsts", ""),
    node("network", "in_errors", "node_netstat_Tcp_InErrs", ""),
    node("network", "active_opens", "node_netstat_Tcp_ActiveOpens", ""),
    node("network", "passive_opens", "node_netstat_Tcp_PassiveOpens", ""),
    node("network", "attempt_fails", "node_netstat_Tcp_AttemptFails", ""),
    node("network", "established_resets", "node_netstat_Tcp_EstabResets", ""),
    node("network", "time_wait", "node_sockstat_TCP_tw", ""),
    node("network", "orphans", "node_sockstat_TCP_orphan", ""),
    node("network", "in_use", "node_sockstat_TCP_inuse", ""),
    node("network", "mem_pages", "node_sockstat_TCP_mem", ""),
    node("network", "conntrack", "node_nf_conntrack_entries", ""),
    node("network", "conntrack_most", "node_nf_conntrack_entries_limit", ""),
    node("network", "conntrack_insert_failed", "node_nf_conntrack_stat_insert_failed", ""),
    node("network", "conntrack_drop", "node_nf_conntrack_stat_drop", ""),
    node("disks", "reads", "node_disk_reads_completed", ""),
    node("disks", "writes", "node_disk_writes_completed", ""),
    node("disks", "read_bytes", "node_disk_read_bytes", ""),
    node("disks", "written_bytes", "node_disk_written_bytes", ""),
    node("disks", "io_ms", "node_disk_io_time_seconds", ""),
    node("disks", "weighted_io_ms", "node_disk_io_time_weighted_seconds", ""),
    node("processes", "resident_bytes", "weir_process_resident_memory_bytes", ""),
    node("processes", "descriptors", "weir_process_open_fds", ""),
    node("processes", "descriptors_most", "weir_process_max_fds", ""),
    node("processes", "written_bytes", "weir_process_written_bytes", ""),
];

/// Units of columns: suffix of the column, suffix of the family, and what one of it is in the family's unit.
const UNITS: [(&str, &str, f64); 4] = [
    ("_ns", "_seconds", 1e-9),
    ("_us", "_seconds", 1e-6),
    ("_ms", "_seconds", 1e-3),
    ("_hundredths", "", 0.01),
];

/// Name and unit with which a column is exported.
struct Exported {
    name: Cow<'static, str>,
    mode: &'static str,
    /// Factor from the column's unit to the family's.
    factor: f64,
}

/// Returns how a column is exported; `None` if it is not.
fn exported(table: &Table, column: &Column) -> Option<Exported> {
    let is_left_out = column.kind == ColumnKind::Key
        || NOT_EXPORTED.contains(&&*table.name)
        || NO_FAMILY.contains(&&*column.name);
    if is_left_out {
        return None;
    }
    let unit = UNITS.iter().find(|(suffix, ..)| column.name.ends_with(suffix));
    let factor = unit.map_or(1.0, |(.., factor)| *factor);
    let node_name =
        NODE_NAMES.iter().find(|node| node.table == table.name && node.column == column.name);
    if let Some(node) = node_name {
        return Some(Exported { name: node.name.into(), mode: node.mode, factor });
    }
    let (suffix, family_suffix) = unit.map_or(("", ""), |(suffix, family, _)| (*suffix, *family));
    let stem = column.name.strip_suffix(suffix).unwrap_or(&column.name);
    // A suffix that only counters may have.
    let name = stem.strip_suffix("_total").unwrap_or(stem);
    Some(Exported {
        name: format!("weir_{}_{name}{family_suffix}", table.name).into(),
        mode: "",
        factor,
    })
}

fn kind(name: &str, column: ColumnKind) -> Kind {
    let has_no_kind = ["node_netstat_", "node_nf_conntrack_stat_"];
    match column {
        _ if has_no_kind.iter().any(|prefix| name.starts_with(prefix)) => Kind::Unknown,
        ColumnKind::Counter => Kind::Counter,
        ColumnKind::Gauge | ColumnKind::Key => Kind::Gauge,
    }
}

/// Counters and gauges of proxies, whose names are values of a label.
const PROXY_FAMILIES: [(&str, ColumnKind, &str); 2] = [
    ("weir_proxy_counter", ColumnKind::Counter, "counters of proxies, by their own names"),
    ("weir_proxy_gauge", ColumnKind::Gauge, "gauges of proxies, by their own names"),
];

/// Returns the families of all tables.
pub(crate) fn families() -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for table in Counters::builtin().tables.iter().filter(|table| table.name != "proxy") {
        let mut labels = vec!["host", "arm"];
        labels.extend(table.keys().filter(|key| !ADDED_UP.contains(key)));
        for column in &table.columns {
            let Some(exported) = exported(table, column) else { continue };
            if families.iter().any(|family| family.name == exported.name) {
                continue;
            }
            let mode = if exported.mode.is_empty() { "" } else { ", mode" };
            let help = if mode.is_empty() { &*column.means } else { "CPU time" };
            families.push(Family {
                kind: kind(&exported.name, column.kind),
                name: exported.name,
                labels: format!("{}{mode}", labels.join(", ")).into(),
                help: help.to_owned().into(),
            });
        }
    }
    families.extend(PROXY_FAMILIES.map(|(name, column, help)| Family {
        name: name.into(),
        kind: kind(name, column),
        labels: "host, arm, counter".into(),
        help: help.into(),
    }));
    families
}

/// A series of a family, by name and labels.
type Key = (Cow<'static, str>, Vec<(&'static str, String)>);

/// Puts the rows that a host sent into the store.
pub fn put(store: &mut Store, host: &str, rows: &[SampleRow]) {
    // Of each moment, rows that share a series are added up; of several moments, the last one counts.
    let mut values: BTreeMap<Key, (u64, f64)> = BTreeMap::new();
    for row in rows {
        let Some(table) = Counters::builtin().table(&row.table) else { continue };
        for (key, value) in series_of(table, host, row) {
            let entry = values.entry(key).or_insert((row.at_ns, 0.0));
            if entry.0 != row.at_ns {
                *entry = (row.at_ns, 0.0);
            }
            entry.1 += value;
        }
    }
    for ((name, labels), (_, value)) in &values {
        let labels: Vec<(&'static str, &str)> =
            labels.iter().map(|(name, value)| (*name, &**value)).collect();
        store.set(name, &labels, *value);
    }
}

fn series_of(table: &'static Table, host: &str, row: &SampleRow) -> Vec<(Key, f64)> {
    let mut labels = vec![("host", host.to_owned()), ("arm", row.arm.clone())];
    let keys = table.keys().zip(&row.keys).filter(|(key, _)| !ADDED_UP.contains(key));
    labels.extend(keys.map(|(key, value)| (key, value.clone())));
    if table.name == "proxy" {
        let name = row.keys.first().map_or("", |name| &**name);
        let Some(value) = row.values.first().copied().flatten() else { return Vec::new() };
        let counters = &Counters::builtin().proxy_counters;
        let counter = counters.iter().find(|counter| counter.name == name);
        let is_gauge = counter.is_none_or(|counter| counter.kind == ColumnKind::Gauge);
        let family = PROXY_FAMILIES[usize::from(is_gauge)].0;
        return vec![((family.into(), labels), value as f64)];
    }
    let columns = table.columns.iter().filter(|column| column.kind != ColumnKind::Key);
    columns
        .zip(&row.values)
        .filter_map(|(column, value)| {
            let export = exported(table, column)?;
            let mut all_labels = labels.clone();
            if !export.mode.is_empty() {
                all_labels.push(("mode", export.mode.to_owned()));
            }
            Some(((export.name, all_labels), (*value)? as f64 * export.factor))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store::Value;

    #[test]
    fn every_name_of_node_exporter_belongs_to_a_column() {
        for node in &NODE_NAMES {
            let table = Counters::builtin().table(node.table).unwrap();
            assert!(table.columns.iter().any(|column| column.name == node.column), "{}", node.name);
        }
        let names: Vec<_> = families().into_iter().map(|family| family.name).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(names.len(), distinct.len());
        let mut characters = names.iter().flat_map(|name| name.chars());
        assert!(characters.all(|c| c.is_ascii_alphanumeric() || c == '_'), "{names:?}");
    }

    #[test]
    fn processes_of_an_arm_are_one_series_however_often_they_are_started() {
        let mut store = Store::new();
        let table = Counters::builtin().table("processes").unwrap();
        let row = |pid: u32, at_ns| SampleRow {
            table: "processes".to_owned(),
            at_ns,
            arm: "a".to_owned(),
            keys: vec!["proxy".to_owned(), pid.to_string(), "nginx".to_owned()],
            values: table.values().map(|_| Some(2_000_000_000)).collect(),
        };
        for start in 0..100 {
            put(&mut store, "here", &[row(2 * start, 1), row(2 * start, 5), row(2 * start + 1, 5)]);
        }
        let series: Vec<_> = store
            .read()
            .filter(|(family, _)| family.name == "weir_processes_user_seconds")
            .flat_map(|(_, series)| series.map(|(_, value)| value.clone()).collect::<Vec<_>>())
            .collect();
        assert_eq!(series, [Value::Number(4.0)]);
    }
}
