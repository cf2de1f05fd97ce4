//! Numbers that are judgements of the doctor, or constants in the kernel's code. Defaults of nginx and of the kernel
//! come from the catalog ([`Shape::nginx_default`](super::shape::Shape::nginx_default)).

/// TCP_TIMEWAIT_LEN of Linux's include/net/tcp.h, seconds: no setting changes it.
pub(super) const TIME_WAIT_S: f64 = 60.0;
/// Seconds after which tcp_tw_reuse lets a tuple be used again (`tcp_twsk_unique` in Linux's net/ipv4/tcp_ipv4.c).
pub(super) const REUSED_AFTER_S: f64 = 1.0;
/// The widest range of local ports that leaves the privileged ports alone.
pub(super) const WIDEST: &str = "1024 65535";
/// First version of nginx that keeps connections to origin servers by default (documentation of `keepalive`).
pub(super) const KEEPS_BY_DEFAULT: [u32; 3] = [1, 29, 7];
/// Judgement: the directive to recommend if no connections to origin servers are kept.
pub(super) const KEPT: &str = "keepalive 64";
/// Judgement: descriptors of a worker other than connections, such as logs, epoll, its channel, listeners.
pub(super) const OF_ITS_OWN: u64 = 32;
/// The longest queue to recommend: 16 bits, the maximum of somaxconn in older kernels (listen(2)).
pub(super) const LONGEST_QUEUE: u64 = 65_535;
/// Judgement: a pause in accepting that any busy worker has now and then, seconds.
pub(super) const PAUSE_S: f64 = 0.1;
/// Judgement: new connections per second above which spreading them over workers matters.
pub(super) const MANY_PER_SECOND: f64 = 1000.0;
/// Judgement: a line that sets tcp_max_tw_buckets below this value lowers it on any host that serves a load.
pub(super) const FEW_TIME_WAIT: u64 = 16_384;
/// The kernel's own tcp_max_tw_buckets on a host with much memory: half of its largest table of
/// connections (`tcp_sk_init` in Linux's net/ipv4/tcp_ipv4.c).
pub(super) const USUAL_TIME_WAIT: &str = "262144";
/// Seconds for which netfilter tracks a closed connection: the default of nf_conntrack_tcp_timeout_time_wait, which
/// kube-proxy leaves alone.
pub(super) const TRACKED_AFTER_CLOSE_S: f64 = 120.0;
