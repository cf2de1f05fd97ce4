//! Tests that observe every socket of every process of a run while copies of configurations run that name their user's
//! servers, logs and resolvers: only addresses of the run itself are contacted, with and without namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::geteuid;
use weir_model::record::Protection;
use weir_probe::process::children;
use weir_testkit::own::{User, study};
use weir_testkit::program::{HasAll, Running, remarks_of, wait_until};
use weir_testkit::sandbox::Sandbox;

/// Address of the planted sockets: one of the loopback that nothing else uses, so that no other test's client, late for
/// a port that it once had, is mistaken for the run's.
const PLANTED: &str = "127.83.29.1";

/// Sockets on the host that must never receive a connection or a datagram.
struct Planted {
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixDatagram,
    path: PathBuf,
}

impl Planted {
    fn new(sandbox: &Sandbox) -> Planted {
        let path = sandbox.path("planted.sock");
        let planted = Planted {
            tcp: TcpListener::bind((PLANTED, 0)).expect("a port"),
            udp: UdpSocket::bind((PLANTED, 0)).expect("a port"),
            unix: UnixDatagram::bind(&path).expect("own folder"),
            path,
        };
        planted.tcp.set_nonblocking(true).expect("a socket");
        planted.udp.set_nonblocking(true).expect("a socket");
        planted.unix.set_nonblocking(true).expect("a socket");
        planted
    }

    /// Replaces `@TCP@`, `@UDP@` and `@UNIX@` by these sockets, and `@PORT@` and `@DATAGRAMS@` by the ports of the
    /// first two at `@ADDRESS@`.
    fn named_in(&self, text: &str) -> String {
        let tcp = self.tcp.local_addr().expect("it is bound");
        let udp = self.udp.local_addr().expect("it is bound");
        text.replace("@TCP@", &tcp.to_string())
            .replace("@UDP@", &udp.to_string())
            .replace("@UNIX@", &self.path.display().to_string())
            .replace("@ADDRESS@", PLANTED)
            .replace("@PORT@", &tcp.port().to_string())
            .replace("@DATAGRAMS@", &udp.port().to_string())
    }

    /// Checks that no connection and no datagram has come.
    #[track_caller]
    fn must_be_alone(&self, kind: &str) {
        let mut byte = [0];
        let tcp = self.tcp.accept().map(|(_, from)| from);
        assert!(
            tcp.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "{kind}: {tcp:?}"
        );
        let udp = self.udp.recv_from(&mut byte);
        assert!(
            udp.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "{kind}: {udp:?}"
        );
        let unix = self.unix.recv(&mut byte);
        assert!(
            unix.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "{kind}: {unix:?}"
        );
    }
}

/// Observed sockets of a run.
#[derive(Default)]
struct SocketSightings {
    /// Number of observations.
    looks: usize,
    /// Ports on which a process of the run listens.
    listened: BTreeSet<u16>,
    /// Local and remote address of each socket that has a peer, with the process that had it.
    connected: BTreeMap<(SocketAddr, SocketAddr), String>,
    /// Network namespaces except the host's, with their default routes.
    default_routes: BTreeMap<PathBuf, Vec<String>>,
}

