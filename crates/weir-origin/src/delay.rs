//! Random delays and their queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_model::study::{DelaySpec, Reduction};
use weir_stats::SplitMix64;

/// Draws delays.
#[derive(Debug)]
pub(crate) struct Delays {
    spec: DelaySpec,
    random: SplitMix64,
    line: Option<Arc<Line>>,
}

impl Delays {
    /// Creates the delays of one thread. Every thread has its own `seed`; all share the same `line`.
    pub(crate) fn new(spec: DelaySpec, seed: u64, line: Option<Arc<Line>>) -> Delays {
        Delays { spec, random: SplitMix64::new(seed), line }
    }

    /// Returns the time at which a request that just arrived is due, in nanoseconds of the same clock; 0 if at once.
    /// `taken` is the reduction of its server's speed, per cent.
    pub(crate) fn due(&mut self, now_ns: impl FnOnce() -> u64, taken: u32) -> u64 {
        if self.spec == DelaySpec::None {
            return 0;
        }
        let percent_left = 100 - u64::from(taken.min(Reduction::MOST));
        let (now_ns, delay) = (now_ns(), self.draw().saturating_mul(100) / percent_left);
        match &self.line {
            Some(line) => line.stand(now_ns, delay),
            None => now_ns.saturating_add(delay),
        }
    }

    /// Draws the next request's delay in nanoseconds.
    fn draw(&mut self) -> u64 {
        match self.spec {
            DelaySpec::None => 0,
            DelaySpec::Fixed(delay) => nanoseconds(delay),
            DelaySpec::Uniform(least, most) => {
                let (least, most) = (nanoseconds(least), nanoseconds(most));
                let width = most.saturating_sub(least) as f64;
                least + (width * self.random.unit()) as u64
            }
            // The inverse of the distribution function; 1 - u is never 0.
            DelaySpec::Exponential(mean) => {
                (-(1.0 - self.random.unit()).ln() * nanoseconds(mean) as f64) as u64
            }
        }
    }
}

/// A queue with a fixed number of servers, each of which takes the next request when it is free. Contains the time at
/// which each server will be free, nanoseconds.
#[derive(Debug)]
pub(crate) struct Line(Mutex<BinaryHeap<Reverse<u64>>>);

impl Line {
    pub(crate) fn new(servers: NonZeroU32) -> Line {
        let idle = (0..servers.get()).map(|_| Reverse(0));
        Line(Mutex::new(idle.collect()))
    }

    /// Returns the time at which a request that just arrived and takes this long will be done.
    fn stand(&self, now_ns: u64, takes: u64) -> u64 {
        let mut free_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Reverse(free) = free_at.pop().unwrap_or(Reverse(0));
        let done = free.max(now_ns).saturating_add(takes);
        free_at.push(Reverse(done));
        done
    }
}

/// Converts a duration to nanoseconds; saturates after 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(spec: DelaySpec) -> Vec<f64> {
        let mut delays = Delays::new(spec, 7, None);
        (0..100_000).map(|_| delays.draw() as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn delays_have_their_distribution() {
        let ms = Duration::from_millis;
        assert!(draws(DelaySpec::None).iter().all(|delay| *delay == 0.0));
        let fixed = draws(DelaySpec::Fixed(ms(3)));
        assert!(fixed.iter().all(|delay| *delay == 3e6));

        let uniform = draws(DelaySpec::Uniform(ms(2), ms(6)));
        assert!(uniform.iter().all(|delay| (2e6..6e6).contains(delay)));
        // Four standard errors: 4 * 4 ms / sqrt(12 * 100000).
        assert!((mean(&uniform) - 4e6).abs() < 15e3, "{}", mean(&uniform));

        let exponential = draws(DelaySpec::Exponential(ms(5)));
        // Four standard errors: 4 * 5 ms / sqrt(100000).
        let average = mean(&exponential);
        assert!((average - 5e6).abs() < 64e3, "{average}");
        let above = exponential.iter().filter(|delay| **delay > 5e6).count() as f64 / 1e5;
        assert!((above - (-1_f64).exp()).abs() < 0.007, "{above}");
    }

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let spec = DelaySpec::Exponential(Duration::from_millis(5));
        let [a, b, c] = [1, 1, 2].map(|seed| {
            let mut delays = Delays::new(spec, seed, None);
            [(); 9].map(|()| delays.draw())
        });
        assert_eq!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn who_lacks_a_part_of_its_speed_answers_as_many_fewer_requests() {
        let delay = DelaySpec::Fixed(Duration::from_millis(3));
        let mut delays = Delays::new(delay, 1, None);
        let due = [0, 25, 50].map(|taken| delays.due(|| 0, taken) / 1_000_000);
        assert_eq!(due, [3, 4, 6]);
        assert_eq!(Delays::new(DelaySpec::None, 1, None).due(|| 9, 50), 0);
    }

    #[test]
    fn requests_stand_in_one_line_for_all_threads() {
        let ms = 1_000_000;
        let line = Arc::new(Line::new(NonZeroU32::new(2).unwrap()));
        let delay = DelaySpec::Fixed(Duration::from_millis(2));
        let mut threads = [1, 2].map(|seed| Delays::new(delay, seed, Some(Arc::clone(&line))));
        let mut due = |thread: usize, now| threads[thread].due(|| now * ms, 0) / ms;
        // Two are served, the third waits for the first of them.
        let came = [(0, 10), (1, 11), (0, 11), (1, 11)].map(|(thread, now)| due(thread, now));
        assert_eq!(came, [12, 13, 14, 15]);
        assert_eq!(due(0, 20), 22, "nobody is there any more");
    }
}
