//! Names and formats of secrets.

/// Text that replaces a secret.
pub(crate) const MASK: &str = "(masked)";

/// Suffixes of names of secrets, in lower case and without word separators.
const NAMES: [&str; 21] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "privatekey",
    "accesskey",
    "secretkey",
    "signingkey",
    "hmackey",
    "encryptionkey",
    "sharedkey",
    "authkey",
    "sessionkey",
    "signature",
    "securelinkmd5",
    "localjwks",
];

/// Names of secrets that count only if more than a blank separates name and value, or in a line that sets a header.
/// Otherwise HAProxy and nginx use these words for other things.
const ONLY_OF_VALUES: [&str; 2] = ["cookie", "inlinebytes"];

/// Names that are too short to match the end of any word, because encoded data contains them by chance.
const SHORT: [&str; 3] = ["pass", "pwd", "sig"];

/// Names of secrets in the query of a URL, in lower case: elsewhere they are words of every day.
const OF_QUERIES: [&str; 17] = [
    "code",
    "session",
    "sid",
    "otp",
    "totp",
    "pin",
    "state",
    "nonce",
    "key",
    "auth",
    "ticket",
    "jwt",
    "hash",
    "assertion",
    "bearer",
    "samlresponse",
    "relaystate",
];

/// Ends of such names.
const ENDS_OF_QUERIES: [&str; 3] = ["session", "sessionid", "sessid"];

/// Returns true if a name in the query of a URL says that its value is a secret.
pub(super) fn is_of_query(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let last = lower.rsplit(['_', '-', '.']).next();
    last.is_some_and(|last| OF_QUERIES.contains(&last))
        || ENDS_OF_QUERIES.iter().any(|end| lower.ends_with(end))
}

/// Returns true if a name that is written in the way of URLs says that its value is a secret: with characters as `%XX`,
/// or as a part of another thing (`user[password]`). `is_query` is true in the query of a URL.
pub(super) fn is_written_secret(raw: &str, is_query: bool) -> bool {
    let mut text = raw.to_owned();
    // What is encoded twice is decoded twice.
    for _ in 0..MOST_ENCODINGS {
        text = decoded(&text);
    }
    let parts = text.split(['[', ']', '?', '&', ';', '=', '/']).filter(|part| !part.is_empty());
    parts.map(letters).any(|part| named(&part) != Named::No || is_query && is_of_query(&part))
}

/// Times that a text is decoded, at most.
const MOST_ENCODINGS: usize = 3;

/// Returns a text with `%XX` replaced by the characters that they stand for.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut remaining = text.as_bytes();
    while let Some((&first, tail)) = remaining.split_first() {
        let hex = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                remaining = &tail[2..];
            }
            _ => {
                bytes.push(first);
                remaining = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a name with everything between its words as `_`.
fn letters(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_alphanumeric() || c == '.' || c == '-' { c } else { '_' })
        .collect()
}

/// Directives whose second or later word is a name. In their lines, an everyday word counts as a name of a secret too.
const NAMING: [&str; 27] = [
    "user",
    "set",
    "setenv",
    "presetenv",
    "export",
    "env",
    "header",
    "header_up",
    "header_down",
    "request_header",
    "requestheader",
    "http-request",
    "http-response",
    "http-check",
    "tcp-check",
    "tcp-request",
    "option",
    "server",
    "default-server",
    "proxy_set_header",
    "grpc_set_header",
    "add_header",
    "more_set_headers",
    "more_set_input_headers",
    "fastcgi_param",
    "uwsgi_param",
    "scgi_param",
];

/// Keys that hold the value for the name beside them, or the value to compare with: Envoy's headers and matchers.
const VALUE_KEYS: [&str; 5] =
    ["value", "raw_value", "string_match", "exact_match", "contains_match"];

/// First words of entries of nginx's `map` that are not values of its variable.
const MAP_WORDS: [&str; 4] = ["default", "hostnames", "volatile", "include"];

/// Keys beside a secret in the same mapping whose values are not secret.
const HARMLESS_KEYS: [&str; 7] = [
    "name",
    "filename",
    "path",
    "environment_variable",
    "watched_directory",
    "sds_config",
    "@type",
];

