//! Two ends without a proxy: each observes the same as over TCP.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, recv};
use weir_testkit::peers::{PATIENCE, Patient, Topology, content};

use crate::{bypass, bypass_at};

/// Steps on connections of a pair; returns the observations.
type Scene<'a> = &'a dyn Fn(&Pair<'_>) -> Vec<String>;

/// Listener in the proxy's namespace; makes connections to it from the client's.
struct Pair<'a> {
    topology: &'a Topology,
    listener: TcpListener,
}

impl<'a> Pair<'a> {
    fn listen(topology: &'a Topology, address: SocketAddr) -> Pair<'a> {
        let listener = topology.proxy.within(|| TcpListener::bind(address));
        Pair { topology, listener: listener.unwrap().unwrap() }
    }

    fn connect(&self) -> (TcpStream, TcpStream) {
        let address = self.listener.local_addr().unwrap();
        let client = self.topology.client.within(|| TcpStream::connect(address)).unwrap().unwrap();
        let (server, _) = self.listener.accept().unwrap();
        for socket in [&client, &server] {
            socket.set_nodelay(true).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.set_write_timeout(Some(PATIENCE)).unwrap();
        }
        (client, server)
    }
}

/// Checks that a scene gives the same by TCP and bypassed, on loopback and between namespaces. At least `share` of all
/// bytes must be redirected.
fn compare(share: f64, scene: Scene<'_>) {
    for topology in Topology::all() {
        let any = SocketAddr::new(topology.inbound.ip(), 0);
        let by_tcp = scene(&Pair::listen(&topology, any));
        let pair = Pair::listen(&topology, any);
        let Some(bypass) = bypass_at(&topology, &[pair.listener.local_addr().unwrap()]) else {
            return;
        };
        assert_eq!(scene(&pair), by_tcp, "bypassed (left), by TCP (right)");
        let total = bypass.counters().unwrap().total;
        let redirected = total.redirected_share().unwrap_or(1.0);
        assert!(total.sockets > 0 && redirected >= share, "{total:?}");
    }
}

fn read_all(socket: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    Patient(socket).read_to_end(&mut bytes).unwrap();
    bytes
}

fn outcome(result: io::Result<usize>) -> String {
    result.map_or_else(|e| format!("{:?}", e.kind()), |n| format!("{n} bytes"))
}

fn soon() {
    thread::sleep(Duration::from_millis(50));
}

#[test]
fn small_writes_in_a_row_come_in_their_order() {
    compare(0.01, &|pair| {
        let (client, server) = pair.connect();
        let bytes = content(1, 200_000);
        thread::scope(|scope| {
            scope.spawn(|| {
                let sizes = (1..).map(|n| n * 7 % 311 + 1);
                let mut remaining = &bytes[..];
                for size in sizes {
                    let (piece, more) = remaining.split_at(remaining.len().min(size));
                    (&client).write_all(piece).unwrap();
                    remaining = more;
                    if remaining.is_empty() {
                        break;
                    }
                }
                client.shutdown(Shutdown::Write).unwrap();
            });
            vec![format!("{}", read_all(&server) == bytes)]
        })
    });
}

/// Writes 4 MiB both ways at once, to readers that are first slow, then fast.
#[test]
fn a_slow_reader_is_waited_for_and_loses_nothing() {
    fn slowly(socket: &TcpStream) -> Vec<u8> {
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
        loop {
            let count = Patient(socket).read(&mut buffer).unwrap();
            if count == 0 {
                return bytes;
            }
            bytes.extend_from_slice(&buffer[..count]);
            if bytes.len() < 1 << 20 {
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
    compare(0.01, &|pair| {
        let (a, b) = pair.connect();
        let (x, y) = (content(1, 4 << 20), content(2, 4 << 20));
        thread::scope(|scope| {
            for (mut socket, bytes) in [(&a, &x), (&b, &y)] {
                scope.spawn(move || {
                    bytes.chunks(9_000).for_each(|c| socket.write_all(c).unwrap());
                    socket.shutdown(Shutdown::Write).unwrap();
                });
            }
            let at_a = scope.spawn(|| slowly(&a));
            vec![format!("{} {}", slowly(&b) == x, at_a.join().unwrap() == y)]
        })
    });
}

/// A peer that does not read makes the sender wait: the queue is limited.
#[test]
fn a_sender_is_stopped_in_the_end() {
    compare(0.0, &|pair| {
        let (mut client, server) = pair.connect();
        client.set_nonblocking(true).unwrap();
        let (bytes, mut sent) = (content(3, 64 << 20), 0);
        let stopped = loop {
            match client.write(&bytes[sent..bytes.len().min(sent + 10_000)]) {
                Ok(0) => break false,
                Ok(n) => sent += n,
                Err(e) => break e.kind() == ErrorKind::WouldBlock,
            }
        };
        let mut received = vec![0; sent];
        Patient(&server).read_exact(&mut received).unwrap();
        let written = client.write(&bytes[sent..sent + 100]);
        vec![format!("{stopped} {} {}", received == bytes[..sent], written.is_ok())]
    });
}

#[test]
fn a_half_closed_connection_goes_on_the_other_way() {
    compare(0.01, &|pair| {
        let (client, server) = pair.connect();
        let forth = half_close(&client, &server);
        let (client, server) = pair.connect();
        vec![forth, half_close(&server, &client)]
    });
}

/// Sends a question and closes, and has the other end answer.
fn half_close(mut from: &TcpStream, mut to: &TcpStream) -> String {
    let (question, answer) = (content(4, 3_000), content(5, 300_000));
    from.write_all(&question).unwrap();
    from.shutdown(Shutdown::Write).unwrap();
    let has_come = read_all(to) == question;
    thread::scope(|scope| {
        scope.spawn(|| {
            answer.chunks(1_000).for_each(|c| to.write_all(c).unwrap());
            to.shutdown(Shutdown::Write).unwrap();
        });
        format!("{has_come} {}", read_all(from) == answer)
    })
}

/// Bytes sent before RST can be read; then the connection is reset.
#[test]
fn an_abortive_close_is_told_after_the_bytes_before_it() {
    compare(0.9, &|pair| {
        let (client, server) = pair.connect();
        let forth = abort(client, server, 900);
        let (client, server) = pair.connect();
        vec![forth, abort(server, client, 50_000)]
    });
}

fn abort(mut from: TcpStream, to: TcpStream, size: usize) -> String {
    from.write_all(&content(6, size)).unwrap();
    soon();
    set_socket_linger(&from, Some(Duration::ZERO)).unwrap();
    drop(from);
    soon();
    let mut bytes = vec![0; size];
    let read = Patient(&to).read_exact(&mut bytes).is_ok();
    let after = outcome((&to).read(&mut [0; 9]));
    let end = outcome((&to).read(&mut [0; 9]));
    format!("{read} {} {after} {end}", bytes == content(6, size))
}

#[test]
fn one_who_has_closed_is_told_of_to_the_sender() {
    compare(0.0, &|pair| {
        let (mut client, server) = pair.connect();
        client.write_all(b"a").unwrap();
        assert_eq!((&server).read(&mut [0; 9]).unwrap(), 1);
        drop(server);
        soon();
        let first = outcome(client.write(b"b"));
        soon();
        vec![first, outcome(client.write(b"c"))]
    });
}

#[test]
fn peeking_takes_nothing() {
    compare(1.0, &|pair| {
        let (mut client, server) = pair.connect();
        client.write_all(&content(7, 5_000)).unwrap();
        soon();
        let mut bytes = vec![0; 9_000];
        let peek = |bytes: &mut [u8]| recv(&server, bytes, RecvFlags::PEEK).unwrap().0;
        let (few, all) = (peek(&mut bytes[..10]), peek(&mut bytes));
        let read = (&server).read(&mut bytes).unwrap();
        vec![format!("{few} {all} {read} {}", bytes[..read] == content(7, 5_000))]
    });
}

/// Ports are reused: a connection must not receive bytes left by an earlier one.
#[test]
fn the_same_addresses_and_ports_again_are_another_connection() {
    compare(0.9, &|pair| {
        let address = pair.listener.local_addr().unwrap();
        let mut outcomes = Vec::new();
        let mut port = 0;
        for round in 0..20 {
            // The kernel may still be busy with the end of the one before.
            let begin = Instant::now();
            let mut client = loop {
                match pair
                    .topology
                    .client
                    .within(|| connect_from(pair.topology.source, port, address))
                    .unwrap()
                {
                    Err(_) if begin.elapsed() < PATIENCE => {
                        thread::sleep(Duration::from_millis(1));
                    }
                    ended => break ended.unwrap(),
                }
            };
            port = client.local_addr().unwrap().port();
            let (mut server, _) = pair.listener.accept().unwrap();
            // Never read: it must not be found by the next one.
            server.write_all(&content(round, 700)).unwrap();
            client.write_all(&content(round + 100, 900)).unwrap();
            let mut bytes = vec![0; 900];
            Patient(&server).read_exact(&mut bytes).unwrap();
            outcomes.push(format!("{}", bytes == content(round + 100, 900)));
            set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
            drop(client);
        }
        outcomes
    });
}

fn connect_from(source: IpAddr, port: u16, address: SocketAddr) -> io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::net::sockopt::set_socket_reuseaddr(&fd, true)?;
    bind(&fd, &SocketAddr::new(source, port))?;
    connect(&fd, &address)?;
    Ok(TcpStream::from(fd))
}

#[test]
fn a_socket_of_both_families_meets_one_of_ipv4_alone() {
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let Some(bypass) = bypass(&[([127, 0, 0, 1], port).into()]) else {
        return;
    };
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"hello").unwrap();
    let mut bytes = [0; 5];
    Patient(&server).read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    assert_eq!(bypass.counters().unwrap().total.redirected, 1);

    let v6 = TcpListener::bind("[::1]:0").unwrap();
    let Some(bypass) = crate::bypass(&[v6.local_addr().unwrap()]) else {
        return;
    };
    let mut client = TcpStream::connect(v6.local_addr().unwrap()).unwrap();
    let (server, _) = v6.accept().unwrap();
    client.write_all(b"hello").unwrap();
    Patient(&server).read_exact(&mut bytes).unwrap();
    assert_eq!(bypass.counters().unwrap().total.redirected_bytes, 5);
}
