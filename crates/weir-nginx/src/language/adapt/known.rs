//! List of the directives that a copy may have: weir runs no copy with a directive that is not on it, since that could
//! contact or write anything.

use std::net::IpAddr;
use std::path::Path;

use weir_configuration::place::{LEAVE_OUT, is_among, runs_code, unknown};
use weir_configuration::{ConfigurationError, Source};

use super::network::{PASSING, is_bind, is_pass};
use crate::language::context::is_block;
use crate::language::view::{Node, error_at};

/// Directives that neither contact anybody nor write anything, or that the adaptation changes. They are from the
/// sources of nginx 1.31 (`ngx_command_t`), and of modules that change answers and nothing else.
const HARMLESS: &str = "absolute_redirect, accept_mutex, accept_mutex_delay, access_log, add_after_body, \
     add_before_body, add_header, add_header_inherit, add_trailer, add_trailer_inherit, addition_types, aio, \
     aio_write, alias, allow, ancient_browser, ancient_browser_value, auth_basic, auth_basic_user_file, \
     auth_delay, auth_request, auth_request_set, autoindex, autoindex_exact_size, autoindex_format, \
     autoindex_localtime, break, brotli, brotli_buffers, brotli_comp_level, brotli_min_length, brotli_static, \
     brotli_types, brotli_window, charset, charset_types, chunked_transfer_encoding, client_body_buffer_size, \
     client_body_early_read, client_body_in_file_only, client_body_in_single_buffer, client_body_temp_path, \
     client_body_timeout, client_header_buffer_size, client_header_timeout, client_max_body_size, \
     connection_pool_size, create_full_put_path, daemon, dav_access, debug_connection, debug_points, \
     default_type, degradation, degrade, deny, directio, directio_alignment, disable_symlinks, early_hints, \
     echo, echo_status, empty_gif, env, error_log, error_page, etag, expires, fancyindex, \
     fancyindex_exact_size, fancyindex_localtime, flv, geoip2_proxy, geoip2_proxy_recursive, geoip_city, \
     geoip_country, geoip_org, geoip_proxy, geoip_proxy_recursive, google_perftools_profiles, gunzip, \
     gunzip_buffers, gzip, gzip_buffers, gzip_comp_level, gzip_disable, gzip_hash, gzip_http_version, \
     gzip_min_length, gzip_no_buffer, gzip_proxied, gzip_static, gzip_types, gzip_vary, gzip_window, hash, \
     http2, http2_body_preread_size, http2_chunk_size, http2_idle_timeout, http2_max_concurrent_pushes, \
     http2_max_concurrent_streams, http2_max_field_size, http2_max_header_size, http2_max_requests, \
     http2_pool_size, http2_push, http2_push_preload, http2_recv_buffer_size, http2_recv_timeout, \
     http2_streams_index_size, http3, http3_hq, http3_max_concurrent_streams, http3_stream_buffer_size, \
     if_modified_since, ignore_invalid_headers, image_filter, image_filter_buffer, image_filter_interlace, \
     image_filter_jpeg_quality, image_filter_sharpen, image_filter_transparency, image_filter_webp_quality, \
     include, index, internal, ip_hash, keepalive, keepalive_disable, keepalive_min_timeout, \
     keepalive_requests, keepalive_time, keepalive_timeout, large_client_header_buffers, least_conn, \
     least_time, limit_conn, limit_conn_dry_run, limit_conn_log_level, limit_conn_status, limit_conn_zone, \
     limit_rate, limit_rate_after, limit_req, limit_req_dry_run, limit_req_log_level, limit_req_status, \
     limit_req_zone, lingering_close, lingering_time, lingering_timeout, listen, load_module, lock_file, \
     log_format, log_not_found, log_subrequest, map_hash_bucket_size, map_hash_max_size, master_process, \
     max_headers, max_ranges, merge_slashes, min_delete_depth, mirror, mirror_request_body, modern_browser, \
     modern_browser_value, more_clear_headers, more_clear_input_headers, more_set_headers, \
     more_set_input_headers, mp4, mp4_buffer_size, mp4_max_buffer_size, mp4_start_key_frame, msie_padding, \
     msie_refresh, multi_accept, open_file_cache, open_file_cache_errors, open_file_cache_events, \
     open_file_cache_min_uses, open_file_cache_valid, open_log_file_cache, output_buffers, override_charset, \
     pcre_jit, pid, port_in_redirect, post_action, postpone_gzipping, postpone_output, preread_buffer_size, \
     preread_timeout, quic_active_connection_id_limit, quic_bpf, quic_gso, quic_host_key, quic_retry, random, \
     random_index, read_ahead, real_ip_header, real_ip_recursive, recursive_error_pages, \
     referer_hash_bucket_size, referer_hash_max_size, request_pool_size, reset_timedout_connection, \
     resolver_timeout, return, rewrite, rewrite_log, root, satisfy, secure_link, secure_link_md5, \
     secure_link_secret, send_lowat, send_timeout, sendfile, sendfile_max_chunk, server, server_name, \
     server_name_in_redirect, server_names_hash_bucket_size, server_names_hash_max_size, server_tokens, set, \
     set_real_ip_from, slice, source_charset, ssi, ssi_ignore_recycled_buffers, ssi_last_modified, \
     ssi_min_file_chunk, ssi_silent_errors, ssi_types, ssi_value_length, ssl, ssl_alpn, ssl_buffer_size, \
     ssl_certificate, ssl_certificate_cache, ssl_certificate_compression, ssl_certificate_key, ssl_ciphers, \
     ssl_client_certificate, ssl_conf_command, ssl_crl, ssl_dhparam, ssl_early_data, ssl_ecdh_curve, \
     ssl_ech_file, ssl_engine, ssl_handshake_timeout, ssl_object_cache_inheritable, ssl_ocsp_cache, \
     ssl_password_file, ssl_prefer_server_ciphers, ssl_preread, ssl_protocols, ssl_reject_handshake, \
     ssl_session_cache, ssl_session_ticket_key, ssl_session_tickets, ssl_session_timeout, ssl_stapling_file, \
     ssl_stapling_verify, ssl_trusted_certificate, ssl_verify_client, ssl_verify_depth, sticky, stub_status, \
     sub_filter, sub_filter_last_modified, sub_filter_once, sub_filter_types, subrequest_output_buffer_size, \
     subs_filter, subs_filter_types, tcp_nodelay, tcp_nopush, thread_pool, timer_resolution, try_files, \
     types_hash_bucket_size, types_hash_max_size, underscores_in_headers, uninitialized_variable_warn, use, \
     user, userid, userid_domain, userid_expires, userid_flags, userid_mark, userid_name, userid_p3p, \
     userid_path, userid_service, valid_referers, variables_hash_bucket_size, variables_hash_max_size, \
     vhost_traffic_status, vhost_traffic_status_display, vhost_traffic_status_display_format, \
     vhost_traffic_status_zone, worker_aio_requests, worker_connections, worker_cpu_affinity, worker_priority, \
     worker_processes, worker_rlimit_core, worker_rlimit_nofile, worker_shutdown_timeout, zone, zstd, \
     zstd_buffers, zstd_comp_level, zstd_min_length, zstd_static, zstd_types";

