//! High quantiles of response times, and their uncertainty.

use serde::{Deserialize, Serialize};

/// A high quantile of an arm's response times, pooled and typical.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailFindings {
    /// The quantile, 0.99 or 0.999.
    pub quantile: f64,
    /// Quantile over all requests that were due, nanoseconds: the time that a user meets at an arbitrary moment. `None`
    /// if it falls among requests that were not answered.
    pub pooled_ns: Option<u64>,
    /// Interval of the pooled quantile by Woodruff. The upper end is `None` if it falls among requests that were not
    /// answered. `None` if there are too few blocks, or fewer than ten requests beyond the quantile.
    pub interval_ns: Option<(u64, Option<u64>)>,
    /// Pseudo-median of the quantiles of short stretches of time, each with just enough requests, nanoseconds: the
    /// quantile at a moment in which the machine did not stand still. `None` except for the p99, and if the typical one
    /// is not known or falls among requests that were not answered.
    pub typical_ns: Option<u64>,
}

/// Slices in which a CPU of the proxy, the generator or the origin stood still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldUpFindings {
    /// Number of such slices.
    pub slices: u32,
    /// Number of slices that meters watched, all arms together.
    pub of: u32,
    /// True if typical p99s of all arms leave these slices out. They stay in if too few blocks would be left, or if
    /// they are an arm's own doing.
    pub left_out: bool,
    /// Arm with clearly more of these slices than the arm that it is compared with, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_often_of: Option<String>,
}

/// Time, in nanoseconds, that stands for a request that was not answered.
pub const NEVER_NS: u64 = u64::MAX;

/// Serialises times that may be [`NEVER_NS`], as null in JSON.
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
