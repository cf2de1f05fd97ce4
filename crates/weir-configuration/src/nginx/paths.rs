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
     auth_basic_user_file, auth_jwt_key_file, geoip_country, geoip_city, geoip_org, geoip2, \
     xml_entities, xslt_stylesheet, js_path, js_include";

/// Names of directives whose first argument is a file or folder below the prefix.
const BELOW_PREFIX: [&str; 4] = ["root", "alias", "load_module", "perl_modules"];

/// The argument of a directive that is the path of something that is read, and where it is taken
/// from.
pub(super) fn path_argument(name: &str, arguments: usize) -> Option<(usize, Base)> {
    let last = arguments.checked_sub(1)?;
    if name == "js_import" {
        // `js_import file` or `js_import name from file`.
        return Some((last, Base::Configuration));
    }
    if name.ends_with("_by_lua_file") {
        return Some((last, Base::Prefix));
    }
    if BELOW_PREFIX.contains(&name) {
        return Some((0, Base::Prefix));
    }
    let is_it = |end: &str| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    let is_beside = BESIDE_CONFIGURATION.split(", ").any(is_it);
    is_beside.then_some((0, Base::Configuration))
}

/// Whether a path argument is relative and stands for a file at all.
pub(super) fn is_relative(argument: &str) -> bool {
    let is_elsewhere = argument.starts_with(['/', '$'])
        || ["data:", "engine:", "store:"]
            .iter()
            .any(|it| argument.starts_with(it));
    !is_elsewhere && !argument.is_empty()
}
