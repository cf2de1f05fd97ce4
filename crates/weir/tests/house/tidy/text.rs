//! Reading of Rust as text: the parts that are code, and the ends of brackets.

/// Returns the text with blanks for comments, strings and characters; line breaks stay.
pub(super) fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let length = not_code(&bytes[at..], code.last().copied()).max(1).min(bytes.len() - at);
        match length {
            1 if bytes[at].is_ascii() => code.push(bytes[at]),
            _ => code.extend(
                bytes[at..at + length].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }),
            ),
        }
        at += length;
    }
    String::from_utf8(code).expect("what is not ASCII is blank")
}

/// Returns the length in bytes of a comment, string or character at the begin of `rest`; 0 if there is none.
fn not_code(code: &[u8], before: Option<u8>) -> usize {
    let is_in_word = before.is_some_and(is_word);
    match code {
        [b'/', b'/', ..] => end_of(code, b"\n", 0) - 1,
        [b'/', b'*', ..] => end_of(code, b"*/", 2),
        [b'"', ..] => quoted(code),
        [b'r', b'"' | b'#', ..] if !is_in_word || before == Some(b'b') => {
            let hashes = code[1..].iter().take_while(|byte| **byte == b'#').count();
            match code.get(1 + hashes) {
                Some(b'"') => {
                    end_of(code, &[&b"\""[..], &b"#".repeat(hashes)].concat(), 2 + hashes)
                }
                _ => 0,
            }
        }
        [b'\'', b'\\', ..] => 3 + code[3..].iter().take_while(|byte| **byte != b'\'').count() + 1,
        [b'\'', ..] => {
            // A lifetime has no quote behind its first character.
            let text = std::str::from_utf8(&code[1..code.len().min(6)]);
            let valid = text.map_or_else(|error| error.valid_up_to(), str::len);
            let first =
                std::str::from_utf8(&code[1..1 + valid]).ok().and_then(|text| text.chars().next());
            let end = 1 + first.map_or(1, char::len_utf8);
            if code.get(end) == Some(&b'\'') { end + 1 } else { 0 }
        }
        _ => 0,
    }
}

/// Returns the index behind the next `mark`, or the length of `text`.
fn end_of(text: &[u8], mark: &[u8], from: usize) -> usize {
    let mut windows = text[from.min(text.len())..].windows(mark.len());
    windows.position(|window| window == mark).map_or(text.len(), |at| from + at + mark.len())
}

/// Returns the length of a string with escapes.
fn quoted(code: &[u8]) -> usize {
    let mut at = 1;
    while at < code.len() && code[at] != b'"' {
        at += if code[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the word that `code` begins with.
pub(super) fn word(code: &str) -> &str {
    let end = code.bytes().position(|byte| !is_word(byte));
    &code[..end.unwrap_or(code.len())]
}

/// Returns the positions of a whole word.
pub(super) fn places<'c>(code: &'c str, wanted: &'c str) -> impl Iterator<Item = usize> + 'c {
    code.match_indices(wanted).map(|(at, _)| at).filter(move |&at| {
        let is_begun = code[..at].bytes().next_back().is_some_and(is_word);
        !is_begun && word(&code[at..]) == wanted
    })
}

/// Returns the length up to the bracket that closes the one at the begin of `code`.
pub(super) fn closed(code: &str) -> usize {
    let end = depths(code).find(|(_, _, depth)| *depth == 0);
    end.map_or(code.len(), |(at, ..)| at + 1)
}

/// Returns the parts of a list between commas outside of brackets, angles included.
pub(super) fn parts(list: &str) -> Vec<&str> {
    let commas = depths(list).filter(|(_, byte, depth)| *byte == b',' && *depth == 0);
    let mut begin = 0;
    let mut parts = Vec::new();
    for (at, ..) in commas {
        parts.push(list[begin..at].trim());
        begin = at + 1;
    }
    parts.push(list[begin..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns each byte with its position, and the number of brackets that are open after it. Angles count if no bracket
/// of another kind makes them operators: in lists of parameters and imports.
fn depths(code: &str) -> impl Iterator<Item = (usize, u8, usize)> + '_ {
    let angles = !code.starts_with('{');
    let mut depth = 0_usize;
    let mut before = b' ';
    code.bytes().enumerate().map(move |(at, byte)| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'<' if angles => depth += 1,
            b'>' if angles && before != b'-' && before != b'=' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
        (at, byte, depth)
    })
}
