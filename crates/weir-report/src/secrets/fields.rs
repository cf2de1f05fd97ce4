//! Values of request headers in the text that describes a load.

use weir_model::study::{LoadSpec, Study};

use super::masked;
use super::secret::{MASK, is_harmless};

/// Names of request headers whose values are no secrets, in lower case. Any other may have one.
const HARMLESS: [&str; 29] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "dnt",
    "expect",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "origin",
    "pragma",
    "range",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-requested-with",
];

fn is_secret(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_known = HARMLESS.contains(&&*lower)
        || lower.starts_with("x-forwarded-")
        || lower == "referer" && !value.contains('?');
    !is_known && !is_harmless(value)
}

/// Masks the values of request headers in a study that are not known to be harmless.
pub fn mask_header_values(study: &mut Study) {
    let requests = study.loads.iter_mut().flat_map(LoadSpec::flows_mut);
    let fields = requests
        .flat_map(|flow| &mut flow.requests)
        .flat_map(|weighted| &mut weighted.request.fields)
        .filter(|(name, value)| is_secret(name, value));
    fields.for_each(|(_, value)| MASK.clone_into(value));
}

/// Returns the text of a study, as it was typed, with its secrets and its values of request headers masked.
pub fn masked_study(study: &Study, text: &str) -> String {
    let fields = study
        .loads
        .iter()
        .flat_map(LoadSpec::flows)
        .flat_map(|flow| &flow.requests)
        .flat_map(|weighted| &weighted.request.fields)
        .map(|(name, value)| (&**name, &**value));
    masked(&without_field_values(text, fields)).into_owned()
}

/// A study or a command line with `(masked)` for the values of those of its request headers (`fields`: names and values)
/// that are not known to be harmless. A value that is written in another way than it is sent is masked with all that
/// belongs to its line.
pub(crate) fn without_field_values<'f>(
    text: &str,
    fields: impl Iterator<Item = (&'f str, &'f str)>,
) -> String {
    let mut fields: Vec<(String, &str)> =
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    // The longest first: one may begin as another.
    fields.sort_unstable_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    let (lower, mut out, mut at) = (text.to_ascii_lowercase(), String::new(), 0);
    while let Some((begin, end)) = next_name(&lower, at, &fields) {
        out += &text[at..end];
        at = end;
        let tail = &text[end..];
        let value = tail.trim_start_matches(|c: char| " \t\r\n:,='\"[?".contains(c));
        let marks = &tail[..tail.len() - value.len()];
        if !marks.contains([':', ',']) {
            continue;
        }
        let name = &lower[begin..end];
        let mut values = fields.iter().filter(|(field_name, _)| field_name == name);
        let field = values
            .find(|(_, field_value)| !field_value.is_empty() && value.starts_with(field_value));
        if field.is_some_and(|(name, value)| !is_secret(name, value)) {
            continue;
        }
        let value_at = end + marks.len();
        let length = match field {
            Some((_, value)) => value.len(),
            None => whole_length(text, end, value_at),
        };
        out.extend([marks, MASK]);
        at = value_at + length;
    }
    out + &text[at..]
}

/// Begin and end of the first name of a secret from a byte on.
fn next_name(lower: &str, from: usize, fields: &[(String, &str)]) -> Option<(usize, usize)> {
    let positions =
        fields.iter().filter(|(name, value)| is_secret(name, value)).filter_map(|(name, _)| {
            let mut all = lower[from..].match_indices(&**name);
            let (begin, _) = all.find(|(at, _)| {
                let before = &lower[..from + at];
                // A short option and its value may be one word.
                let begins = !before.ends_with(is_token) || before.ends_with("-h");
                begins && !lower[from + at + name.len()..].starts_with(is_token)
            })?;
            Some((from + begin, from + begin + name.len()))
        });
    positions.min()
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Bytes from the begin of a value on that belong to it: what is left of its line, and the lines that are indented deeper
/// than that of its name.
fn whole_length(text: &str, name_at: usize, value_at: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let line_at = text[..name_at].rfind('\n').map_or(0, |end| end + 1);
    let name_indent = indent(&text[line_at..]);
    let length: usize = text[value_at..]
        .split_inclusive('\n')
        .enumerate()
        .take_while(|(number, line)| {
            *number == 0 || line.trim().is_empty() || indent(line) > name_indent
        })
        .map(|(_, line)| line.len())
        .sum();
    text[value_at..value_at + length].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_headers_are_masked_unless_their_names_are_harmless() {
        let fields = [
            ("X-Session", "S3CRET"),
            ("X-Vault", "S3CRET, it's S3CRET"),
            ("X-Pem", "S3CRET\\S3CRET"),
            ("Accept", "stays"),
            ("Referer", "http://stays/"),
            ("Referer", "/?a=S3CRET"),
            ("X-Forwarded-For", "stays"),
        ];
        for text in [
            "# weir capacity -H 'X-Session: S3CRET' -HX-Session:S3CRET -H \"X-Vault: S3CRET, it's S3CRET\" stays",
            "request: {path: /, fields: {X-Session: S3CRET, 'x-vault': \"S3CRET, it's S3CRET\", Accept: stays}}",
            "[[\"X-Session\",\"S3CRET\"],[\"Accept\",\"stays\"],[\"X-Forwarded-For\",\"stays\"]]",
            "fields:\n  Referer: http://stays/\n  Referer: /?a=S3CRET\n",
            "fields:\n  X-Session:\n    S3CRET\n  Accept: stays\n",
            "fields:\n  X-Pem: \"S3CRET\\\\S3CRET\"\n  X-Session: >\n    S3CRET\n\n    S3CRET\n  Accept: stays\n",
            "question: does X-Session stays cost more than X-Session-Id: stays?",
        ] {
            let shown = without_field_values(text, fields.into_iter());
            assert!(!shown.contains("S3CRET"), "{shown}");
            let stay_count = text.matches("stays").count();
            assert_eq!(shown.matches("stays").count(), stay_count, "{shown}");
            assert_eq!(shown.contains(MASK), text.contains("S3CRET"), "{shown}");
        }
    }
}
