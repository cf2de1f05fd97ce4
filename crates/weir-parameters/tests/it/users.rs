//! Tests of rows that users add.

use weir_model::study::{ProxyKind::Nginx, Settings};
use weir_parameters::{Catalog, Scope};

const SYSCTL: &str = "
parameters:
  - id: net.ipv4.tcp_rto_min_us
    scope: kernel_netns
    level: {integer: {min: 1000, max: 1000000}}
    default: {level: \"200000\", since: \"6.11\"}
    why: the shortest time before data is sent again
    source: https://docs.kernel.org/networking/ip-sysctl.html
    effective: {sysctl: {name: net.ipv4.tcp_rto_min_us}}
";

const DIRECTIVE: &str = "
proxy: nginx
parameters:
  - id: proxy_socket_keepalive
    scope: proxy_directive
    level: switch
    default: {level: \"off\", since: 1.15.6}
    why: keepalive probes on connections to the origin
    source: https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_socket_keepalive
    effective: {directive: {name: proxy_socket_keepalive, context: http}}
    writes:
      - {context: http, text: \"proxy_socket_keepalive {value}\"}
    constraints:
      - rule: {not_with: {setting: origin_keepalive, levels: [\"0\"]}}
        severity: warning
        because: no connection is kept
        hint: set `origin_keepalive`
";

fn with(rows: &[(&str, &str)]) -> Catalog {
    rows.iter().fold(Catalog::builtin(), |catalog, (file, text)| {
        catalog.with_rows(file, text).unwrap_or_else(|e| panic!("{e}"))
    })
}

#[test]
fn they_are_rows_like_the_others() {
    let catalog = with(&[("a.yaml", SYSCTL), ("b.yaml", DIRECTIVE)]);
    assert_eq!(catalog.scope(Nginx, "net.ipv4.tcp_rto_min_us"), Some(Scope::KernelNetns));
    assert_eq!(catalog.scope(Nginx, "proxy_socket_keepalive"), Some(Scope::ProxyDirective));
    assert_eq!(catalog.nearest(Nginx, "tcp_rto_min"), Some("net.ipv4.tcp_rto_min_us"));
    assert_eq!(catalog.defaults(Nginx)["proxy_socket_keepalive"], "off");
    assert_eq!(catalog.workers(Nginx, &Settings::new()), Some(1));
    assert_eq!(catalog.scope(Nginx, "gzip"), Some(Scope::ProxyDirective));
}

#[test]
fn their_texts_make_the_same_catalog_elsewhere() {
    let catalog = with(&[("a.yaml", SYSCTL), ("b.yaml", DIRECTIVE)]).for_kernel("6.1");
    let elsewhere = catalog.user_rows().iter().fold(Catalog::builtin(), |catalog, (file, text)| {
        catalog.with_rows(file, text).expect("it was read before")
    });
    assert_eq!(elsewhere.for_kernel("6.1"), catalog);
    assert_eq!(Catalog::builtin().user_rows(), []);
}

#[test]
fn what_is_wrong_is_said_with_the_file_and_the_row() {
    let sysctl = "sysctl: {name: net.ipv4.tcp_rto_min_us}";
    #[rustfmt::skip]
    let cases = [
        (SYSCTL, "id: net.ipv4.tcp_rto_min_us", "id: net.core.somaxconn", "the id is there twice"),
        (SYSCTL, "kernel_netns", "kernel_host\n    only_raise: true", "only_raise"),
        (SYSCTL, "integer: {min: 1000, max: 1000000}", "size: {min: 1k, max: 1m}",
         "knows no units"),
        (SYSCTL, "level: \"200000\"", "level: \"5\"", "`5` is not a whole number from 1000"),
        (SYSCTL, sysctl, "sysctl: {name: ../../etc/passwd}", "words with dots between"),
        (SYSCTL, sysctl, "sysctl: {name: net..core}", "words with dots between"),
        (SYSCTL, sysctl, "sysctl: {name: kernel.pid_max}", "the scope of this is `kernel_host`"),
        (SYSCTL, sysctl, "process_limit: {name: nofile}", "`effective: {sysctl: {name}}`"),
        (SYSCTL, "scope: kernel_netns", "scope: process_launch", "lower-case letters"),
        (SYSCTL, "    source", "    writes: [{context: main, text: x}]\n    source",
         "`writes` is for"),
        (DIRECTIVE, "proxy: nginx\n", "", "Write `proxy: nginx` at the head"),
        (DIRECTIVE, "setting: origin_keepalive", "setting: origin_keepalives", "not there"),
        (DIRECTIVE, "proxy: nginx\n", "proxy: squid\n", "squid"),
        (DIRECTIVE, "proxy: nginx\n", "proxy: caddy\n", "none of the `contexts`"),
        (DIRECTIVE, "text: \"proxy", "text: \"user root; proxy", "more than one directive"),
        (DIRECTIVE, "parameters:", "quantities: {gzip: {is: a, measured: b, by: c}}\nparameters:",
         "a parameter has this name"),
        (DIRECTIVE, "parameters:",
         "quantities: {x: {is: a, measured: b, by: c, smallest_of: [x]}}\nparameters:",
         "deeper than"),
        (DIRECTIVE, "parameters:",
         "quantities: {x: {is: a, measured: b, by: c, smallest_of: [y]}}\nparameters:",
         "made of `y`"),
    ];
    for (text, right, wrong, said) in cases {
        assert!(text.contains(right), "{right}");
        let error = Catalog::builtin()
            .with_rows("mine.yaml", &text.replacen(right, wrong, 1))
            .expect_err(wrong)
            .to_string();
        assert!(error.starts_with("mine.yaml: "), "{error}");
        assert!(error.contains(said), "{wrong}: {error}");
    }
}

#[test]
fn the_example_in_the_documentation_is_one() {
    let text = include_str!("../../../../docs/parameters.md");
    let example = text
        .split("```")
        .find(|part| part.starts_with("yaml\nproxy: nginx\n"))
        .and_then(|part| part.strip_prefix("yaml\n"));
    let catalog = with(&[("docs/parameters.md", example.expect("an example"))]);
    assert_eq!(catalog.scope(Nginx, "net.ipv4.tcp_rto_min_us"), Some(Scope::KernelNetns));
    assert_eq!(catalog.scope(Nginx, "proxy_socket_keepalive"), Some(Scope::ProxyDirective));
}
