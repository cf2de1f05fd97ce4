//! High quantiles of response times, and how well they are known.

use serde::{Deserialize, Serialize};

/// A high quantile of an arm's response times, by its two names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailFindings {
    /// The quantile, 0.99 or 0.999.
    pub quantile: f64,
    /// That of all requests that were due, nanoseconds: what a user meets who asks at any time. `None` where it
    /// falls among those that were not answered.
    pub pooled_ns: Option<u64>,
    /// Its interval by Woodruff; the upper end is `None` where that falls among those that were not answered.
    /// `None` where there are too few blocks, or fewer than ten requests beyond.
    pub interval_ns: Option<(u64, Option<u64>)>,
    /// The pseudo-median of the quantiles of short stretches of time, each with as few requests as it needs: what a
    /// moment is like in which the machine did not stand still. Of the p99 alone; `None` as above.
    pub typical_ns: Option<u64>,
}

/// Slices in which a CPU of the proxy, the generator or the origin stood still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldUpFindings {
    /// How many.
    pub slices: u32,
    /// Slices that meters watched, all arms together.
    pub of: u32,
    /// Whether typical p99s of all arms leave these slices out: not where too few blocks would be left, or where they
    /// are an arm's.
    pub left_out: bool,
    /// The arm, if there is one, whose slices these are clearly more often than those of the arm that it is compared
    /// with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_often_of: Option<String>,
}

/// The time of a request that was not answered.
pub const NEVER_NS: u64 = u64::MAX;

/// Times of which some are [`NEVER_NS`]: null in JSON.
pub(super) mod never {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::NEVER_NS;

    pub(in crate::findings) fn serialize<S: Serializer>(
        times: &[u64; 5],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        times.map(|ns| (ns != NEVER_NS).then_some(ns)).serialize(to)
    }

    pub(in crate::findings) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<[u64; 5], D::Error> {
        let times = <[Option<u64>; 5]>::deserialize(from)?;
        Ok(times.map(|ns| ns.unwrap_or(NEVER_NS)))
    }
}
