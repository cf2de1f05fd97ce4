//! Names and values in the lines of a text, and the masking of values.

use super::secret::{
    MASK, Named, PEM_IN_BASE64, begin_of_key, begins_map, behind_value_key, end_of_key, hash,
    is_base64, is_credentials, is_harmless, is_map_word, is_of_a_key, is_of_query, is_place,
    is_written_secret, named, names_things, whole_key,
};
use super::words::{closed, mask_of, nested, query_value, word};

/// State that a line leaves for the lines after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// The line ended with the name of a secret. The value may be in the next line.
    Value,
    /// The name of a secret began a block. All lines that are indented deeper belong to the block.
    Block(usize),
    /// A `map` of a secret. The first word of each line is a secret.
    Map,
}

/// The processed lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    out: Vec<String>,
    /// True while inside a private key.
    in_key: bool,
    pending: Pending,
}

impl Lines {
    /// Adds a line, including its line end.
    pub(super) fn add(&mut self, line: &str) {
        let text = line.trim_end_matches(['\n', '\r']);
        let end = &line[text.len()..];
        if self.is_of_a_begun_key(text) {
            return;
        }
        let shown = match (whole_key(text), begin_of_key(text), end_of_key(text)) {
            (Some(without), ..) => self.masked(&without),
            (None, Some(begin), _) => {
                self.in_key = true;
                format!("{}{MASK}", &text[..begin])
            }
            (None, None, Some(_)) => {
                self.mask_cut_key();
                text.to_owned()
            }
            _ if is_of_a_key(text) => format!("{}{MASK}", &text[..indent(text)]),
            _ => self.masked(text),
        };
        self.out.push(shown + end);
    }

    pub(super) fn end(self) -> String {
        self.out.concat()
    }

    /// Returns true if a line is inside a private key. The line that ends the key is not, and is shown.
    fn is_of_a_begun_key(&mut self, text: &str) -> bool {
        if !self.in_key {
            return false;
        }
        let inner = text.trim_matches([' ', '\t', '+', '-', '"']);
        let is_header = inner.starts_with("Proc-Type:") || inner.starts_with("DEK-Info:");
        let is_inner = end_of_key(text).is_none() && (is_base64(inner) || is_header);
        if !is_inner {
            self.in_key = false;
        }
        is_inner
    }

    /// Masks the lines before the end of a private key whose begin is missing, as in a diff.
    fn mask_cut_key(&mut self) {
        for line in self.out.iter_mut().rev() {
            let text = line.trim_end_matches(['\n', '\r']);
            let inner = text.trim_matches([' ', '\t', '+', '-']);
            if inner.is_empty() || !is_base64(inner) {
                break;
            }
            *line = format!("{}{MASK}{}", &text[..indent(text)], &line[text.len()..]);
        }
    }

    fn masked(&mut self, text: &str) -> String {
        let blanks = indent(text);
        match std::mem::take(&mut self.pending) {
            Pending::Block(above) if blanks > above || text.trim().is_empty() => {
                self.pending = Pending::Block(above);
                return format!("{}{}", &text[..blanks], nested(&text[blanks..]));
            }
            Pending::Value if is_value(&text[blanks..]) => {
                if text.trim_end().ends_with([':', '{']) {
                    self.pending = Pending::Block(blanks);
                }
                return format!("{}{}", &text[..blanks], nested(&text[blanks..]));
            }
            Pending::Map if !text[blanks..].starts_with('}') => {
                self.pending = Pending::Map;
                let first = word(&text[blanks..], |c| matches!(c, ' ' | '\t' | ';'));
                if !is_map_word(first) && !first.is_empty() {
                    let tail = &text[blanks + first.len()..];
                    return format!("{}{}{}", &text[..blanks], mask_of(first), line(tail).0);
                }
                return line(text).0;
            }
            _ => {}
        }
        let (out, pending) = line(text);
        self.pending = if begins_map(&text[blanks..]) { Pending::Map } else { pending };
        out
    }
}

