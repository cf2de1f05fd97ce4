//! How a flow secures its connections.

use std::path::Path;
use std::sync::Arc;

use weir_load::tls::{Connector, names};
use weir_model::tls::{ClientCertificate, TlsSpec, TlsVersion, Trust};

use super::url::Url;
use crate::args::FlowArgs;
use crate::failure::Failure;

/// What `https` and the TLS options come to; `None` in clear.
pub(super) fn connector(args: &FlowArgs, url: &Url) -> Result<Option<Arc<Connector>>, Failure> {
    if !url.secure {
        return match in_vain(args) {
            None => Ok(None),
            Some(flag) => {
                let message = format!("{flag}: `{}` is asked in clear", url.text);
                Err(Failure::input(message).hint("a URL over TLS begins with https://"))
            }
        };
    }
    let spec = spec(args)?;
    let connector = Connector::new(&spec, &url.host).map_err(Failure::input)?;
    Ok(Some(Arc::new(connector)))
}

/// The first option that only TLS could heed. `--insecure` does no harm.
fn in_vain(args: &FlowArgs) -> Option<&'static str> {
    let options = [
        ("--ca", args.ca.is_some()),
        ("--tls", args.tls.is_some()),
        ("--ciphers", args.ciphers.is_some()),
        ("--groups", args.groups.is_some()),
        ("--alpn", args.alpn.is_some()),
        ("--sni", args.sni.is_some()),
        ("--resumption", args.resumption.is_some()),
        ("--early-data", args.early_data),
        ("--cert", args.cert.is_some()),
    ];
    let given = options.into_iter().find(|(_, given)| *given);
    given.map(|(name, _)| name)
}

fn spec(args: &FlowArgs) -> Result<TlsSpec, Failure> {
    let mut spec = TlsSpec {
        trust: match &args.ca {
            _ if args.insecure => Trust::Insecure,
            Some(path) => Trust::Ca(text(path)),
            None => Trust::System,
        },
        server_name: args.sni.clone(),
        early_data: args.early_data,
        ..TlsSpec::default()
    };
    if let (Some(certificate), Some(key)) = (&args.cert, &args.key) {
        spec.client = Some(ClientCertificate {
            certificate: text(certificate),
            key: text(key),
        });
    }
    if let Some(words) = &args.tls {
        spec.versions = said("--tls", TlsVersion::parse_list(words))?;
    }
    if let Some(words) = &args.ciphers {
        spec.ciphers = said("--ciphers", names::parse_ciphers(words))?;
    }
    if let Some(words) = &args.groups {
        spec.groups = said("--groups", names::parse_groups(words))?;
    }
    if let Some(words) = &args.alpn {
        let names = words.split(',').map(|name| name.trim().to_owned());
        spec.alpn = names.filter(|name| !name.is_empty()).collect();
    }
    if let Some(words) = &args.resumption {
        spec.resumption = said("--resumption", words.parse())?;
    }
    Ok(spec)
}

fn said<T, E: std::fmt::Display>(flag: &str, parsed: Result<T, E>) -> Result<T, Failure> {
    parsed.map_err(|error| Failure::input(format!("{flag}: {error}")))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
