//! A Poisson process of rate 1 that can be read from any position.
//!
//! The process is cut into cells of equal width. The number of arrivals in a cell and their positions are functions of
//! only the seed and the cell's number: counts of disjoint cells are independent and Poisson, and given their count the
//! arrivals of a cell are independent and uniform in it, which together is the definition of the process (Kingman,
//! *Poisson Processes*, §2.4). So every thread computes the same arrivals, and none depends on which others were read.
//! A rate other than 1, and one that changes, is a change of time.

use std::sync::Arc;

/// Width of a cell, which is also its mean count.
const WIDTH: u64 = 64;

/// Number of cells in a block; the table of [`Poisson`] has an entry for each block.
const BLOCK: u64 = 64;

/// Maximum length of the table prepared before a trial, in blocks: more than 4 × 10⁹ arrivals. A trial that something
/// else ends may have its nominal end days away.
const AHEAD: usize = 1 << 20;

/// Upper limit for the arrivals of a cell: the probability of this many is below 2⁻⁶⁴.
const MOST: usize = 160;

/// SplitMix64's increment, 2⁶⁴ divided by the golden ratio (Steele, Lea, Flood, *Fast splittable
/// pseudorandom number generators*, OOPSLA 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Arrival times of a unit-rate Poisson process, by number.
#[derive(Debug, Clone)]
pub(super) struct Poisson {
    key: u64,
    /// Number of arrivals before each block. Clones share the table until one of them reads beyond its end.
    before: Arc<Vec<u64>>,
    /// Number of the cell that was read last.
    cell: u64,
    /// Number of that cell's first arrival.
    first: u64,
    count: usize,
    /// Positions of that cell's arrivals, as a fraction of the cell in units of 2⁻⁶⁴, ascending.
    places: Box<[u64; MOST]>,
}

impl Poisson {
    pub(super) fn new(seed: u64) -> Poisson {
        let mut poisson = Poisson {
            key: mix(seed.wrapping_add(GOLDEN)),
            before: Arc::new(vec![0]),
            cell: 0,
            first: 0,
            count: 0,
            places: Box::new([0; MOST]),
        };
        poisson.read(0, 0);
        poisson
    }

    /// Fills the table so that no arrival before `end` makes it grow: 2 KB for a million arrivals, and at most
    /// [`AHEAD`] blocks.
    pub(super) fn prepare(&mut self, end: f64) {
        let blocks = ((end / (WIDTH * BLOCK) as f64) as usize + 2).min(AHEAD);
        self.grow(|before| before.len() > blocks);
    }

    /// Returns the time of arrival `k`; infinity if it is at `end` or later.
    pub(super) fn time_of(&mut self, k: u64, end: f64) -> f64 {
        if k < self.first || k - self.first >= self.count as u64 {
            self.seek(k, end);
        }
        match k.checked_sub(self.first) {
            Some(index) if index < self.count as u64 => {
                let fraction = self.places[index as usize] as f64 / 2_f64.powi(64);
                let time = (self.cell as f64 + fraction) * WIDTH as f64;
                if time < end { time } else { f64::INFINITY }
            }
            _ => f64::INFINITY,
        }
    }

    /// Returns the number of arrivals before `time`; may be wrong about an arrival exactly at `time`.
    pub(super) fn count_before(&mut self, time: f64) -> u64 {
        let cell = (time / WIDTH as f64) as u64;
        if cell != self.cell {
            let block = (cell / BLOCK) as usize;
            self.grow(|before| before.len() > block);
            let earlier = block as u64 * BLOCK..cell;
            let first = self.before[block]
                + earlier.map(|cell| count_arrivals(self.key, cell)).sum::<u64>();
            self.read(cell, first);
        }
        let position = ((time / WIDTH as f64 - cell as f64) * 2_f64.powi(64)) as u64;
        let places = &self.places[..self.count];
        self.first + places.partition_point(|&other| other < position) as u64
    }

