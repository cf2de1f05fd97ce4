//! A request as bytes (RFC 9112 §3), made once before a trial and sent again and again.

use weir_model::load::RequestSpec;

use crate::text::is_token;

/// Why a request cannot be sent as HTTP/1.1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The method is not a token (RFC 9110 §9.1).
    #[error("method `{}` is not a token", .0.escape_debug())]
    Method(String),
    /// CONNECT makes a tunnel, which has no responses to be measured (RFC 9110 §9.3.6).
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
    /// A field's value holds CR, LF or NUL (RFC 9110 §5.5).
    #[error("value of field `{}` holds CR, LF or NUL", .0.escape_debug())]
    FieldValue(String),
    /// The user's own Content-Length is not the length of the content: the server would wait for
    /// bytes that never come, or take them for another request.
    #[error("field content-length says `{}` and the content has {length} bytes", .said.escape_debug())]
    ContentLength {
        /// What the field says.
        said: String,
        /// Bytes of content.
        length: usize,
    },
}

/// Encodes a request: request line, Host (unless the user's fields have one), the user's fields in
/// their order, Content-Length where one is due (RFC 9110 §8.6) and the user's fields leave it
/// open, and the content.
///
/// # Errors
/// Some part of it would not come out as what was meant.
pub fn encode(spec: &RequestSpec, host: &str) -> Result<Vec<u8>, EncodeError> {
    check(spec, host)?;
    let has = |name: &str| {
        spec.fields
            .iter()
            .any(|(have, _)| have.eq_ignore_ascii_case(name))
    };
    let mut bytes = Vec::with_capacity(256 + spec.target.len() + spec.content.len());
    bytes.extend_from_slice(format!("{} {} HTTP/1.1\r\n", spec.method, spec.target).as_bytes());
    let mut field = |name: &str, value: &str| {
        for part in [name, ": ", value, "\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
    };
    if !has("host") {
        field("Host", host);
    }
    for (name, value) in &spec.fields {
        field(name, value);
    }
    let due = !spec.content.is_empty() || matches!(&*spec.method, "POST" | "PUT" | "PATCH");
    if due && !has("content-length") && !has("transfer-encoding") {
        field("Content-Length", &spec.content.len().to_string());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&spec.content);
    Ok(bytes)
}

fn check(spec: &RequestSpec, host: &str) -> Result<(), EncodeError> {
    let token = |text: &str| !text.is_empty() && text.bytes().all(is_token);
    let visible = |text: &str| text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if !token(&spec.method) {
        return Err(EncodeError::Method(spec.method.clone()));
    }
    if spec.method == "CONNECT" {
        return Err(EncodeError::Connect);
    }
    if spec.target.is_empty() || !visible(&spec.target) {
        return Err(EncodeError::Target(spec.target.clone()));
    }
    if !visible(host) {
        return Err(EncodeError::Host(host.to_owned()));
    }
    for (name, value) in &spec.fields {
        if !token(name) {
            return Err(EncodeError::FieldName(name.clone()));
        }
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(EncodeError::FieldValue(name.clone()));
        }
        let length = spec.content.len();
        if name.eq_ignore_ascii_case("content-length") && value.trim() != length.to_string() {
            let said = value.clone();
            return Err(EncodeError::ContentLength { said, length });
        }
    }
    Ok(())
}
