//! Arguments of `weir load`.

use std::path::PathBuf;

use super::{PodArgs, ProgressArgs, SshArgs};
use clap::{Args as ClapArgs, Parser, ValueEnum};
use weir_model::quantity::parse_count;

const SERVER: &str = "Server";
const LOAD: &str = "Load";
const REQUESTS: &str = "Requests";
const CONNECTIONS: &str = "Connections";
const TLS: &str = "TLS";

#[derive(Debug, ClapArgs)]
#[command(
    allow_negative_numbers = true,
    after_help = "-t -c -d -R -H -L -T are as in wrk2. Without -R the loop is closed: each connection \
sends its next request as soon as the last one was answered. With -R it is open: requests are due at fixed times, \
whatever the server does, and response_time starts when a request is due.

Exit codes: 0 done, 1 failed (nobody listens, the name does not resolve, TLS fails, nothing was answered), or the result \
does not allow to judge --fail-if, 2 bad input, 3 a --fail-if condition is true, 130 interrupted.

docs/load.md explains every option, with examples."
)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) flow: FlowArgs,

    /// Another load at the same time: a name, a colon, and options as here: 'held: -c 10000
    /// --connection hold'; repeatable
    #[arg(long = "flow", value_name = "NAME: OPTIONS")]
    pub(crate) flows: Vec<String>,

    /// Threads (of each generator), each pinned to a CPU [default: one for each CPU weir may use, at most one for each
    /// connection, and more if one thread cannot have enough descriptors]
    #[arg(short, long, value_name = "N", value_parser = count::<u32>)]
    pub(crate) threads: Option<u32>,

    /// CPUs for the threads, one each, such as 0,2-3; instead of -t
    #[arg(long, value_name = "CPUS", conflicts_with = "threads")]
    pub(crate) cpus: Option<String>,

    /// Time to measure: 10s, 2m, 1h; a bare number is seconds [default: 10s, or as long as -n or --trace takes]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<String>,

    /// Let the load grow from zero during this time, which is not measured
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) ramp_up: String,

    /// Confirm that the server is yours, or that its owner agrees: needed for more than 100 requests/s or connections to
    /// a public address
    #[arg(long)]
    pub(crate) yes_this_is_mine: bool,

    /// Say what limits the server, from samples of this host and the server's, one per second
    #[arg(long)]
    pub(crate) observe: bool,

    /// Send from other hosts, named as for ssh, each of which gets its share: generator=HOST,HOST; or name the server's
    /// host for --observe, if it is not this one: proxy=HOST
    #[arg(long, value_name = "ROLE=HOST")]
    pub(crate) place: Vec<String>,

    #[command(flatten)]
    pub(crate) ssh: SshArgs,

    #[command(flatten)]
    pub(crate) pods: PodArgs,

    /// Kernel interface: io_uring, or epoll through libc; auto: io_uring in closed loops if
    /// it is allowed
    #[arg(long, value_enum, default_value_t = IoChoice::Auto)]
    pub(crate) io: IoChoice,

    /// Time that a thread is awake before each arrival, so that the request is sent on time. auto: as long as wake-ups
    /// are late on this machine, within 5 % of a CPU; 0s: never; 60us: always so long
    #[arg(long, value_name = "TIME", default_value = "auto")]
    pub(crate) spin: String,

    /// Exit with code 3 if this is true: 'p99 > 30ms', 'mean > 5ms', 'errors > 0.1%', 'rate < 5000/s', each also
    /// in windows ('p99 > 30ms in 10s': in any of them), 'invalid' or 'suspect'; may be given many times
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<String>,

    /// Write the conditions of --fail-if to a file as JUnit XML, which CI servers show as test results
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub(crate) junit: Option<PathBuf>,

    /// Print the whole percentile spectrum
    #[arg(short = 'L', long)]
    pub(crate) latency: bool,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = LoadFormat::Text)]
    pub(crate) format: LoadFormat,

    /// Write the result to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Tell the figures of every interval of so many seconds: with --format jsonl a line each, where the result goes;
    /// else as lines on standard error [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<String>,

    #[command(flatten)]
    pub(crate) progress: ProgressArgs,

    /// Measure the generator itself on this machine and store the result (-d: length of each of the
    /// 22 runs, default 1s)
    #[arg(long)]
    pub(crate) calibrate: bool,

    /// Fixed bytes, nothing parsed or recorded: the least that a request can cost
    #[arg(long, hide = true)]
    pub(crate) floor: bool,
}

/// One flow of load: all that may differ between loads at the same time.
#[derive(Debug, Clone, Default, PartialEq, ClapArgs)]
pub(crate) struct FlowArgs {
    /// URL to send requests to, for example http://127.0.0.1:8080/index.html; with --on also ingress/NAME or
    /// ingress/NAMESPACE/NAME, an Ingress of the cluster
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Addresses to connect to instead of the URL's, in turn: 10.0.0.1:8080,10.0.0.2:8080
    #[arg(long, value_name = "ADDRESSES", help_heading = SERVER)]
    pub(crate) to: Option<String>,

