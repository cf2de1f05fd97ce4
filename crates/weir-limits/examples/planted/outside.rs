//! A trial as observed from outside: the figures of the generator and the lab, without any counter of a host.

use std::collections::BTreeMap;

use weir_limits::{Figure, Trial};
use weir_model::study::ProxyKind::{Caddy, Httpd};

use crate::host::{Dice, Flow, Host};
use crate::samples::SECONDS;

/// Returns the figures that the generator and the lab would know.
pub(crate) fn build_trial(host: &Host, flow: &Flow, dice: &mut Dice) -> Trial {
    let requests = (flow.offered * SECONDS as f64).round();
    let errors = [
        ("unexpected", flow.no_port + flow.limited),
        ("closed_unanswered", flow.refused),
        ("timeout", 0.0),
        ("connect", 0.0),
    ];
    let errors = errors
        .map(|(kind, rate): (&str, f64)| (kind.to_owned(), (rate * SECONDS as f64) as u64))
        .into();
    Trial {
        figures: draw_figures(host, flow, dice),
        response_times: times(flow, requests, dice),
        errors: Some(errors),
        requests: requests as u64,
        settings: settings(host),
    }
}

/// Figures of the generator and the lab; some are randomly left out.
fn draw_figures(host: &Host, flow: &Flow, dice: &mut Dice) -> BTreeMap<Figure, f64> {
    let is_short =
        flow.completed < 0.985 * flow.offered || flow.response > 0.1 || flow.lost_syns > 1e-3;
    let is_failing = is_short || host.memory_aborts > 0.0 || host.loss > 0.0;
    let figures = [
        (Figure::RateIntended, flow.offered, 1.0),
        (
            Figure::RateOffered,
            flow.offered.min(host.generator_threads * (1.0 - host.hog) / host.generator_cpu),
            1.0,
        ),
        (Figure::RateCompleted, flow.completed, 1.0),
        (Figure::Saturated, f64::from(u8::from(is_failing)), 0.9),
        (Figure::Closed, 0.0, 1.0),
        (Figure::ServiceTimeS, flow.response, 1.0),
        (Figure::DispatchLagS, flow.lag, 0.8),
        (Figure::OriginTimeS, flow.origin_time, 0.6),
        (Figure::BytesPerS, flow.completed * host.bytes, 1.0),
        (Figure::NetworkBytesPerS, host.link * dice.between(0.97, 1.03), 1.0),
        (Figure::OpenedPerRequest, host.opened_by_load, 1.0),
        (Figure::OpenedAgainPerRequest, flow.opens_in / flow.completed.max(1.0), 0.95),
        (Figure::FullHandshakesPerS, flow.completed * host.tls_full, 1.0),
        (Figure::AsksCompressed, f64::from(u8::from(host.gzip > 0.0 || host.asks_compressed)), 1.0),
        (Figure::OthersCpu, host.crowd + dice.between(0.0, 0.02), 0.97),
        (Figure::Workers, host.workers, if host.proxy == Httpd { 0.0 } else { 0.7 }),
    ]
    .into_iter()
    .filter(|(_, _, share)| dice.chance(*share));
    let link = (Figure::CrossesLink, 1.0);
    figures.map(|(figure, value, _)| (figure, value)).chain([link]).collect()
}

/// Response times; a lost SYN is sent again.
fn times(flow: &Flow, requests: f64, dice: &mut Dice) -> Vec<(u64, u64)> {
    let mut times: BTreeMap<u64, u64> = BTreeMap::new();
    for place in 0..400 {
        let time = -flow.response * (1.0 - (f64::from(place) + 0.5) / 400.0).ln();
        *times.entry((time * 1e9) as u64).or_default() += (requests / 400.0) as u64;
        // Sent again after 1 s, and after 2 and 4 s more where it is lost again.
        for (after, again) in [(1.0, 0), (3.0, 1), (7.0, 2)] {
            let lost = requests / 400.0 * flow.lost_syns.powi(again + 1);
            *times.entry(((time + after) * 1e9) as u64).or_default() += dice.count(lost) as u64;
        }
    }
    times.into_iter().collect()
}

fn settings(host: &Host) -> BTreeMap<String, String> {
    let (on, off) = ("on".to_owned(), "off".to_owned());
    let mut settings = BTreeMap::from([
        ("gzip".to_owned(), if host.gzip > 0.0 { on.clone() } else { off.clone() }),
        ("gzip_comp_level".to_owned(), host.gzip_level.to_string()),
        ("access_log".to_owned(), if host.log { on } else { off }),
    ]);
    if host.proxy == Caddy {
        let most = if host.slots.is_finite() { host.slots } else { 0.0 };
        settings.insert("origin_max_connections".to_owned(), most.to_string());
    }
    settings
}
