//! TLS settings common to all connections of one flow.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::{Resumption as ClientResumption, Tls12Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, Error, RootCertStore, StreamOwned, SupportedCipherSuite,
    SupportedProtocolVersion,
};
use weir_model::tls::{ClientCertificate, Resumption, TlsSpec, TlsVersion, Trust, names};

use super::error::SetupError;
use super::files;
use super::names::{CIPHERS, DEFAULT_GROUPS, GROUPS};
use super::tickets::{Share, Tickets};
use super::verify::Verifier;

/// TLS settings common to all connections of one flow, compiled from the user's specification before the trial.
///
/// A connector belongs to one thread and one server name; [`Connector::for_thread`] creates another for the next
/// thread.
#[derive(Debug)]
pub struct Connector {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    pub(super) tickets: Arc<Tickets>,
    pub(super) share: Share,
    verifier: Arc<Verifier>,
    resumption: Resumption,
}

impl Connector {
    /// Reads all files and checks all names. `host` is the server's name or address as given by the user, without a
    /// port; an IPv6 address may be in brackets.
    ///
    /// # Errors
    /// A file cannot be read or lacks the necessary content, a name is unknown, or settings contradict each other;
    /// every error has a hint on how to correct it.
    pub fn new(spec: &TlsSpec, host: &str) -> Result<Connector, SetupError> {
        let provider = build_provider(spec)?;
        let versions = choose_versions(spec, &provider)?;
        check_resumption(spec, &versions)?;
        let name = server_name(spec.server_name.as_deref().unwrap_or(host))?;
        let verifier = Arc::new(verifier(&spec.trust, &provider)?);
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone());
        let mut config = match &spec.client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let (chain, key) = client_certificate(client)?;
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| client_error(client, error))?
            }
        };
        config.alpn_protocols = alpn(&spec.alpn)?;
        config.enable_early_data = spec.early_data;
        // For `rustls::kernel`: see the module's documentation.
        config.enable_secret_extraction = true;
        Ok(Connector::assemble(config, name, verifier, spec.resumption))
    }

    /// Creates another connector with the same settings for another thread; no mutable state is shared.
    pub fn for_thread(&self) -> Connector {
        let mut config = ClientConfig::clone(&self.config);
        let verifier = Arc::new(self.verifier.fresh());
        config.dangerous().set_certificate_verifier(verifier.clone());
        Connector::assemble(config, self.name.clone(), verifier, self.resumption)
    }

    /// Wraps a stream in a TLS connection with these settings: bytes written and read are encrypted, after a handshake.
    /// For blocking single requests; the engine, which never blocks, does not use it.
    ///
    /// # Errors
    /// The settings contradict each other.
    pub fn over<S: Read + Write>(&self, stream: S) -> io::Result<impl Read + Write + use<S>> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }

    /// Returns true if connections may carry early data.
    pub fn offers_early_data(&self) -> bool {
        self.config.enable_early_data
    }

    pub(super) fn resumption(&self) -> Resumption {
        self.resumption
    }

    fn assemble(
        mut config: ClientConfig,
        name: ServerName<'static>,
        verifier: Arc<Verifier>,
        resumption: Resumption,
    ) -> Connector {
        let tickets = Arc::new(Tickets::default());
        config.resumption = match resumption {
            Resumption::Off => ClientResumption::disabled(),
            Resumption::On | Resumption::Ratio(_) => ClientResumption::store(tickets.clone())
                .tls12_resumption(Tls12Resumption::SessionIdOrTickets),
        };
        Connector {
            config: Arc::new(config),
            name,
            tickets,
            share: Share::new(resumption),
            verifier,
            resumption,
        }
    }
}

fn build_provider(spec: &TlsSpec) -> Result<CryptoProvider, SetupError> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = ciphers(&spec.ciphers)?;
    provider.kx_groups = groups(&spec.groups)?;
    Ok(provider)
}

fn ciphers(typed: &[String]) -> Result<Vec<SupportedCipherSuite>, SetupError> {
    if typed.is_empty() {
        return Ok(CIPHERS.to_vec());
    }
    let indices = unique(typed.iter().map(|name| names::cipher(name)))?;
    Ok(indices.iter().map(|&index| CIPHERS[index]).collect())
}

