//! Protocols other than HTTP/1.1, byte for byte.

use std::time::{Duration, Instant};

use weir_model::study::DelaySpec;
use weir_origin::{Content, Counters};

use crate::client::{Client, await_counters, start};

/// A FastCGI record of request 1.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    // Padded by three bytes, which mean nothing.
    [&[1, kind, 0, 1, high, low, 3, 0], content, b"pad"].concat()
}

/// GET / in FastCGI.
fn fastcgi(flags: u8, method: &[u8]) -> Vec<u8> {
    let pairs = [
        &[14, method.len() as u8],
        &b"REQUEST_METHOD"[..],
        method,
        // A length of four bytes.
        &[11, 0x80, 0, 0, 1],
        b"REQUEST_URI/",
    ]
    .concat();
    let (first, second) = pairs.split_at(9);
    [
        record(1, &[0, 1, flags, 0, 0, 0, 0, 0]),
        record(4, first),
        record(4, second),
        record(4, b""),
        record(5, b"content"),
        record(5, b""),
    ]
    .concat()
}

fn uwsgi(content: &[u8]) -> Vec<u8> {
    let length = content.len().to_string();
    let pairs: Vec<u8> = [("REQUEST_METHOD", "POST"), ("CONTENT_LENGTH", &length)]
        .iter()
        .flat_map(|(name, value)| [name, value])
        .flat_map(|text| [&(text.len() as u16).to_le_bytes(), text.as_bytes()].concat())
        .collect();
    let [low, high] = (pairs.len() as u16).to_le_bytes();
    [&[0, low, high, 0], &pairs[..], content].concat()
}

/// Preface, SETTINGS, and GET / on stream 1 (indexed fields of RFC 7541, appendix A).
fn http2() -> Vec<u8> {
    let frames = [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        &[0, 0, 0, 4, 0, 0, 0, 0, 0],
        &[0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x84, 0x86],
    ];
    frames.concat()
}

const CGI: &str =
    "Status: 200 OK\r\nServer: weir\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n";

#[test]
fn a_request_in_pieces_is_answered_once() {
    let http = "HTTP/1.1 200 OK\r\nServer: weir\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\
                Connection: close\r\n\r\nhi";
    let scgi = "24:CONTENT_LENGTH\x005\x00SCGI\x001\x00,hello";
    for (name, request, response) in [
        ("FastCGI", fastcgi(0, b"GET"), fcgi_response(&cgi_response("hi"))),
        ("FastCGI, HEAD", fastcgi(0, b"HEAD"), fcgi_response(&cgi_response(""))),
        ("uwsgi", uwsgi(b"hello"), http.into()),
        ("SCGI", scgi.into(), cgi_response("hi")),
    ] {
        // Whole, byte by byte, and in two pieces.
        for piece in [request.len(), 1, request.len() / 2 + 1] {
            let origin = start(|config| {
                config.content = Content::from(b"hi".to_vec());
                config.content_type = "text/plain".to_owned();
            });
            let mut client = Client::new(&origin);
            for piece in request.chunks(piece) {
                client.send(piece);
                if request.len() < 200 {
                    std::thread::yield_now();
                }
            }
            let all = client.until_closed();
            assert_eq!(
                all.escape_ascii().to_string(),
                response.escape_ascii().to_string(),
                "{name} in pieces of {piece}"
            );
            let expected = Counters {
                connections: 1,
                requests: 1,
                responses: 1,
                sent_bytes: response.len() as u64,
                ..Counters::default()
            };
            await_counters(&origin, 0, |counters| *counters == expected);
        }
    }
}

fn cgi_response(content: &str) -> Vec<u8> {
    format!("{CGI}{content}").into_bytes()
}

fn fcgi_response(content: &[u8]) -> Vec<u8> {
    let padding = content.len().next_multiple_of(8) - content.len();
    let [high, low] = (content.len() as u16).to_be_bytes();
    let head = [1, 6, 0, 1, high, low, padding as u8, 0];
    let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let none = [1, 6, 0, 1, 0, 0, 0, 0];
    [&head, content, &[0; 8][..padding], &none, &end].concat()
}

