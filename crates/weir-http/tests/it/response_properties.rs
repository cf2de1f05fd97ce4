//! Generated responses against what they were generated from. What holds for any bytes, and beside httparse, is in
//! weir-fuzz.

use proptest::collection::vec;
use proptest::prelude::*;
use weir_http::ParseError;
use weir_http::response::{HEAD_LIMIT, ResponseEnd};

use crate::driver::{End, Outcome, all_cuts, whole};

/// How a generated response says where its content ends.
#[derive(Debug, Clone)]
enum Framing {
    Length,
    Chunked { sizes: Vec<usize>, trailer: bool },
    None,
}

#[derive(Debug, Clone)]
pub(crate) struct Generated {
    pub(crate) interim: usize,
    status: u16,
    old: bool,
    close: Option<bool>,
    others: Vec<(String, String)>,
    content: Vec<u8>,
    framing: Framing,
    line_end: &'static str,
    pub(crate) to_head: bool,
}

pub(crate) fn generated() -> impl Strategy<Value = Generated> {
    let framing = prop_oneof![
        Just(Framing::Length),
        (vec(1_usize..40, 0..5), any::<bool>())
            .prop_map(|(sizes, trailer)| Framing::Chunked { sizes, trailer }),
        Just(Framing::None),
    ];
    // Names near to those of interest, so that a sloppy comparison shows.
    let name = prop_oneof![
        "[a-zA-Z-]{1,24}",
        "X-Content-Length",
        "content-lengt[a-g]",
        "Connectio[a-m]"
    ];
    let value = "[ -~]{0,30}";
    let status = prop_oneof![200_u16..=204, Just(304), 400_u16..=599];
    let first = (0_usize..3, status, any::<bool>(), any::<Option<bool>>());
    let others = vec((name, value), 0..6);
    let line_end = prop_oneof![Just("\r\n"), Just("\n")];
    let rest = (vec(any::<u8>(), 0..120), framing, line_end, any::<bool>());
    (first, others, rest).prop_map(|(first, others, rest)| Generated {
        interim: first.0,
        status: first.1,
        old: first.2,
        close: first.3,
        others,
        content: rest.0,
        framing: rest.1,
        line_end: rest.2,
        to_head: rest.3,
    })
}

impl Generated {
    /// The bytes, and what a reader must make of them.
    pub(crate) fn encode(&self) -> (Vec<u8>, ResponseEnd) {
        let end = self.line_end;
        let version = if self.old { "1.0" } else { "1.1" };
        let mut head =
            format!("HTTP/1.1 103 Early{end}Content-Length: 9{end}{end}").repeat(self.interim);
        head += &format!("HTTP/{version} {} Reason{end}", self.status);
        for (name, value) in &self.others {
            head += &format!("{name}: {value}{end}");
        }
        head += &match self.close {
            Some(true) => format!("Connection: x, close{end}"),
            Some(false) => format!("Connection: Keep-Alive{end}"),
            None => String::new(),
        };
        let bare = self.is_bare();
        let mut content = Vec::new();
        match &self.framing {
            Framing::Length => {
                head += &format!("content-length:{}{end}", self.content.len());
                content.clone_from(&self.content);
            }
            Framing::Chunked { sizes, trailer } => {
                head += &format!("Transfer-Encoding: chunked{end}");
                chunk(&mut content, &self.content, sizes, end);
                let field = if *trailer {
                    format!("T: t{end}")
                } else {
                    String::new()
                };
                content.extend(format!("{field}{end}").bytes());
            }
            Framing::None => content.clone_from(&self.content),
        }
        head += end;
        let persists = !self.close.unwrap_or(self.old);
        let keep_alive = match self.framing {
            _ if bare => persists,
            Framing::None => false,
            Framing::Chunked { .. } => persists && !self.old,
            Framing::Length => persists,
        };
        let expected = ResponseEnd {
            status: self.status,
            keep_alive,
            content_bytes: if bare { 0 } else { self.content.len() as u64 },
            head_bytes: head.len() as u64,
        };
        let mut bytes = head.into_bytes();
        if !bare {
            bytes.extend(content);
        }
        (bytes, expected)
    }

    /// No content follows the head, whatever that says.
    fn is_bare(&self) -> bool {
        self.to_head || matches!(self.status, 204 | 304)
    }

    /// The content that a reader must see.
    pub(crate) fn content_bytes(&self) -> Vec<u8> {
        match self.is_bare() {
            true => Vec::new(),
            false => self.content.clone(),
        }
    }
}

fn chunk(coded: &mut Vec<u8>, mut content: &[u8], sizes: &[usize], end: &str) {
    let mut sizes = sizes.iter().copied();
    while !content.is_empty() {
        let size = sizes.next().unwrap_or(content.len()).min(content.len());
        coded.extend(format!("{size:x};e{end}").bytes());
        coded.extend(&content[..size]);
        coded.extend(end.bytes());
        content = &content[size..];
    }
    coded.extend(format!("0{end}").bytes());
}

/// Bytes that often come close to HTTP.
pub(crate) fn nearly_http() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n", "HTTP/1.0 204 \n", "HTTP/1.1 100 C\r\n\r\n", "HTTP/1.", "\r\n", "\n",
            "\r", " ", "\t", ":", ",", ";", "Content-Length:", "content-length: 4", "Transfer-Encoding:",
            "chunked", "Connection: close", "keep-alive", "5", "0", "a\r\n", "\r\n\r\n", "X: y\r\n",
            "aVeryLongNameOfAField", "\"",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..4),
    ];
    (any::<bool>(), vec(piece, 0..24)).prop_map(|(begun, pieces)| {
        let begin: &[u8] = if begun { b"HTTP/1.1 200 OK\r\n" } else { b"" };
        [begin, &pieces.concat()].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_generated_response_is_read_as_it_was_meant(response in generated()) {
        let (bytes, expected) = response.encode();
        let outcome = all_cuts(HEAD_LIMIT, &[response.to_head], &bytes);
        prop_assert_eq!(outcome, Outcome { complete: vec![expected], end: End::Clean });
    }

    #[test]
    fn responses_in_a_row_do_not_touch_each_other(row in vec(generated(), 1..5)) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        let mut heads = Vec::new();
        for response in &row {
            let (coded, end) = response.encode();
            bytes.extend(coded);
            expected.push(end);
            heads.push(response.to_head);
            let bare = response.to_head || matches!(response.status, 204 | 304);
            if matches!(response.framing, Framing::None) && !bare {
                break;
            }
        }
        prop_assert_eq!(whole(&heads, &bytes), Outcome { complete: expected, end: End::Clean });
    }
}

#[test]
fn the_parser_says_which_kind_of_error_it_was() {
    use weir_model::load::ErrorKind;
    let too_large = ParseError::HeadTooLarge { limit: 10 };
    assert_eq!(too_large.kind(), ErrorKind::HeadTooLarge);
    assert_eq!(ParseError::Unsolicited.kind(), ErrorKind::Unsolicited);
    assert_eq!(ParseError::Chunk.kind(), ErrorKind::Malformed);
}
