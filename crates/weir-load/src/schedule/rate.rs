//! Rate over time, its integral Λ, and the inverse of Λ.
//!
//! The rate is piecewise linear, so Λ is piecewise quadratic and Λ⁻¹ a square root. Both are computed in forms that
//! lose no digits to cancellation and in which every single operation is monotone, so that rounding never makes a later
//! arrival due before an earlier one: Poisson arrivals may lie closer together than the last digit of their time.

use weir_model::load::Segment;

const NS_PER_S: f64 = 1e9;

/// The function Λ(t), the number of arrivals expected until `t`. Times are nanoseconds since the trial's start.
#[derive(Debug, Clone)]
pub(super) struct CumulativeRate {
    /// Pieces in which arrivals are due, in the order of time; Λ is constant between them.
    pieces: Vec<Piece>,
    /// Limit Λ(∞).
    total: f64,
    /// Index of the piece of the last inversion: the next is nearly always in the same.
    current: usize,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: f64,
    /// End of the piece; infinite for the last one, if its rate stays.
    end: f64,
    /// Λ(start).
    before: f64,
    /// Λ(end).
    after: f64,
    /// Rate at the start, per nanosecond.
    rate: f64,
    /// Change of the rate, per nanosecond².
    slope: f64,
    inverse: Inverse,
}

/// Formula for the time at which Λ has a given value.
#[derive(Debug, Clone, Copy)]
enum Inverse {
    /// The rate is constant.
    Flat,
    /// The rate grows at least twofold. Extended to the left, the rate is zero at `time`, at which Λ would be `value`;
    /// from there Λ is a parabola with its vertex in the origin. `scale` is 2/slope.
    Rising { time: f64, value: f64, scale: f64 },
    /// The rate falls to half or less: the mirror image of `Rising`.
    Falling { time: f64, value: f64, scale: f64 },
    /// The rate grows less than twofold, to `to`: the vertex may be so far away that the distance to it loses all
    /// digits. Uses the alternative form of the quadratic root, measured from the end.
    GentlyRising { to: f64 },
    /// The rate falls, but not to half.
    GentlyFalling,
}

impl CumulativeRate {
    /// Creates a ramp of `ramp_ns` from zero to the first segment's rate, followed by the segments; the rate at the end
    /// of the last one stays for ever. Rates below zero count as zero.
    pub(super) fn new(segments: &[Segment], ramp_ns: u64) -> CumulativeRate {
        let mut rate = CumulativeRate {
            pieces: Vec::with_capacity(segments.len() + 2),
            total: 0.0,
            current: 0,
        };
        let first = segments.first().map_or(0.0, |segment| segment.from);
        let last = segments.last().map_or(0.0, |segment| segment.to);
        let mut start = ramp_ns as f64;
        rate.push(0.0, start, 0.0, first);
        for segment in segments {
            let end = start + segment.ns as f64;
            rate.push(start, end, segment.from, segment.to);
            start = end;
        }
        rate.push(start, f64::INFINITY, last, last);
        rate
    }

    /// Adds a piece with rates in requests per second.
    fn push(&mut self, start: f64, end: f64, from: f64, to: f64) {
        let (from, to) = (from.max(0.0), to.max(0.0));
        let length = end - start;
        if length <= 0.0 || from + to <= 0.0 {
            return;
        }
        let before = self.total;
        let after = whole(before + f64::midpoint(from, to) * length / NS_PER_S);
        self.total = after;
        let (rate, to) = (from / NS_PER_S, to / NS_PER_S);
        let slope = (to - rate) / length;
        self.pieces.push(Piece {
            start,
            end,
            before,
            after,
            rate,
            slope,
            inverse: Inverse::of(start, before, rate, to, slope),
        });
    }

    /// Returns Λ(∞).
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// Returns Λ(t).
    pub(super) fn value_at(&self, t: f64) -> f64 {
        let behind = self.pieces.partition_point(|piece| piece.start <= t);
        match behind.checked_sub(1) {
            Some(index) => self.pieces[index].value_at(t),
            None => 0.0,
        }
    }

    /// Returns the latest time at which Λ is still `value`; infinity if Λ never exceeds it.
    ///
    /// The latest, because an arrival is at the beginning of its interval: an arrival on the edge of a pause is due
    /// after the pause.
    pub(super) fn time_of(&mut self, value: f64) -> f64 {
        if value >= self.total {
            return f64::INFINITY;
        }
        let mut piece = &self.pieces[self.current];
        if value < piece.before || value >= piece.after {
            let behind = self.pieces.partition_point(|piece| piece.before <= value);
            self.current = behind.saturating_sub(1);
            piece = &self.pieces[self.current];
        }
        piece.time_of(value)
    }
}

/// Rounds sums that are whole except for rounding errors: otherwise an arrival on the edge of a pause might fall to the
/// wrong side. The change is far below a nanosecond.
fn whole(value: f64) -> f64 {
    let nearest = value.round();
    if (value - nearest).abs() <= 1e-13 * nearest { nearest } else { value }
}

