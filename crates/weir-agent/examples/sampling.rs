//! Effect of sampling on the measured proxy: its rate and p99 while its host is sampled, compared with those while it
//! is not.
//!
//! ```text
//! sampling WEIR FILE [SECONDS [closed | open | RATE [1 | 10]]]
//! ```
//!
//! One nginx, started like an arm of a run, has the load all the time. Slices differ only in their sampling: none, 1 Hz
//! or 10 Hz, as in a run, in the order of weir's blocks. With a last argument, only that rate is compared with none,
//! which gives more blocks in the same time. Ratios by block are appended to FILE, and the verdict is computed from all
//! ratios in FILE, with weir's estimate and rule. At the end, the CPU time of a sampler under the same load is
//! measured. In an open loop the origin server answers after 1 to 5 ms, as an application does; without this delay, the
//! p99 would mostly show other work on the machine.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use weir_agent::client::Client;
use weir_agent::message::{
    ArmJob, FlowJob, LoadEnd, LoadEvent, LoadJob, NetworksJob, OriginJob, OriginListener,
    SampleEnd, SampleJob, SliceJob,
};
use weir_agent::server::Options;
use weir_agent::{Part, local, monotonic_ns};
use weir_load::SliceData;
use weir_model::flow::{ArrivalsSpec, FlowSpec};
use weir_model::load::Arrivals;
use weir_model::quantity::CpuSet;
use weir_model::spin::Spin;
use weir_model::study::{DelaySpec, OriginSpec, ProxyKind, ProxyRole, Settings};
use weir_parameters::Catalog;
use weir_stats::{Estimate, Evidence, SignedRank, SplitMix64};
use weir_sut::Launcher;

/// Compared samplings: name and interval between readings (`None`: no sampling). The first is the baseline.
const SAMPLINGS: [(&str, Option<Duration>); 3] = [
    ("off", None),
    ("1 Hz", Some(Duration::from_secs(1))),
    ("10 Hz", Some(Duration::from_millis(100))),
];

/// Length of a slice, and the unmeasured part at its beginning (`SETTLE_NS`), which covers the last reading of the
/// slice before and the first of this one; the first opens everything. The rest has as many readings as the same time
/// in a long trial: one at 1 Hz, ten at 10 Hz.
const SLICE_NS: u64 = 1_250_000_000;
const SETTLE_NS: u64 = 250_000_000;
/// Connections of each sampling, all to the same listener. They are used during that sampling's slices.
const CONNECTIONS: u32 = 30;
/// Rate of the open loop as a share of the rate completed in a closed loop, and how long the latter is measured
/// (`LOOK_NS`).
const SHARE: f64 = 0.6;
const LOOK_NS: u64 = 4_000_000_000;
/// Delay of the origin server's answers in an open loop.
const DELAY: DelaySpec = DelaySpec::Uniform(Duration::from_millis(1), Duration::from_millis(5));
/// Time over which a sampler's CPU time is measured.
const COST: Duration = Duration::from_secs(12);
/// Differences too small to matter, for the rate (closed loop) and the p99 (open loop): name, band, and true if higher
/// is better.
const BANDS: [(&str, f64, bool); 2] = [("closed", 0.01, true), ("open", 0.03, false)];
const CONFIDENCE: f64 = 0.95;
/// Index of status 200 among the statuses, which start at 100.
const RIGHT: usize = 100;
const LATEST: Duration = Duration::from_secs(30);

type Error = Box<dyn std::error::Error>;

/// Callback at the beginning of each slice, with the slice's sampling; `None` after the last slice.
type Turn<'a> = &'a mut dyn FnMut(&Bench, Option<usize>) -> Result<(), Error>;

