//! A plain byte mutator, like a fuzzer's but without guidance by coverage.

use weir_fuzz::dice::Dice;

/// Pieces of HTTP/1.1, TLS records and logs that are significant to a parser.
#[rustfmt::skip]
const WORDS: [&[u8]; 35] = [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\r\n ", b":", b" ", b"\t", b",", b";", b"\"", b"\0",
    b"\x80", b"0", b"0\r\n\r\n", b"ffffffffffffffff", b"18446744073709551616", b"HTTP/1.1 ",
    b"HTTP/1.0 ", b"HTTP/1.1 100 Continue\r\n\r\n", b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n",
    b"Expect: 100-continue\r\n", b"aVeryLongNameOfAField", b"\x14\x03\x03\x00\x01\x01",
    b"\x15\x03\x03\x00\x02\x01\x00", b"\x16\x03\x03\x00\x04", b"\x17\x03\x03\x00\x20", b"\xff\xff",
    b"{\"time\":1795266001.5,\"path\":\"/\"}\n", b"[21/Nov/2026:13:00:01 +0000]",
    b"\"GET / HTTP/1.1\"", b"9999999999.999999999",
];

/// Longest input that a mutation creates, in bytes.
const LONGEST: usize = 4096;

/// Returns `seed` with a few changes; now and then a part of `other` is spliced in.
pub(crate) fn mutated(dice: &mut Dice, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.below(4) {
        change(dice, &mut bytes, other);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn random_up_to(dice: &mut Dice, length: usize) -> usize {
    dice.below(length as u32 + 1) as usize
}

fn change(dice: &mut Dice, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random_up_to(dice, bytes.len());
    let length = random_up_to(dice, (bytes.len() - at).min(40));
    match dice.below(8) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = dice.below(256) as u8;
            }
        }
        2 => drop(bytes.drain(at..at + length)),
        3 => {
            let again = bytes[at..at + length].to_vec();
            drop(bytes.splice(at..at, again));
        }
        4 | 5 => {
            let word = WORDS[dice.below(WORDS.len() as u32) as usize];
            drop(bytes.splice(at..at, word.iter().copied()));
        }
        6 => bytes.truncate(at),
        _ => {
            let from = random_up_to(dice, other.len());
            drop(bytes.splice(at.., other[from..].iter().copied()));
        }
    }
}
