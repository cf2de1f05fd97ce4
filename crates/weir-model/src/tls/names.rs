//! Names of ciphers and groups, in input and output.
//!
//! Two spellings are in use for ciphers: IANA's (`TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`) and, for TLS 1.2, OpenSSL's
//! (`ECDHE-RSA-AES256-GCM-SHA384`), which nginx, HAProxy and curl accept. Both are accepted as input, in upper or lower
//! case. Output uses OpenSSL's, because servers log that one.

/// A cipher or group that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no cipher or group with this name.
    #[error("there is no {what} `{name}`{}", nearest_words(.nearest))]
    Unknown {
        /// Kind of the name: cipher or group.
        what: &'static str,
        /// Name as typed.
        name: String,
        /// Valid name that is closest; `None` if none is close.
        nearest: Option<&'static str>,
        /// List of all usable names.
        known: String,
    },
    /// The cipher or group exists, but weir does not support it.
    #[error("{what} `{name}` exists, but weir does not support it: {why}")]
    Unspoken {
        /// Kind of the name: cipher or group.
        what: &'static str,
        /// Name as typed.
        name: String,
        /// Reason why it is not supported.
        why: &'static str,
        /// List of all usable names.
        known: String,
    },
}

impl NameError {
    /// Advice on how to fix the error.
    pub fn hint(&self) -> String {
        match self {
            NameError::Unknown { known, .. } | NameError::Unspoken { known, .. } => {
                format!("known are {known}")
            }
        }
    }

    /// Valid name that is closest to the one typed; `None` if none is close.
    pub fn nearest(&self) -> Option<&'static str> {
        match self {
            NameError::Unknown { nearest, .. } => *nearest,
            NameError::Unspoken { .. } => None,
        }
    }
}

