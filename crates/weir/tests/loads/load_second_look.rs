//! Tests of what weir asks by itself, before and after a load: no server can hold it up.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use rustix::process::Signal;
use weir_testkit::program::Running;
use weir_testkit::sandbox::Sandbox;

/// Answers the first connections with a redirect, and takes a byte now and then of all others.
fn start_slow_server(quick: usize) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            thread::spawn(move || serve(stream, number < quick));
        }
    });
    address
}

fn serve(mut stream: TcpStream, is_quick: bool) {
    let mut bytes = [0; 65_536];
    let mut is_answered = false;
    loop {
        let length = if is_quick { bytes.len() } else { 1 };
        if !stream.read(&mut bytes[..length]).is_ok_and(|read| read > 0) {
            return;
        }
        if !is_quick {
            thread::sleep(Duration::from_millis(50));
        } else if !is_answered {
            is_answered = true;
            let _ = stream
                .write_all(b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
        }
    }
}

#[test]
fn a_second_look_at_a_slow_server_ends() {
    let sandbox = Sandbox::new();
    sandbox.write("big", &"x".repeat(30 << 20));
    let server = start_slow_server(3);
    let line = format!("load -q -c 2 -d 1s -T 5s -m GET --content-file big http://{server}/");
    let begun = Instant::now();
    let load = Running::start(&mut sandbox.weir(&line.split(' ').collect::<Vec<_>>()));
    load.end_within(Duration::from_secs(60));
    // The load, its time-out, a connection and a look of 4 s.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// A socket whose queue is full answers no SYN.
#[test]
fn a_server_that_is_silent_is_not_waited_for_after_a_signal() {
    let silent = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&silent, &"127.0.0.1:0".parse::<std::net::SocketAddr>().expect("an address"))
        .expect("free");
    listen(&silent, 0).expect("a listener");
    let address = getsockname(&silent).expect("bound");
    let address = std::net::SocketAddr::try_from(address).expect("of the internet");
    let _filling: Vec<_> =
        (0..2).map(|_| TcpStream::connect_timeout(&address, Duration::from_millis(200))).collect();
    let sandbox = Sandbox::new();
    for command in
        ["compare -T 60s http://SERVER/ http://SERVER/b", "capacity -T 60s http://SERVER/"]
    {
        let line = command.replace("SERVER", &address.to_string());
        let running = Running::start(&mut sandbox.weir(&line.split(' ').collect::<Vec<_>>()));
        thread::sleep(Duration::from_secs(2));
        running.signal(Signal::INT);
        running.end_within(Duration::from_secs(10)).with_code(130);
    }
}
