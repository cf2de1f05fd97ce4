//! HAProxy's own counters.

use std::collections::BTreeMap;

use weir_sut::{Configuration, SutError, admin};

use super::runtime::{info, is_of, stat};

/// Counters of the whole process in `show info`. Its counters of connections and requests include weir's own queries;
/// those are taken from `show stat` instead.
const PROCESS: &str =
    "CumSslConns, SslCacheLookups, SslCacheMisses, DroppedLogs, PoolFailed, TotalSplicdedBytesOut";

/// Counters of frontends in `show stat` (management guide §9.1).
const FRONTEND: &str = "bin, bout, dreq, dresp, ereq, req_tot, conn_tot, dcon, dses, hrsp_1xx, hrsp_2xx, hrsp_3xx, \
     hrsp_4xx, hrsp_5xx, comp_in, comp_out, comp_rsp, wrew, eint, ssl_sess, ssl_reused_sess";

/// Counters of backends in `show stat`.
const BACKEND: &str =
    "bin, bout, stot, connect, reuse, econ, eresp, wretr, wredis, cli_abrt, srv_abrt, hrsp_5xx";

/// Momentary values: of the process, of frontends, of backends.
const NOW: [&str; 3] = [
    "Idle_pct, CurrConns, Maxconn, CurrSslConns, SslFrontendSessionReuse_pct, Run_queue",
    "scur, slim, rate, rate_lim",
    "qcur, scur, act",
];

pub(super) fn read(configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
    let [info, stat] = ["show info", "show stat"].map(|line| admin::line(configuration, line));
    Ok(select_counters(&info?, &stat?, [PROCESS, FRONTEND, BACKEND]))
}

/// Reads counters and momentary values.
pub(super) fn sampled(configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
    let [info, stat] = ["show info", "show stat"].map(|line| admin::line(configuration, line));
    Ok(sampled_of(&info?, &stat?))
}

/// Parses counters and momentary values from the answers to `show info` and `show stat`.
pub(crate) fn sampled_of(info: &str, stat: &str) -> BTreeMap<String, u64> {
    let [process, frontend, backend] = NOW;
    let names = [(PROCESS, process), (FRONTEND, frontend), (BACKEND, backend)]
        .map(|(counted, now)| format!("{counted}, {now}"));
    select_counters(info, stat, names.each_ref().map(String::as_str))
}

fn select_counters(
    text: &str,
    stat: &str,
    [process, frontend, backend]: [&str; 3],
) -> BTreeMap<String, u64> {
    let mut all: BTreeMap<String, u64> =
        process.split(", ").filter_map(|name| Some((name.to_owned(), info(text, name)?))).collect();
    add_stat(&mut all, stat, frontend, backend);
    all
}

fn add_stat(all: &mut BTreeMap<String, u64>, text: &str, frontend: &str, backend: &str) {
    let sides = [("FRONTEND", "frontend", frontend), ("BACKEND", "backend", backend)];
    for row in stat(text) {
        for (side, prefix, names) in sides {
            for name in names.split(", ").filter(|_| is_of(&row, side)) {
                if let Some(count) = row.get(name).and_then(|count| count.parse::<u64>().ok()) {
                    *all.entry(format!("{prefix}.{name}")).or_default() += count;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontends_and_backends_are_added_up_and_servers_left_out() {
        let text = "# pxname,svname,req_tot,reuse,stot,status\n\
                    a,FRONTEND,3,,9,OPEN\n\
                    b,FRONTEND,4,,9,OPEN\n\
                    o,s1,,2,5,UP\n\
                    o,BACKEND,7,2,5,UP\n";
        let mut all = BTreeMap::new();
        add_stat(&mut all, text, FRONTEND, BACKEND);
        let expected = [("backend.reuse", 2), ("backend.stot", 5), ("frontend.req_tot", 7)];
        assert_eq!(all, expected.map(|(name, n)| (name.to_owned(), n)).into());
    }
}
