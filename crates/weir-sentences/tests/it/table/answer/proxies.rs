//! The answer of studies whose arms are different proxies.

use weir_analysis::findings::Verdict::{self, Better, Equivalent, Inconclusive, Worse};
use weir_analysis::rankings;
use weir_model::study::{Compare, Metric, ProxyKind};

use super::Row;
use crate::table::example::Example;

/// Returns the answer about HAProxy against nginx with this ratio.
fn of_haproxy(metric: Metric, verdict: Verdict, ratio: f64) -> String {
    Example::of_proxies(metric, &[(ProxyKind::Haproxy, verdict, ratio)]).answer()
}

fn of_two(first: (Verdict, f64), second: (Verdict, f64)) -> String {
    let haproxy = (ProxyKind::Haproxy, first.0, first.1);
    let caddy = (ProxyKind::Caddy, second.0, second.1);
    Example::of_proxies(Metric::Rate, &[haproxy, caddy]).answer()
}

/// Returns the answer of a study that compares every pair.
fn of_pairs() -> String {
    let proxies = [(ProxyKind::Haproxy, Better, 1.31), (ProxyKind::Caddy, Worse, 0.5)];
    Example::of_proxies(Metric::Rate, &proxies).answer_with(|example| {
        example.study.compare = Compare::Pairs;
        let study = example.study.clone();
        let load = example.load();
        load.rankings = rankings(&study, &[Metric::Rate], &load.comparisons);
        load.pairs = load.comparisons.clone();
    })
}

fn of_idle_haproxy() -> String {
    let haproxy = [(ProxyKind::Haproxy, Better, 1.31)];
    let mut example = Example::of_proxies(Metric::Rate, &haproxy);
    example.load().idle = Some(super::notes::idle_load());
    example.answer()
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("Another proxy that carries more", of_haproxy(Metric::Rate, Better, 1.31)),
        ("Another proxy that answers more, with nobody busy", of_idle_haproxy()),
        ("Another proxy that passes on more bytes", of_haproxy(Metric::ReceivedBytes, Better, 1.2)),
        ("Another proxy that costs more CPU time", of_haproxy(Metric::CpuPerRequest, Worse, 1.4)),
        ("Another proxy with a shorter median", of_haproxy(Metric::ResponseP50, Better, 0.8)),
        ("Another proxy with a longer tail", of_haproxy(Metric::ResponseP99, Worse, 1.9)),
        ("Another proxy that answers nothing", of_haproxy(Metric::Rate, Worse, 0.0)),
        ("Another proxy beside one that answers nothing", of_two((Worse, 0.0), (Worse, 0.5))),
        ("Another proxy too slow to answer", of_haproxy(Metric::ResponseP99, Worse, f64::INFINITY)),
        ("Two other proxies that differ", of_two((Better, 1.31), (Worse, 0.5))),
        ("Another proxy that is equivalent", of_haproxy(Metric::Rate, Equivalent, 1.0)),
        ("Two other proxies that are equivalent", of_two((Equivalent, 1.0), (Equivalent, 1.0))),
        ("Two other proxies of which one is open", of_two((Equivalent, 1.0), (Inconclusive, 1.02))),
        ("Every pair of proxies", of_pairs()),
    ]
}
