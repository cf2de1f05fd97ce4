//! Certificates of an authority of the tests' own, and the real nginx with one of them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_RSA_SHA256,
    RsaKeySize, SanType,
};
use rustix::process::{Pid, Signal, kill_process};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde::Deserialize;
use tempfile::TempDir;

use crate::program::wait_until;

/// A certificate and its key, as files and as data.
pub struct Identity {
    pub certificate: String,
    pub key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Identity {
    /// Returns the configuration of a server with this certificate.
    pub fn server(&self) -> Arc<ServerConfig> {
        let key = PrivatePkcs8KeyDer::from(self.key_der.clone());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.der.clone()], key.into())
            .expect("a key of its certificate");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

/// An authority, and a folder for its certificates.
pub struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let folder = tempfile::tempdir().expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "weir test");
        let certificate = params.self_signed(&key).expect("a certificate");
        let issuer = Issuer::new(params, key);
        let authority = Authority { folder, issuer };
        authority.write("ca.pem", &certificate.pem());
        authority
    }

    /// Returns the path of its own certificate, for `--ca`.
    pub fn file(&self) -> String {
        self.path("ca.pem")
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Issues a certificate for 127.0.0.1, `localhost` and `weir.test`, with an ECDSA key.
    pub fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        self.sign("ecdsa", &KeyPair::generate().expect("a key"), change)
    }

    /// Issues such a certificate with an RSA key, and for another address too.
    fn issue_rsa(&self, address: IpAddr) -> Identity {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        self.sign("rsa", &key.expect("a key"), |params| {
            params.subject_alt_names.push(SanType::IpAddress(address));
        })
    }

    fn sign(
        &self,
        name: &str,
        key: &KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let names = ["127.0.0.1", "localhost", "weir.test"].map(str::to_owned);
        let mut params = CertificateParams::new(names.to_vec()).expect("names");
        change(&mut params);
        let certificate = params.signed_by(key, &self.issuer).expect("a certificate");
        Identity {
            certificate: self.write(&format!("{name}.pem"), &certificate.pem()),
            key: self.write(&format!("{name}.key"), &key.serialize_pem()),
            der: certificate.der().clone(),
            key_der: key.serialize_der(),
        }
    }
}

/// A request in nginx's log.
#[derive(Debug, Deserialize)]
pub struct Logged {
    pub version: String,
    pub cipher: String,
    /// `r` if the session was resumed, else `.`.
    pub reused: String,
    /// `1` if the request came as early data.
    pub early: String,
    /// Name that the client requested; empty if none.
    pub server_name: String,
    pub alpn: String,
    pub connection: String,
    pub host: String,
}

/// Number of servers started so far, by which their files are numbered.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// nginx with one TLS server, killed when this is dropped: `/` answers at once, `/large` with a mebibyte, `/up` when
/// all content of the request has come.
pub struct Nginx {
    process: Child,
    pub address: SocketAddr,
    log: String,
}

impl Nginx {
    /// Starts nginx with an RSA certificate of the authority and these directives in its server.
    pub fn start(authority: &Authority, directives: &str) -> Nginx {
        // An address of this process's own: nobody takes the port before nginx does.
        let [.., high, low] = std::process::id().to_be_bytes();
        let free = TcpListener::bind((Ipv4Addr::new(127, 78, high, low), 0)).expect("a port");
        let address = free.local_addr().expect("its number");
        drop(free);
        let identity = authority.issue_rsa(address.ip());
        // Not named by the port: an earlier nginx of the same folder may have had it too.
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = authority.path(&format!("{number}.log"));
        let socket = authority.path(&format!("{number}.socket"));
        let folder = authority.path("");
        let (certificate, key) = (&identity.certificate, &identity.key);
        let configuration = format!(
            "daemon off; master_process off; worker_processes 1; pid {folder}nginx.pid;\n\
             error_log {folder}error.log;\n\
             events {{ worker_connections 256; }}\n\
             http {{\n\
             log_format seen escape=none '{{\"version\":\"$ssl_protocol\",\"cipher\":\"$ssl_cipher\",\
             \"reused\":\"$ssl_session_reused\",\"early\":\"$early\",\"server_name\":\"$ssl_server_name\",\
             \"alpn\":\"$ssl_alpn_protocol\",\"connection\":\"$connection\",\"host\":\"$host\"}}';\n\
             access_log {log} seen; keepalive_requests 100000;\n\
             client_body_temp_path {folder}b; proxy_temp_path {folder}p;\n\
             fastcgi_temp_path {folder}f; uwsgi_temp_path {folder}u; scgi_temp_path {folder}s;\n\
             server {{ listen {address} ssl; ssl_certificate {certificate};\n\
             ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;\n\
             ssl_session_cache shared:s:1m; client_max_body_size 0;\n\
             set $early \"$ssl_early_data\";\n\
             {directives}\n\
             location / {{ return 200 \"hi\"; }}\n\
             location /large {{ root {folder}; }}\n\
             location /up {{ proxy_pass http://unix:{socket}:/; proxy_method GET;\n\
             proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }} }}\n\
             server {{ listen unix:{socket}; access_log off;\n\
             location / {{ return 200 \"hi\"; }} }} }}\n"
        );
        let file = authority.write("nginx.conf", &configuration);
        authority.write("large", &"weir".repeat(1 << 18));
        let process = Command::new("/usr/sbin/nginx")
            .args(["-p", &folder, "-e", "stderr", "-c", &file])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx");
        let nginx = Nginx { process, address, log };
        wait_until("nginx", || TcpStream::connect(address).is_ok());
        nginx
    }

    /// Ends nginx, so that its log is complete, and reads the log.
    pub fn log(mut self) -> Vec<Logged> {
        let pid = Pid::from_raw(self.process.id().cast_signed()).expect("a child has a number");
        kill_process(pid, Signal::QUIT).expect("one's own child can be signalled");
        wait_until("nginx's end", || !matches!(self.process.try_wait(), Ok(None)));
        let text = std::fs::read_to_string(&self.log).expect("nginx's log");
        text.lines().map(|line| serde_json::from_str(line).expect("as in the format")).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