    /// Local addresses to connect from, in turn: 127.0.0.2-127.0.0.9 or 10.1.0.0/28; each has its own
    /// range of ports
    #[arg(long, value_name = "ADDRESSES", help_heading = SERVER)]
    pub(crate) source: Option<String>,

    /// Connections over all threads, such as 200 or 2k [default: 50]
    #[arg(short, long, value_name = "N", value_parser = count::<u32>, help_heading = CONNECTIONS)]
    pub(crate) connections: Option<u32>,

    /// For how long a connection is used: keep-alive, per-request, a number of requests, a time, hold
    /// (opened and never used), or hold:TIME (used once in that time) [default: keep-alive]
    #[arg(long, value_name = "POLICY", help_heading = CONNECTIONS)]
    pub(crate) connection: Option<String>,

    /// Way to close a connection that has served its time: as clients do (fin), or by a reset, which leaves TIME_WAIT
    /// on neither side and is another load [default: fin]
    #[arg(long, value_enum, value_name = "HOW", help_heading = CONNECTIONS)]
    pub(crate) close: Option<CloseChoice>,

    /// Open at most this many connections per second, before and during the trial; not with per-request, where
    /// -R is their rate
    #[arg(long, value_name = "RATE", help_heading = CONNECTIONS)]
    pub(crate) connect_rate: Option<String>,

    /// Send up to this many requests without waiting on a connection: HTTP/1.1 pipelining [default: 1]
    #[arg(long, value_name = "N", value_parser = count::<u16>, help_heading = CONNECTIONS)]
    pub(crate) pipeline: Option<u16>,

    /// Requests per second over all threads: 2000, 100..5000 (growing), 1000,2000,3000 (steps), or
    /// 1000@10s,2000@20s
    #[arg(short = 'R', long, value_name = "RATE", help_heading = LOAD)]
    pub(crate) rate: Option<String>,

    /// Spread of arrivals: even, poisson, poisson:SEED, or burst:N [default: even]
    #[arg(long, value_name = "SPACING", help_heading = LOAD)]
    pub(crate) arrivals: Option<String>,

    /// File of timestamps, access log or HAR file to replay, with its methods and paths; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "rate", help_heading = LOAD)]
    pub(crate) trace: Option<PathBuf>,

    /// Replay the trace this many times as fast
    #[arg(long, value_name = "FACTOR", requires = "trace", help_heading = LOAD)]
    pub(crate) trace_speed: Option<String>,

    /// Connection that sends a request that is due: any idle one (global), or a fixed one (per-connection, as in wrk2)
    /// [default: global]
    #[arg(long, value_enum, value_name = "KIND", help_heading = LOAD)]
    pub(crate) schedule: Option<ScheduleChoice>,

    /// A request that is due while no connection is idle: wait (queue), or leave it out and count it (drop)
    /// [default: queue]
    #[arg(long, value_enum, value_name = "KIND", help_heading = LOAD)]
    pub(crate) overflow: Option<OverflowChoice>,

    /// Stop after this many requests, such as 500, 10k or 1M
    #[arg(short = 'n', long, value_name = "N", value_parser = count::<u64>, help_heading = LOAD)]
    pub(crate) requests: Option<u64>,

    /// Time for a response, and for opening a connection, after which it counts as failed
    /// [default: 2s]
    #[arg(short = 'T', long, value_name = "TIME", help_heading = LOAD)]
    pub(crate) timeout: Option<String>,

    /// Header to send, `Name: value`; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = REQUESTS)]
    pub(crate) fields: Vec<String>,

    /// Method [default: GET]
    #[arg(short, long, value_name = "METHOD", help_heading = REQUESTS)]
    pub(crate) method: Option<String>,