#[test]
fn what_only_begins_like_another_protocol_is_not_answered() {
    for bytes in [
        // FastCGI of another version behind a record of the first.
        [record(1, &[0, 1, 1, 0, 0, 0, 0, 0]), vec![2; 8]].concat(),
        // A variable that is longer than its block.
        vec![0, 4, 0, 0, 9, 0, b'a', b'b'],
        b"24;CONTENT_LENGTH".to_vec(),
        b"PRI / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        // A frame that is larger than allowed.
        [&http2()[..24], &[1, 0, 0, 4, 0, 0, 0, 0, 0]].concat(),
        // Another of memcached's commands, and HTTP in small letters.
        b"get a\r\nset a 0 0 1\r\n".to_vec(),
        b"get / HTTP/1.1\r\n".to_vec(),
        // A header block that goes on as another frame.
        [&http2()[..24], &[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82], &[0; 9]].concat(),
    ] {
        let origin = start(|_| ());
        let mut client = Client::new(&origin);
        client.send(&bytes);
        let text = bytes.escape_ascii().to_string();
        let mut reply = Vec::new();
        // Closed, or reset over what was not read.
        let _ = std::io::Read::read_to_end(&mut client.stream, &mut reply);
        await_counters(&origin, 0, |counters| counters.bad_requests == 1);
        let good = u64::from(text.starts_with("get a"));
        assert_eq!(origin.counters(0).requests, good, "{text}");
    }
}

#[test]
fn every_key_of_memcached_has_a_value() {
    for piece in [1, 5, 40] {
        let origin = start(|config| config.content = Content::from(b"hi".to_vec()));
        let mut client = Client::new(&origin);
        for key in ["/a", "/b?c"] {
            for piece in format!("get {key}\r\n").as_bytes().chunks(piece) {
                client.send(piece);
                std::thread::yield_now();
            }
            let expected = format!("VALUE {key} 0 2\r\nhi\r\nEND\r\n");
            let mut answer = vec![0; expected.len()];
            std::io::Read::read_exact(&mut client.stream, &mut answer).expect("receives");
            assert_eq!(
                answer.escape_ascii().to_string(),
                expected.as_bytes().escape_ascii().to_string()
            );
        }
        await_counters(&origin, 0, |counters| counters.responses == 2);
    }
}

#[test]
fn a_method_that_begins_like_http2_is_http1() {
    let origin = start(|_| ());
    for (first, second) in [("P", "OST"), ("PR", "OPFIND"), ("G", "ET"), ("ge", "tter")] {
        let mut client = Client::new(&origin);
        client.send(first.as_bytes());
        std::thread::sleep(Duration::from_millis(2));
        client.send(format!("{second} / HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_eq!(client.receive(false).1.status, 200, "{first}{second}");
    }
}

/// Reads frames until exactly this many bytes of content have arrived.
fn must_receive(client: &mut Client, received: &mut Vec<u8>, content: usize) {
    let mut buffer = vec![0; 65_536];
    loop {
        let (mut rest, mut sum) = (&received[..], 0);
        while let Some((&[_, high, low, kind, ..], frame)) = rest.split_first_chunk::<9>() {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let Some(behind) = frame.get(length..) else {
                break;
            };
            sum += if kind == 0 { length } else { 0 };
            rest = behind;
        }
        if rest.is_empty() && sum >= content {
            assert_eq!(sum, content);
            return;
        }
        let length = std::io::Read::read(&mut client.stream, &mut buffer).expect("receives");
        received.extend_from_slice(&buffer[..length]);
    }
}

#[test]
fn streams_of_http2_wait_for_their_delays_and_for_room() {
    let delay = Duration::from_millis(30);
    let origin = start(|config| {
        config.content = Content::text(100_000);
        config.delay = DelaySpec::Fixed(delay);
    });
    let mut client = Client::new(&origin);
    let begun = Instant::now();
    client.send(&http2());
    let mut received = Vec::new();
    // A window of content, and no more until there is room for the stream and for the connection.
    must_receive(&mut client, &mut received, 65_535);
    assert!(begun.elapsed() >= delay);
    client.assert_quiet();
    client.send(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    client.assert_quiet();
    client.send(&[0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 1, 0, 0]);
    must_receive(&mut client, &mut received, 100_000);
    await_counters(&origin, 0, |counters| counters.responses == 1);
}

#[test]
fn trailers_may_come_behind_another_stream() {
    let origin = start(|_| ());
    let mut client = Client::new(&origin);
    // HEADERS of stream 1, whose content is to come; those of 3, which is whole; the trailers of 1.
    let get = [0x82, 0x84, 0x86];
    let trailer = [0, 1, b'a', 1, b'b'];
    let frames = [
        &http2()[..33],
        &[0, 0, 3, 1, 4, 0, 0, 0, 1],
        &get,
        &[0, 0, 3, 1, 5, 0, 0, 0, 3],
        &get,
        &[0, 0, 5, 1, 5, 0, 0, 0, 1],
        &trailer,
    ];
    client.send(&frames.concat());
    await_counters(&origin, 0, |counters| counters.responses == 2);
    assert_eq!(origin.counters(0).bad_requests, 0);
}
