//! Searches on simulated servers with known capacities: how often the answer covers the capacity, its width and its
//! cost, compared with bisection and RFC 9971.
//!
//! ```text
//! servers [SEARCHES [NAME [FROM [alone | each | truth]]]]
//! ```
//!
//! Runs SEARCHES searches for each server, or for those with NAME in theirs, with seeds from FROM on; `alone`: without
//! the other methods; `each`: a line for each search; `truth`: the capacities, by simulated holds.

use std::io::{self, Write};

use weir_search::{Answer, Ending};
use world::{Memory, Server, World};

mod others;
mod world;

/// Time limit of a search in seconds of trials, and the precision that ends it sooner: the defaults of `weir capacity`.
const TIME_S: f64 = 210.0;
const PRECISION: f64 = 0.03;

/// A server with constant service times at evenly spaced requests.
const EVEN: Server = Server {
    name: "D/D/1, 2,000/s, 100 ms",
    workers: 1,
    service_s: 1.0 / 2000.0,
    is_random: false,
    is_poisson: false,
    limit_s: 0.1,
    penalty: 0.0,
    noise: 0.0,
    drift: (0.0, 60.0),
    stalls: (0.0, 1e9),
    instances: 0.0,
    change: (f64::INFINITY, 1.0),
    is_alternating: false,
    memory: Memory::None,
    hold_ups: (1e9, 0.0),
    has_meters: true,
    renews: true,
    capacity: 0.0,
};

const RANDOM: Server = Server {
    name: "M/M/1, 2,000/s, 30 ms",
    is_random: true,
    is_poisson: true,
    limit_s: 0.03,
    ..EVEN
};

/// A server with realistic noise: 1 % from second to second.
const NOISY: Server = Server { name: "noise 1 %", noise: 0.01, ..EVEN };

