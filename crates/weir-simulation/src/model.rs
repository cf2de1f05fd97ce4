//! Model of a simulated host: data only.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

/// A host with all three roles.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Arms with a behaviour of their own, by name.
    pub arms: BTreeMap<String, ArmModel>,
    /// Behaviour of all other arms.
    pub others: ArmModel,
    /// Properties that all arms share.
    pub machine: Machine,
    /// The load generator.
    pub generator: Generator,
    /// Number of hosts that send the load, each its share; at least 1.
    pub generators: usize,
    /// Granularity of the simulation.
    pub grain: Grain,
    /// False addresses that the agent reports.
    pub told: ReportedAddresses,
}

/// Addresses that an agent reports instead of its own, as a host might that somebody has taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedAddresses {
    /// Address at which arms claim to listen in clear.
    pub listen: Option<SocketAddr>,
    /// Address at which arms claim to listen over TLS.
    pub tls_listen: Option<SocketAddr>,
    /// Address at which the origin server claims to listen.
    pub origin: Option<SocketAddr>,
}

/// Granularity of the simulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grain {
    /// Each request by itself.
    #[default]
    Requests,
    /// Each slice of a closed loop as a whole, for an arm without faults and errors: as many answers as its workers
    /// have time for, with the scatter of independent requests. Everything else is simulated request by request.
    Slices,
}

impl Default for Model {
    /// Equal arms on a machine and with a generator without faults.
    fn default() -> Model {
        Model {
            seed: 1,
            arms: BTreeMap::new(),
            others: ArmModel::default(),
            machine: Machine::default(),
            generator: Generator::default(),
            generators: 1,
            grain: Grain::default(),
            told: ReportedAddresses::default(),
        }
    }
}

/// Behaviour of an arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmModel {
    /// Time for which a worker is busy with a request.
    pub service: Distribution,
    /// Number of requests that are worked on at the same time; the others wait in order. The arm's capacity is this
    /// number divided by the mean of `service`.
    pub workers: usize,
    /// Share of the service time that is CPU time of the proxy, 0..1.
    pub cpu_share: f64,
    /// Noise that makes its requests take longer or shorter for a while.
    pub noise: Noise,
    /// Difference between instances of its proxy: standard deviation of the logarithm of the service time, drawn anew
    /// at each start.
    pub instance_sd: f64,
    /// Slowness just after a start.
    pub slow_start: Option<SlowStart>,
    /// Slowdown with every second of running: 0.01 is one per cent of the initial service time.
    pub leak_per_s: f64,
    /// Slowdown of its requests for every other arm that runs: 0.01 is one per cent.
    pub crowding: f64,
    /// Memory of its system for connections that have ended.
    pub time_wait: Option<TimeWait>,
    /// Responses that are errors.
    pub errors: Errors,
    /// Faults at given times.
    pub faults: Vec<Fault>,
}

impl Default for ArmModel {
    /// One worker that carries 2,000 requests/s; service times spread by a tenth.
    fn default() -> ArmModel {
        ArmModel {
            service: Distribution::LogNormal { median_ns: 500e3, sigma: 0.1 },
            workers: 1,
            cpu_share: 0.9,
            noise: Noise::default(),
            instance_sd: 0.0,
            slow_start: None,
            leak_per_s: 0.0,
            crowding: 0.0,
            time_wait: None,
            errors: Errors::default(),
            faults: Vec::new(),
        }
    }
}

impl ArmModel {
    /// Returns the same model with service times multiplied by `factor`.
    pub fn slower(&self, factor: f64) -> ArmModel {
        ArmModel { service: self.service.times(factor), ..self.clone() }
    }
}

/// A distribution of times, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Constant, nanoseconds.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential {
        /// Mean, nanoseconds.
        mean_ns: f64,
    },
    /// Log-normal.
    LogNormal {
        /// Median, nanoseconds.
        median_ns: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Mostly quick, sometimes slow.
    Bimodal {
        /// Quick time, nanoseconds.
        quick_ns: f64,
        /// Slow time, nanoseconds.
        slow_ns: f64,
        /// Share of slow times, 0..1.
        slow_share: f64,
    },
}

impl Distribution {
    /// Returns mean and standard deviation, nanoseconds.
    pub fn moments(self) -> (f64, f64) {
        match self {
            Distribution::Fixed(ns) => (ns, 0.0),
            Distribution::Exponential { mean_ns } => (mean_ns, mean_ns),
            Distribution::LogNormal { median_ns, sigma } => {
                let mean = median_ns * (0.5 * sigma * sigma).exp();
                (mean, mean * (sigma * sigma).exp_m1().sqrt())
            }
            Distribution::Bimodal { quick_ns, slow_ns, slow_share } => (
                quick_ns + slow_share * (slow_ns - quick_ns),
                (slow_share * (1.0 - slow_share)).sqrt() * (slow_ns - quick_ns),
            ),
        }
    }