fn nearest_words(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// A cipher suite's names.
#[derive(Debug)]
pub struct CipherNames {
    /// Name in OpenSSL.
    pub usual: &'static str,
    iana: &'static str,
}

const fn cipher_names(usual: &'static str, iana: &'static str) -> CipherNames {
    CipherNames { usual, iana }
}

/// Cipher suites that the engine supports, in the order in which they are offered by default. The order is OpenSSL's
/// and rustls': the strongest first, AES before ChaCha20.
#[rustfmt::skip]
pub static CIPHERS: [CipherNames; 9] = [
    cipher_names("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
    cipher_names("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
    cipher_names("TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
    cipher_names("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    cipher_names("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    cipher_names("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    cipher_names("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    cipher_names("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    cipher_names("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
];

/// Names of a key exchange group.
#[derive(Debug)]
pub struct GroupNames {
    /// Name used in output.
    pub usual: &'static str,
    others: &'static [&'static str],
}

const fn group_names(usual: &'static str, others: &'static [&'static str]) -> GroupNames {
    GroupNames { usual, others }
}

/// Key exchange groups that the engine supports; the first few are offered by default.
pub static GROUPS: [GroupNames; 7] = [
    group_names("x25519", &["curve25519"]),
    group_names("secp256r1", &["P-256", "prime256v1"]),
    group_names("secp384r1", &["P-384"]),
    group_names("X25519MLKEM768", &[]),
    group_names("SecP256r1MLKEM768", &[]),
    group_names("MLKEM768", &[]),
    group_names("MLKEM1024", &[]),
];

/// Reads a list of ciphers, separated by commas or colons; returns their usual names.
///
/// # Errors
/// A name is unknown, or the cipher is not supported.
pub fn parse_ciphers(text: &str) -> Result<Vec<String>, NameError> {
    list(text).map(|name| cipher(name).map(|index| CIPHERS[index].usual.to_owned())).collect()
}

/// Reads a list of key exchange groups, separated by commas or colons; returns their usual names.
///
/// # Errors
/// A name is unknown, or the group is not supported.
pub fn parse_groups(text: &str) -> Result<Vec<String>, NameError> {
    list(text).map(|name| group(name).map(|index| GROUPS[index].usual.to_owned())).collect()
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ':']).map(str::trim).filter(|name| !name.is_empty())
}

/// Returns the index in [`CIPHERS`] of a cipher by any of its names.
///
/// # Errors
/// The name is unknown, or the cipher is not supported.
pub fn cipher(name: &str) -> Result<usize, NameError> {
    CIPHERS
        .iter()
        .position(|c| c.usual.eq_ignore_ascii_case(name) || c.iana.eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            let names = CIPHERS.iter().flat_map(|c| [c.usual, c.iana]);
            let usual = CIPHERS.iter().map(|c| c.usual).collect::<Vec<_>>();
            wrong("cipher", name, unspoken_cipher(name), names, &usual)
        })
}

/// Returns the index in [`GROUPS`] of a group by any of its names.
///
/// # Errors
/// The name is unknown, or the group is not supported.
pub fn group(name: &str) -> Result<usize, NameError> {
    GROUPS
        .iter()
        .position(|g| {
            let mut names = std::iter::once(&g.usual).chain(g.others);
            names.any(|known| known.eq_ignore_ascii_case(name))
        })
        .ok_or_else(|| {
            let names = GROUPS
                .iter()
                .flat_map(|g| std::iter::once(g.usual).chain(g.others.iter().copied()));
            let usual = GROUPS.iter().map(|g| g.usual).collect::<Vec<_>>();
            wrong("group", name, unspoken_group(name), names, &usual)
        })
}

fn wrong(
    what: &'static str,
    name: &str,
    unspoken: Option<&'static str>,
    names: impl Iterator<Item = &'static str>,
    known: &[&'static str],
) -> NameError {
    let spoken = known.join(", ");
    let name = name.to_owned();
    if let Some(why) = unspoken {
        return NameError::Unspoken { what, name, why, known: spoken };
    }
    let upper = name.to_ascii_uppercase();
    let nearest = names
        .map(|known| (strsim::jaro_winkler(&upper, &known.to_ascii_uppercase()), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known);
    NameError::Unknown { what, name, nearest, known: spoken }
}

/// Returns the reason why a cipher is not supported; `None` if the name does not look like that of an existing cipher.
fn unspoken_cipher(name: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase().replace('_', "-");
    let has = |part: &str| upper.contains(part);
    let hash = upper.ends_with("-SHA") || upper.ends_with("-SHA256") || upper.ends_with("-SHA384");
    if upper.ends_with("-MD5") || has("RC4-") || has("3DES") || has("DES-CBC") || has("NULL-") {
        return Some("it is broken or encrypts nothing");
    }
    let bulk = has("AES") || has("CAMELLIA") || has("ARIA") || has("CHACHA20") || has("SEED");
    if !bulk {
        return None;
    }
    if has("AES128-CCM") || has("AES256-CCM") || has("-CCM") {
        return Some("CCM suites are not built in");
    }
    if !has("GCM") && !has("CHACHA20") {
        return hash.then_some("CBC suites authenticate before they encrypt; use a GCM suite");
    }
    if has("CAMELLIA") || has("ARIA") {
        return Some("only AES and ChaCha20 are built in");
    }
    if has("PSK") || has("SRP") {
        return Some("pre-shared keys are not built in");
    }
    if upper.starts_with("DHE-") || has("TLS-DHE") || upper.starts_with("EDH") {
        return Some("finite-field Diffie-Hellman is not built in; use an ECDHE suite");
    }
    let rsa = upper.starts_with("AES") || upper.starts_with("TLS-RSA-WITH");
    rsa.then_some("RSA key exchange has no forward secrecy; use an ECDHE suite")
}

fn unspoken_group(name: &str) -> Option<&'static str> {
    const UNSPOKEN: [(&str, &str); 6] = [
        ("x448", "curve448 is not built in"),
        ("secp521r1", "P-521 is not built in"),
        ("p-521", "P-521 is not built in"),
        ("ffdhe", "finite-field groups are not built in"),
        ("brainpool", "brainpool curves are not built in"),
        ("x25519kyber768", "the draft was replaced by X25519MLKEM768"),
    ];
    let lower = name.to_ascii_lowercase();
    UNSPOKEN.iter().find(|(start, _)| lower.starts_with(start)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_in_any_case() {
        for (index, names) in CIPHERS.iter().enumerate() {
            assert_eq!(cipher(names.usual), Ok(index));
            assert_eq!(cipher(&names.iana.to_ascii_lowercase()), Ok(index));
        }
        let typed =
            "ecdhe-rsa-aes256-gcm-sha384:TLS_AES_128_GCM_SHA256, ECDHE-RSA-AES128-GCM-SHA256";
        let usual = [
            "ECDHE-RSA-AES256-GCM-SHA384",
            "TLS_AES_128_GCM_SHA256",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ];
        assert_eq!(parse_ciphers(typed).unwrap(), usual);
        assert_eq!(
            parse_groups("P-256,X25519:prime256v1").unwrap(),
            ["secp256r1", "x25519", "secp256r1"]
        );
    }

    #[test]
    fn an_unknown_cipher_names_the_nearest_and_all() {
        let Err(error) = parse_ciphers("ECDHE-RSA-AES256-GCM-SHA348") else {
            panic!("accepted");
        };
        let (words, known) = (error.to_string(), error.hint());
        assert!(words.contains("did you mean `ECDHE-RSA-AES256-GCM-SHA384`?"), "{words}");
        for names in &CIPHERS {
            assert!(known.contains(names.usual), "{known}");
        }
    }

    #[test]
    fn ciphers_that_exist_elsewhere_say_why_not() {
        let cases = [
            ("AES256-GCM-SHA384", "RSA key exchange"),
            ("TLS_RSA_WITH_AES_128_GCM_SHA256", "RSA key exchange"),
            ("ECDHE-RSA-AES256-SHA384", "CBC"),
            ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "CBC"),
            ("AES128-SHA", "CBC"),
            ("DHE-RSA-AES128-GCM-SHA256", "finite-field"),
            ("RC4-MD5", "broken"),
            ("TLS_AES_128_CCM_SHA256", "CCM"),
        ];
        for (name, why) in cases {
            let Err(NameError::Unspoken { why: said, .. }) = cipher(name) else {
                panic!("{name}: {:?}", cipher(name));
            };
            assert!(said.contains(why), "{name}: {said}");
        }
        assert!(matches!(group("secp521r1"), Err(NameError::Unspoken { .. })));
        assert!(matches!(group("x22519"), Err(NameError::Unknown { nearest: Some("x25519"), .. })));
    }
}
