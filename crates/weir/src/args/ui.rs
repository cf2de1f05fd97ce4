//! Arguments of `weir ui`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct UiArgs {
    /// Folder of your studies (*.yaml), with the runs in its folder runs/
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,

    /// Address and port to listen on; port 0 is a free one. Anything but loopback needs --tls-cert and --tls-key
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,

    /// Certificate chain for HTTPS, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Show runs and studies, but start, stop and write nothing
    #[arg(long)]
    pub(crate) read_only: bool,
}