/// Masks a line by itself, and returns the state for the lines after it.
fn line(text: &str) -> (String, Pending) {
    let mut line =
        Line { text, at: 0, out: String::with_capacity(text.len()), pending: Pending::Nothing };
    line.go_through();
    (line.out, line.pending)
}

/// Returns true if a line is the value of the name in the line before: `value: …`, or a string alone.
fn is_value(text: &str) -> bool {
    let inner = text.trim_start_matches(['"', '\'']);
    let is_alone =
        inner.trim_end_matches([',', ' ', ';']).ends_with(['"', '\'']) && !inner.contains(": ");
    is_alone || behind_value_key(text).is_some()
}

/// Returns the number of bytes before the first character that is neither a blank nor a mark of a diff or a list.
fn indent(text: &str) -> usize {
    let first = text.char_indices().find(|(at, c)| match c {
        ' ' | '\t' => false,
        // What stands before a number is its sign.
        '+' | '-' => *at > 0 && !text[at + 1..].starts_with([' ', '\t']),
        _ => true,
    });
    first.map_or(text.len(), |(at, _)| at)
}

/// A line during masking.
struct Line<'t> {
    text: &'t str,
    /// Number of bytes processed.
    at: usize,
    out: String,
    pending: Pending,
}

impl<'t> Line<'t> {
    fn go_through(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            if self.rest().starts_with("://") {
                self.url();
            } else if matches!(c, '$' | '{') && hash(self.rest()) > 0 {
                self.skip(hash(self.rest()), MASK);
            } else if let Some(name) = self.written_name() {
                self.written_value(name);
            } else if c.is_ascii_alphanumeric() || c == '_' {
                let end = self
                    .rest()
                    .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.'));
                let name = &self.rest()[..end.unwrap_or(self.rest().len())];
                self.name(name);
            } else {
                self.keep(c.len_utf8());
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns the rest of the line, or of the enclosing string in double quotes. No value extends beyond that.
    fn rest_of_string(&self) -> &'t str {
        let (mut is_inside, mut is_escaped) = (false, false);
        for (at, c) in self.text.char_indices() {
            let ends = c == '"' && !is_escaped;
            if ends && is_inside && at >= self.at {
                return &self.text[self.at..at];
            }
            if at >= self.at && !is_inside {
                break;
            }
            is_inside ^= ends;
            is_escaped = c == '\\' && !is_escaped;
        }
        self.rest()
    }

    fn keep(&mut self, length: usize) {
        self.out += &self.text[self.at..self.at + length];
        self.at += length;
    }

    fn skip(&mut self, length: usize, shown: &str) {
        self.out += shown;
        self.at += length;
    }

    /// Masks the user information before the host of a URL (RFC 3986 §3.2.1). The position must be at `://`.
    fn url(&mut self) {
        self.keep("://".len());
        let tail = self.rest();
        let end = tail.find([' ', '\t', '"', '\'', '<', '>']).unwrap_or(tail.len());
        let authority = &tail[..tail.find(['/', '?', '#']).unwrap_or(end).min(end)];
        // A slash in a password should have been written in another way, and often is not.
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        let is_cut =
            port.is_some_and(|port| !port.bytes().all(|b| b.is_ascii_digit() || b == b']'));
        let user_info = if is_cut { &tail[..end] } else { authority };
        if let Some(at) = authority.rfind('@').or_else(|| user_info.rfind('@')) {
            self.skip(at, MASK);
        }
    }

    /// Returns the name of a secret that begins here, with its equals sign, if it is written in the way of URLs.
    fn written_name(&self) -> Option<&'t str> {
        let before = self.text[..self.at].chars().next_back();
        if before.is_some_and(|c| c.is_ascii_alphanumeric() || "_%[]".contains(c)) {
            return None;
        }
        let tail = self.rest();
        let end = tail.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.~+%[]".contains(c));
        let word = &tail[..end.unwrap_or(tail.len())];
        let is_query = matches!(before, Some('?' | '&' | ';'));
        let is_name = |name: &str| name.contains(['%', '[']) && is_written_secret(name, is_query);
        // An equals sign may be encoded as well, in a URL that is the value of another one's parameter.
        let encoded = ["%3D", "%3d", "%253D", "%253d"];
        let inner = encoded.iter().filter_map(|sign| Some(word.find(sign)? + sign.len())).min();
        if tail[word.len()..].starts_with('=') && is_name(word) {
            return Some(&tail[..word.len() + 1]);
        }
        inner.map(|end| &tail[..end]).filter(|name| is_written_secret(name, true))
    }