/// Arrival of requests: closed loop, open at [`SHARE`] of the closed rate, or open at a given rate per second.
enum Rate {
    Closed,
    Share,
    Of(f64),
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args_os().skip(1);
    let (weir, file) = arguments
        .next()
        .map(PathBuf::from)
        .zip(arguments.next().map(PathBuf::from))
        .ok_or("sampling WEIR FILE [SECONDS [closed | open | RATE [1 | 10]]]")?;
    let mut words = arguments.map(|word| word.to_string_lossy().into_owned());
    let seconds: u64 = words.next().map_or(Ok(60), |word| word.parse())?;
    // Closed, open at a share of what is carried, or open at so many requests per second.
    let rate = match words.next().as_deref() {
        None | Some("closed") => Rate::Closed,
        Some("open") => Rate::Share,
        Some(rate) => Rate::Of(rate.parse()?),
    };
    let samplings = match words.next().as_deref() {
        None => vec![0, 1, 2],
        Some("1") => vec![0, 1],
        Some("10") => vec![0, 2],
        Some(_) => return Err("1 or 10 readings in a second".into()),
    };
    let mut out = io::stdout().lock();
    let delay = match rate {
        Rate::Closed => DelaySpec::None,
        Rate::Share | Rate::Of(_) => DELAY,
    };
    let bench = Bench::start(weir, delay)?;
    let mut seed = SplitMix64::new(monotonic_ns());
    let alone = bench.load(&[0], LOOK_NS, None, &mut |_, _| Ok(()))?;
    let closed = alone[0].completed as f64 / (LOOK_NS - SETTLE_NS) as f64 * 1e9;
    writeln!(out, "{closed:.0} requests/s in a closed loop")?;
    let rate = match rate {
        Rate::Closed => None,
        Rate::Share => Some(SHARE * closed),
        Rate::Of(rate) => Some(rate),
    };
    let is_open = rate.is_some();
    let blocks = seconds * 1_000_000_000 / (2 * samplings.len() as u64 * SLICE_NS);
    let order: Vec<usize> = (0..blocks.max(1))
        .flat_map(|_| weir_stats::block_order(samplings.len(), &mut seed))
        .map(|place| samplings[place])
        .collect();
    let mut going: Option<u64> = None;
    let slices = bench.load(&order, SLICE_NS, rate, &mut |bench, turn| {
        if let Some(id) = going.take() {
            bench.agent.stop(id);
        }
        if let Some(interval) = turn.and_then(|arm| SAMPLINGS[arm].1) {
            going = Some(bench.agent.begin(bench.samples(interval), |_| {})?);
        }
        Ok(())
    })?;
    let name = BANDS[usize::from(is_open)].0;
    let ratios = compute_ratios(&order, &samplings, &slices, is_open);
    append(&file, &name_of(name), &ratios)?;
    verdicts(&mut out, &file)?;
    bench.cost(&mut out)
}

/// Returns the name under which the ratios of this invocation are filed. It contains the process number, since each
/// invocation has its own instance of the proxy.
fn name_of(load: &str) -> String {
    format!("{load}\t{}", std::process::id())
}

/// An agent in this process with a proxy and its origin server, started as in a run.
struct Bench {
    agent: Client,
    cpu: u32,
    peer: SocketAddr,
}

impl Bench {
    fn start(weir: PathBuf, delay: DelaySpec) -> Result<Bench, Error> {
        let agent = local::start(Options {
            weir: "sampling".to_owned(),
            launcher: Launcher::new(weir),
            catalog: Catalog::builtin(),
            silence: None,
            stop: Arc::default(),
        })?;
        let allowed = weir_probe::allowed_cpus()?;
        let (Some(&first), Some(&last)) = (allowed.cpus().first(), allowed.cpus().last()) else {
            return Err("no CPUs".into());
        };
        let [load_cpus, proxy_cpus] =
            [first, last].map(|cpu| CpuSet::new(vec![cpu]).ok_or("no CPU"));
        // The proxy has one of its own, as in a run on two.
        let (others, proxy_cpus) = (load_cpus?, proxy_cpus?);
        agent.keep_to(&others);
        if weir_host::may_have_networks().is_ok() {
            let (mtu, sources) = (1500, 1);
            agent.ask(NetworksJob { mtu, sources })?;
        }
        agent.ask(OriginJob {
            spec: OriginSpec { delay, ..OriginSpec::default() },
            sizes: Vec::new(),
            address: Ipv4Addr::LOCALHOST.into(),
            cpus: others,
            descriptors: 1024,
        })?;
        let origin = agent.ask(OriginListener { slot: 0, taken: 0 })?;
        let set = [
            ("worker_processes", "1"),
            ("origin_keepalive", "128"),
            ("access_log", "off"),
            ("keepalive_requests", "10000000"),
        ]
        .map(|(name, level)| (name.to_owned(), level.to_owned()));
        let started = agent.ask(ArmJob {
            slot: 0,
            name: "nginx".to_owned(),
            kind: ProxyKind::Nginx,
            executable: None,
            role: ProxyRole::ReverseProxy,
            settings: Settings::from(set),
            own: None,
            request_log: false,
            asks: Vec::new(),
            external: None,
            launcher: None,
            address: Ipv4Addr::LOCALHOST.into(),
            tls: false,
            origin: Some(origin),
            sizes: Vec::new(),
            cpus: proxy_cpus,
            nofile: 1024,
        })?;
        Ok(Bench { agent, cpu: first, peer: started.listen })
    }

