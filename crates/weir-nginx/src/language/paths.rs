//! Directives that name files, by the folder from which nginx resolves relative paths, as its code calls
//! `ngx_conf_full_name` for them.

/// Folder from which a relative path is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The folder of the configuration.
    Configuration,
    /// The prefix of the program (`nginx -p`).
    Prefix,
}

/// Ends of the names of directives whose first argument is a file beside the configuration.
const BESIDE_CONFIGURATION: &str = "ssl_certificate, ssl_certificate_key, ssl_client_certificate, ssl_trusted_certificate, \
     ssl_crl, ssl_dhparam, ssl_password_file, ssl_session_ticket_key, ssl_stapling_file, \
     ssl_ech_file, auth_basic_user_file, geoip_country, geoip_city, geoip_org";

/// Names of directives whose first argument is a file or folder below the prefix.
const BELOW_PREFIX: [&str; 3] = ["root", "alias", "load_module"];

/// Returns the folder from which the first argument of a directive is resolved, if that argument is the path of
/// something that is read.
pub(super) fn base_of(name: &str) -> Option<Base> {
    if BELOW_PREFIX.contains(&name) {
        return Some(Base::Prefix);
    }
    let is_beside = BESIDE_CONFIGURATION.split(", ").any(|end| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    });
    is_beside.then_some(Base::Configuration)
}

/// Returns true if an argument is a relative path of a file, and not empty, a variable or another kind of source.
pub(super) fn is_relative(argument: &str) -> bool {
    let is_elsewhere = argument.starts_with(['/', '$'])
        || ["data:", "engine:", "store:"].iter().any(|it| argument.starts_with(it));
    !is_elsewhere && !argument.is_empty()
}