    /// Masks the value behind a name of [`Line::written_name`].
    fn written_value(&mut self, name: &str) {
        self.keep(name.len());
        let (length, shown) = query_value(self.rest_of_string());
        self.skip(length, shown);
    }

    /// Processes a word that may be the name of a secret.
    fn name(&mut self, name: &str) {
        let before = self.text[..self.at].chars().next_back();
        let to_here = self.text[..self.at].trim_matches([' ', '\t', '+', '-', '"', '\'']);
        let is_first = to_here.is_empty();
        if name.starts_with(PEM_IN_BASE64) {
            let end = self.rest().find(|c: char| !is_base64(c.encode_utf8(&mut [0; 4])));
            return self.skip(end.unwrap_or(self.rest().len()), MASK);
        }
        let is_of_stats = name == "auth" && self.text[indent(self.text)..].starts_with("stats ");
        let how = if is_of_stats { Named::Always } else { named(name) };
        self.keep(name.len());
        let is_query = matches!(before, Some('?' | '&' | ';')) && self.rest().starts_with('=');
        if is_query && is_of_query(name) {
            self.keep(1);
            let (length, shown) = query_value(self.rest_of_string());
            return self.skip(length, shown);
        }
        if how == Named::No {
            return self.scheme(name);
        }
        let quote = before.filter(|c| matches!(c, '"' | '\''));
        let is_quoted = quote.is_some_and(|quote| self.rest().starts_with(quote));
        let in_brackets = self.rest().starts_with(')');
        if is_quoted || in_brackets {
            self.keep(1);
        }
        if in_brackets && before == Some('(') {
            return self.patterns();
        }
        let between = self.between();
        let behind = &self.rest()[between..];
        let marks = self.rest()[..between].trim_matches([' ', '\t', '\\']);
        let is_variable = matches!(before, Some('$' | '@'));
        // A path may end as the name of a secret does, and what stands behind it is something else.
        let is_path = before == Some('/') || self.text[..self.at - name.len()].ends_with("--> ");
        if is_path && is_place(self.rest()) {
            return;
        }
        let is_weak = !is_path && (how == Named::Always || is_variable || names_things(self.text));
        match (marks, behind.is_empty()) {
            ("", true) if is_quoted || !is_first => self.pending = Pending::Value,
            (":" | "=", true) => self.pending = Pending::Block(indent(self.text)),
            (",", true) if is_quoted => self.pending = Pending::Value,
            (_, true) => {}
            (",", false) if is_quoted || behind_value_key(behind).is_some() => {
                self.keep(between);
                self.paired();
            }
            (",", false) => {}
            ("", false) if between == 0 || !is_weak => {}
            (marks, false) => {
                self.keep(between);
                self.value(marks, is_first);
            }
        }
    }

    /// Returns the number of bytes between a name and its value: blanks, and one mark or operator.
    fn between(&self) -> usize {
        let tail = self.rest();
        let first = count_blanks(tail);
        let marks = if tail[first..].starts_with(',') {
            1
        } else {
            tail[first..]
                .find(|c| !matches!(c, ':' | '=' | '!' | '~' | '*' | '>'))
                .unwrap_or(tail.len() - first)
        };
        first + marks + count_blanks(&tail[first + marks..])
    }

