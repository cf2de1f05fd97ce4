//! Records after the handshake: encrypted in the send buffer, decrypted in the receive buffer.
//!
//! RFC 8446 §5 for TLS 1.3, RFC 5246 §6.2.3.3 with RFC 5288 (GCM) and RFC 7905 (ChaCha20) for TLS 1.2. Both compute a
//! record's nonce as the IV exclusive-or the sequence number. For GCM in TLS 1.2 the explicit part is the sender's
//! choice (RFC 5288 §3); this one is also rustls' choice.

use std::ops::Range;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::{ConnectionTrafficSecrets, ExtractedSecrets};
use weir_model::tls::TlsVersion;

use super::error::{Result, TlsError, TlsErrorKind};

/// Length of a record's header.
pub(super) const HEADER: usize = 5;
/// Maximum plaintext in one record, bytes (RFC 8446 §5.1).
pub(super) const MAX_PLAINTEXT: usize = 1 << 14;
/// Maximum length of a record's body: the limit of TLS 1.2 (RFC 5246 §6.2.3), which is the larger one.
pub(super) const MAX_BODY: usize = MAX_PLAINTEXT + 2048;
/// Maximum length of a record's body in TLS 1.3 (RFC 8446 §5.2).
const MAX_BODY_13: usize = MAX_PLAINTEXT + 256;

const TAG: usize = 16;
/// Length of the explicit part of the nonce in a GCM record of TLS 1.2.
const EXPLICIT: usize = 8;
/// Number of records under one key before it is renewed (TLS 1.3 only): RFC 8446 §5.5 allows 2^24.5 for AES-GCM. TLS
/// 1.2 has no such limit and no way to renew keys except a new connection; there the keys stay in use, as in OpenSSL.
const KEY_RECORDS: u64 = 1 << 24;

/// Content types (RFC 8446 §5.1).
pub(super) mod content {
    pub(in crate::tls) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(in crate::tls) const ALERT: u8 = 21;
    pub(in crate::tls) const HANDSHAKE: u8 = 22;
    pub(in crate::tls) const APPLICATION_DATA: u8 = 23;
}

/// Keys of one direction.
struct Half {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
    sequence: u64,
    /// True if records carry a part of the nonce.
    explicit: bool,
}

impl Half {
    fn new(version: TlsVersion, sequence: u64, secrets: &ConnectionTrafficSecrets) -> Result<Half> {
        use ConnectionTrafficSecrets as Secrets;
        let (algorithm, key, iv, gcm) = match secrets {
            Secrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv, true),
            Secrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv, true),
            Secrets::Chacha20Poly1305 { key, iv } => (&aead::CHACHA20_POLY1305, key, iv, false),
            _ => return Err(TlsError::new(TlsErrorKind::Internal)),
        };
        let key = UnboundKey::new(algorithm, key.as_ref())
            .map_err(|_| TlsError::new(TlsErrorKind::Internal))?;
        let mut own_iv = [0; aead::NONCE_LEN];
        own_iv.copy_from_slice(iv.as_ref());
        Ok(Half {
            key: LessSafeKey::new(key),
            iv: own_iv,
            sequence,
            explicit: gcm && version == TlsVersion::V1_2,
        })
    }

    /// Returns the IV exclusive-or the sequence number (RFC 8446 §5.3).
    fn nonce(&self) -> [u8; aead::NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// Returns the additional data that TLS 1.2 authenticates besides the content (RFC 5246 §6.2.3.3).
    fn additional_12(&self, content: u8, length: usize) -> [u8; 13] {
        let mut additional = [0; 13];
        additional[..8].copy_from_slice(&self.sequence.to_be_bytes());
        additional[8..11].copy_from_slice(&[content, 3, 3]);
        additional[11..].copy_from_slice(&(length as u16).to_be_bytes());
        additional
    }
}

/// Keys of an open connection.
pub(super) struct Records {
    version: TlsVersion,
    sending: Half,
    receiving: Half,
}

impl Records {
    pub(super) fn new(version: TlsVersion, secrets: &ExtractedSecrets) -> Result<Records> {
        Ok(Records {
            version,
            sending: Half::new(version, secrets.tx.0, &secrets.tx.1)?,
            receiving: Half::new(version, secrets.rx.0, &secrets.rx.1)?,
        })
    }

    pub(super) fn version(&self) -> TlsVersion {
        self.version
    }

    /// Returns true if the sending key must be renewed, having protected [`KEY_RECORDS`] records.
    pub(super) fn sending_is_worn(&self) -> bool {
        self.version == TlsVersion::V1_3 && self.sending.sequence >= KEY_RECORDS
    }

    /// Sets both keys to the end of their use.
    #[cfg(test)]
    pub(super) fn wear(&mut self) {
        self.sending.sequence = KEY_RECORDS;
        self.receiving.sequence = KEY_RECORDS;
    }