impl SocketSightings {
    /// Observes all processes below one, itself included.
    fn look(&mut self, root: u32) {
        let host = fs::read_link("/proc/self/ns/net").expect("a namespace");
        let mut processes = vec![root];
        let mut at = 0;
        while let Some(&pid) = processes.get(at) {
            processes.extend(children(pid).unwrap_or_default());
            at += 1;
        }
        let mut networks: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        for pid in &processes {
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                if let Ok(network) = fs::read_link(task.path().join("ns/net")) {
                    networks.entry(network).or_default().push(task.path());
                }
            }
        }
        // A socket may be opened after the first look for owners, or closed before the last.
        let mut owned = owners(&processes);
        let mut networks_read: Vec<(PathBuf, [String; 5])> = Vec::new();
        for (network, tasks) in networks {
            // A thread may end meanwhile, or go to another namespace: then one of the others tells.
            let tables = tasks.iter().find_map(|task| tables(task, &network));
            networks_read.extend(tables.map(|tables| (network, tables)));
        }
        owned.extend(owners(&processes));
        self.looks += 1;
        for (network, [routes, sockets @ ..]) in networks_read {
            for text in &sockets {
                text.lines().skip(1).for_each(|line| self.socket(line, &owned));
            }
            if network != host {
                let routes =
                    routes.lines().filter(|line| line.split('\t').nth(1) == Some("00000000"));
                self.default_routes.entry(network).or_default().extend(routes.map(str::to_owned));
            }
        }
    }

    /// Reads a line of a table of sockets (proc_net(5)).
    fn socket(&mut self, line: &str, owned: &BTreeMap<u64, String>) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[_, local, remote, state, _, _, _, _, _, inode, ..] = &fields[..] else {
            return;
        };
        let owner = inode.parse().ok().and_then(|inode: u64| owned.get(&inode));
        let (Some(owner), Some(local), Some(remote)) = (owner, address(local), address(remote))
        else {
            return;
        };
        const LISTEN: &str = "0A";
        if state == LISTEN {
            self.listened.insert(local.port());
        }
        if remote.port() != 0 {
            self.connected.insert((local, remote), owner.clone());
        }
    }

    /// Checks that all peers are the run's own, and that sockets were observed at all.
    #[track_caller]
    fn must_be_own(&self, kind: &str) {
        assert!(self.connected.len() > 3, "{kind}: in {} looks {:?}", self.looks, self.connected);
        for ((local, remote), owner) in &self.connected {
            // Who was asked is in the first place somebody at such a port; who asked is there as well.
            let is_between = [local, remote].iter().any(|end| self.listened.contains(&end.port()));
            let asks = !self.listened.contains(&local.port());
            let is_at_own_port = !asks || self.listened.contains(&remote.port());
            assert!(
                is_of_a_run(remote.ip()) && is_between && is_at_own_port,
                "{kind}: {owner} is connected from {local} with {remote}"
            );
        }
        for (network, routes) in &self.default_routes {
            assert_eq!(routes, &[""; 0], "{kind}: {network:?}");
        }
    }
}

/// Returns the sockets of processes, by their inodes, with their owners.
fn owners(processes: &[u32]) -> BTreeMap<u64, String> {
    processes
        .iter()
        .flat_map(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let owner = format!("{pid} {name}");
            links(format!("/proc/{pid}/fd"))
                .into_iter()
                .filter_map(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
                .map(|inode| (inode, owner.clone()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the routes and the sockets of a thread's network namespace; `None` if the thread has changed to another one
/// meanwhile.
fn tables(task: &Path, network: &Path) -> Option<[String; 5]> {
    let [route, tcp, tcp6, udp, udp6] = ["route", "tcp", "tcp6", "udp", "udp6"]
        .map(|name| fs::read_to_string(task.join("net").join(name)).ok());
    // Without IPv6 there are no tables of it.
    let tables = [route?, tcp?, tcp6.unwrap_or_default(), udp?, udp6.unwrap_or_default()];
    let now = fs::read_link(task.join("ns/net")).ok()?;
    (now == network).then_some(tables)
}

/// Returns the targets of the links in a folder.
fn links(folder: String) -> Vec<String> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| target.display().to_string())
        .collect()
}

/// Returns true for an address of the loopback, or of those that weir gives its namespaces.
fn is_of_a_run(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || matches!(ip.octets(), [10, 213 | 214, ..]),
        IpAddr::V6(ip) => ip.is_loopback(),
    }
}

/// Parses an address such as `0100007F:1F90`, whose words are in the host's byte order (proc_net(5)).
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let bytes: Vec<u8> = (0..ip.len() / 8)
        .flat_map(|word| u32::from_str_radix(&ip[word * 8..word * 8 + 8], 16))
        .flat_map(u32::to_ne_bytes)
        .collect();
    let ip = match <[u8; 4]>::try_from(&*bytes) {
        Ok(bytes) => IpAddr::from(Ipv4Addr::from(bytes)),
        Err(_) => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(&*bytes).ok()?)),
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Observes a run until it ends.
fn watch(run: Running, kind: &str) -> SocketSightings {
    let (pid, is_over) = (run.pid(), AtomicBool::new(false));
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut sightings = SocketSightings::default();
            while !is_over.load(Ordering::Relaxed) {
                sightings.look(pid);
                thread::sleep(Duration::from_millis(10));
            }
            sightings
        });
        let ended = run.end();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(ended.code, Some(0), "{kind}:\n{}\n{}", ended.stdout, ended.stderr);
        watch.join().expect("the watch does not panic")
    })
}

