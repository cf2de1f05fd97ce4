//! What several tests need: an origin server, a trial, an nginx.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use weir_load::{Control, Flow, LoadError, Outcome, Plan, RequestSet, SliceData, run};
use weir_model::load::Arrivals;
use weir_origin::{Origin, OriginConfig};

/// Longest that anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// An origin server at a port that the kernel chooses.
pub(crate) fn origin(change: impl FnOnce(&mut OriginConfig)) -> Origin {
    let mut config = OriginConfig::new(vec![(Ipv4Addr::LOCALHOST, 0).into()]);
    change(&mut config);
    Origin::start(config).expect("the origin server starts")
}

/// A closed loop of so many requests.
pub(crate) fn flow(peer: SocketAddr, request: &str, connections: u32, limit: u64) -> Flow {
    let requests = RequestSet::plain(request.as_bytes().to_vec(), request.starts_with("HEAD"));
    let mut flow = Flow::new(peer, requests, connections, Arrivals::Closed);
    flow.timeout = PATIENCE;
    flow.limit = Some(limit);
    flow
}

/// Carries a plan out: what its first flow counted, and what is left beside it.
pub(crate) fn measure(plan: &Plan) -> Result<(SliceData, Outcome), LoadError> {
    let control = Control::new(plan.cpus.len(), Arc::new(AtomicBool::new(false)));
    let mut all = SliceData::new();
    let outcome = run(plan, &control, None, |_, data| all.add(&data[0]))?;
    Ok((all, outcome))
}

/// An nginx, until it is dropped.
pub(crate) struct Nginx {
    process: Child,
    address: SocketAddr,
}

impl Nginx {
    /// One with these lines in its server, which has its files in a folder. `listen` is what stands
    /// behind its address.
    pub(crate) fn start(folder: &Path, listen: &str, lines: &str) -> Nginx {
        // An address of this process's own: nobody takes the port before nginx does.
        let [.., high, low] = std::process::id().to_be_bytes();
        let free = TcpListener::bind((Ipv4Addr::new(127, 77, high, low), 0)).expect("a port");
        let address = free.local_addr().expect("its number");
        drop(free);
        let mut temporary = String::new();
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            write!(temporary, "{kind}_temp_path {kind}; ").expect("memory");
        }
        let configuration = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr crit; events {{}}\n\
             http {{ access_log off; {temporary}\nserver {{ listen {address} {listen}; {lines} }} }}"
        );
        std::fs::write(folder.join("nginx.conf"), configuration).expect("a file");
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-p").arg(folder);
        command.args(["-e", "stderr", "-c", "nginx.conf"]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let process = process.expect("nginx starts");
        Nginx { process, address }
    }

    /// A connection, as soon as there can be one.
    pub(crate) fn connect(&self) -> TcpStream {
        let begun = Instant::now();
        loop {
            match TcpStream::connect(self.address) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                    return stream;
                }
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
