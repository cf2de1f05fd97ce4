//! A host that answers the lab's messages from a model, in simulated time: no processes, no sockets, no sleeping.
//!
//! Decisions (searches, stopping rules, validity, verdicts) are tested here thousands of times, with faults, before
//! they are used on a proxy; the same seed repeats a failure exactly. A [`Model`] describes how arms, the machine and
//! the generator behave. A [`World`] answers as the agent of such a host would, and advances time only when the next
//! event is requested.
//!
//! The results follow from requests: each slice is played request by request through the generator's connections and
//! the arm's workers, first come first served. So a backlog, a stall or a refusal has the response times that it would
//! have in reality. Counters (CPU time, idle time, requests at the origin server) are sums over those requests.

mod chance;
mod hands;
mod load;
mod memory;
mod model;
mod noise;
mod noises;
mod scenarios;
mod slice;
mod stills;
mod world;

pub use model::{
    ArmModel, Bursts, Correlated, Distribution, Errors, Fault, Generator, Grain, HoldUps, Machine,
    Model, Noise, Outliers, ReportedAddresses, SlowStart, TimeWait,
};
pub use noises::{NOISES, NoiseRow};
pub use scenarios::{SICK, scenarios};
pub use world::World;
