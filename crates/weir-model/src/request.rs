//! Requests of a load and expectations on their responses, in the user's notation.

use serde::{Deserialize, Serialize};

use crate::load::RequestSpec;

/// One of the requests that a load is mixed from. Target, field values and content may contain slots such as
/// `{{sequence}}`, which are filled in for every request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightedRequest {
    /// Name of the request in reports; `None`: method and target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Frequency of the request relative to the weights of the others; above zero.
    pub weight: f64,
    /// The request.
    pub request: RequestSpec,
    /// Expectations on the response; `None`: any response is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectSpec>,
}

impl WeightedRequest {
    /// Creates an entry for the only request of a load: weight 1, no name and no expectations.
    pub fn single(request: RequestSpec) -> WeightedRequest {
        WeightedRequest { name: None, weight: 1.0, request, expect: None }
    }

    /// Name of the request in reports.
    pub fn title(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => format!("{} {}", self.request.method, self.request.target),
        }
    }
}

/// Expectations on a response. Properties without an expectation are not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpectSpec {
    /// Accepted status codes; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<StatusSpec>,
    /// Required fields of the head. If a field occurs several times, one match is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, FieldSpec)>,
    /// Required number of bytes of content, without the chunked coding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Required SHA-256 of the content (FIPS 180-4), in 64 hexadecimal digits.
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
    /// Returns true if a status code is accepted; `None` if there is no expectation on status codes.
    pub fn allows(&self, status: u16) -> Option<bool> {
        let is_allowed = self.status.iter().any(|allowed| match allowed {
            StatusSpec::Code(code) => *code == status,
            StatusSpec::Class(class) => u16::from(*class) == status / 100,
        });
        (!self.status.is_empty()).then_some(is_allowed)
    }

    /// Accepted status codes as text: `200, 3xx`.
    pub fn status_words(&self) -> String {
        self.status
            .iter()
            .map(|status| match status {
                StatusSpec::Code(code) => code.to_string(),
                StatusSpec::Class(class) => format!("{class}xx"),
            })
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl StatusSpec {
    /// Reads `200` or `2xx`; `None` if the text is neither, or not from 100 to 599 (RFC 9110 §15).
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

/// Expectation on a field of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FieldSpec {
    /// The field must be present with any value.
    Present,
    /// The field must have this value, byte for byte, apart from surrounding white space.
    Value(String),
}

/// Reads a SHA-256 (FIPS 180-4) in 64 hexadecimal digits and returns it in lower case; `None` if the text is not one.
pub fn parse_sha256(text: &str) -> Option<String> {
    let is_whole = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then(|| text.to_ascii_lowercase())
}

/// Returns true if a text is valid as the name of a header or a method: a token (RFC 9110 §5.6.2).
pub fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Writes every `{{` as `{{{{`, so that no slot begins there: for content that is sent unchanged.
pub fn escape(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    let mut remaining = text;
    loop {
        remaining = match remaining {
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
        for no in
            ["", "20", "2000", "0xx", "2x", "+20", "2xé", "éa", "099", "2x0", "999", "7xx", "600"]
        {
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
