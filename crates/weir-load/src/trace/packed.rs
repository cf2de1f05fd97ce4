//! Bytes of a file as text: gzip is unpacked, and what weir does not unpack is told by its first bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::GzDecoder;

/// The first bytes of gzip (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes that say what a file is.
const FIRST: u64 = 6;

/// First bytes of a file, what it then is, and the program that makes it text.
#[rustfmt::skip]
const OTHERS: [(&[u8], &str, &str); 7] = [
    (b"BZh", "compressed by bzip2", "bzcat"),
    (b"\xfd7zXZ\0", "compressed by xz", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "zstdcat"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "lz4cat"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
    (b"\xff\xfe", "in UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "in UTF-16", "iconv -f UTF-16 -t UTF-8"),
];

/// Text of a file that may be gzip, made of no more than `most` bytes of it. `name` stands for it in errors.
pub(super) fn unpacked<'r>(
    mut file: impl BufRead + 'r,
    most: u64,
    name: &str,
) -> io::Result<Box<dyn BufRead + 'r>> {
    let first = peek(&mut file, FIRST)?;
    if let Some((_, kind, program)) = OTHERS.iter().find(|other| first.starts_with(other.0)) {
        let command = format!("{program} {name} | weir load --trace - …");
        return Err(io::Error::other(format!("it is {kind}: {command}")));
    }
    let is_gzip = first.starts_with(&GZIP);
    let bytes = Cursor::new(first).chain(file).take(most);
    if is_gzip {
        let members = Members(Some(GzDecoder::new(bytes)));
        return Ok(Box::new(BufReader::new(members)));
    }
    Ok(Box::new(bytes))
}

/// The first bytes that are left, at most so many.
pub(super) fn peek(reader: &mut impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(most).read_to_end(&mut head)?;
    Ok(head)
}

/// The members of a gzip file, one after another. As with gzip(1), what follows the last one and is none, such as the
/// zeros that fill a tape's block, is ignored.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let length = member.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            let compressed = self.0.take().map(GzDecoder::into_inner);
            self.0 = next_member(compressed)?;
        }
        Ok(0)
    }
}

fn next_member<R: BufRead>(rest: Option<R>) -> io::Result<Option<GzDecoder<R>>> {
    let Some(mut rest) = rest else {
        return Ok(None);
    };
    let begins = rest.fill_buf()?.first() == Some(&GZIP[0]);
    Ok(begins.then(|| GzDecoder::new(rest)))
}
