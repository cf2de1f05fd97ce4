//! What bisection and RFC 9971 answer of the same targets, why a search claims nothing, and single searches.

use std::io::{self, Write};
use std::ops::Range;

use weir_search::{Answer, Stage, Trial, Why};

use crate::{Queue, World};

/// What others would have answered: a bracket, and what it took.
pub(crate) struct Bracket {
    low: f64,
    high: f64,
    seconds: f64,
}

impl World {
    fn holds(&mut self, rate: f64, seconds: f64, spent: &mut f64) -> bool {
        // Both give a trial a second that they do not look at.
        *spent += seconds + 1.0;
        let trial = Trial {
            rate,
            stage: Stage::Ramp,
            rest_s: 0.0,
            settle_s: 1.0,
            measure_s: seconds,
            windows: 1,
            is_fresh: true,
        };
        self.play(trial)[0].bad[0] <= 0.01
    }

    /// Bisection with trials of 30 s between nothing and what a closed loop carries, until the bracket is as narrow
    /// as our interval is to be.
    pub(crate) fn bisect(&mut self) -> Bracket {
        let most = self.queue.servers as f64 / self.queue.service_s;
        let (mut low, mut high, mut seconds) = (most * 0.2, most * 1.1, 0.0);
        while f64::ln(high / low) > 0.06 {
            let rate = f64::midpoint(low, high);
            match self.holds(rate, 30.0, &mut seconds) {
                true => low = rate,
                false => high = rate,
            }
        }
        Bracket { low, high, seconds }
    }

    /// RFC 9971 with the defaults of the authors' library: trials of 1 s, 20 s of them at a load, of which half may
    /// exceed the goal, a width of 0.5 %, and two coarser targets before.
    pub(crate) fn mlr(&mut self) -> Bracket {
        let most = self.queue.servers as f64 / self.queue.service_s;
        let mut seconds = 0.0;
        // Good and bad trials of a load.
        let mut loads: Vec<(f64, u32, u32)> = Vec::new();
        let (mut low, mut high) = (most * 0.2, most * 1.1);
        for (width, sum) in [(0.02, 1.0), (0.01, 4.47), (0.005, 20.0)] {
            let mut is_bound = |world: &mut World, rate: f64| loop {
                let place = loads
                    .iter()
                    .position(|load| load.0 == rate)
                    .unwrap_or_else(|| {
                        loads.push((rate, 0, 0));
                        loads.len() - 1
                    });
                let load = &mut loads[place];
                if f64::from(load.1) >= sum / 2.0 {
                    break true;
                }
                if f64::from(load.2) > sum / 2.0 {
                    break false;
                }
                match world.holds(rate, 1.0, &mut seconds) {
                    true => load.1 += 1,
                    false => load.2 += 1,
                }
            };
            // The bounds of the coarser target again, and outwards where they do not hold any more.
            let mut step = width;
            while !is_bound(self, low) && low > 1.0 {
                high = low;
                low *= 1.0 - step;
                step *= 2.0;
            }
            step = width;
            while is_bound(self, high) && high < 3.0 * most {
                low = high;
                high *= 1.0 + step;
                step *= 2.0;
            }
            while f64::ln(high / low) > width {
                let rate = f64::midpoint(low, high);
                match is_bound(self, rate) {
                    true => low = rate,
                    false => high = rate,
                }
            }
        }
        Bracket { low, high, seconds }
    }
}

/// How often others' brackets cover the truth, and how long they took.
pub(crate) fn others(
    queue: Queue,
    truth: f64,
    seeds: &Range<u64>,
    of: impl Fn(&mut World) -> Bracket,
) -> String {
    let all: Vec<Bracket> = seeds
        .clone()
        .map(|seed| of(&mut World::new(queue, seed + 1)))
        .collect();
    let covers = |it: &&Bracket| it.low <= truth * 1.0001 && truth <= it.high * 1.0001;
    let covers = all.iter().filter(covers).count();
    let seconds = all.iter().map(|it| it.seconds).sum::<f64>() / all.len() as f64;
    format!(
        "{:.1} %, {seconds:.0} s",
        100.0 * covers as f64 / all.len() as f64
    )
}

/// Why nothing was claimed, and how many times.
pub(crate) fn ends(answers: &[Answer]) -> String {
    let mut ends: Vec<(&str, usize)> = Vec::new();
    for answer in answers.iter().filter(|answer| answer.verified == 0.0) {
        let why = match answer.why {
            Why::TooShort(_) => "time",
            Why::Never => "never",
            Why::Broken(_) => "broken",
            Why::Unsteady => "unsteady",
            Why::Found | Why::Budget | Why::NotSent(_) => "other",
        };
        match ends.iter_mut().find(|end| end.0 == why) {
            Some(end) => end.1 += 1,
            None => ends.push((why, 1)),
        }
    }
    let each = ends.iter().map(|(why, count)| format!(", {why} {count}"));
    each.collect()
}

/// A line for each search: seed, ends of the interval, what was verified, seconds without and with the long trials, why it
/// ended.
pub(crate) fn each(queue: Queue, seeds: Range<u64>) -> io::Result<()> {
    for seed in seeds {
        let it = World::new(queue, seed + 1).search(seed);
        let ((low, high), (search_s, all_s)) = (it.interval, it.seconds);
        writeln!(
            io::stdout(),
            "{}\t{seed}\t{low:.1}\t{high:.1}\t{:.1}\t{search_s:.1}\t{all_s:.1}\t{:?}",
            queue.name,
            it.verified,
            it.why
        )?;
    }
    Ok(())
}
