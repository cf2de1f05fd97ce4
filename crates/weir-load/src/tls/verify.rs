//! Verification of the server's certificates.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Certificate verifier of one thread. Without `chain` no certificates are checked. The signature of the handshake
/// always is, because a real client spends that CPU time too, and a server that cannot make the signature is broken.
pub(super) struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
    /// Chain that was verified last, byte by byte. All connections of a flow go to one name, so the outcome for the
    /// same bytes is the same. Only one thread uses the lock.
    verified: Mutex<Vec<CertificateDer<'static>>>,
}

impl Verifier {
    pub(super) fn new(
        chain: Option<Arc<WebPkiServerVerifier>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Verifier {
        Verifier { chain, algorithms, verified: Mutex::default() }
    }

    /// Creates a verifier with the same trust and an empty cache, for another thread.
    pub(super) fn fresh(&self) -> Verifier {
        Verifier::new(self.chain.clone(), self.algorithms)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("insecure", &self.chain.is_none()).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let presented = std::iter::once(end_entity).chain(intermediates);
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.iter().eq(presented.clone()) {
            return Ok(ServerCertVerified::assertion());
        }
        let verdict =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        *verified = presented.map(|certificate| certificate.clone().into_owned()).collect();
        Ok(verdict)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