const SERVERS: &[Server] = &[
    Server { capacity: 1_846.8, ..RANDOM },
    Server {
        name: "M/M/1, 500/s, 100 ms",
        service_s: 0.002,
        limit_s: 0.1,
        capacity: 457.5,
        ..RANDOM
    },
    Server {
        name: "M/D/1, 2,000/s, 10 ms",
        is_random: false,
        limit_s: 0.01,
        capacity: 1_774.1,
        ..RANDOM
    },
    Server {
        name: "M/D/4, 10,000/s, 5 ms",
        workers: 4,
        service_s: 4e-4,
        is_random: false,
        limit_s: 0.005,
        capacity: 9_524.7,
        ..RANDOM
    },
    Server {
        name: "D/D/1, 500/s, 30 ms",
        service_s: 0.002,
        limit_s: 0.03,
        capacity: 500.3,
        ..EVEN
    },
    Server { name: "D/D/1, 2,000/s, 300 ms", limit_s: 0.3, capacity: 2_008.2, ..EVEN },
    Server {
        name: "D/M/1, 2,000/s, 30 ms",
        is_random: true,
        limit_s: 0.03,
        capacity: 1_929.1,
        ..EVEN
    },
    Server { name: "M/M/1, speed wanders 3 %", noise: 0.03, capacity: 1_809.1, ..RANDOM },
    Server {
        name: "D/D/1, speed wanders 3 %",
        noise: 0.03,
        limit_s: 0.03,
        capacity: 1_920.3,
        ..EVEN
    },
    Server { name: "M/M/1, instances 1 %", instances: 0.01, capacity: 1_846.8, ..RANDOM },
    Server {
        name: "D/D/1, instances 1 %, 30 ms",
        instances: 0.01,
        limit_s: 0.03,
        capacity: 2_005.9,
        ..EVEN
    },
    Server {
        name: "M/M/1, stalls of 10 ms, one in a second",
        stalls: (0.01, 1.0),
        capacity: 1_804.9,
        ..RANDOM
    },
    Server {
        name: "M/M/1, stalls of 40 ms, one in ten seconds",
        stalls: (0.04, 10.0),
        capacity: 1_694.5,
        ..RANDOM
    },
    Server {
        name: "D/D/1, stalls of 150 ms, one in thirty seconds",
        stalls: (0.15, 30.0),
        capacity: 1_692.6,
        ..NOISY
    },
    Server {
        name: "D/D/1, stalls of 150 ms, one in five minutes",
        stalls: (0.15, 300.0),
        capacity: 1_996.7,
        ..NOISY
    },
    Server {
        name: "M/M/1, becomes 15 % slower",
        change: (40.0, 1.0 / 0.85),
        capacity: 1_551.2,
        ..RANDOM
    },
    Server { name: "M/M/1, becomes half as fast", change: (40.0, 2.0), capacity: 846.3, ..RANDOM },
    Server {
        name: "M/M/1, becomes 20 % faster",
        change: (40.0, 1.0 / 1.2),
        capacity: 2_249.8,
        ..RANDOM
    },
    Server {
        name: "M/M/1, 20 % slower every other 40 s",
        change: (40.0, 1.25),
        is_alternating: true,
        capacity: 1_474.8,
        ..RANDOM
    },
    Server {
        name: "M/M/1, half as fast every other 15 s",
        change: (15.0, 2.0),
        is_alternating: true,
        capacity: 869.9,
        ..RANDOM
    },
    Server { capacity: 1_999.0, ..NOISY },
    Server { name: "penalty 5 %, no noise", penalty: 0.05, capacity: 2_001.3, ..EVEN },
    Server { name: "penalty 5 %", penalty: 0.05, capacity: 1_978.5, ..NOISY },
    Server { name: "penalty 10 %", penalty: 0.1, capacity: 1_978.5, ..NOISY },
    Server { name: "penalty 20 %", penalty: 0.2, capacity: 1_978.5, ..NOISY },
    Server { name: "penalty 20 %, no noise", penalty: 0.2, capacity: 2_001.3, ..EVEN },
    Server {
        name: "collapses: a fifth of its speed under backlog, speed wanders 2 %",
        penalty: 0.8,
        noise: 0.02,
        capacity: 1_942.5,
        ..EVEN
    },
    Server { name: "drift 1 %, 30 s", drift: (0.01, 30.0), capacity: 1_989.8, ..NOISY },
    Server { name: "drift 2 %, 30 s", drift: (0.02, 30.0), capacity: 1_976.2, ..NOISY },
    Server { name: "drift 3 %, 60 s", drift: (0.03, 60.0), capacity: 1_967.1, ..NOISY },
    Server { name: "drift 5 %, 30 s", drift: (0.05, 30.0), capacity: 1_926.9, ..NOISY },
    Server { name: "drift 5 %, 120 s", drift: (0.05, 120.0), capacity: 1_958.1, ..NOISY },
    Server { name: "drift 3 %, 120 s", drift: (0.03, 120.0), capacity: 1_976.2, ..NOISY },
    Server { name: "drift 2 %, 300 s", drift: (0.02, 300.0), capacity: 1_985.3, ..NOISY },
    Server { name: "drift 5 %, 600 s", drift: (0.05, 600.0), capacity: 1_967.1, ..NOISY },
    Server {
        name: "penalty 10 %, drift 2 %, 60 s",
        penalty: 0.1,
        drift: (0.02, 60.0),
        capacity: 1_958.1,
        ..NOISY
    },
    Server {
        name: "penalty 20 %, drift 3 %, 60 s",
        penalty: 0.2,
        drift: (0.03, 60.0),
        capacity: 1_949.2,
        ..NOISY
    },
    Server {
        name: "hold-ups of 60 ms every 5 s, metered, 30 ms",
        hold_ups: (5.0, 0.06),
        limit_s: 0.03,
        capacity: 1_996.0,
        ..NOISY
    },
    Server {
        name: "hold-ups of 40 ms every 20 s, not metered, 30 ms",
        hold_ups: (20.0, 0.04),
        has_meters: false,
        limit_s: 0.03,
        capacity: 1_902.7,
        ..NOISY
    },
    Server {
        name: "lapses: 300 ms every 40 s, not metered",
        hold_ups: (40.0, 0.3),
        has_meters: false,
        capacity: 1_372.0,
        ..NOISY
    },
    Server { name: "ports, renewed", memory: Memory::Ports(40_000.0), capacity: 674.3, ..NOISY },
    Server {
        name: "ports, not renewed",
        memory: Memory::Ports(40_000.0),
        renews: false,
        capacity: 674.3,
        ..NOISY
    },
    Server { name: "dearer, renewed", memory: Memory::Dearer(40_000.0), capacity: 880.0, ..NOISY },
    Server {
        name: "dearer, not renewed",
        memory: Memory::Dearer(40_000.0),
        renews: false,
        capacity: 881.0,
        ..NOISY
    },
];

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