    /// Masks the value that HAProxy compares with, or assigns to, a secret whose name is in brackets. Converters and
    /// flags stay. All text up to a condition is the secret.
    fn patterns(&mut self) {
        let tail = self.rest_of_string();
        if !tail.starts_with([',', ' ', '\t']) {
            return;
        }
        let mut at = tail.find([' ', '\t']).unwrap_or(tail.len());
        let mut is_argument = false;
        loop {
            at = tail.len() - tail[at..].trim_start().len();
            let flag = word(&tail[at..], |c| matches!(c, ' ' | '\t'));
            let is_flag = flag.len() > 1 && flag.starts_with('-');
            if !is_flag && !is_argument {
                break;
            }
            is_argument = matches!(flag, "-m" | "-f" | "-M");
            at += flag.len();
        }
        self.keep(at);
        let patterns = &tail[at..];
        let end = ["}", " }", " if ", " unless ", " #"].iter().filter_map(|end| match *end {
            "}" => patterns.starts_with('}').then_some(0),
            end => patterns.find(end),
        });
        let value = &patterns[..end.min().unwrap_or(patterns.len())];
        let shown = if is_harmless(value) { value } else { MASK };
        self.skip(value.len(), shown);
    }

    /// Masks the value that follows its name in a list. A key of values may come between the two.
    fn paired(&mut self) {
        let behind = behind_value_key(self.rest()).map(str::trim_start);
        if let Some(value) = behind.and_then(|behind| behind.strip_prefix(':')) {
            self.keep(self.rest().len() - value.trim_start().len());
        }
        let tail = self.rest_of_string();
        if tail.starts_with(['{', '[']) {
            return self.value(":", false);
        }
        let value = word(tail, |c| matches!(c, ',' | '}' | ']'));
        self.skip(value.len(), &mask_of(value));
    }

    /// Masks a value after a name and `marks`. `is_first` is true if the name is the first word of its line.
    fn value(&mut self, marks: &str, is_first: bool) {
        let tail = self.rest_of_string();
        if tail.starts_with(MASK) {
            return self.keep(MASK.len());
        }
        let is_reference = is_harmless(tail) && !tail.contains(MASK);
        if tail.starts_with(['{', '[']) && !marks.is_empty() && !is_reference {
            return match closed(tail) {
                Some(end) => self.skip(end, &nested(&tail[..end])),
                None => {
                    self.skip(tail.len(), &nested(tail));
                    self.pending = Pending::Block(indent(self.text));
                }
            };
        }
        let in_flow = self.text[..self.at].contains(['{', '[']);
        let quoted = tail.starts_with(['"', '\'']);
        let value = match marks {
            _ if quoted => word(tail, |_| false),
            ":" if is_first && !in_flow => tail.trim_end_matches([',', ';']),
            ":" if in_flow => word(tail, |c| matches!(c, ',' | '}' | ']' | '"' | '\'')),
            ":" => word(tail, |c| matches!(c, '"' | '\'')),
            "" => word(tail, |c| matches!(c, ' ' | '\t' | ';' | '"' | '\'')),
            _ => word(tail, |c| " \t;&,)}\"'".contains(c)),
        };
        let shown = if tail.len() < self.rest().len() && !is_harmless(value) && !quoted {
            // A string that goes on has its quotes already.
            MASK.to_owned()
        } else {
            mask_of(value)
        };
        self.skip(value.len(), &shown);
    }

    /// Masks credentials after the name of their scheme (RFC 9110 §11.4).
    fn scheme(&mut self, name: &str) {
        let is_bearer = name.eq_ignore_ascii_case("bearer");
        if !is_bearer && !name.eq_ignore_ascii_case("basic") {
            return;
        }
        let tail = self.rest_of_string();
        let blank = ["\\ ", " ", "%20"].into_iter().find(|blank| tail.starts_with(blank));
        let Some(blank) = blank else {
            return;
        };
        let value = word(&tail[blank.len()..], |c| " \t;,\"'".contains(c));
        if !is_harmless(value) && (is_bearer || is_credentials(value)) {
            self.keep(blank.len());
            self.skip(value.len(), MASK);
        }
    }
}

/// Counts the bytes of leading blanks. HAProxy escapes a blank that does not separate.
fn count_blanks(text: &str) -> usize {
    let mut tail = text;
    while let Some(stripped) = tail.strip_prefix([' ', '\t']).or(tail.strip_prefix("\\ ")) {
        tail = stripped;
    }
    text.len() - tail.len()
}
