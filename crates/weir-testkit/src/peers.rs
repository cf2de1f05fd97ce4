//! Ends of connections with known bytes: a client, an origin server, and proxies between.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_bypass::{Bypass, BypassError, Ends, Hop, Namespace};
use weir_host::Network;

/// Time limit longer than anything in these tests takes and shorter than that of a test run.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Returns pseudo-random bytes that are unique to this number (xorshift64*).
pub fn content(number: u64, size: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let word = state.wrapping_mul(0x2545_F491_4F6C_DD1D);
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// Number of receives that were woken before there was data; bypassed sockets do that, TCP's do not.
pub static WOKEN: AtomicU64 = AtomicU64::new(0);

/// Reader that waits on after a wakeup without data. The inner socket must have [`PATIENCE`] as its timeout.
pub struct Patient<S>(pub S);

impl<S: Read> Read for Patient<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.0.read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                    WOKEN.fetch_add(1, Ordering::Relaxed);
                }
                read => return read,
            }
        }
    }
}

/// Accepts connections until the process ends: `GET /number/size` is answered with that content, `POST` with the posted
/// body.
pub fn serve(listener: TcpListener) {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || while let Ok(true) = answer_all(&stream) {});
        }
    });
}

fn answer_all(stream: &TcpStream) -> io::Result<bool> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(Patient(stream));
    while let Some(head) = read_head(&mut input)? {
        let path = head.lines[0].split(' ').nth(1).unwrap_or_default();
        let mut body = vec![0; head.length];
        input.read_exact(&mut body)?;
        if head.lines[0].starts_with("GET") {
            let mut numbers =
                path.trim_start_matches('/').split('/').map(|word| word.parse().unwrap_or(0));
            let (number, size) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            body = content(number, size as usize);
        }
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        // Sometimes in one piece and sometimes in two, as servers do.
        if body.len() % 2 == 0 {
            (&*stream).write_all(answer.as_bytes())?;
            answer.clear();
        }
        let mut remaining = answer.into_bytes();
        remaining.extend_from_slice(&body);
        (&*stream).write_all(&remaining)?;
    }
    Ok(false)
}

struct Head {
    lines: Vec<String>,
    length: usize,
}

fn read_head(input: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut head = Head { lines: Vec::new(), length: 0 };
    loop {
        let mut input_line = String::new();
        if input.read_line(&mut input_line)? == 0 {
            return Ok(None);
        }
        let line = input_line.trim_end().to_owned();
        if line.is_empty() {
            return Ok(Some(head));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            head.length = value.trim().parse().map_err(io::Error::other)?;
        }
        head.lines.push(line);
    }
}

pub struct Client {
    stream: BufReader<Patient<TcpStream>>,
}

impl Client {
    pub fn connect(server: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Client { stream: BufReader::with_capacity(64 * 1024, Patient(stream)) })
    }

    pub fn send_get(&mut self, number: u64, size: usize) -> io::Result<()> {
        self.send_path(&format!("/{number}/{size}"))
    }

    pub fn send_path(&mut self, path: &str) -> io::Result<()> {
        let head = format!("GET {path} HTTP/1.1\r\nHost: weir\r\n\r\n");
        self.stream.get_mut().0.write_all(head.as_bytes())
    }

    pub fn send_post(&mut self, number: u64, size: usize) -> io::Result<()> {
        let head = format!("POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: {size}\r\n\r\n");
        self.stream.get_mut().0.write_all(head.as_bytes())?;
        self.stream.get_mut().0.write_all(&content(number, size))
    }

    /// Reads a response, slowly if `slow`; returns the number of bytes that are wrong, missing or superfluous.
    pub fn answer(&mut self, number: u64, size: usize, slow: bool) -> io::Result<usize> {
        let head = read_head(&mut self.stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !head.lines[0].contains(" 200 ") {
            return Err(io::Error::other(head.lines[0].clone()));
        }
        let mut body = vec![0; head.length];
        let mut pieces = body.chunks_mut(if slow { 32 * 1024 } else { usize::MAX });
        pieces.try_for_each(|piece| {
            if slow {
                thread::sleep(Duration::from_millis(3));
            }
            self.stream.read_exact(piece)
        })?;
        let wanted = content(number, size);
        let wrong = body.iter().zip(&wanted).filter(|(a, b)| a != b).count();
        Ok(wrong + body.len().abs_diff(wanted.len()))
    }

    pub fn get(&mut self, number: u64, size: usize) -> io::Result<usize> {
        self.send_get(number, size)?;
        self.answer(number, size, false)
    }
}