    /// Returns the distribution with all times multiplied by `factor`.
    pub fn times(self, factor: f64) -> Distribution {
        match self {
            Distribution::Fixed(ns) => Distribution::Fixed(ns * factor),
            Distribution::Exponential { mean_ns } => {
                Distribution::Exponential { mean_ns: mean_ns * factor }
            }
            Distribution::LogNormal { median_ns, sigma } => {
                Distribution::LogNormal { median_ns: median_ns * factor, sigma }
            }
            Distribution::Bimodal { quick_ns, slow_ns, slow_share } => Distribution::Bimodal {
                quick_ns: quick_ns * factor,
                slow_ns: slow_ns * factor,
                slow_share,
            },
        }
    }
}

/// Noise that makes requests take longer or shorter for a while; factors multiply. Times are seconds of the world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Noise {
    /// Standard deviation of the logarithm of a factor that is drawn anew for each slice.
    pub white: f64,
    /// Change of the factor's logarithm per second.
    pub drift_per_s: f64,
    /// Noise that persists for a while.
    pub correlated: Option<Correlated>,
    /// Bursts that occur now and then.
    pub bursts: Option<Bursts>,
    /// Steps: (seconds, factor), each effective from its time on.
    pub steps: Vec<(f64, f64)>,
    /// Single slices that take longer.
    pub outliers: Option<Outliers>,
    /// Degrees of freedom of Student's t, of which `white` is then the scale; 0 stands for a normal distribution.
    pub freedom: u32,
}

/// Slices that take longer, independent of each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outliers {
    /// Share of these slices, 0..1.
    pub share: f64,
    /// Factor by which they take longer.
    pub factor: f64,
}

/// Noise with a slowly changing value: an Ornstein-Uhlenbeck process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlated {
    /// Standard deviation of the logarithm in the long run.
    pub sd: f64,
    /// Time after which the correlation has fallen to 1/e, seconds.
    pub time_s: f64,
}

/// Times in which everything takes longer, at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Mean time from the end of one burst to the beginning of the next, seconds.
    pub every_s: f64,
    /// Mean length of a burst, seconds.
    pub length_s: f64,
    /// Factor by which everything takes longer.
    pub factor: f64,
}

/// Slowness of an arm that has just started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowStart {
    /// Factor by which the first request takes longer.
    pub factor: f64,
    /// Seconds after which the excess has fallen to 1/e.
    pub time_s: f64,
}

/// Connections to the origin that stay in TIME_WAIT, and the cost of too many of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeWait {
    /// Mean number of connections that end with each request.
    pub per_request: f64,
    /// Seconds for which each connection is remembered.
    pub lasts_s: f64,
    /// Number of connections from which on requests take longer.
    pub room: f64,
    /// Factor by which requests take longer beyond that number.
    pub factor: f64,
}

/// Responses of status 502, which occur in runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Errors {
    /// Share of all responses in the long run, 0..1.
    pub share: f64,
    /// Mean number of errors in a row; below 1 counts as 1.
    pub run: f64,
}

/// Fault of an arm. Times are seconds of the world, which begins when the run does.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The proxy does not start, with this message.
    DoesNotStart(String),
    /// The proxy ends by itself.
    Crash {
        /// Time of the crash, seconds.
        at_s: f64,
    },
    /// Connections are refused.
    Refuse(Range<f64>),
    /// Nothing is answered until the end of the stall.
    Stall(Range<f64>),
}

/// Properties that all arms share.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Noise that makes requests of all arms take longer or shorter.
    pub noise: Noise,
    /// Times in which a CPU stands still.
    pub hold_ups: Option<HoldUps>,
    /// Share of the CPUs' time that a hypervisor takes, 0..1.
    pub steal: f64,
    /// Number of CPUs; half of them are the proxies'.
    pub cpus: u32,
}

/// Times in which a CPU stands still, at random, with lengths uniform between two bounds. The proxies' CPU and the
/// generator's are affected equally often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldUps {
    /// Mean number per second, both CPUs together.
    pub per_s: f64,
    /// Shortest and longest length, nanoseconds.
    pub length_ns: (f64, f64),
    /// Time between the interrupts of a meter on each CPU, nanoseconds; 0 if there are no meters.
    pub meter_ns: f64,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { noise: Noise::default(), hold_ups: None, steal: 0.0, cpus: 4 }
    }
}

/// The load generator.
#[derive(Debug, Clone, PartialEq)]
pub struct Generator {
    /// Delay with which it sends requests that are due.
    pub lag: Distribution,
    /// Rate above which it is late, requests per second, and the delay with which it sends then.
    pub late_above: Option<(f64, Distribution)>,
    /// Times in which it sends nothing: (seconds of the world, length in seconds).
    pub held_up: Vec<(f64, f64)>,
    /// CPU time per request, nanoseconds.
    pub cpu_ns: f64,
    /// Delay with which counters are read, nanoseconds.
    pub late_ns: u64,
    /// Delay with which other generators report their start after the first one, nanoseconds.
    pub apart_ns: u64,
}

impl Generator {
    /// Returns the delay at a rate in requests per second.
    pub(crate) fn lag_at(&self, rate: f64) -> Distribution {
        self.late_above.filter(|(above, _)| rate > *above).map_or(self.lag, |(_, lag)| lag)
    }
}

impl Default for Generator {
    fn default() -> Generator {
        Generator {
            lag: Distribution::Fixed(10e3),
            late_above: None,
            held_up: Vec::new(),
            cpu_ns: 10e3,
            late_ns: 20_000,
            apart_ns: 0,
        }
    }
}
