//! Persistence, pipelining, HEAD, request content, and invalid requests.

use std::net::Shutdown;

use weir_origin::{Content, Counters};

use crate::client::{Client, await_counters, start};

#[test]
fn a_connection_is_used_again() {
    let origin = start(|_| ());
    let mut client = Client::new(&origin);
    let mut bytes = 0;
    for _ in 0..100 {
        let end = client.get();
        assert_eq!((end.status, end.keep_alive), (200, true));
        assert_eq!(end.content_bytes, 1024);
        bytes += end.head_bytes + end.content_bytes;
    }
    await_counters(&origin, 0, |counters| counters.responses == 100);
    let expected = Counters {
        connections: 1,
        requests: 100,
        responses: 100,
        sent_bytes: bytes,
        ..Counters::default()
    };
    assert_eq!(origin.counters(0), expected);
}

#[test]
fn persistence_is_the_clients_choice() {
    let origin = start(|_| ());
    #[rustfmt::skip]
    let cases: [(&str, bool, &str); 6] = [
        ("GET / HTTP/1.1\r\n\r\n", true, ""),
        ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false, "Connection: close"),
        ("GET / HTTP/1.0\r\n\r\n", false, "Connection: close"),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, "Connection: keep-alive"),
        ("HEAD / HTTP/1.0\r\nHost: nginx-default\r\nConnection: close\r\n\r\n", false,
         "Connection: close"),
        ("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, "Connection: keep-alive"),
    ];
    for (request, stays, field) in cases {
        let mut client = Client::new(&origin);
        client.send(request.as_bytes());
        let (bytes, end) = client.receive(request.starts_with("HEAD"));
        assert_eq!(end.keep_alive, stays, "{request}");
        let head = String::from_utf8_lossy(&bytes[..end.head_bytes as usize]).into_owned();
        assert_eq!(head.contains("Connection"), !field.is_empty(), "{head}");
        assert!(head.contains(field), "{head}");
        if stays {
            client.assert_quiet();
        } else {
            assert_eq!(client.until_closed(), b"", "{request}");
        }
    }
}

#[test]
fn head_has_the_head_of_get() {
    let origin = start(|_| ());
    let mut client = Client::new(&origin);
    client.send(b"HEAD / HTTP/1.1\r\n\r\n");
    let (head, end) = client.receive(true);
    assert_eq!(end.head_bytes, head.len() as u64);
    client.send(b"GET / HTTP/1.1\r\n\r\n");
    assert!(client.receive(false).0.starts_with(&head));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = start(|_| ());
    let mut client = Client::new(&origin);
    // More than may wait at once, with a mark of the order: only every third has content.
    let (get, head) = ("GET / HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.1\r\n\r\n");
    client.send([get, head, head].concat().repeat(1000).as_bytes());
    for index in 0..3000 {
        let to_head = index % 3 != 0;
        let content = if to_head { 0 } else { 1024 };
        assert_eq!(client.receive(to_head).1.content_bytes, content);
    }
    client.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    client.receive(false);
    // What follows a close is not answered.
    assert_eq!(client.until_closed(), b"");
    assert_eq!(origin.counters(0).requests, 3001);
}

#[test]
fn request_content_is_skipped() {
    let origin = start(|_| ());
    let mut client = Client::new(&origin);
    let content = vec![b'x'; 3_000_000];
    client.send(b"POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n");
    client.send(&content);
    assert_eq!(client.receive(false).1.status, 200);
    client.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n");
    client.assert_quiet();
    client.send(b"0\r\n\r\n");
    assert_eq!(client.receive(false).1.status, 200);
    client.send(b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    let mut interim = [0; 25];
    std::io::Read::read_exact(&mut client.stream, &mut interim).expect("an interim response");
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send(b"hi");
    assert_eq!(client.receive(false).1.status, 200);
    assert_eq!(origin.counters(0).requests, 3);
}

#[test]
fn what_is_no_request_is_refused_and_ends_the_connection() {
    let origin = start(|_| ());
    let bad: [&[u8]; 4] = [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: no\r\n\r\n",
    ];
    for bytes in bad {
        let mut client = Client::new(&origin);
        client.send(b"GET / HTTP/1.1\r\n\r\n");
        client.send(bytes);
        assert_eq!(client.receive(false).1.status, 200);
        let (_, end) = client.receive(false);
        assert_eq!((end.status, end.keep_alive), (400, false));
        assert_eq!(client.until_closed(), b"");
    }
    await_counters(&origin, 0, |counters| counters.bad_requests == 4);
    assert_eq!(origin.counters(0).requests, 4);
}

#[test]
fn the_refusal_is_not_lost_when_the_client_goes_on_sending() {
    let size = 9_000_000;
    let origin = start(|config| config.content = Content::noise(size));
    let mut client = Client::new(&origin);
    // The first response is larger than all buffers, so everything below has come long before the
    // refusal can leave, and more of it than is read at once.
    let mut bytes = b"GET / HTTP/1.1\r\n\r\nnonsense\r\n".to_vec();
    bytes.resize(70_000, b'x');
    client.send(&bytes);
    assert_eq!(client.receive(false).1.content_bytes, size);
    assert_eq!(client.receive(false).1.status, 400);
    assert_eq!(client.until_closed(), b"", "and no reset");
}

#[test]
fn a_client_that_has_said_all_is_still_answered() {
    let origin = start(|_| ());
    for cut in [0, 5] {
        let mut client = Client::new(&origin);
        let request = b"GET / HTTP/1.1\r\n\r\n";
        client.send(&request[..cut]);
        // The server has seen what there is, and now waits for epoll.
        client.assert_quiet();
        client.send(&request[cut..]);
        let closed = client.stream.shutdown(Shutdown::Write);
        closed.expect("half closed");
        assert_eq!(client.receive(false).1.status, 200);
        assert_eq!(client.until_closed(), b"", "then the server closes too");
    }
}

#[test]
fn an_idle_client_disturbs_nobody() {
    let origin = start(|_| ());
    let mut idle = Client::new(&origin);
    idle.send(b"G");
    let silent = Client::new(&origin);
    let mut active = Client::new(&origin);
    for _ in 0..10 {
        active.get();
    }
    drop(silent);
    idle.assert_quiet();
    idle.send(b"ET / HTTP/1.1\r\n\r\n");
    assert_eq!(idle.receive(false).1.status, 200);
}