/// Networks and addresses of client, proxy and origin server.
pub struct Topology {
    pub client: Network,
    pub proxy: Network,
    pub origin: Network,
    /// Address that the proxy listens on.
    pub inbound: SocketAddr,
    /// Address that the origin server listens on.
    pub outbound: SocketAddr,
    /// Address that the client's connections come from.
    pub source: IpAddr,
}

/// Returns a loopback address of its own for each topology, made of the process's number and a count: so ports can be
/// fixed, nobody else uses them, and the kernel gives them to no client.
fn own_address() -> Ipv4Addr {
    static PLACES: AtomicU32 = AtomicU32::new(0);
    let number = PLACES.fetch_add(1, Ordering::Relaxed) % 254 + 1;
    let [.., high, low] = std::process::id().to_be_bytes();
    // Far from 127.0.0.1 and its neighbours, which others use.
    Ipv4Addr::new(127, high | 0x80, low, number as u8)
}

impl Topology {
    /// Makes a topology with all roles in this namespace.
    pub fn loopback() -> Topology {
        let here = Network::of_this_thread().expect("/proc");
        let address = own_address();
        Topology {
            client: here.clone(),
            proxy: here.clone(),
            origin: here,
            inbound: (address, 20_080).into(),
            outbound: (address, 20_081).into(),
            source: [127, 0, 0, 1].into(),
        }
    }

    /// Makes a topology with a namespace for each role and links between them; the addresses are always the same.
    /// `None` if that is not permitted.
    pub fn namespaces() -> Option<Topology> {
        if let Err(error) = weir_host::may_have_networks() {
            eprintln!("skipped: {error}");
            return None;
        }
        let [client, proxy, origin] = [(); 3].map(|()| Network::create().expect("a namespace"));
        let mtu = 1500;
        let (a, b) = (wire("in", [10, 98, 0, 1]), wire("in", [10, 98, 0, 2]));
        weir_host::connect((&client, &a), (&proxy, &b), mtu).expect("a link");
        let (a, b) = (wire("out", [10, 99, 0, 1]), wire("out", [10, 99, 0, 2]));
        weir_host::connect((&proxy, &a), (&origin, &b), mtu).expect("a link");
        Some(Topology {
            client,
            proxy,
            origin,
            inbound: ([10, 98, 0, 2], 8080).into(),
            outbound: ([10, 99, 0, 2], 8081).into(),
            source: [10, 98, 0, 1].into(),
        })
    }

    /// Attaches a bypass of connections to these endpoints, which are the origin server's or the proxy's.
    pub fn attach(&self, servers: &[SocketAddr]) -> Result<Bypass, BypassError> {
        let mut bypass = Bypass::attach(&[])?;
        for &server in servers {
            let is_outbound = server == self.outbound && server != self.inbound;
            let (client, of_server) =
                if is_outbound { (&self.proxy, &self.origin) } else { (&self.client, &self.proxy) };
            let namespaces = Some(Ends {
                client: namespace_of(client, &mut bypass)?,
                server: namespace_of(of_server, &mut bypass)?,
            });
            bypass.add(Hop { server, namespaces })?;
        }
        Ok(bypass)
    }

    /// Returns both kinds of topologies, as far as they are permitted.
    pub fn all() -> impl Iterator<Item = Topology> {
        std::iter::once(Topology::loopback()).chain(Topology::namespaces())
    }

    pub fn serve(&self) {
        let address = self.outbound;
        let listener = self.origin.within(|| TcpListener::bind(address));
        serve(listener.expect("the namespace").expect("a listener"));
    }
}

/// A running proxy; dropping it ends it.
pub struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        // SIGTERM, which all of these hand on to their workers.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let until = Instant::now() + Duration::from_secs(5);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the bypass's handle of a network namespace.
fn namespace_of(network: &Network, bypass: &mut Bypass) -> Result<Namespace, BypassError> {
    network.within(|| bypass.namespace_of_this_thread()).expect("the namespace")
}

fn wire(name: &str, address: [u8; 4]) -> weir_host::Wire {
    weir_host::Wire { name: name.to_owned(), addresses: vec![(address.into(), 24)] }
}

fn envoy_address(address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    format!("{{ socket_address: {{ address: {ip}, port_value: {port} }} }}")
}

/// Finds a program on PATH, in the folders of system programs, or where weir's set-up puts programs that no package
/// has.
fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let system_folders = ["/usr/sbin", "/usr/local/bin"].map(PathBuf::from);
    let mut files = std::env::split_paths(&path)
        .chain(system_folders)
        .chain([home.join(".local/bin")])
        .map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// Writes a configuration and returns its path.
fn write_configuration(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, text).expect("a configuration");
    file.to_str().expect("a path").to_owned()
}

