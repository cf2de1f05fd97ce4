//! Parser for the expectations on a response.

use super::{Fault, Key, is_not};
use crate::quantity::parse_bytes;
use crate::request::{ExpectSpec, FieldSpec, StatusSpec, is_token, parse_sha256};

/// Adds one expectation to `all`: `status=200`, `status=2xx,304`, `size=1KiB`, `sha256=…`, `field=Name` or `field=Name:
/// value`. A response may have any of several status codes; it must have all fields, which are given one by one.
pub(super) fn expectation(text: &str, all: &mut ExpectSpec) -> Result<(), Fault> {
    const KNOWN: [&str; 4] = ["status", "size", "sha256", "field"];
    let is_not = |text: &str, wanted: &str| is_not(Key::Expect, text, wanted);
    let unknown = |what: &str| {
        Err(is_not(text, "something that can be expected")
            .hint("write status=200, status=2xx,304, size=1KiB, sha256=HEX, field=Name or 'field=Name: value'")
            .nearest(what, &KNOWN))
    };
    let Some((what, typed)) = text.split_once('=') else {
        return unknown(text);
    };
    let value = typed.trim();
    match what.trim() {
        "status" => {
            for code in value.split(',').map(str::trim) {
                let status = StatusSpec::parse(code).ok_or_else(|| {
                    is_not(code, "a status code from 100 to 599, or a class such as 2xx")
                        .hint("write several as status=200,204: any of them will do")
                })?;
                all.status.push(status);
            }
        }
        "size" => {
            let size = parse_bytes(value);
            all.size = Some(size.map_err(|error| Fault::new(Key::Expect, error))?);
        }
        "sha256" => {
            let hash = parse_sha256(value);
            all.sha256 = Some(hash.ok_or_else(|| is_not(value, "64 hexadecimal digits"))?);
        }
        "field" => {
            let (name, wanted) = match value.split_once(':') {
                None => (value, FieldSpec::Present),
                Some((name, value)) => (name.trim(), FieldSpec::Value(value.trim().to_owned())),
            };
            if !is_token(name) {
                return Err(is_not(name, "a valid header name (RFC 9110 §5.1)"));
            }
            all.fields.push((name.to_owned(), wanted));
        }
        what => return unknown(what),
    }
    Ok(())
}
