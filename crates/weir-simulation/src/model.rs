//! How a simulated host behaves: data alone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

/// A host with all three roles.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Seed of everything that is left to chance.
    pub seed: u64,
    /// Arms that behave in a way of their own, by name.
    pub arms: BTreeMap<String, ArmModel>,
    /// How all others behave.
    pub others: ArmModel,
    /// What all arms share.
    pub machine: Machine,
    /// What sends the load.
    pub generator: Generator,
    /// How many hosts send it, each its share; at least 1.
    pub generators: usize,
    /// How finely it is played.
    pub grain: Grain,
    /// What its agent tells that is not so.
    pub told: Told,
}

/// Addresses that an agent tells instead of its own, as that of a host may which somebody has taken over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Where arms listen in clear.
    pub listen: Option<SocketAddr>,
    /// Where they listen over TLS.
    pub tls_listen: Option<SocketAddr>,
    /// Where the origin server listens.
    pub origin: Option<SocketAddr>,
}

/// How finely a host is played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Grain {
    /// Request by request.
    #[default]
    Requests,
    /// A slice of a closed loop as a whole, to an arm without faults and errors: as many answers as its workers have
    /// time for, scattered as those of independent requests are. All else is played by requests.
    Slices,
}

impl Default for Model {
    /// Arms that are all alike, on a machine and with a generator without faults.
    fn default() -> Model {
        Model {
            seed: 1,
            arms: BTreeMap::new(),
            others: ArmModel::default(),
            machine: Machine::default(),
            generator: Generator::default(),
            generators: 1,
            grain: Grain::default(),
            told: Told::default(),
        }
    }
}

/// How an arm behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmModel {
    /// How long a worker is busy with a request.
    pub service: Distribution,
    /// Requests that are worked on at the same time; the others wait in order. The arm's capacity is
    /// this over the mean of `service`.
    pub workers: usize,
    /// Share of the service time that is CPU time of the proxy, 0..1.
    pub cpu_share: f64,
    /// What makes its requests take longer or shorter for a while.
    pub noise: Noise,
    /// How much two instances of its proxy differ: standard deviation of the logarithm of the service
    /// time, drawn anew when one starts.
    pub instance_sd: f64,
    /// It is slower when it has just started.
    pub slow_start: Option<SlowStart>,
    /// How much slower it gets with every second that it runs: 0.01 is one per cent of what it was at the
    /// start.
    pub leak_per_s: f64,
    /// How much longer its requests take for every other arm that runs: 0.01 is one per cent.
    pub crowding: f64,
    /// What its system remembers of connections that have ended.
    pub time_wait: Option<TimeWait>,
    /// Responses that are errors.
    pub errors: Errors,
    /// What goes wrong at a time.
    pub faults: Vec<Fault>,
}

impl Default for ArmModel {
    /// One worker that carries 2,000 requests/s; service times spread by a tenth.
    fn default() -> ArmModel {
        ArmModel {
            service: Distribution::LogNormal {
                median_ns: 500e3,
                sigma: 0.1,
            },
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
    /// The same, with service times that are so many times as long.
    pub fn slower(&self, factor: f64) -> ArmModel {
        ArmModel {
            service: self.service.times(factor),
            ..self.clone()
        }
    }
}

/// A distribution of times, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Always the same.
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
    /// Most are quick, some take long.
    Bimodal {
        /// The quick ones, nanoseconds.
        quick_ns: f64,
        /// The others, nanoseconds.
        slow_ns: f64,
        /// Share of the others, 0..1.
        slow_share: f64,
    },
}

impl Distribution {
    /// Mean and standard deviation, nanoseconds.
    pub fn moments(self) -> (f64, f64) {
        match self {
            Distribution::Fixed(ns) => (ns, 0.0),
            Distribution::Exponential { mean_ns } => (mean_ns, mean_ns),
            Distribution::LogNormal { median_ns, sigma } => {
                let mean = median_ns * (0.5 * sigma * sigma).exp();
                (mean, mean * (sigma * sigma).exp_m1().sqrt())
            }
            Distribution::Bimodal {
                quick_ns,
                slow_ns,
                slow_share,
            } => (
                quick_ns + slow_share * (slow_ns - quick_ns),
                (slow_share * (1.0 - slow_share)).sqrt() * (slow_ns - quick_ns),
            ),
        }
    }

