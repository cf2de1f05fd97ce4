//! Finds the end of a block of Lua. OpenResty balances its braces by Lua's tokens
//! (`ngx_http_lua_conf_lua_block_parse`), so braces in strings, long brackets and comments do not count.

/// Returns the byte offset of the `}` that ends the block whose code begins at byte `from`.
pub(super) fn block_end(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    let mut depth = 1;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'{' => {
                depth += 1;
                at + 1
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
                at + 1
            }
            b'"' | b'\'' => string_end(bytes, at)?,
            b'[' => long_bracket_end(text, at).unwrap_or(Some(at + 1))?,
            b'-' if bytes[at..].starts_with(b"--") => comment_end(text, at)?,
            _ => at + 1,
        };
    }
    None
}

/// Returns the offset behind the string whose quote stands at `open`.
fn string_end(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 2,
            byte if byte == bytes[open] => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Returns the offset behind the long bracket (`[[`, `[=[`, …) that opens at `open`: None if none does, and
/// `Some(None)` if it is never closed.
fn long_bracket_end(text: &str, open: usize) -> Option<Option<usize>> {
    let inner = &text[open + 1..];
    let level = inner.len() - inner.trim_start_matches('=').len();
    inner[level..].starts_with('[').then(|| {
        let closing = format!("]{}]", "=".repeat(level));
        let begin = open + level + 2;
        text[begin..].find(&closing).map(|found| begin + found + closing.len())
    })
}

/// Returns the offset behind the comment whose `--` stands at `open`.
fn comment_end(text: &str, open: usize) -> Option<usize> {
    let begin = open + 2;
    if text[begin..].starts_with('[')
        && let Some(end) = long_bracket_end(text, begin)
    {
        return end;
    }
    let line = text[begin..].find('\n');
    Some(line.map_or(text.len(), |length| begin + length))
}
