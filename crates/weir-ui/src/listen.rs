//! Connections of browsers, in clear on loopback or by TLS.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Handshakes that may wait for the server.
const WAITING: usize = 32;
/// Pause after a connection that could not be accepted, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Certificate and key of the server.
#[derive(Debug, Clone)]
pub struct Identity(Arc<ServerConfig>);

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read, or is no PEM file of its kind.
    #[error("cannot read {0}: {1}")]
    File(String, #[source] rustls::pki_types::pem::Error),
    /// Both do not belong together.
    #[error("{0}")]
    Pair(#[from] rustls::Error),
}

impl IdentityError {
    fn of_file(path: &Path, error: rustls::pki_types::pem::Error) -> IdentityError {
        IdentityError::File(path.display().to_string(), error)
    }
}

impl Identity {
    /// Reads a chain of certificates and its key, both PEM files.
    ///
    /// # Errors
    /// A file cannot be read, or both do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, IdentityError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| IdentityError::of_file(certificate, error))?;
        let key_of_chain = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| IdentityError::of_file(key, error))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key_of_chain)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Identity(Arc::new(config)))
    }
}

/// A socket that browsers connect to.
pub(crate) enum Listener {
    Clear(TcpListener),
    Encrypted { address: SocketAddr, ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)> },
}

impl Listener {
    pub(crate) async fn bind(
        address: SocketAddr,
        identity: Option<Identity>,
    ) -> io::Result<Listener> {
        let socket = TcpListener::bind(address).await?;
        let Some(identity) = identity else {
            return Ok(Listener::Clear(socket));
        };
        let address = socket.local_addr()?;
        let (finished, ready) = mpsc::channel(WAITING);
        tokio::spawn(shake_hands(socket, TlsAcceptor::from(identity.0), finished));
        Ok(Listener::Encrypted { address, ready })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Listener::Clear(socket) => socket.local_addr(),
            Listener::Encrypted { address, .. } => Ok(*address),
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Listener::Encrypted { .. })
    }
}

/// Accepts connections and passes on those whose handshake succeeds. One that is slow holds up no other.
async fn shake_hands(
    socket: TcpListener,
    acceptor: TlsAcceptor,
    finished: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    loop {
        let Ok((stream, peer)) = socket.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (acceptor, finished) = (acceptor.clone(), finished.clone());
        tokio::spawn(async move {
            let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
            if let Ok(Ok(stream)) = handshake.await {
                let _ = finished.send((stream, peer)).await;
            }
        });
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self {
            Listener::Clear(socket) => loop {
                match TcpListener::accept(socket).await {
                    Ok((stream, peer)) => return (Connection::Clear(stream), peer),
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            },
            Listener::Encrypted { ready, .. } => match ready.recv().await {
                Some((stream, peer)) => (Connection::Encrypted(Box::new(stream)), peer),
                // Its sender lives as long as the socket.
                None => std::future::pending().await,
            },
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address()
    }
}

/// A connection of a browser.
pub(crate) enum Connection {
    Clear(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Clear(stream) => Pin::new(stream).poll_read(context, buffer),
            Connection::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Clear(stream) => Pin::new(stream).poll_write(context, bytes),
            Connection::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Clear(stream) => Pin::new(stream).poll_flush(context),
            Connection::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Clear(stream) => Pin::new(stream).poll_shutdown(context),
            Connection::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
