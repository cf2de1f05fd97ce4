//! Tests of the commands that `weir doctor` prints, run for a real nginx: it accepts their changes, and answers as
//! before.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use weir_sut::free_port;
use weir_testkit::program::wait_until;
use weir_testkit::sandbox::Sandbox;

use crate::doctor::{HERE, Proxy};

/// Locations whose answers could change by advice about connections to the origin.
const SITE: &str = "
upstream one { server 127.0.0.1:ORIGIN; }
upstream other { server 127.0.0.1:ORIGIN; }
server {
    listen 127.0.0.1:PORT;
    location /chat {
        proxy_pass http://one;
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection \"Upgrade\";
    }
    location /course/ {
        proxy_set_header Host 127.0.0.1:ORIGIN;
        proxy_pass http://one/app/;
    }
    location /either {
        if ($arg_who = one) { proxy_pass http://one; }
        proxy_pass http://other;
    }
}
";

/// Requests: the target, and further fields.
const ASKED: [(&str, &str); 5] = [
    ("/chat", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    ("/chat", "Connection: close\r\n"),
    ("/course/leave", "Connection: close\r\n"),
    ("/either", "Connection: close\r\n"),
    ("/either?who=one", "Connection: close\r\n"),
];

/// Reads the lines of a head, without line ends, up to the empty one.
fn read_head(stream: &mut impl BufRead) -> Vec<String> {
    stream.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect()
}

fn field<'h>(head: &'h [String], name: &str) -> Option<&'h str> {
    let mut values = head
        .iter()
        .filter_map(|line| line.split_once(": "))
        .filter(|(field, _)| field.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value)
}

/// Runs an origin server that echoes requests, upgrades, and redirects to itself.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming().map_while(Result::ok) {
        thread::spawn(move || answer_all(&stream));
    }
}

fn answer_all(mut stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    loop {
        let head = read_head(&mut reader);
        let Some(line) = head.first() else { return };
        let host = field(&head, "host").unwrap_or_default();
        // RFC 9110 section 7.8: an Upgrade counts if the field Connection names it.
        let connection = field(&head, "connection").unwrap_or_default();
        let upgrades =
            connection.eq_ignore_ascii_case("upgrade") && field(&head, "upgrade").is_some();
        let answer = if upgrades {
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                .to_owned()
        } else if line.contains("leave") {
            format!(
                "HTTP/1.1 302 Found\r\nLocation: http://{host}/app/there\r\nContent-Length: 0\r\n"
            )
        } else {
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".to_owned()
        };
        let target = line.split(' ').nth(1).unwrap_or_default();
        let text = format!("{answer}X-Asked: {target} of {host}\r\n\r\n");
        let is_last = upgrades || line.ends_with("1.0") || connection == "close";
        if stream.write_all(text.as_bytes()).is_err() || is_last {
            return;
        }
    }
}

/// Returns the answers to all requests, as a client receives them.
fn answers(port: u16) -> Vec<String> {
    ASKED
        .map(|(target, fields)| {
            let mut stream =
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("nginx listens");
            let patience = Some(Duration::from_secs(30));
            stream.set_read_timeout(patience).expect("a timeout");
            let text = format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n");
            stream.write_all(text.as_bytes()).expect("a request");
            let head = read_head(&mut BufReader::new(&stream));
            let shown = ["location", "upgrade", "x-asked"].map(|name| field(&head, name));
            format!("{target}: {:?} {shown:?}", head.first())
        })
        .to_vec()
}

#[test]
fn answers_are_the_same_after_its_commands() {
    let sandbox = Sandbox::new();
    let origin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let origin_port = origin.local_addr().expect("an address").port();
    thread::spawn(move || serve(&origin));
    let port = free_port(Ipv4Addr::LOCALHOST.into()).expect("a free port");
    let site = SITE.replace("ORIGIN", &origin_port.to_string());
    fs::create_dir_all(sandbox.path("proxy")).expect("own folder");
    sandbox.write("proxy/site.conf", &site.replace("PORT", &port.to_string()));
    let proxy = Proxy::start(&sandbox, HERE, "");
    let before = answers(port);
    assert!(before[0].contains("101"), "{before:?}");
    assert!(before[2].contains("http://127.0.0.1"), "{before:?}");

    let json: serde_json::Value = proxy.doctor("-c 5000 -R 5000 --format json").document();
    let findings = json["findings"].as_array().expect("findings");
    let commands = findings
        .iter()
        .filter_map(|finding| finding["change"].as_array())
        .flatten()
        .filter_map(serde_json::Value::as_str);
    // Settings of the kernel are this machine's.
    let commands: Vec<&str> = commands
        .filter(|command| command.starts_with("sed ") || command.contains(" -t -c "))
        .collect();
    assert!(commands.iter().any(|command| command.contains("keepalive")), "{json}");
    let master = proxy.nginx.pid();
    let old = weir_probe::process::children(master).unwrap_or_default();
    for command in commands {
        let path = "PATH=$PATH:/usr/sbin:/sbin";
        let ended =
            Command::new("sh").args(["-c", &format!("{path}; {command}")]).output().expect("sh");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{command}: {stderr}");
    }
    // There was a reload for each finding: the workers of the last one stay.
    let mut last = old.clone();
    wait_until("workers that stay", || {
        thread::sleep(Duration::from_secs(1));
        let new = weir_probe::process::children(master).unwrap_or_default();
        let before = std::mem::replace(&mut last, new.clone());
        new.len() == 2 && new == before && new.iter().all(|pid| !old.contains(pid))
    });
    assert_eq!(answers(port), before);
}