    /// Body to send with each request
    #[arg(
        short = 'b',
        long,
        value_name = "TEXT",
        conflicts_with = "content_file",
        help_heading = REQUESTS
    )]
    pub(crate) content: Option<String>,

    /// File to send as the body of each request
    #[arg(long, value_name = "FILE", help_heading = REQUESTS)]
    pub(crate) content_file: Option<PathBuf>,

    /// File with several kinds of requests and their weights, or a HAR file
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["content", "content_file", "method"],
        help_heading = REQUESTS
    )]
    pub(crate) request_set: Option<PathBuf>,

    /// Condition on a response, without which it counts as failed: status=200, status=2xx,304 (any of them), size=1KiB,
    /// sha256=HEX, or field=Name: value; repeatable
    #[arg(short, long, value_name = "WHAT", help_heading = REQUESTS)]
    pub(crate) expect: Vec<String>,

    /// Accept any certificate
    #[arg(short = 'k', long, conflicts_with = "ca", help_heading = TLS)]
    pub(crate) insecure: bool,

    /// File of certificates to trust instead of the system's
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    pub(crate) ca: Option<PathBuf>,

    /// Client certificate
    #[arg(long, value_name = "FILE", requires = "key", help_heading = TLS)]
    pub(crate) cert: Option<PathBuf>,

    /// Key of the client certificate
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = TLS)]
    pub(crate) key: Option<PathBuf>,

    /// Versions to offer: 1.2, 1.3 or 1.2,1.3 [default: both]
    #[arg(long, value_name = "VERSIONS", help_heading = TLS)]
    pub(crate) tls: Option<String>,

    /// Ciphers to offer, by their OpenSSL or IANA names
    #[arg(long, value_name = "NAMES", help_heading = TLS)]
    pub(crate) ciphers: Option<String>,

    /// Key exchange groups to offer, such as x25519, secp256r1 or X25519MLKEM768
    #[arg(long, value_name = "NAMES", help_heading = TLS)]
    pub(crate) groups: Option<String>,

    /// Protocols to offer (ALPN) [default: http/1.1]
    #[arg(long, value_name = "NAMES", help_heading = TLS)]
    pub(crate) alpn: Option<String>,

    /// Server name to ask for (SNI) and to find in the certificate [default: the URL's]
    #[arg(long, value_name = "NAME", help_heading = TLS)]
    pub(crate) sni: Option<String>,

    /// Share of new connections that resume an earlier session: off, on, or a share such as 80% [default: off]
    #[arg(long, value_name = "SHARE", help_heading = TLS)]
    pub(crate) resumption: Option<String>,

    /// Send requests as early data of resumed TLS 1.3 connections
    #[arg(long, help_heading = TLS)]
    pub(crate) early_data: bool,
}

/// Reads how many, for options that take no more than `T` holds.
fn count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    T::try_from(count).map_err(|_| format!("`{text}` is too large"))
}

/// The options of a `--flow`.
#[derive(Debug, Parser)]
#[command(
    name = "--flow",
    no_binary_name = true,
    disable_help_flag = true,
    allow_negative_numbers = true,
    override_usage = "--flow 'NAME: [OPTIONS] [URL]'"
)]
pub(crate) struct FlowText {
    #[command(flatten)]
    pub(crate) flow: FlowArgs,
}

impl FlowArgs {
    /// Takes options that were not given from `base`: those about the server and TLS, not those about the amount of
    /// load.
    pub(crate) fn inherit(mut self, base: &FlowArgs) -> FlowArgs {
        fn take<T: Clone>(own: &mut Option<T>, base: &Option<T>) {
            if own.is_none() {
                own.clone_from(base);
            }
        }
        take(&mut self.url, &base.url);
        take(&mut self.to, &base.to);
        take(&mut self.source, &base.source);
        take(&mut self.timeout, &base.timeout);
        if self.fields.is_empty() {
            self.fields.clone_from(&base.fields);
        }
        if !self.url.as_ref().is_some_and(|url| url.to_ascii_lowercase().starts_with("https:")) {
            // In clear there is nothing for the rest.
            return self;
        }
        if self.ca.is_none() && !self.insecure {
            self.ca.clone_from(&base.ca);
            self.insecure = base.insecure;
        }
        take(&mut self.cert, &base.cert);
        take(&mut self.key, &base.key);
        take(&mut self.tls, &base.tls);
        take(&mut self.ciphers, &base.ciphers);
        take(&mut self.groups, &base.groups);
        take(&mut self.alpn, &base.alpn);
        take(&mut self.sni, &base.sni);
        take(&mut self.resumption, &base.resumption);
        self.early_data |= base.early_data;
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadFormat {
    /// A summary for people.
    Text,
    /// The whole result with lossless histograms (docs/load-format.md).
    Json,
    /// A row for the load and for each of its flows (docs/csv.md).
    Csv,
    /// A line of JSON for each interval (--every) as soon as it has ended, and the result as the last one
    /// (docs/progress.md).
    Jsonl,
    /// In the format of `wrk2 --latency`.
    Wrk2,
    /// Percentile spectrum of the response time for HdrHistogram plotters.
    Hgrm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IoChoice {
    /// Whichever serves better and is allowed here.
    Auto,
    /// io_uring, or an error that says why not.
    Uring,
    /// epoll and plain system calls.
    Epoll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScheduleChoice {
    /// Any idle connection sends what is due.
    Global,
    /// Each arrival belongs to a connection and waits for it.
    PerConnection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CloseChoice {
    /// In order, as clients do.
    Fin,
    /// By a reset.
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverflowChoice {
    /// It waits, and its response time runs.
    Queue,
    /// It is left out, and counted.
    Drop,
}
