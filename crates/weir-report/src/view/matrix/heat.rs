//! Response times by connections and rate as heat tables: one for each arm and quantile.

use weir_model::record::Validity;
use weir_model::study::Study;

use super::{Cell, axes};
use crate::view::{number, words};

/// Quantiles shown, by their place in the findings of an arm.
const QUANTILES: [(&str, usize); 4] = [("p50", 0), ("p90", 1), ("p99", 2), ("max", 4)];
/// Shades, from the shortest time to the longest.
pub(crate) const SHADES: u8 = 10;
/// The shades span at least this factor, so that noise does not look like a gradient.
const LEAST_FACTOR: f64 = 4.0;

/// One quantile of one arm by connections and rate.
#[derive(Debug, Clone)]
pub struct HeatView {
    /// `p99`.
    pub quantile: &'static str,
    /// Heads of the columns: requests per second.
    pub rates: Vec<String>,
    /// By connections, ascending.
    pub rows: Vec<HeatRow>,
}

/// All rates of one number of connections.
#[derive(Debug, Clone)]
pub struct HeatRow {
    /// Connections to each arm.
    pub connections: String,
    /// By rate, ascending.
    pub cells: Vec<HeatCell>,
}

/// One response time.
#[derive(Debug, Clone)]
pub struct HeatCell {
    /// In milliseconds; a cross where it must not be used, a dash where there is none, `?` behind what
    /// is SUSPECT.
    pub text: String,
    /// Shade, 0 for the shortest; none where there is no figure.
    pub shade: Option<u8>,
    /// Where it is and what it is, in words.
    pub title: String,
}

/// For each arm of the study, a table for each quantile. A quantile has the same shades in all arms.
pub(super) fn of_all_arms(study: &Study, cells: &[Cell<'_>]) -> Vec<Vec<HeatView>> {
    let ranges = QUANTILES.map(|(_, place)| range(cells, place));
    let arms = study.arms.iter();
    arms.map(|arm| {
        let each = QUANTILES.iter().zip(ranges);
        each.map(|((quantile, place), range)| HeatView {
            quantile,
            ..heat(cells, &arm.name, quantile, *place, range)
        })
        .collect()
    })
    .collect()
}

/// Shortest and longest usable time of all arms at a quantile.
fn range(cells: &[Cell<'_>], place: usize) -> (f64, f64) {
    let usable = cells.iter().filter(|cell| cell.usable());
    let arms = usable.flat_map(|cell| &cell.found.arms);
    let times = arms
        .filter(|arm| arm.samples > 0)
        .map(|arm| arm.response_ns[place].max(1) as f64);
    let (low, high) = times.fold((f64::INFINITY, 1.0), |(low, high), ns| {
        (f64::min(low, ns), f64::max(high, ns))
    });
    (low, high.max(low * LEAST_FACTOR))
}

fn heat(
    cells: &[Cell<'_>],
    arm: &str,
    quantile: &'static str,
    place: usize,
    range: (f64, f64),
) -> HeatView {
    let (connections, rates) = axes(cells);
    let rows = connections.iter().map(|&connections| HeatRow {
        connections: number::count(u64::from(connections)),
        cells: rates
            .iter()
            .map(|rate| {
                let is_here =
                    |cell: &&Cell<'_>| cell.spec.connections == connections && cell.rate() == *rate;
                let cell = cells.iter().find(is_here);
                cell.map_or_else(missing, |cell| one(cell, arm, place, range))
            })
            .collect(),
    });
    HeatView {
        quantile,
        rows: rows.collect(),
        rates: rates
            .iter()
            .map(|rate| rate.map_or(number::NONE.to_owned(), number::asked))
            .collect(),
    }
}

fn missing() -> HeatCell {
    HeatCell {
        text: number::NONE.to_owned(),
        shade: None,
        title: "not measured".to_owned(),
    }
}

fn one(cell: &Cell<'_>, arm: &str, place: usize, range: (f64, f64)) -> HeatCell {
    let validity = cell.found.validity;
    let title = |what: &str| format!("{}, {}: {what}", cell.spec.name, words::validity(validity));
    let found = cell.arm(arm).filter(|arm| arm.samples > 0);
    if !cell.usable() {
        let reasons = cell.found.reasons.iter();
        let why = reasons.map(|counted| &*counted.reason.seen).next();
        return HeatCell {
            text: "×".to_owned(),
            shade: None,
            title: title(why.unwrap_or("not to be used")),
        };
    }
    let Some(found) = found else {
        return HeatCell {
            title: title("no request was answered"),
            ..missing()
        };
    };
    let ns = found.response_ns[place] as f64;
    let mark = match validity {
        Validity::Valid => "",
        Validity::Suspect | Validity::Invalid => "?",
    };
    HeatCell {
        text: format!("{}{mark}", milliseconds(ns)),
        shade: Some(shade(ns, range)),
        title: title(&number::time(ns)),
    }
}

/// The place of a time between the shortest and the longest, in ratios.
fn shade(ns: f64, (low, high): (f64, f64)) -> u8 {
    let share = (ns.max(1.0) / low).ln() / (high / low).ln();
    let shade = (share * f64::from(SHADES)).clamp(0.0, f64::from(SHADES - 1));
    shade as u8
}

/// Three digits or so, without the unit.
fn milliseconds(ns: f64) -> String {
    let ms = ns / 1e6;
    match ms {
        ms if ms >= 99.95 => format!("{ms:.0}"),
        ms if ms >= 9.995 => format!("{ms:.1}"),
        ms if ms >= 0.0995 => format!("{ms:.2}"),
        ms => format!("{ms:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_the_shortest_to_the_longest_by_ratio() {
        let range = (1e6, 1e9);
        assert_eq!(shade(1e6, range), 0);
        assert_eq!(shade(31.6e6, range), 4);
        assert_eq!(shade(1e9, range), SHADES - 1);
        assert_eq!(shade(0.0, range), 0);
        assert_eq!(shade(f64::MAX, range), SHADES - 1);
    }

    #[test]
    fn milliseconds_have_three_digits() {
        for (ns, text) in [
            (1.0, "0.000"),
            (94_000.0, "0.094"),
            (99_700.0, "0.10"),
            (1_234_000.0, "1.23"),
            (9_996_000.0, "10.0"),
            (99_960_000.0, "100"),
            (1.2e9, "1200"),
        ] {
            assert_eq!(milliseconds(ns), text);
        }
    }
}