fn groups(typed: &[String]) -> Result<Vec<&'static dyn SupportedKxGroup>, SetupError> {
    let indices = if typed.is_empty() {
        (0..DEFAULT_GROUPS).collect()
    } else {
        unique(typed.iter().map(|name| names::group(name)))?
    };
    Ok(indices.iter().map(|&index| GROUPS[index]).collect())
}

fn unique(
    named: impl Iterator<Item = Result<usize, names::NameError>>,
) -> Result<Vec<usize>, SetupError> {
    let mut indices = Vec::new();
    for named_index in named {
        let index = named_index?;
        if !indices.contains(&index) {
            indices.push(index);
        }
    }
    Ok(indices)
}

/// Returns the versions to offer: the requested ones, or if none is requested, all that have a cipher.
fn choose_versions(
    spec: &TlsSpec,
    provider: &CryptoProvider,
) -> Result<Vec<&'static SupportedProtocolVersion>, SetupError> {
    let wanted = &spec.versions;
    if let Some(version) = wanted.iter().find(|version| !has_cipher(provider, **version)) {
        return Err(SetupError::NoCipherFor(version.name()));
    }
    let all = [TlsVersion::V1_3, TlsVersion::V1_2];
    let offered = all.into_iter().filter(|version| {
        has_cipher(provider, *version) && (wanted.is_empty() || wanted.contains(version))
    });
    Ok(offered.map(protocol_of).collect())
}

fn protocol_of(version: TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::V1_2 => &rustls::version::TLS12,
        TlsVersion::V1_3 => &rustls::version::TLS13,
    }
}

fn has_cipher(provider: &CryptoProvider, version: TlsVersion) -> bool {
    let mut suites = provider.cipher_suites.iter();
    suites.any(|suite| suite.version() == protocol_of(version))
}

fn check_resumption(
    spec: &TlsSpec,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<(), SetupError> {
    if let Resumption::Ratio(share) = spec.resumption
        && !(0.0..=1.0).contains(&share)
    {
        return Err(SetupError::Ratio(share));
    }
    let possible =
        spec.resumption != Resumption::Off && versions.contains(&&rustls::version::TLS13);
    if spec.early_data && !possible {
        return Err(SetupError::EarlyData);
    }
    Ok(())
}

fn server_name(host: &str) -> Result<ServerName<'static>, SetupError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(bare.to_owned()).map_err(|_| SetupError::ServerName(host.to_owned()))
}

fn alpn(names: &[String]) -> Result<Vec<Vec<u8>>, SetupError> {
    names
        .iter()
        .map(|name| match name.len() {
            1..=255 => Ok(name.clone().into_bytes()),
            _ => Err(SetupError::Alpn(name.clone())),
        })
        .collect()
}

fn verifier(trust: &Trust, provider: &CryptoProvider) -> Result<Verifier, SetupError> {
    let algorithms = provider.signature_verification_algorithms;
    let roots = match trust {
        Trust::Insecure => return Ok(Verifier::new(None, algorithms)),
        Trust::System => system_roots()?,
        Trust::Ca(path) => roots_of(path)?,
    };
    let provider = Arc::new(provider.clone());
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    Ok(Verifier::new(Some(chain), algorithms))
}

fn system_roots() -> Result<RootCertStore, SetupError> {
    let native = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A machine's bundle may hold a few that nobody can use; a machine without any is an error.
    let (usable, _) = roots.add_parsable_certificates(native.certs);
    if usable == 0 {
        let why = native.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(SetupError::NoSystemTrust(why));
    }
    Ok(roots)
}

fn roots_of(path: &str) -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    for (line, certificate) in files::certificates(path, "trusted authorities")? {
        roots.add(certificate).map_err(|error| files::not_a_certificate(path, line, &error))?;
    }
    Ok(roots)
}

type OwnedCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_certificate(client: &ClientCertificate) -> Result<OwnedCertificate, SetupError> {
    let chain = files::certificates(&client.certificate, "the client's certificate")?
        .into_iter()
        .map(|(_, certificate)| certificate);
    Ok((chain.collect(), files::private_key(&client.key)?))
}

fn client_error(client: &ClientCertificate, error: Error) -> SetupError {
    match error {
        Error::InconsistentKeys(_) => SetupError::KeyMismatch {
            certificate: client.certificate.clone(),
            key: client.key.clone(),
        },
        error => SetupError::Refused(error),
    }
}