    /// All times multiplied.
    pub fn times(self, factor: f64) -> Distribution {
        match self {
            Distribution::Fixed(ns) => Distribution::Fixed(ns * factor),
            Distribution::Exponential { mean_ns } => Distribution::Exponential {
                mean_ns: mean_ns * factor,
            },
            Distribution::LogNormal { median_ns, sigma } => Distribution::LogNormal {
                median_ns: median_ns * factor,
                sigma,
            },
            Distribution::Bimodal {
                quick_ns,
                slow_ns,
                slow_share,
            } => Distribution::Bimodal {
                quick_ns: quick_ns * factor,
                slow_ns: slow_ns * factor,
                slow_share,
            },
        }
    }
}

/// What makes requests take longer or shorter for a while; factors multiply. Times are seconds of the world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Noise {
    /// Standard deviation of the logarithm, drawn anew for each slice.
    pub white: f64,
    /// Change of the logarithm per second.
    pub drift_per_s: f64,
    /// What stays for a while.
    pub correlated: Option<Correlated>,
    /// What comes now and then.
    pub bursts: Option<Bursts>,
    /// From so many seconds on, this factor.
    pub steps: Vec<(f64, f64)>,
    /// Slices that take longer by themselves.
    pub outliers: Option<Outliers>,
    /// Degrees of freedom of Student's t, of which `white` is then the scale; 0: normal.
    pub freedom: u32,
}

/// Slices that take longer, each whatever the one before did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outliers {
    /// Their share, 0..1.
    pub share: f64,
    /// How much longer.
    pub factor: f64,
}

/// Noise that is nearly the same a moment later: an Ornstein-Uhlenbeck process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlated {
    /// Standard deviation of the logarithm in the long run.
    pub sd: f64,
    /// Time after which the correlation has fallen to 1/e, seconds.
    pub time_s: f64,
}

/// Times in which everything takes longer, which come at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bursts {
    /// Mean time from the end of one to the begin of the next, seconds.
    pub every_s: f64,
    /// Mean length, seconds.
    pub length_s: f64,
    /// How much longer.
    pub factor: f64,
}

/// Slower when it has just started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowStart {
    /// How much slower the first request is.
    pub factor: f64,
    /// Seconds after which the excess has fallen to 1/e.
    pub time_s: f64,
}

/// Connections to the origin that stay in TIME_WAIT, and what that costs once there are too many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeWait {
    /// Connections that end with each request, mean.
    pub per_request: f64,
    /// How long each is remembered, seconds.
    pub lasts_s: f64,
    /// How many there is room for.
    pub room: f64,
    /// How much longer requests take beyond that.
    pub factor: f64,
}

/// Responses of status 502, which come in runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Errors {
    /// Share of all responses in the long run, 0..1.
    pub share: f64,
    /// Mean number of errors in a row; below 1 counts as 1.
    pub run: f64,
}

/// What goes wrong. Times are seconds of the world, which begins when the run does.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The proxy does not start, and says this.
    DoesNotStart(String),
    /// The proxy ends by itself.
    Crash {
        /// When, seconds.
        at_s: f64,
    },
    /// Connections are refused.
    Refuse(Range<f64>),
    /// Nothing is answered until it is over.
    Stall(Range<f64>),
}

/// What all arms share.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// What makes requests of all arms take longer or shorter.
    pub noise: Noise,
    /// Times in which a CPU stands still.
    pub hold_ups: Option<HoldUps>,
    /// Share of the CPUs' time that a hypervisor takes, 0..1.
    pub steal: f64,
    /// CPUs; half of them are the proxies'.
    pub cpus: u32,
}

/// Times in which a CPU stands still, at random; each as long as any other between two bounds. As often it is the
/// proxies' CPU as the generator's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldUps {
    /// In a second, on average, both CPUs together.
    pub per_s: f64,
    /// Shortest and longest, nanoseconds.
    pub length_ns: (f64, f64),
    /// Time between the interrupts of a meter on each CPU, nanoseconds; 0: without meters.
    pub meter_ns: f64,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            noise: Noise::default(),
            hold_ups: None,
            steal: 0.0,
            cpus: 4,
        }
    }
}

/// What sends the load.
#[derive(Debug, Clone, PartialEq)]
pub struct Generator {
    /// How late it sends what is due.
    pub lag: Distribution,
    /// Times in which it sends nothing: (seconds of the world, length in seconds).
    pub held_up: Vec<(f64, f64)>,
    /// CPU time of a request, nanoseconds.
    pub cpu_ns: f64,
    /// How late counters are read, nanoseconds.
    pub late_ns: u64,
    /// Of several generators: how much later than the first the others say that they have started, nanoseconds.
    pub apart_ns: u64,
}

impl Default for Generator {
    fn default() -> Generator {
        Generator {
            lag: Distribution::Fixed(10e3),
            held_up: Vec::new(),
            cpu_ns: 10e3,
            late_ns: 20_000,
            apart_ns: 0,
        }
    }
}