impl Proxy {
    /// Starts a program in the proxy's network and waits until it accepts connections. `None` if it is not installed.
    pub fn start(topology: &Topology, program: &str, args: &[&str]) -> Option<Proxy> {
        let Some(file) = find_program(program) else {
            eprintln!("skipped: {program} is not installed");
            return None;
        };
        let child = topology
            .proxy
            .within(|| {
                let mut command = Command::new(&file);
                command.args(args).env("HOME", std::env::temp_dir());
                command.stdin(Stdio::null()).stdout(Stdio::null());
                command.stderr(Stdio::null()).spawn()
            })
            .expect("the namespace");
        let mut proxy = Proxy(child.expect("the program starts"));
        let until = Instant::now() + PATIENCE;
        loop {
            let inbound = topology.inbound;
            let tried = topology.client.within(|| TcpStream::connect(inbound));
            if tried.expect("the namespace").is_ok() {
                return Some(proxy);
            }
            let ended = proxy.0.try_wait().expect("a child of ours");
            assert!(ended.is_none(), "{program} {args:?} ended: {ended:?}");
            assert!(Instant::now() < until, "{program} does not listen");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Starts nginx with these lines in its `server`; `kept` turns on keepalive to the origin server.
    pub fn nginx(topology: &Topology, folder: &Path, server: &str, kept: bool) -> Option<Proxy> {
        let (keepalive, version) = if kept {
            ("keepalive 16;", "proxy_http_version 1.1; proxy_set_header Connection '';")
        } else {
            ("", "")
        };
        let (inbound, outbound, at) = (topology.inbound, topology.outbound, folder.display());
        let text = format!(
            "daemon off; worker_processes 2; pid {at}/pid; error_log {at}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; client_max_body_size 0; keepalive_requests 1000000;\n\
             client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f;\n\
             uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n\
             upstream origin {{ server {outbound}; {keepalive} }}\n\
             server {{ listen {inbound}; root {at}/root; {server}\n\
             location /files/ {{ }}\n\
             location / {{ proxy_pass http://origin; {version} }} }} }}\n"
        );
        let file = write_configuration(folder, "nginx.conf", &text);
        Proxy::start(topology, "nginx", &["-c", &file])
    }

    /// Starts HAProxy with these lines in its `defaults`.
    pub fn haproxy(topology: &Topology, folder: &Path, lines: &str) -> Option<Proxy> {
        let (inbound, outbound) = (topology.inbound, topology.outbound);
        let text = format!(
            "defaults\n mode http\n timeout client 30s\n timeout server 30s\n timeout connect 5s\n{lines}\
             frontend f\n bind {inbound}\n default_backend b\n\
             backend b\n server s {outbound}\n"
        );
        let file = write_configuration(folder, "haproxy.cfg", &text);
        Proxy::start(topology, "haproxy", &["-db", "-f", &file])
    }

    pub fn caddy(topology: &Topology, folder: &Path) -> Option<Proxy> {
        let (inbound, outbound) = (topology.inbound, topology.outbound);
        let text = format!(
            "{{\n admin off\n auto_https off\n log {{\n output file {}/error.log\n level ERROR\n }}\n}}\n\
             http://:{} {{\n bind {}\n reverse_proxy {outbound}\n}}\n",
            folder.display(),
            inbound.port(),
            inbound.ip()
        );
        let file = write_configuration(folder, "Caddyfile", &text);
        let args = ["run", "--adapter", "caddyfile", "--config", &file];
        Proxy::start(topology, "caddy", &args)
    }

    pub fn envoy(topology: &Topology, folder: &Path) -> Option<Proxy> {
        let (inbound, outbound) =
            (envoy_address(topology.inbound), envoy_address(topology.outbound));
        let types = "type.googleapis.com/envoy.extensions.filters";
        let text = format!(
            "static_resources:\n  listeners:\n  - address: {inbound}\n    filter_chains:\n    - filters:\n      \
             - name: http\n        typed_config:\n          '@type': {types}.network.http_connection_manager.v3.HttpConnectionManager\n          \
             stat_prefix: w\n          route_config: {{ virtual_hosts: [ {{ name: w, domains: ['*'], routes: [ {{ match: {{ prefix: / }}, route: {{ cluster: o }} }} ] }} ] }}\n          \
             http_filters: [ {{ name: router, typed_config: {{ '@type': {types}.http.router.v3.Router }} }} ]\n  \
             clusters:\n  - name: o\n    type: STATIC\n    load_assignment: {{ cluster_name: o, endpoints: [ {{ lb_endpoints: [ {{ endpoint: {{ address: {outbound} }} }} ] }} ] }}\n"
        );
        let file = write_configuration(folder, "envoy.yaml", &text);
        let args = ["-c", &file, "--concurrency", "2", "--use-dynamic-base-id"];
        Proxy::start(topology, "envoy", &args)
    }
}