    /// Reads the cell of arrival `k`, or a cell beyond `end` if the arrival is not before `end`.
    fn seek(&mut self, k: u64, end: f64) {
        let behind = self.first + self.count as u64;
        let (mut cell, mut first) = (self.cell + 1, behind);
        // A jump goes by the table, a step does not even need it.
        if k < self.first || k - behind > WIDTH * BLOCK {
            let last = (end / (WIDTH * BLOCK) as f64) as usize;
            self.grow(|before| before.last() > Some(&k) || before.len() > last.saturating_add(1));
            let block = self.before.partition_point(|&before| before <= k) - 1;
            (cell, first) = (block as u64 * BLOCK, self.before[block]);
        }
        loop {
            let count = count_arrivals(self.key, cell);
            if k - first < count || (cell * WIDTH) as f64 > end {
                break;
            }
            (cell, first) = (cell + 1, first + count);
        }
        self.read(cell, first);
    }

    fn grow(&mut self, enough: impl Fn(&[u64]) -> bool) {
        if enough(&self.before) {
            return;
        }
        let key = self.key;
        let before = Arc::make_mut(&mut self.before);
        while !enough(before) {
            let block = before.len() as u64 - 1;
            let cells = block * BLOCK..(block + 1) * BLOCK;
            let arrivals: u64 = cells.map(|cell| count_arrivals(key, cell)).sum();
            before.push(before[block as usize] + arrivals);
        }
    }

    /// Draws the arrivals of a cell, the first of which is arrival `first`.
    fn read(&mut self, cell: u64, first: u64) {
        let mut state = stream(self.key, cell);
        let count = poisson_count(draw(&mut state)) as usize;
        let places = &mut self.places[..count];
        places.fill_with(|| draw(&mut state));
        places.sort_unstable();
        (self.cell, self.first, self.count) = (cell, first, count);
    }
}

/// Returns the number of arrivals of a cell.
fn count_arrivals(key: u64, cell: u64) -> u64 {
    poisson_count(draw(&mut stream(key, cell)))
}

/// Returns the initial state of a cell's generator: its first number determines the count, the others the positions.
fn stream(key: u64, cell: u64) -> u64 {
    mix(key.wrapping_add(cell.wrapping_mul(GOLDEN)))
}

/// Returns SplitMix64's next number.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    mix(*state)
}

/// Applies SplitMix64's finalizer ("mix13" of the paper above).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the quantile of the Poisson distribution with mean [`WIDTH`] for a uniform number in units of 2⁻⁶⁴.
fn poisson_count(uniform: u64) -> u64 {
    let mut count = DISTRIBUTION.guide[(uniform >> 56) as usize];
    while uniform > DISTRIBUTION.cumulative[count as usize] {
        count += 1;
    }
    u64::from(count)
}

struct Distribution {
    /// Probability of at most `n` arrivals, by `n`, in units of 2⁻⁶⁴; the last entry exceeds every number drawn.
    cumulative: [u64; MOST],
    /// Smallest count to which a number with these leading 8 bits can correspond.
    guide: [u8; 256],
}

static DISTRIBUTION: Distribution = Distribution::new();