/// Prefixes of password hashes (crypt(5)) that cannot be mistaken for other text.
const HASHES: [&str; 13] = [
    "$apr1$", "$2a$", "$2b$", "$2x$", "$2y$", "$7$", "$y$", "$gy$", "$argon2", "$scrypt$",
    "$pbkdf2", "{SHA", "{SSHA",
];
/// Prefixes of password hashes that could also be two variables in a row. They count if a salt and a hash follow.
const SHORT_HASHES: [&str; 3] = ["$1$", "$5$", "$6$"];

/// Digits of a line's or column's number, at most: longer ones are keys.
const MOST_DIGITS: usize = 7;

/// The base64 of `-----BEGIN`, with which keys in Envoy's `inline_bytes` begin.
pub(super) const PEM_IN_BASE64: &str = "LS0tLS1CRUdJTi";

/// Returns true if a text may contain a secret. Other texts need no closer inspection.
pub(super) fn may_be_in(text: &str) -> bool {
    const PARTS: [&str; 22] = [
        "pass",
        "pwd",
        "secret",
        "token",
        "key",
        "auth",
        "credential",
        "cookie",
        "bearer",
        "basic",
        "://",
        "$",
        "{s",
        "-----",
        "ls0t",
        "inline",
        "sig",
        "md5",
        "jwks",
        "?",
        "%",
        "sess",
    ];
    let lower = text.to_ascii_lowercase();
    PARTS.iter().any(|part| lower.contains(part)) || text.lines().any(is_of_a_key)
}

/// Returns true if a line has nothing but a line of a PEM file (RFC 7468 §2: 64 characters of base64).
pub(super) fn is_of_a_key(line: &str) -> bool {
    let text = line.trim_matches([' ', '\t', '+', '-']);
    text.len() >= 60 && is_base64(text)
}

/// Returns the position behind a private key's begin (RFC 7468 §10) in a line.
pub(super) fn begin_of_key(text: &str) -> Option<usize> {
    let begin = text.find("-----BEGIN ")?;
    let mark = "PRIVATE KEY-----";
    Some(begin + text[begin..].find(mark)? + mark.len())
}

pub(super) fn end_of_key(text: &str) -> Option<usize> {
    let end = text.find("-----END ")?;
    text[end..].contains("PRIVATE KEY-----").then_some(end)
}

/// A line with a whole private key in it, without what is secret of it.
pub(super) fn whole_key(text: &str) -> Option<String> {
    let (begin, end) = (begin_of_key(text)?, end_of_key(text)?);
    (begin <= end).then(|| format!("{}{MASK}{}", &text[..begin], &text[end..]))
}

pub(super) fn is_base64(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
}

/// Strength of the evidence that a name is the name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// The value is a secret, whatever separates it from the name.
    Always,
    /// The value is a secret if more than a blank separates it from the name, or the line is one that names headers or
    /// variables.
    WithValue,
    No,
}

pub(super) fn named(name: &str) -> Named {
    let lower: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let is_value_name = ONLY_OF_VALUES.iter().any(|end| lower.ends_with(end));
    let is_name = NAMES.iter().any(|end| lower.ends_with(end));
    let is_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    match () {
        () if name == "AUTH" => Named::Always,
        () if is_name && !is_word => Named::Always,
        () if is_name || is_value_name || is_short(name) => Named::WithValue,
        () => Named::No,
    }
}

fn is_short(name: &str) -> bool {
    let mut words = name.rsplit(['_', '-', '.']);
    words.next().is_some_and(|last| SHORT.contains(&&*last.to_ascii_lowercase()))
}

/// Returns true if a line begins with a directive that has names as arguments.
pub(super) fn names_things(line: &str) -> bool {
    let words = line.trim_start_matches([' ', '\t', '+', '-', '"', '\'']);
    let first = words.split([' ', '\t']).next().unwrap_or_default();
    NAMING.contains(&&*first.to_ascii_lowercase())
}