impl Inverse {
    /// Chooses the formula for a piece; `from` and `to` are rates per nanosecond.
    fn of(start: f64, before: f64, from: f64, to: f64, slope: f64) -> Inverse {
        if slope == 0.0 {
            return Inverse::Flat;
        }
        let (scale, back, below) = (2.0 / slope.abs(), from / slope, from * from / (2.0 * slope));
        if slope > 0.0 {
            if from > to / 2.0 {
                Inverse::GentlyRising { to }
            } else {
                Inverse::Rising { time: start - back, value: before - below, scale }
            }
        } else if to > from / 2.0 {
            Inverse::GentlyFalling
        } else {
            Inverse::Falling { time: start - back, value: before - below, scale }
        }
    }
}

impl Piece {
    fn value_at(&self, t: f64) -> f64 {
        if t >= self.end {
            return self.after;
        }
        let x = t - self.start;
        let value = self.before + x * (self.rate + self.slope * x / 2.0);
        value.min(self.after)
    }

    /// Returns the time at which Λ is `value`, which must lie in `before..after`.
    fn time_of(&self, value: f64) -> f64 {
        let time = match self.inverse {
            Inverse::Flat => self.start + (value - self.before) / self.rate,
            Inverse::Rising { time, value: vertex, scale } => {
                time + ((value - vertex).max(0.0) * scale).sqrt()
            }
            Inverse::Falling { time, value: vertex, scale } => {
                time - ((vertex - value).max(0.0) * scale).sqrt()
            }
            Inverse::GentlyRising { to } => {
                let remaining = self.after - value;
                let root = (to * to - 2.0 * self.slope * remaining).max(0.0).sqrt();
                self.end - 2.0 * remaining / (to + root)
            }
            Inverse::GentlyFalling => {
                let done = value - self.before;
                let root = (self.rate * self.rate + 2.0 * self.slope * done).max(0.0);
                self.start + 2.0 * done / (self.rate + root.sqrt())
            }
        };
        time.clamp(self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(from: f64, to: f64, seconds: f64) -> Segment {
        Segment { from, to, ns: (seconds * 1e9) as u64 }
    }

    #[test]
    fn an_arrival_on_the_edge_of_a_pause_is_due_after_it() {
        let segments = [
            seconds(1000.0, 1000.0, 10.0),
            seconds(0.0, 0.0, 5.0),
            seconds(0.1, 0.1, 30.0),
            seconds(0.0, 0.0, 1.0),
        ];
        let mut rate = CumulativeRate::new(&segments, 0);
        assert_eq!(rate.time_of(9999.0), 9.999e9);
        assert_eq!(rate.time_of(10_000.0), 15e9);
        assert_eq!(rate.time_of(10_002.0), 35e9);
        assert_eq!(rate.total(), 10_003.0);
        assert_eq!(rate.time_of(10_003.0), f64::INFINITY);
        assert_eq!(rate.value_at(12e9), 10_000.0);
        assert_eq!(rate.value_at(1e18), 10_003.0);
    }

    #[test]
    fn nothing_is_ever_due_without_a_rate() {
        for segments in [&[][..], &[seconds(0.0, 0.0, 10.0)]] {
            let mut rate = CumulativeRate::new(segments, 1_000_000_000);
            assert_eq!(rate.time_of(0.0), f64::INFINITY);
            assert_eq!(rate.value_at(5e9), 0.0);
        }
    }

    proptest! {
        /// Checks Λ(Λ⁻¹(s)) = s within the equivalent of a nanosecond, for steep and gentle pieces, up and down, to and
        /// from zero.
        #[test]
        fn the_inverse_inverts(
            ends in prop::collection::vec((0.0_f64..1e6, 0.0_f64..1e6, 1_u64..100), 1..6),
            zero in 0_u8..4,
            ramp in 0_u64..5_000_000_000,
            at in 0.0_f64..1.0,
        ) {
            let segments: Vec<_> = ends
                .iter()
                .map(|&(from, to, s)| match zero {
                    0 => seconds(0.0, to, s as f64),
                    1 => seconds(from, 0.0, s as f64),
                    2 => seconds(from, from * (1.0 + 1e-9), s as f64),
                    _ => seconds(from, to, s as f64),
                })
                .collect();
            let mut rate = CumulativeRate::new(&segments, ramp);
            let length: u64 = segments.iter().map(|segment| segment.ns).sum();
            let value = rate.value_at(at * (ramp + length) as f64);
            if value < rate.total() {
                let time = rate.time_of(value);
                let worth = 1e-3_f64.max(value * 1e-12);
                prop_assert!((rate.value_at(time) - value).abs() <= worth, "{value} at {time}");
            }
        }

        /// Uses values closer than any digit that matters.
        #[test]
        fn rounding_never_turns_the_order(
            from in 0.0_f64..5e6, to in 0.0_f64..5e6, hours in 1_u64..10,
            at in 0.0_f64..1.0, step in 1e-12_f64..1e-3,
        ) {
            let mut rate = CumulativeRate::new(&[seconds(from, to, hours as f64 * 3600.0)], 0);
            let value = at * rate.value_at(hours as f64 * 3600e9);
            let mut last = 0.0;
            for i in 0..100 {
                let time = rate.time_of(value + f64::from(i) * step);
                prop_assert!(time >= last);
                last = time;
            }
        }
    }
}