impl Distribution {
    const fn new() -> Distribution {
        // From the mode outwards the weights stay within f64's range, and e⁻⁶⁴ is not needed.
        let mut weights = [0.0; MOST];
        weights[WIDTH as usize] = 1.0;
        let mut n = WIDTH as usize;
        while n > 0 {
            weights[n - 1] = weights[n] * n as f64 / WIDTH as f64;
            n -= 1;
        }
        let mut n = WIDTH as usize + 1;
        while n < MOST {
            weights[n] = weights[n - 1] * WIDTH as f64 / n as f64;
            n += 1;
        }
        let mut total = 0.0;
        let mut n = 0;
        while n < MOST {
            total += weights[n];
            n += 1;
        }
        let mut cumulative = [u64::MAX; MOST];
        let mut sum = 0.0;
        let mut n = 0;
        while n < MOST - 1 {
            sum += weights[n];
            // Saturates in the far tail.
            cumulative[n] = (sum / total * 18_446_744_073_709_551_616.0) as u64;
            n += 1;
        }
        let mut guide = [0; 256];
        let mut lead = 0;
        let mut count = 0;
        while lead < 256 {
            while cumulative[count] < (lead as u64) << 56 {
                count += 1;
            }
            guide[lead] = count as u8;
            lead += 1;
        }
        Distribution { cumulative, guide }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 1;

    fn first(n: u64) -> Vec<f64> {
        let mut poisson = Poisson::new(SEED);
        (0..n).map(|k| poisson.time_of(k, f64::INFINITY)).collect()
    }

    #[test]
    fn gaps_are_exponential() {
        const N: usize = 200_000;
        let times = first(N as u64 + 1);
        let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|&gap| gap >= 0.0));
        gaps.sort_unstable_by(f64::total_cmp);
        // Kolmogorov–Smirnov: the largest distance from 1 − e⁻ˣ; 1.95/√n is passed once in 1000.
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| {
                let want = 1.0 - (-gap).exp();
                let (low, high) = (i as f64 / N as f64, (i + 1) as f64 / N as f64);
                (want - low).abs().max((want - high).abs())
            })
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / (N as f64).sqrt(), "{distance}");
        // Neighbouring gaps do not know each other, across the edges of cells neither.
        let mean = times[N] / N as f64;
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0] - mean).collect();
        let lagged: f64 = gaps.windows(2).map(|pair| pair[0] * pair[1]).sum();
        assert!((lagged / N as f64).abs() < 4.0 / (N as f64).sqrt(), "{lagged}");
    }

    /// Checks windows other than the cells: narrower, wider, and across their edges.
    #[test]
    fn counts_have_a_variance_equal_to_their_mean() {
        for (width, windows) in [(10.0, 100_000), (100.0, 20_000), (1000.0, 5000)] {
            let mut poisson = Poisson::new(SEED);
            let counts: Vec<f64> = (0..windows)
                .map(|i| {
                    let from = poisson.count_before(f64::from(i) * width);
                    (poisson.count_before(f64::from(i + 1) * width) - from) as f64
                })
                .collect();
            let n = f64::from(windows);
            let mean = counts.iter().sum::<f64>() / n;
            let variance = counts.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            // Four standard errors of either.
            assert!((mean / width - 1.0).abs() < 4.0 / (width * n).sqrt(), "{mean}");
            let error = ((2.0 + 1.0 / width) / n).sqrt();
            assert!((variance / width - 1.0).abs() < 4.0 * error, "{variance} of {width}");
        }
    }

    #[test]
    fn the_order_of_reading_does_not_matter() {
        let times = first(20_000);
        let mut poisson = Poisson::new(SEED);
        let mut k = 0;
        for _ in 0..20_000 {
            k = (k + 7919) % 20_000;
            assert_eq!(poisson.time_of(k, f64::INFINITY), times[k as usize]);
        }
        for step in [3, 64, 1000] {
            let mut poisson = Poisson::new(SEED);
            for k in (0..20_000).step_by(step) {
                assert_eq!(poisson.time_of(k, f64::INFINITY), times[k as usize]);
            }
        }
    }

    #[test]
    fn counting_agrees_with_the_times() {
        let times = first(20_000);
        let mut poisson = Poisson::new(SEED);
        for t in (0..19_000).step_by(37).rev().map(|t| f64::from(t) + 0.25) {
            let want = times.partition_point(|&time| time < t) as u64;
            assert_eq!(poisson.count_before(t), want);
        }
    }

    #[test]
    fn seeds_differ() {
        let (mut one, mut two) = (Poisson::new(1), Poisson::new(2));
        let same = (0..1000)
            .filter(|&k| one.time_of(k, f64::INFINITY) == two.time_of(k, f64::INFINITY))
            .count();
        assert_eq!(same, 0);
    }

    /// A search in a finite process must end.
    #[test]
    fn nothing_comes_after_the_end() {
        let mut poisson = Poisson::new(SEED);
        let last = poisson.count_before(10_000.0);
        assert!(poisson.time_of(last - 1, 10_000.0) < 10_000.0);
        for k in [last, last + 1, last + 100_000, u64::MAX] {
            assert_eq!(poisson.time_of(k, 10_000.0), f64::INFINITY);
        }
        assert!(poisson.before.len() < 10);
        assert!(poisson.time_of(last - 1, 10_000.0) < 10_000.0);
    }

    #[test]
    fn what_was_prepared_is_shared_and_does_not_grow() {
        let mut poisson = Poisson::new(SEED);
        poisson.prepare(1e6);
        let mut copy = poisson.clone();
        for k in [999_000, 5, 500_000] {
            copy.time_of(k, f64::INFINITY);
            copy.count_before(k as f64);
        }
        assert!(Arc::ptr_eq(&poisson.before, &copy.before));
    }
}
