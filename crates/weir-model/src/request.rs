//! Which requests are sent and what is expected of their responses, in the user's words.

use serde::{Deserialize, Serialize};

use crate::load::RequestSpec;

/// One of several requests that a load is mixed from. Target, field values and content may hold
/// slots such as `{{sequence}}`, which are filled in for every request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightedRequest {
    /// What reports call it; `None`: method and target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How often it is sent, in proportion to the weights of the others; above zero.
    pub weight: f64,
    /// The request.
    pub request: RequestSpec,
    /// What its response must be like; `None`: any response will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectSpec>,
}

impl WeightedRequest {
    /// A request that stands alone.
    pub fn single(request: RequestSpec) -> WeightedRequest {
        WeightedRequest {
            name: None,
            weight: 1.0,
            request,
            expect: None,
        }
    }

    /// What reports call it.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => format!("{} {}", self.request.method, self.request.target),
        }
    }
}

/// What a response must be like. What is not said is not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpectSpec {
    /// Status codes, any of them; none: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<StatusSpec>,
    /// Fields of the head, all of them. Of a field that comes several times, one is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, FieldSpec)>,
    /// Bytes of content, without the chunked coding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// SHA-256 of the content (FIPS 180-4), in 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Status codes (RFC 9110 §15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StatusSpec {
    /// One code.
    Code(u16),
    /// All codes that begin with this digit: 2 is `2xx`.
    Class(u8),
}

impl ExpectSpec {
    /// Whether a status code is one of those that are right; `None`: nothing is said about it.
    pub fn allows(&self, status: u16) -> Option<bool> {
        let allows = |allowed: &StatusSpec| match allowed {
            StatusSpec::Code(code) => *code == status,
            StatusSpec::Class(class) => u16::from(*class) == status / 100,
        };
        (!self.status.is_empty()).then(|| self.status.iter().any(allows))
    }

    /// The status codes that are right, in words: `200, 3xx`.
    pub fn status_words(&self) -> String {
        let word = |status: &StatusSpec| match status {
            StatusSpec::Code(code) => code.to_string(),
            StatusSpec::Class(class) => format!("{class}xx"),
        };
        self.status.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

impl StatusSpec {
    /// Reads `200` or `2xx`; `None` when the text is neither, or not from 100 to 599 (RFC 9110 §15).
    pub fn parse(text: &str) -> Option<StatusSpec> {
        let digit = *text.as_bytes().first()?;
        if text.len() != 3 || !(b'1'..=b'5').contains(&digit) {
            return None;
        }
        if text[1..].eq_ignore_ascii_case("xx") {
            return Some(StatusSpec::Class(digit - b'0'));
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok().map(StatusSpec::Code))?
    }
}

/// What a field of a response must be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FieldSpec {
    /// There, whatever it says.
    Present,
    /// This value, byte for byte, white space around it apart.
    Value(String),
}

/// A SHA-256 (FIPS 180-4) in 64 hexadecimal digits, in lower case; `None` when the text is none.
pub fn parse_sha256(text: &str) -> Option<String> {
    let is_whole = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then(|| text.to_ascii_lowercase())
}

/// Whether a text can be the name of a header or a method: a token (RFC 9110 §5.6.2).
pub fn is_token(text: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(token)
}

/// Text in which every `{{` is written `{{{{`, so that it stands for itself and begins no slot: for
/// content that is to be sent as it is.
pub fn escape(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [b'{', b'{', after @ ..] => {
                escaped.extend_from_slice(b"{{{{");
                after
            }
            [first, after @ ..] => {
                escaped.push(*first);
                after
            }
            [] => return escaped,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_codes_and_classes() {
        assert_eq!(StatusSpec::parse("204"), Some(StatusSpec::Code(204)));
        assert_eq!(StatusSpec::parse("5XX"), Some(StatusSpec::Class(5)));
        for no in [
            "", "20", "2000", "0xx", "2x", "+20", "2xé", "éa", "099", "2x0", "999", "7xx", "600",
        ] {
            assert_eq!(StatusSpec::parse(no), None, "{no}");
        }
    }

    #[test]
    fn pairs_of_braces_are_escaped() {
        assert_eq!(escape(b"{{{ {a} {{"), b"{{{{{ {a} {{{{");
        assert_eq!(escape(b""), b"");
    }

    #[test]
    fn a_request_is_written_and_read_back() {
        let request = WeightedRequest {
            weight: 0.5,
            expect: Some(ExpectSpec {
                status: vec![StatusSpec::Code(200), StatusSpec::Class(3)],
                fields: vec![
                    ("Via".to_owned(), FieldSpec::Present),
                    ("Age".to_owned(), FieldSpec::Value("0".to_owned())),
                ],
                ..ExpectSpec::default()
            }),
            ..WeightedRequest::single(RequestSpec::get("/"))
        };
        let json = serde_json::to_string(&request).unwrap();
        let back: WeightedRequest = serde_json::from_str(&json).unwrap();
        assert_eq!(back, request);
    }
}