/// The proxy, the file's name, and a configuration that names the planted sockets wherever it can.
const NAMING: [(&str, &str, &str); 4] = [
    ("nginx", "nginx.conf", include_str!("../data/naming/nginx.conf")),
    ("haproxy", "haproxy.cfg", include_str!("../data/naming/haproxy.cfg")),
    ("envoy", "envoy.yaml", include_str!("../data/naming/envoy.yaml")),
    ("caddy", "caddy.json", include_str!("../data/naming/caddy.json")),
];

fn asks_nobody_else((kind, name, text): (&str, &str, &str), network: &str) {
    let sandbox = Sandbox::new();
    let planted = Planted::new(&sandbox);
    let text = planted.named_in(text);
    let user = User::new(&sandbox, &[(name, &text)]);
    let main = user.path(name);
    let proxy = format!("{{kind: {kind}, configuration: {}}}", main.display());
    let arms = "- {name: limited, settings: {rlimit_nofile: 2048}}\n";
    // With a slow origin connections last long enough to be seen, and tables of sockets stay short enough to be
    // read often.
    let slow = "origin: {delay: 20ms}\n";
    let text = study(&proxy, arms).replace("duration: 2s", "duration: 4s");
    sandbox.write("study.yaml", &(text + slow + network));
    let mut weir = sandbox.weir(&["run", "study.yaml", "--out", "a run"]);
    for variable in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        weir.env(variable, planted.named_in("http://@TCP@"));
    }
    weir.env("NOTIFY_SOCKET", &planted.path);
    let sightings = watch(Running::start(&mut weir), kind);
    sightings.must_be_own(kind);
    planted.must_be_alone(kind);
    sandbox.assert_clean();
    user.assert_untouched();

    let run = sandbox.records();
    let apart = network.is_empty() && geteuid().is_root();
    let (copies, words) = if apart {
        (Protection::CheckedWithoutRoute, "without a route to other hosts")
    } else {
        (Protection::Checked, "no network namespace separated it")
    };
    assert_eq!(run.header.copies, Some(copies), "{kind}: {}", remarks_of(&run));
    // Without them one may be seen all the same, made to find out whether they are allowed.
    assert!(!apart || sightings.default_routes.len() > 1, "{kind}");
    sandbox.call("report 'a run' --format markdown").with_code(0).stdout.has(words);
}

#[test]
fn every_socket_of_a_run_is_the_run_s_own() {
    for network in ["", "network: {kind: loopback}\n"] {
        for case in NAMING {
            asks_nobody_else(case, network);
        }
    }
}

/// Checks that the observation would detect a connection to another server.
#[test]
fn the_watch_sees_a_connection_to_somebody_else() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let connected = std::net::TcpStream::connect(address).expect("it listens");
    let mut sightings = SocketSightings::default();
    let pair = (connected.local_addr().expect("connected"), address);
    // A table of sockets that change while it is read may lack one.
    wait_until("the connection", || {
        sightings.look(std::process::id());
        sightings.connected.contains_key(&pair) && sightings.listened.contains(&address.port())
    });
    assert!(!is_of_a_run("192.0.2.1".parse().expect("an address")));
    assert!(Path::new("/proc/self/ns/net").exists());
}