    pub(super) fn renew_sending(
        &mut self,
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Result<()> {
        self.sending = Half::new(self.version, sequence, &secrets)?;
        Ok(())
    }

    pub(super) fn renew_receiving(
        &mut self,
        (sequence, secrets): (u64, ConnectionTrafficSecrets),
    ) -> Result<()> {
        self.receiving = Half::new(self.version, sequence, &secrets)?;
        Ok(())
    }

    /// Returns the maximum length of a received record's body.
    pub(super) fn max_body(&self) -> usize {
        match self.version {
            TlsVersion::V1_2 => MAX_BODY,
            TlsVersion::V1_3 => MAX_BODY_13,
        }
    }

    /// Appends an encrypted record with at most [`MAX_PLAINTEXT`] bytes.
    pub(super) fn seal(&mut self, content: u8, plaintext: &[u8], out: &mut Vec<u8>) -> Result<()> {
        debug_assert!(plaintext.len() <= MAX_PLAINTEXT);
        match self.version {
            TlsVersion::V1_2 => self.seal_12(content, plaintext, out),
            TlsVersion::V1_3 => self.seal_13(content, plaintext, out),
        }
    }

    fn seal_13(&mut self, content: u8, plaintext: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let header = build_header(content::APPLICATION_DATA, plaintext.len() + 1 + TAG);
        out.reserve(HEADER + plaintext.len() + 1 + TAG);
        out.extend_from_slice(&header);
        let body = out.len();
        out.extend_from_slice(plaintext);
        out.push(content);
        self.seal_body(Aad::from(header), body, out)
    }

    fn seal_12(&mut self, content: u8, plaintext: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let half = &self.sending;
        let explicit = if half.explicit { EXPLICIT } else { 0 };
        let length = explicit + plaintext.len() + TAG;
        out.reserve(HEADER + length);
        out.extend_from_slice(&build_header(content, length));
        out.extend_from_slice(&half.nonce()[aead::NONCE_LEN - explicit..]);
        let additional = half.additional_12(content, plaintext.len());
        let body = out.len();
        out.extend_from_slice(plaintext);
        self.seal_body(Aad::from(additional), body, out)
    }

    fn seal_body<A: AsRef<[u8]>>(
        &mut self,
        additional: Aad<A>,
        body: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let half = &mut self.sending;
        let nonce = Nonce::assume_unique_for_key(half.nonce());
        let tag = half
            .key
            .seal_in_place_separate_tag(nonce, additional, &mut out[body..])
            .map_err(|_| TlsError::new(TlsErrorKind::Internal))?;
        out.extend_from_slice(tag.as_ref());
        half.sequence += 1;
        Ok(())
    }

    /// Decrypts a whole record in place; returns its content type and the range of its plaintext.
    pub(super) fn open(&mut self, record: &mut [u8]) -> Result<(u8, Range<usize>)> {
        let (content, plaintext) = match self.version {
            TlsVersion::V1_2 => self.open_12(record)?,
            TlsVersion::V1_3 => self.open_13(record)?,
        };
        if plaintext.len() > MAX_PLAINTEXT {
            return Err(TlsError::new(TlsErrorKind::OversizedRecord));
        }
        Ok((content, plaintext))
    }

    fn open_13(&mut self, record: &mut [u8]) -> Result<(u8, Range<usize>)> {
        let (header, body) = record.split_at_mut(HEADER);
        if header[0] != content::APPLICATION_DATA {
            return Err(TlsError::misbehaved(rustls::PeerMisbehaved::IllegalTlsInnerPlaintext));
        }
        let mut additional = [0; HEADER];
        additional.copy_from_slice(header);
        let inner = self.open_body(Aad::from(additional), body)?;
        // TLSInnerPlaintext (RFC 8446 §5.2): content, its type, zeros of padding.
        let end = inner.iter().rposition(|&byte| byte != 0).ok_or_else(|| {
            TlsError::misbehaved(rustls::PeerMisbehaved::IllegalTlsInnerPlaintext)
        })?;
        Ok((inner[end], HEADER..HEADER + end))
    }

    fn open_12(&mut self, record: &mut [u8]) -> Result<(u8, Range<usize>)> {
        let half = &self.receiving;
        let explicit = if half.explicit { EXPLICIT } else { 0 };
        let content = record[0];
        let start = HEADER + explicit;
        let Some(length) = record.len().checked_sub(start + TAG) else {
            return Err(TlsError::new(TlsErrorKind::BadRecord));
        };
        let additional = half.additional_12(content, length);
        let mut nonce = half.nonce();
        if half.explicit {
            nonce[..4].copy_from_slice(&half.iv[..4]);
            nonce[4..].copy_from_slice(&record[HEADER..start]);
        }
        self.open_with(nonce, Aad::from(additional), &mut record[start..])?;
        Ok((content, start..start + length))
    }

    fn open_body<'a, A: AsRef<[u8]>>(
        &mut self,
        additional: Aad<A>,
        body: &'a mut [u8],
    ) -> Result<&'a mut [u8]> {
        let nonce = self.receiving.nonce();
        self.open_with(nonce, additional, body)
    }

    fn open_with<'a, A: AsRef<[u8]>>(
        &mut self,
        nonce: [u8; aead::NONCE_LEN],
        additional: Aad<A>,
        body: &'a mut [u8],
    ) -> Result<&'a mut [u8]> {
        let half = &mut self.receiving;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plaintext = half
            .key
            .open_in_place(nonce, additional, body)
            .map_err(|_| TlsError::new(TlsErrorKind::BadRecord))?;
        half.sequence += 1;
        Ok(plaintext)
    }
}

fn build_header(content: u8, length: usize) -> [u8; HEADER] {
    let [high, low] = (length as u16).to_be_bytes();
    // The version is 3.3 in TLS 1.3 too: legacy_record_version.
    [content, 3, 3, high, low]
}
