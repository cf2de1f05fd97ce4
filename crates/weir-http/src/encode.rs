//! A request as bytes (RFC 9112 §3), made once before a trial and sent again and again.

use weir_model::load::RequestSpec;

use crate::text::is_token;

/// Reason why a request cannot be sent as HTTP/1.1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The method is not a token (RFC 9110 §9.1).
    #[error("method `{}` is not a token", .0.escape_debug())]
    Method(String),
    /// The method is CONNECT, which makes a tunnel without responses to measure (RFC 9110 §9.3.6).
    #[error("method CONNECT opens a tunnel and cannot be measured")]
    Connect,
    /// The target is empty or holds white space or a control character.
    #[error("target `{}` is empty or holds white space or a control character", .0.escape_debug())]
    Target(String),
    /// The host holds white space or a control character.
    #[error("host `{}` holds white space or a control character", .0.escape_debug())]
    Host(String),
    /// A field's name is not a token (RFC 9110 §5.1).
    #[error("field name `{}` is not a token", .0.escape_debug())]
    FieldName(String),
    /// A field's value contains CR, LF or NUL (RFC 9110 §5.5).
    #[error("value of field `{}` holds CR, LF or NUL", .0.escape_debug())]
    FieldValue(String),
    /// The user's fields have Transfer-Encoding: the content is sent unchanged, so the server would look for chunks
    /// that are not there.
    #[error("field transfer-encoding says `{}`, but the body is sent as it is, in one piece", .0.escape_debug())]
    TransferEncoding(String),
    /// The user's Content-Length differs from the length of the content: the server would wait for bytes that never
    /// come, or take them for another request.
    #[error("field content-length says `{}` and the content has {length} bytes", .said.escape_debug())]
    ContentLength {
        /// Value of the field.
        said: String,
        /// Length of the content in bytes.
        length: usize,
    },
}

/// A part of an encoded request. Parts that the user wrote are separate, so that a caller can put something else in
/// their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'s> {
    /// Fixed text.
    Text(&'s str),
    /// The request target.
    Target(&'s str),
    /// The value of the field with this index in [`RequestSpec::fields`].
    Value(usize, &'s str),
    /// The number of bytes in the content.
    Length,
    /// The content, always last.
    Content(&'s [u8]),
}

/// Encodes a request: request line, Host (unless the user's fields have one), the user's fields in their order,
/// Content-Length if it is due (RFC 9110 §8.6) and the user's fields do not set it, and the content.
///
/// # Errors
/// Fails if a part of the request could not be sent with its intended meaning.
pub fn encode(spec: &RequestSpec, host: &str) -> Result<Vec<u8>, EncodeError> {
    check(spec, host)?;
    let mut bytes = Vec::with_capacity(256 + spec.target.len() + spec.content.len());
    for part in parts(spec, host) {
        match part {
            Part::Text(text) | Part::Target(text) | Part::Value(_, text) => {
                bytes.extend_from_slice(text.as_bytes());
            }
            Part::Length => bytes.extend_from_slice(spec.content.len().to_string().as_bytes()),
            Part::Content(content) => bytes.extend_from_slice(content),
        }
    }
    Ok(bytes)
}

/// Returns the parts that [`encode`] writes, in order, unchecked.
pub fn parts<'s>(spec: &'s RequestSpec, host: &'s str) -> Vec<Part<'s>> {
    use Part::{Content, Length, Target, Text, Value};
    let mut parts = vec![Text(&spec.method), Text(" "), Target(&spec.target)];
    parts.push(Text(" HTTP/1.1\r\n"));
    if !has_field(spec, "host") {
        parts.extend(["Host: ", host, "\r\n"].map(Text));
    }
    for (index, (name, value)) in spec.fields.iter().enumerate() {
        parts.extend([Text(name), Text(": "), Value(index, value), Text("\r\n")]);
    }
    let due = !spec.content.is_empty() || matches!(&*spec.method, "POST" | "PUT" | "PATCH");
    if due && !has_field(spec, "content-length") {
        parts.extend([Text("Content-Length: "), Length, Text("\r\n")]);
    }
    parts.extend([Text("\r\n"), Content(&spec.content)]);
    parts
}

fn has_field(spec: &RequestSpec, name: &str) -> bool {
    spec.fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name))
}

/// Checks that [`encode`] accepts the request.
///
/// # Errors
/// Returns the error that [`encode`] would return.
pub fn check(spec: &RequestSpec, host: &str) -> Result<(), EncodeError> {
    if !is_name(&spec.method) {
        return Err(EncodeError::Method(spec.method.clone()));
    }
    if spec.method == "CONNECT" {
        return Err(EncodeError::Connect);
    }
    if spec.target.is_empty() || !is_visible(&spec.target) {
        return Err(EncodeError::Target(spec.target.clone()));
    }
    if !is_visible(host) {
        return Err(EncodeError::Host(host.to_owned()));
    }
    for (name, value) in &spec.fields {
        if !is_name(name) {
            return Err(EncodeError::FieldName(name.clone()));
        }
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(EncodeError::FieldValue(name.clone()));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(EncodeError::TransferEncoding(value.clone()));
        }
        let length = spec.content.len();
        if name.eq_ignore_ascii_case("content-length") && value.trim() != length.to_string() {
            return Err(EncodeError::ContentLength { said: value.clone(), length });
        }
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token)
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}
