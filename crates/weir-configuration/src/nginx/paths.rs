//! Directives that name files, by the folder that nginx takes relative paths from, as
//! `ngx_conf_full_name` is called for them.

/// Where a relative path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The folder of the configuration.
    Configuration,
    /// The prefix of the program (`nginx -p`).
    Prefix,
}

/// Ends of names of directives whose first argument is a file beside the configuration.
const BESIDE_CONFIGURATION: &str = "ssl_certificate, ssl_certificate_key, ssl_client_certificate, ssl_trusted_certificate, \
     ssl_crl, ssl_dhparam, ssl_password_file, ssl_session_ticket_key, ssl_stapling_file, \
     ssl_ech_file, auth_basic_user_file, geoip_country, geoip_city, geoip_org";

/// Names of directives whose first argument is a file or folder below the prefix.
const BELOW_PREFIX: [&str; 3] = ["root", "alias", "load_module"];

/// Where the first argument of a directive is taken from, if it is the path of something that is read.
pub(super) fn base_of(name: &str) -> Option<Base> {
    if BELOW_PREFIX.contains(&name) {
        return Some(Base::Prefix);
    }
    let is_it = |end: &str| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    let is_beside = BESIDE_CONFIGURATION.split(", ").any(is_it);
    is_beside.then_some(Base::Configuration)
}

/// Whether a path argument is relative and stands for a file at all.
pub(super) fn is_relative(argument: &str) -> bool {
    let is_elsewhere = argument.starts_with(['/', '$'])
        || ["data:", "engine:", "store:"]
            .iter()
            .any(|it| argument.starts_with(it));
    !is_elsewhere && !argument.is_empty()
}