/// Directives of the modules that pass requests on ([`PASSING`]), without the module's name.
const HARMLESS_OF_PASSING: &str = "buffer_size, buffering, buffers, busy_buffers_size, cache, \
     cache_background_update, cache_bypass, cache_convert_head, cache_key, cache_lock, cache_lock_age, \
     cache_lock_timeout, cache_max_range_offset, cache_methods, cache_min_uses, cache_path, cache_purge, \
     cache_revalidate, cache_use_stale, cache_valid, catch_stderr, connect_timeout, cookie_domain, \
     cookie_flags, cookie_path, download_rate, downstream_buffer, force_ranges, gzip_flag, half_close, \
     headers_hash_bucket_size, headers_hash_max_size, hide_header, http_version, ignore_client_abort, \
     ignore_headers, index, intercept_errors, keep_conn, limit_rate, max_temp_file_size, method, modifier1, \
     modifier2, next_upstream, next_upstream_timeout, next_upstream_tries, no_cache, param, pass_header, \
     pass_request_body, pass_request_headers, pass_trailers, protocol, protocol_timeout, read_timeout, \
     redirect, request_buffering, requests, responses, send_lowat, send_timeout, set_body, set_header, \
     socket_keepalive, socket_rcvbuf, socket_sndbuf, split_path_info, ssl, ssl_alpn, ssl_certificate, \
     ssl_certificate_cache, ssl_certificate_key, ssl_ciphers, ssl_conf_command, ssl_crl, ssl_name, \
     ssl_password_file, ssl_protocols, ssl_server_name, ssl_session_reuse, ssl_trusted_certificate, \
     ssl_verify, ssl_verify_depth, store, store_access, string, temp_file_write_size, temp_path, timeout, \
     upload_rate, upstream_buffer";

