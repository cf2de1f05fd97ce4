//! What the generator can do, for people.

use std::fmt::Write;

use weir_model::calibration::Calibration;

use super::text::{rate, time};

/// A page about a calibration. `apart`: generator and null server had a CPU each.
pub fn calibration(made: &Calibration, apart: bool) -> String {
    let mut page = format!("{}\n", made.machine);
    page.push_str(
        "against a server that looks at nothing, 50 kept connections, 1 KiB of content\n",
    );
    if !apart {
        page.push_str(
            "on the same CPU as that server: a thread with a CPU to itself can do more\n",
        );
    }
    for way in &made.ways {
        let share = 100.0 * way.floor_ns / way.request_ns;
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n{}", way.io);
        let _ = writeln!(
            page,
            "  CPU time per request   {:>10}   {share:.0} % of it the floor, {}",
            time(way.request_ns),
            time(way.floor_ns)
        );
        let _ = writeln!(
            page,
            "  one thread can send    {:>10} requests/s",
            rate(way.capacity)
        );
        let lag = way.lag.iter().map(|&(quantile, ns)| match quantile {
            1.0 => format!("max {}", time(ns as f64)),
            quantile => format!("p{} {}", quantile * 100.0, time(ns as f64)),
        });
        let lag: Vec<_> = lag.collect();
        let _ = writeln!(
            page,
            "  dispatch lag           {} at {} requests/s",
            lag.join(", "),
            rate(way.lag_rate)
        );
    }
    page
}