    fn samples(&self, interval: Duration) -> SampleJob {
        SampleJob {
            interval,
            generator: true,
            proxies: vec![0],
            origin: true,
            requests: false,
            external: None,
        }
    }

    fn flow(&self, arm: usize, rate: Option<f64>) -> FlowJob {
        let (spec, arrivals) = match rate {
            None => (ArrivalsSpec::Closed, Arrivals::Closed),
            Some(rate) => (ArrivalsSpec::Constant(rate), Arrivals::Constant { rate }),
        };
        FlowJob {
            arm,
            peer: self.peer,
            also: Vec::new(),
            host: "sampling".to_owned(),
            trust: String::new(),
            spec: FlowSpec::new(CONNECTIONS, spec),
            arrivals,
            every_ns: None,
            trace: None,
            sources: Vec::new(),
            keeps_content: false,
        }
    }

    /// Puts the proxy under load in slices of this order. `turn` is called when a slice begins, and with `None` at the
    /// end.
    fn load(
        &self,
        order: &[usize],
        slice_ns: u64,
        rate: Option<f64>,
        turn: Turn<'_>,
    ) -> Result<Vec<SliceData>, Error> {
        let arms = order.iter().max().map_or(0, |last| last + 1);
        let (send, told) = channel();
        let job = LoadJob {
            flows: (0..arms).map(|arm| self.flow(arm, rate)).collect(),
            slices: order
                .iter()
                .enumerate()
                .map(|(index, &arm)| {
                    let start = index as u64 * slice_ns;
                    SliceJob { arm, start, measure_from: start + SETTLE_NS, end: start + slice_ns }
                })
                .collect(),
            drain: Duration::from_secs(2),
            spin: Spin::OFF,
            threads: vec![Some(self.cpu)],
            descriptors: 1024,
            ..LoadJob::default()
        };
        self.agent.begin(job, move |part| drop(send.send(part)))?;
        let Part::Event(LoadEvent::Started { at_ns }) = told.recv_timeout(LATEST)? else {
            return Err("the load did not begin".into());
        };
        for (place, &arm) in order.iter().enumerate() {
            wait_until(at_ns + place as u64 * slice_ns);
            turn(self, Some(arm))?;
        }
        wait_until(at_ns + order.len() as u64 * slice_ns);
        turn(self, None)?;
        counted(&told, order.len())
    }

    /// Prints the share of a CPU that a sampler takes, including its start and end.
    fn cost(&self, out: &mut impl Write) -> Result<(), Error> {
        for (name, interval) in SAMPLINGS {
            let Some(interval) = interval else { continue };
            let (send, told) = channel();
            let mut id = None;
            self.load(&[0], COST.as_nanos() as u64, None, &mut |bench, turn| {
                match (turn, id) {
                    (None, Some(id)) => bench.agent.stop(id),
                    (None, None) => {}
                    (Some(_), _) => {
                        let sender = send.clone();
                        let job = bench.samples(interval);
                        id = Some(bench.agent.begin(job, move |part| {
                            if let Part::End(end) = part {
                                drop(sender.send(end));
                            }
                        })?);
                    }
                }
                Ok(())
            })?;
            let SampleEnd { cpu_ns, .. } = told.recv_timeout(LATEST)??;
            let share = cpu_ns as f64 / COST.as_nanos() as f64;
            writeln!(out, "{name}: {:.2} % of a CPU", 100.0 * share)?;
        }
        Ok(())
    }
}