/// Returns the text after a key at the begin of `text`, from the colon on, if the key is one that holds values.
pub(super) fn behind_value_key(text: &str) -> Option<&str> {
    let unquoted = text.trim_start_matches(['"', '\'']);
    VALUE_KEYS.iter().find_map(|key| {
        let behind = unquoted.strip_prefix(key)?.trim_start_matches(['"', '\'']);
        behind.trim_start().starts_with(':').then_some(behind)
    })
}

/// Returns true if a line begins a `map` of nginx whose variable is a secret, so that the entries begin with secrets.
pub(super) fn begins_map(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let is_map = words.next() == Some("map") && line.trim_end().ends_with('{');
    let variable = words.next().and_then(|word| word.strip_prefix('$'));
    is_map && variable.is_some_and(|name| named(name) != Named::No)
}

pub(super) fn is_map_word(word: &str) -> bool {
    MAP_WORDS.contains(&word) || word.starts_with('#')
}

pub(super) fn is_harmless_key(key: &str) -> bool {
    HARMLESS_KEYS.contains(&key)
}

/// Returns true if a value is not a secret: empty, a variable or another reference, a word such as `off`, or already
/// masked.
pub(super) fn is_harmless(value: &str) -> bool {
    const WORDS: [&str; 16] = [
        "on", "off", "true", "false", "yes", "no", "none", "null", "~", "|", "|-", ">", ">-", "-",
        "…", "...",
    ];
    let trimmed = value.trim();
    trimmed.is_empty()
        || trimmed.contains(MASK)
        || WORDS.contains(&trimmed)
        || trimmed.strip_prefix('$').is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
        || [("${", "}"), ("{", "}"), ("%[", "]"), ("%{", "}")].iter().any(|(begin, end)| {
            let inner = trimmed.strip_prefix(begin).and_then(|tail| tail.strip_suffix(end));
            inner.is_some_and(|inner| {
                !inner.is_empty()
                    && inner.chars().all(|c| c.is_ascii_alphanumeric() || "_.$-()".contains(c))
            })
        })
}

/// Returns the length of the password hash that a text begins with. 0 if there is none.
pub(super) fn hash(text: &str) -> usize {
    let scheme = if text.starts_with('{') { text.find('}').map_or(0, |end| end + 1) } else { 0 };
    let length = text[scheme..]
        .find(|c: char| !c.is_ascii_alphanumeric() && !"./$+=,_-".contains(c))
        .map_or(text.len(), |end| scheme + end);
    let is_hash = HASHES.iter().any(|begin| text.starts_with(begin));
    let is_short = SHORT_HASHES.iter().any(|begin| {
        let mut parts = text[..length].strip_prefix(begin).unwrap_or_default().split('$');
        let hash = parts.by_ref().nth(1).unwrap_or_default();
        // With `rounds=…` before the salt it comes later.
        let hash = parts.next().unwrap_or(hash);
        hash.len() >= 8 && hash.chars().all(|c| c.is_ascii_alphanumeric() || "./".contains(c))
    });
    if is_hash && text.len() > 6 || is_short { length } else { 0 }
}

/// Returns true if the text after `Basic` is credentials (RFC 7617 §2) and not a word.
pub(super) fn is_credentials(text: &str) -> bool {
    let has_mark = text.contains(|c: char| c.is_ascii_digit() || matches!(c, '=' | '+' | '/'))
        || text.chars().skip(1).any(|c| c.is_ascii_uppercase());
    text.len() >= 4 && is_base64(text) && has_mark
}

/// Returns true if a text begins with a place in the file before it: `:LINE` or `:LINE:COLUMN`, and no more of that
/// word.
pub(super) fn is_place(text: &str) -> bool {
    let word = text.split([' ', '\t', ',', ')', '`']).next();
    let position = word.unwrap_or_default().trim_end_matches(':').strip_prefix(':');
    let mut numbers = position.into_iter().flat_map(|position| position.split(':'));
    numbers.next().is_some_and(is_number)
        && numbers.next().is_none_or(is_number)
        && numbers.next().is_none()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= MOST_DIGITS && text.bytes().all(|b| b.is_ascii_digit())
}
