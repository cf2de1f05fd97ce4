//! One JSON object in a line (RFC 8259), as far as a log needs it: the values of some keys.

use super::scan::Scan;

/// Deeper nesting is refused rather than followed.
const DEEPEST: u32 = 64;

/// A value and where it stands in its line, without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) from: usize,
    pub(super) to: usize,
    /// A string that has escapes.
    escaped: bool,
}

impl Value {
    /// A string's text, a number as it is written. With `room` for a text that must be put together;
    /// what is no text in UTF-8 becomes `None`.
    pub(super) fn text<'a>(&self, line: &'a [u8], room: &'a mut String) -> Option<&'a str> {
        let raw = str::from_utf8(&line[self.from..self.to]).ok()?;
        if !self.escaped {
            return Some(raw);
        }
        room.clear();
        unescape(raw, room)?;
        Some(room)
    }
}

/// Reads an object up to the end of the line and gives each key, as it is written, with its value.
/// Objects and arrays inside are skipped. `None` when it is not one; `scan` then stands near the
/// place where it is not.
pub(super) fn object<'a>(scan: &mut Scan<'a>, mut each: impl FnMut(&'a [u8], Value)) -> Option<()> {
    let line = scan.whole();
    scan.blanks();
    scan.byte(b'{')?;
    scan.blanks();
    if scan.byte(b'}').is_none() {
        loop {
            scan.blanks();
            let key = string(scan)?;
            scan.blanks();
            scan.byte(b':')?;
            if let Some(value) = value(scan, DEEPEST)? {
                each(&line[key.from..key.to], value);
            }
            if scan.any_of(b",}")? == b'}' {
                break;
            }
        }
    }
    scan.blanks();
    scan.rest().is_empty().then_some(())
}

/// A value with the white space around it; `Some(None)` for an object, an array or a null.
fn value(scan: &mut Scan<'_>, depth: u32) -> Option<Option<Value>> {
    scan.blanks();
    let value = match scan.peek()? {
        b'"' => Some(string(scan)?),
        b'{' | b'[' => {
            nested(scan, depth.checked_sub(1)?)?;
            None
        }
        _ => bare(scan)?,
    };
    scan.blanks();
    Some(value)
}

fn nested(scan: &mut Scan<'_>, depth: u32) -> Option<()> {
    let object = scan.any_of(b"{[")? == b'{';
    let close = if object { b'}' } else { b']' };
    scan.blanks();
    if scan.byte(close).is_some() {
        return Some(());
    }
    loop {
        scan.blanks();
        if object {
            string(scan)?;
            scan.blanks();
            scan.byte(b':')?;
        }
        value(scan, depth)?;
        if scan.any_of(&[b',', close])? == close {
            return Some(());
        }
    }
}

/// A string; whether its escapes are right shows when it is needed.
fn string(scan: &mut Scan<'_>) -> Option<Value> {
    let line = scan.whole();
    scan.byte(b'"')?;
    let from = scan.at();
    let mut escaped = false;
    let mut at = from;
    loop {
        match line.get(at)? {
            b'"' => break,
            b'\\' => {
                escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    scan.skip(at + 1 - from);
    Some(Value {
        from,
        to: at,
        escaped,
    })
}

/// A number or a word; `Some(None)` for null.
fn bare(scan: &mut Scan<'_>) -> Option<Option<Value>> {
    let from = scan.at();
    let part = |b: &&u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
    let length = scan.rest().iter().take_while(part).count();
    let text = &scan.rest()[..length];
    let word = matches!(text, b"true" | b"false" | b"null");
    if !word
        && !text
            .first()
            .is_some_and(|&b| b.is_ascii_digit() || b == b'-')
    {
        return None;
    }
    scan.skip(length);
    Some((text != b"null").then_some(Value {
        from,
        to: from + length,
        escaped: false,
    }))
}

/// RFC 8259 §7. Half of a surrogate pair has no meaning here.
fn unescape(raw: &str, into: &mut String) -> Option<()> {
    let mut parts = raw.split('\\');
    into.push_str(parts.next()?);
    while let Some(part) = parts.next() {
        let Some(letter) = part.chars().next() else {
            // Two in a row stand for one, and what follows the second is no escape.
            into.push('\\');
            into.push_str(parts.next()?);
            continue;
        };
        let (char, length) = match letter {
            '"' | '/' => (letter, 1),
            'b' => ('\u{8}', 1),
            'f' => ('\u{c}', 1),
            'n' => ('\n', 1),
            'r' => ('\r', 1),
            't' => ('\t', 1),
            'u' => {
                let digits = part.get(1..5)?;
                (char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, 5)
            }
            _ => return None,
        };
        into.push(char);
        into.push_str(&part[length..]);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> Option<Vec<(String, String)>> {
        let mut found = Vec::new();
        let mut scan = Scan::new(line.as_bytes());
        object(&mut scan, |key, value| {
            let mut room = String::new();
            let text = value.text(line.as_bytes(), &mut room).unwrap_or("?");
            found.push((String::from_utf8_lossy(key).into_owned(), text.to_owned()));
        })?;
        Some(found)
    }

    #[test]
    fn values_of_an_object() {
        let line = r#" {"a":1.5, "b" : "x\/\"y\\n\u0041" ,"c":{"a":[1,{"d":"}"}]},"e":null,"f":[],"g":true} "#;
        let want = [("a", "1.5"), ("b", r#"x/"y\nA"#), ("g", "true")];
        let want = want.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(read(line), Some(want.to_vec()));
        assert_eq!(read("{}"), Some(Vec::new()));
        assert_eq!(read(r#"{"a":"\ud800"}"#).unwrap()[0].1, "?");
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(1000), "]".repeat(1000));
        for line in [
            "",
            "{",
            "[]",
            "{]",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1}x"#,
            r#"{"a":"1}"#,
            r#"{"a":x}"#,
            r#"{"a":1 2}"#,
            r#"{"a":[1}"#,
            "{a:1}",
            r#"{"a":"\"#,
            &deep,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_string_reads_back(text in "\\PC*") {
            let line = format!("{{\"a\":{}}}", serde_json::to_string(&text).unwrap());
            prop_assert_eq!(read(&line).unwrap().remove(0).1, text);
        }

        #[test]
        fn no_line_is_a_panic(line in r#"[{}\[\]",:\\u0aé -]{0,40}"#) {
            if let Some(found) = read(&line) {
                prop_assert!(found.len() <= line.len());
            }
        }
    }
}
