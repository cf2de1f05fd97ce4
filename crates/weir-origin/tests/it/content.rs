//! Content of the response.

use std::io::{Read, Write};

use weir_origin::{Content, Origin, OriginConfig};

use crate::client::{Client, any, start};

#[test]
fn a_response_has_the_fields_and_the_content_that_were_asked_for() {
    let origin = start(|config| {
        config.status = 503;
        config.content = Content::from(b"busy".to_vec());
        config.content_type = "text/x".to_owned();
        config.fields = vec![("Retry-After".into(), "1".into()), ("A".into(), "b".into())];
    });
    let mut client = Client::new(&origin);
    client.send(b"GET / HTTP/1.1\r\n\r\n");
    let expected = "HTTP/1.1 503 Service Unavailable\r\nServer: weir\r\nContent-Type: text/x\r\n\
        Content-Length: 4\r\nRetry-After: 1\r\nA: b\r\n\r\nbusy";
    assert_eq!(client.receive(false).0, expected.as_bytes());
}

#[test]
fn content_is_always_the_same_and_of_the_size_asked_for() {
    for size in [0, 1, 7, 1024, 100_000] {
        for make in [Content::text, Content::noise] {
            assert_eq!(make(size).bytes().len() as u64, size);
            assert_eq!(make(size), make(size));
        }
    }
    let text = Content::text(10_000);
    let lines: Vec<&[u8]> = text.bytes().split(|byte| *byte == b'\n').collect();
    assert!(text.bytes().is_ascii() && lines.iter().all(|line| line.len() < 100));
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(b"from a file").expect("written");
    let content = Content::file(file.path()).expect("read");
    assert_eq!(content.bytes(), b"from a file");
    assert!(Content::file(&file.path().join("none")).is_err());
}

#[test]
fn statuses_without_content() {
    for status in [204, 304] {
        let origin = start(|config| config.status = status);
        let mut client = Client::new(&origin);
        for _ in 0..2 {
            client.send(b"GET / HTTP/1.1\r\n\r\n");
            let (bytes, end) = client.receive(false);
            assert_eq!((end.status, end.keep_alive), (status, true));
            assert!(bytes.ends_with(b"\r\n\r\n"));
            assert!(!String::from_utf8_lossy(&bytes).contains("Content-"));
        }
        client.assert_quiet();
    }
}

#[test]
fn impossible_responses_are_refused() {
    let status = refusal(|config| config.status = 101);
    assert_eq!(status, "status 101 is not within 200 to 599");
    assert_eq!(field_refusal("a b", ""), "field name `a b` is not a token");
    let broken = field_refusal("A", "b\r\nc: d");
    assert_eq!(broken, "value of field A holds CR, LF or NUL");
    assert!(field_refusal("content-length", "1").contains("written by the server itself"));
    let cpu = refusal(|config| config.cpus = vec![1 << 20]);
    assert_eq!(cpu, "cannot run on CPU 1048576: Invalid argument (os error 22)");
}

fn field_refusal(name: &str, value: &str) -> String {
    refusal(|config| config.fields = vec![(name.to_owned(), value.to_owned())])
}

fn refusal(change: impl FnOnce(&mut OriginConfig)) -> String {
    let mut config = OriginConfig::new(vec![any()]);
    change(&mut config);
    let error = Origin::start(config).expect_err("refused");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
    error.to_string()
}

#[test]
fn large_content_reaches_a_slow_reader_whole() {
    let size = 9_000_000;
    let origin = start(|config| config.content = Content::noise(size));
    let mut slow = Client::new(&origin);
    slow.send(b"GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    // The server is stuck in the first response; others are served meanwhile.
    assert_eq!(Client::new(&origin).get().content_bytes, size);
    let content = Content::noise(size);
    for to_head in [false, true, false] {
        let (bytes, end) = slow.receive(to_head);
        let (head, received) = bytes.split_at(end.head_bytes as usize);
        assert!(head.ends_with(b"\r\n\r\n"));
        assert!(received == if to_head { b"" } else { content.bytes() });
    }
    slow.assert_quiet();
}

#[test]
fn content_goes_by_the_target_where_sizes_are_asked_for() {
    let sizes = vec![0, 10, 10_240, 1 << 20];
    let origin = start(|config| config.sizes.clone_from(&sizes));
    let mut client = Client::new(&origin);
    let mut ask = |pieces: &[&str], to_head: bool| {
        for piece in pieces {
            client.send(piece.as_bytes());
            // Each piece is read by itself.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let (bytes, end) = client.receive(to_head);
        assert_eq!(end.status, 200, "{pieces:?}");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let length = text.split("Content-Length: ").nth(1).expect("a length");
        let length: u64 = length.split('\r').next().expect("a line").parse().unwrap();
        (length, end.content_bytes)
    };
    for &size in &sizes {
        let line = format!("GET /{size} HTTP/1.1\r\n");
        assert_eq!(ask(&[&line, "\r\n"], false), (size, size), "in two pieces");
        let (first, second) = line.split_at(6.min(line.len()));
        assert_eq!(ask(&[first, second, "A: b\r\n\r\n"], false), (size, size));
        // The line ends in the piece that ends the head.
        let last = format!("{second}A: b\r\n\r\n");
        assert_eq!(ask(&[first, &last], false), (size, size));
        let head = format!("HEAD /{size} HTTP/1.1\r\n\r\n");
        assert_eq!(ask(&[&head], true), (size, 0));
    }
    for other in ["/", "/11", "/10?x", "/10240/"] {
        let line = format!("GET {other} HTTP/1.1\r\n\r\n");
        assert_eq!(ask(&[&line], false), (1024, 1024), "{other}");
    }
    // The line has gone by when the client is told to go on.
    client.send(b"PUT /10 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    let interim = client.stream.read_exact(&mut [0; 25]);
    interim.expect("an interim response");
    client.send(b"ab");
    assert_eq!(client.receive(false).1.content_bytes, 10);
}
