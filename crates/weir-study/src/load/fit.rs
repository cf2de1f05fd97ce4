//! Checks that loads fit the rest of the study.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use weir_model::bursts::Bursts;
use weir_model::limit::Limit;
use weir_model::quantity::format_duration;
use weir_model::study::BlockSpec;
use weir_model::tls::Trust;

use super::Draft;
use crate::arms;
use crate::check::Checker;
use crate::proxy;

/// Shortest slice that a pilot run chooses.
const SHORTEST_SLICE: Duration = Duration::from_millis(100);

/// Reports loads that do not fit the arms or the blocks.
pub(crate) fn check_all(
    loads: &[Draft],
    arms: &[arms::Draft],
    of_study: Option<&proxy::Draft>,
    blocks: &BlockSpec,
    check: &mut Checker,
) {
    check_fit(loads, arms, blocks, check);
    check_bursts(loads, blocks, check);
    check_external(loads, arms, of_study, check);
    check_ports(loads, arms, of_study, check);
    check_key(loads, arms, of_study, check);
}

/// Reports loads without a duration. A search for a capacity needs none, because it ends by itself.
pub(crate) fn must_last(loads: &[Draft], capacity: &[Limit], check: &mut Checker) {
    let lasting = loads.iter().filter(|load| capacity.is_empty() && !load.places.has_duration);
    for load in lasting {
        let at = load.places.duration.clone();
        check.error(at, "a load needs the key `duration`");
    }
}

/// Reports loads that are too short for the minimum number of blocks.
fn check_fit(loads: &[Draft], arms: &[arms::Draft], blocks: &BlockSpec, check: &mut Checker) {
    let slice = blocks.slice.unwrap_or(SHORTEST_SLICE);
    // Every arm has two in a block.
    let slices = blocks.at_least.saturating_mul(2 * arms.len() as u32);
    let needed = slice.saturating_mul(slices);
    let mut reported: Option<&Range<usize>> = None;
    for load in loads {
        if !load.places.has_duration || load.spec.duration >= needed {
            continue;
        }
        // The cells of a matrix have one duration.
        if reported.replace(&load.places.duration) == Some(&load.places.duration) {
            continue;
        }
        let message = format!(
            "{} is too short for {} blocks of {} arms",
            format_duration(load.spec.duration),
            blocks.at_least,
            arms.len()
        );
        let which = match blocks.slice {
            Some(_) => "slices of",
            None => "slices of at least",
        };
        let hint = format!(
            "with {which} {} they take {}",
            format_duration(slice),
            format_duration(needed)
        );
        check.error(load.places.duration.clone(), message).hint(hint);
    }
}

/// Reports loads whose slices would have different bursts, or whose bursts have more requests than connections.
fn check_bursts(loads: &[Draft], blocks: &BlockSpec, check: &mut Checker) {
    for load in loads {
        let (Some(bursts), Some(at)) = (Bursts::of(&load.spec), &load.places.burst) else {
            continue;
        };
        let (size, connections) = (bursts.size, load.spec.connections);
        if size > connections {
            let message = format!(
                "bursts of {size} requests need {size} connections, and the load has {connections}"
            );
            check.error(at.clone(), message).hint(
                "a request that finds no idle connection waits, and is then no part of the burst",
            );
            return;
        }
        let period = bursts.period();
        let every = format!(
            "{size} requests at {} requests/s come every {}",
            bursts.rate,
            format_duration(period)
        );
        let Some(slice) = blocks.slice else {
            check.error(at.clone(), "a load with bursts needs a slice").hint(format!(
                "{every}: write `blocks: {{slice: {}}}`, or twice as long",
                format_duration(period)
            ));
            return;
        };
        if bursts.in_slice(slice).is_none() {
            let message = format!("slices of {} do not hold whole bursts", format_duration(slice));
            check.error(at.clone(), message).hint(format!(
                "{every}: make `slice` a multiple of that, so that every arm gets the same number of bursts"
            ));
            return;
        }
    }
}

/// Reports keys that an external proxy excludes. Such a proxy is an address with its own content and certificate: only
/// proxies that weir starts have content of a given size, and the run's certificate, which weir trusts.
fn check_external(
    loads: &[Draft],
    arms: &[arms::Draft],
    of_study: Option<&proxy::Draft>,
    check: &mut Checker,
) {
    let Some(of_study) = of_study else { return };
    if arms.iter().all(|arm| arm.proxy(&of_study.spec).is_started()) {
        return check_trust(loads, check);
    }
    // The cells of a matrix say the same thing once.
    let sizes: BTreeSet<_> = loads.iter().filter_map(|load| place(&load.places.size)).collect();
    for (start, end) in sizes {
        let message = "weir does not choose what an external proxy answers";
        let error = check.error(start..end, message);
        error.hint("leave `size` out, or give a `path`");
    }
}

/// Reports keys on trust, if weir starts all proxies. These all present the run's own certificate, and no other is
/// requested.
fn check_trust(loads: &[Draft], check: &mut Checker) {
    let secure = loads.iter().filter(|load| {
        let mut tls = load.spec.flows().filter_map(|flow| flow.tls.as_ref());
        tls.any(|tls| tls.trust != Trust::System)
    });
    let secure: BTreeSet<_> = secure.filter_map(|load| place(&load.places.tls)).collect();
    for (start, end) in secure {
        let message = "`ca` and `insecure` are for the certificate of an external proxy";
        let error = check.error(start..end, message);
        error.hint(
            "leave them out: the proxies that weir starts show the run's own, which it trusts",
        );
    }
}

/// Reports ECDSA cipher suites, if weir writes a proxy's configuration. Such proxies present a certificate with an RSA
/// key.
fn check_key(
    loads: &[Draft],
    arms: &[arms::Draft],
    of_study: Option<&proxy::Draft>,
    check: &mut Checker,
) {
    let Some(of_study) = of_study else { return };
    let is_rsa = arms
        .iter()
        .map(|arm| arm.proxy(&of_study.spec))
        .any(|proxy| proxy.is_started() && proxy.configuration.is_none());
    if !is_rsa {
        return;
    }
    let suites: BTreeSet<_> = loads
        .iter()
        .filter_map(|load| {
            let mut tls = load.spec.flows().filter_map(|flow| flow.tls.as_ref());
            let suite = tls.find_map(|tls| tls.ciphers.iter().find(|it| it.contains("-ECDSA-")));
            Some((place(&load.places.tls)?, suite?.clone()))
        })
        .collect();
    for ((start, end), suite) in suites {
        let message = format!("`{suite}` needs an ECDSA certificate");
        let error = check.error(start..end, message);
        error.hint("the proxies' certificate is RSA: use an ECDHE-RSA suite");
    }
}

/// Reports ports, if no arm has a user's configuration. Configurations that weir writes have a single port.
fn check_ports(
    loads: &[Draft],
    arms: &[arms::Draft],
    of_study: Option<&proxy::Draft>,
    check: &mut Checker,
) {
    let Some(of_study) = of_study else { return };
    if arms.is_empty() || arms.iter().any(|arm| arm.proxy(&of_study.spec).configuration.is_some()) {
        return;
    }
    let ports: BTreeSet<_> =
        loads.iter().flat_map(|load| &load.places.ports).map(|at| (at.start, at.end)).collect();
    for (start, end) in ports {
        let message = "`port` names a listener of a `configuration`, and no arm has one";
        let error = check.error(start..end, message);
        error.hint("leave `port` out, or name the proxy's `configuration`");
    }
}

fn place(at: &Option<Range<usize>>) -> Option<(usize, usize)> {
    at.as_ref().map(|at| (at.start, at.end))
}