/// Directives that are taken out of a copy: they look names up or contact a certificate's authority, store data that
/// clients send, write keys, or set where a core is dumped. The responder of an authority is looked up already when the
/// configuration is read (`ngx_ssl_stapling_responder`).
const LEFT_OUT: &str = "dav_methods, resolver, ssl_key_log, ssl_ocsp, ssl_ocsp_responder, ssl_stapling, \
     ssl_stapling_responder, working_directory";

/// Directives whose argument is an address, or a name that is looked up when the configuration is read.
const OF_ADDRESSES: [&str; 2] = ["set_real_ip_from", "debug_connection"];

/// Directives that load a program into nginx, which may run as root.
const OF_PROGRAMS: [&str; 2] = ["load_module", "ssl_engine"];

/// Returns what is wrong with a program that nginx would load, by a path; `None` for one of the build's own folder and
/// for one that nobody else could have written.
fn fault_of_program(path: &str) -> Option<String> {
    if path.contains("..") {
        return Some("a program of another folder".to_owned());
    }
    let program = Path::new(path);
    if !program.is_absolute() || !program.exists() {
        return None;
    }
    let why = weir_files::only_ours_file_named(program).err()?;
    Some(format!("a program that others could have written: {why}"))
}

/// Checks that all directives are known to do no harm in a copy, except those of `mail`, which no copy has.
///
/// # Errors
/// Returns an error for the first directive that is not known, with its place.
pub(super) fn check(source: &Source, nodes: &[Node<'_>]) -> Result<(), ConfigurationError> {
    for node in nodes {
        let directive = node.directive;
        let name = &*directive.name.text;
        let refuse = |what: String| error_at(source, node.file, directive, what).hint(LEAVE_OUT);
        if directive.block.is_some() {
            if !is_block(name) {
                return Err(refuse(why(name)));
            }
            if let Some(group) = directive.argument(0)
                && name == "upstream"
                // A path of a socket, or a port behind a host: no `proxy_pass` names such a group.
                && group.contains(':')
            {
                let message = format!(
                    "`upstream {group}` is called like an address, which nginx would contact"
                );
                return Err(refuse(message));
            }
            if name != "mail" {
                check(source, &node.children)?;
            }
        } else if !is_known(name) {
            return Err(refuse(why(name)));
        } else if let Some(program) = directive.words().find(|_| OF_PROGRAMS.contains(&name))
            && let Some(fault) = fault_of_program(program)
        {
            return Err(refuse(format!("`{name} {program}` would run {fault}")));
        } else if OF_ADDRESSES.contains(&name)
            && let Some(host) = directive.words().find(|word| !is_address(word))
        {
            let message =
                format!("`{name} {host}` makes nginx look up a name, which a copy must not do");
            return Err(refuse(message));
        }
    }
    Ok(())
}

/// Returns true if a directive is taken out of a copy.
pub(super) fn is_left_out(name: &str) -> bool {
    is_among(name, LEFT_OUT) || of_passing(name) == Some("ssl_key_log")
}

fn is_known(name: &str) -> bool {
    is_among(name, HARMLESS)
        || is_left_out(name)
        || is_pass(name)
        || is_bind(name)
        || of_passing(name).is_some_and(|rest| is_among(rest, HARMLESS_OF_PASSING))
}

/// Returns the part of a directive's name behind the name of a module that passes requests on; None if it is of no such
/// module.
fn of_passing(name: &str) -> Option<&str> {
    let (module, rest) = name.split_once('_')?;
    is_among(module, PASSING).then_some(rest)
}

/// Returns the reason why an unknown directive is refused.
fn why(name: &str) -> String {
    let mut modules = ["js_", "lua_", "perl"].iter();
    if name.contains("_by_lua") || modules.any(|module| name.starts_with(module)) {
        runs_code(name)
    } else {
        unknown(name)
    }
}

/// Returns true for an address, a network, or `unix:`.
fn is_address(word: &str) -> bool {
    let (address, length) = word.split_once('/').unwrap_or((word, "0"));
    word == "unix:" || (address.parse::<IpAddr>().is_ok() && length.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    use weir_model::study::ProxyKind;
    use weir_parameters::Catalog;

    use super::*;

    #[test]
    fn whatever_a_study_can_set_is_known() {
        let catalog = Catalog::builtin();
        for write in catalog
            .parameters(ProxyKind::Nginx)
            .flat_map(|row| &row.writes)
            .filter(|write| write.context.name() != "listen")
        {
            let name = write.text.split(' ').next().unwrap_or_default();
            assert!(is_known(name), "{name}");
        }
    }
}
