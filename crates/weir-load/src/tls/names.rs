//! Ciphers and groups in rustls by their names, and the names of alerts.

use rustls::SupportedCipherSuite;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite as suite, kx_group};

/// The cipher suites of [`weir_model::tls::names::CIPHERS`], in its order.
pub(super) static CIPHERS: [SupportedCipherSuite; 9] = [
    suite::TLS13_AES_256_GCM_SHA384,
    suite::TLS13_AES_128_GCM_SHA256,
    suite::TLS13_CHACHA20_POLY1305_SHA256,
    suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// The groups of [`weir_model::tls::names::GROUPS`], in its order.
#[rustfmt::skip]
pub(super) static GROUPS: [&dyn SupportedKxGroup; 7] = [
    kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1, kx_group::X25519MLKEM768,
    kx_group::SECP256R1MLKEM768, kx_group::MLKEM768, kx_group::MLKEM1024,
];

/// Number of [`GROUPS`] that are offered by default: x25519, secp256r1, secp384r1.
///
/// OpenSSL 3.5 and browsers begin with the hybrid X25519MLKEM768. A load generator does not: the hybrid adds about as
/// much client CPU time to a handshake as x25519 itself takes, its key generation even if the server then chooses
/// x25519, and that time is not the server's. The group is not offered at the end of the list without a share either: a
/// server that prefers it (OpenSSL 3.5) would answer with HelloRetryRequest and every handshake would take another
/// round trip. Users can request it explicitly; rustls then sends an x25519 share beside the hybrid, as browsers do, if
/// both are named.
pub(super) const DEFAULT_GROUPS: usize = 3;

/// Returns the name of an alert (RFC 8446 §6, RFC 5246 §7.2).
pub(super) fn alert(code: u8) -> &'static str {
    match code {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        _ => "unknown alert",
    }
}

#[cfg(test)]
mod tests {
    use weir_model::tls::names;

    use super::*;

    #[test]
    fn every_cipher_and_group_of_the_library_has_its_name() {
        let all = rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
        assert_eq!(all.len(), CIPHERS.len());
        for suite in all {
            assert!(CIPHERS.contains(suite), "{suite:?}");
        }
        assert_eq!(rustls::crypto::aws_lc_rs::ALL_KX_GROUPS.len(), GROUPS.len());
        for (index, suite) in CIPHERS.iter().enumerate() {
            let theirs = format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
            assert_eq!(names::cipher(&theirs), Ok(index), "{theirs}");
        }
        for (index, group) in GROUPS.iter().enumerate() {
            let theirs = format!("{:?}", group.name());
            assert_eq!(names::group(&theirs), Ok(index), "{theirs}");
        }
    }
}