fn wait_until(at_ns: u64) {
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
}

/// Returns the counts of the slices, in their order.
fn counted(told: &Receiver<Part<LoadJob>>, slices: usize) -> Result<Vec<SliceData>, Error> {
    let mut all: BTreeMap<usize, SliceData> = BTreeMap::new();
    loop {
        match told.recv_timeout(LATEST)? {
            Part::Event(LoadEvent::Slice { slice, data, .. }) => drop(all.insert(slice, *data)),
            Part::Event(LoadEvent::Ready | LoadEvent::Started { .. }) => {}
            Part::End(end) => {
                let LoadEnd { errors, .. } = end?;
                let failed: u64 = all
                    .values()
                    .map(|data| {
                        data.errors.total() + data.statuses.iter().sum::<u64>()
                            - data.statuses[RIGHT]
                    })
                    .sum();
                if !errors.is_empty() || failed > 0 || all.len() < slices {
                    return Err(format!("{failed} errors, {} slices", all.len()).into());
                }
                return Ok(all.into_values().collect());
            }
        }
    }
}

/// Returns, for each block and sampling, the ratio of its figure to the figure without sampling: the rate, or the p99
/// (geometric mean of both slices).
fn compute_ratios(
    order: &[usize],
    samplings: &[usize],
    slices: &[SliceData],
    is_open: bool,
) -> Vec<(usize, f64)> {
    let length = 2 * samplings.len();
    let blocks = order.chunks(length).zip(slices.chunks(length));
    blocks
        .flat_map(|(order, slices)| {
            let none = mean_log(order, slices, 0, is_open);
            // Where the machine let neither answer, nothing is known.
            samplings[1..]
                .iter()
                .map(|&arm| (arm, (mean_log(order, slices, arm, is_open) - none).exp()))
                .filter(|(_, ratio)| !ratio.is_nan())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the mean of the logarithms of an arm's two slices in a block: of the 0.99 quantile, or of the requests.
fn mean_log(order: &[usize], slices: &[SliceData], arm: usize, is_open: bool) -> f64 {
    let slices = order.iter().zip(slices).filter(|(turn, _)| **turn == arm);
    let logarithms = slices.map(|(_, data)| {
        let figure = if is_open {
            data.histograms.response.value_at_quantile(0.99) as f64
        } else {
            data.completed as f64
        };
        figure.ln()
    });
    logarithms.sum::<f64>() / 2.0
}

fn append(file: &Path, load: &str, ratios: &[(usize, f64)]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    for (arm, ratio) in ratios {
        writeln!(file, "{load}\t{}\t{ratio}", SAMPLINGS[*arm].0)?;
    }
    Ok(())
}

/// Prints the verdicts computed from all ratios in the file.
fn verdicts(out: &mut impl Write, file: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(file)?;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    writeln!(
        out,
        "| load | sampled | blocks | ratio | interval | verdict |\n|---|---|---|---|---|---|"
    )?;
    let mut tests = SignedRank::new();
    for (load, band, higher_is_better) in BANDS {
        for (name, _) in &SAMPLINGS[1..] {
            let (mut clusters, mut sample): (Vec<usize>, Vec<f64>) = Default::default();
            for row in rows.iter().filter(|row| row[0] == load && row[2] == *name) {
                clusters.push(row[1].parse()?);
                sample.push(weir_stats::relative_difference(row[3].parse()?));
            }
            let Some(it) = Estimate::of(&mut tests, &sample, &clusters, CONFIDENCE) else {
                continue;
            };
            let evidence = Evidence {
                interval: it.interval.ratios(),
                confidence: it.interval.confidence,
                // Of two comparisons (Holm), the stricter.
                p: (2.0 * it.p).min(1.0),
                n: sample.len(),
            };
            let verdict = weir_stats::verdict(&evidence, band, CONFIDENCE, higher_is_better);
            let (low, high) = evidence.interval;
            writeln!(
                out,
                "| {load} | {name} | {} | {:.4} | {low:.4} to {high:.4} | {verdict:?} within ± {:.0} % |",
                sample.len(),
                weir_stats::ratio_of(it.value),
                100.0 * band
            )?;
        }
    }
    Ok(())
}