fn answers(server: Server, count: u64, from: u64) -> Vec<Answer> {
    let threads = 2;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    (from..from + count)
                        .filter(|seed| seed % threads == thread)
                        .map(|seed| {
                            let mut world = World::new(server, seed + 1);
                            let goal = world.goal(TIME_S, PRECISION);
                            world.search(goal)
                        })
                        .collect::<Vec<Answer>>()
                })
            })
            .collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().expect("a search does not panic"))
            .collect()
    })
}

fn row(server: Server, count: u64, from: u64, is_alone: bool) -> String {
    let truth = server.capacity;
    let all = answers(server, count, from);
    let claimed: Vec<&Answer> = all.iter().filter(|answer| answer.interval.0 > 0.0).collect();
    let none = percent(all.len() - claimed.len(), all.len());
    let above = claimed.iter().filter(|answer| answer.interval.0 > truth).count();
    let below = claimed.iter().filter(|answer| answer.interval.1 < truth).count();
    let seconds: Vec<f64> = all.iter().map(|answer| answer.seconds.1).collect();
    let half_widths =
        claimed.iter().map(|answer| 50.0 * (answer.interval.1 / answer.interval.0).ln());
    let mut row = format!(
        "| {} | {truth:.0} | {none:.1} % | {:.1} % | {:.1}, {:.1} | ±{:.1} % | {:.3} | {:.0} % | {:.1} % | {:.0}, {:.0} |",
        server.name,
        percent(claimed.len() - above - below, claimed.len()),
        percent(above, claimed.len()),
        percent(below, claimed.len()),
        median(half_widths.collect()),
        median(claimed.iter().map(|answer| answer.interval.0 / truth).collect()),
        percent(claimed.iter().filter(|answer| answer.is_bracket).count(), claimed.len()),
        100.0 * median(claimed.iter().filter_map(|answer| answer.scatter).collect()),
        median(seconds.clone()),
        quantile(seconds, 0.9),
    );
    if !is_alone {
        for other in [others::bisect, others::mlrsearch] {
            let brackets: Vec<others::Bracket> =
                (from..from + count.min(150)).map(|seed| other(server, seed + 1)).collect();
            let covers = brackets.iter().filter(|it| it.low <= truth && truth <= it.high).count();
            let seconds = median(brackets.iter().map(|it| it.seconds).collect());
            row += &format!(" {:.0} %, {seconds:.0} s |", percent(covers, brackets.len()));
        }
    }
    row
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    let only = arguments.next().unwrap_or_default();
    let from: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let how = arguments.next().unwrap_or_default();
    let mut out = io::stdout();
    let servers = SERVERS.iter().filter(|server| server.name.contains(&only));
    if how == "truth" {
        for server in servers {
            writeln!(out, "{}\t{:.1}", server.name, world::truth(*server))?;
        }
        return Ok(());
    }
    if how == "each" {
        for server in servers {
            for (seed, answer) in (from..).zip(answers(*server, count, from)) {
                let ending = match answer.ending {
                    Ending::TooShort(_) => "too short".to_owned(),
                    ending => format!("{ending:?}"),
                };
                writeln!(
                    out,
                    "{}\t{seed}\t{:.0}\t{:.0}\t{:?}\t{:?}\t{:.0}\t{ending}",
                    server.name,
                    answer.interval.0,
                    answer.interval.1,
                    answer.held,
                    answer.broke,
                    answer.seconds.1
                )?;
            }
        }
        return Ok(());
    }
    writeln!(
        out,
        "| server | half of holds succeed at | no claim | covers | above, below | half-width | low end | bracket | scatter | seconds: median, p90 | bisection | RFC 9971 |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for server in servers {
        writeln!(out, "{}", row(*server, count, from, how == "alone"))?;
        out.flush()?;
    }
    Ok(())
}
