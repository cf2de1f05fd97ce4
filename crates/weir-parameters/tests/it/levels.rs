//! Tests of levels: accepted and refused texts, and the messages of errors.

use std::sync::LazyLock;

use proptest::prelude::*;
use weir_model::study::ProxyKind::Nginx;
use weir_parameters::{Catalog, LevelError};

fn check(id: &str, level: &str) -> Result<String, LevelError> {
    let catalog = Catalog::builtin();
    catalog.get(Nginx, id).expect("a row").check(level)
}

#[test]
fn equal_levels_have_one_spelling() {
    #[rustfmt::skip]
    let cases = [
        ("keepalive_timeout", "1m", "60s"),
        ("keepalive_timeout", "65", "65s"),
        ("keepalive_timeout", "1500ms", "1500ms"),
        ("keepalive_timeout", "0", "0s"),
        ("worker_connections", "0768", "768"),
        ("gzip_min_length", "1024", "1k"),
        ("gzip_min_length", "1KiB", "1k"),
        ("open_file_cache", "inactive=1m  max=10", "max=10 inactive=60s"),
        ("gzip_types", "text/plain text/css text/css", "text/css text/plain"),
        ("worker_processes", "auto", "auto"),
        ("ssl_protocols", "TLSv1.3  TLSv1.2", "TLSv1.2 TLSv1.3"),
        ("ssl_session_cache", "1MiB", "1m"),
        ("ssl_ciphers", "DEFAULT:@SECLEVEL=1", "DEFAULT:@SECLEVEL=1"),
        ("net.core.somaxconn", "04096", "4096"),
        ("net.ipv4.ip_local_port_range", " 1024\t 65000", "1024 65000"),
        ("net.ipv4.ip_local_port_range", "40000 40000", "40000 40000"),
        ("net.ipv4.ip_local_reserved_ports", "9000-9010,80,81,9005-9020,8080",
         "80-81,8080,9000-9020"),
        ("net.ipv4.ip_local_reserved_ports", "65535,0-1", "0-1,65535"),
        ("cpu_limit", "2000m", "2"),
        ("cpu_limit", "0.5", "500m"),
        ("cpu_limit", "1500m", "1500m"),
        ("memory_limit", "1024Mi", "1Gi"),
        ("memory_limit", "512MiB", "512Mi"),
        ("memory_limit", "1537Ki", "1537Ki"),
        ("node_selector", "zone=a, pool=ingress", "pool=ingress,zone=a"),
        ("tolerations", "dedicated:NoSchedule,a=1:NoExecute", "a=1:NoExecute,dedicated:NoSchedule"),
    ];
    for (id, level, canonical) in cases {
        assert_eq!(check(id, level).as_deref(), Ok(canonical), "{id} {level}");
    }
}

#[test]
fn a_wrong_level_is_answered_with_what_is_right() {
    #[rustfmt::skip]
    let cases = [
        ("gzip", "onn", "`onn` is not `on` or `off`", Some("on")),
        ("gzip", "true", "`true` is not `on` or `off`", Some("on")),
        ("access_log", "bufered", "`bufered` is not `on`, `buffered` or `off`", Some("buffered")),
        ("gzip_comp_level", "12", "`12` is not a whole number from 1 to 9", Some("9")),
        ("worker_connections", "-1", "`-1` is not a whole number from 16 to 1048576", Some("16")),
        ("worker_processes", "atuo", "`atuo` is not `auto` or a whole number from 1 to 1024",
         Some("auto")),
        ("open_file_cache_valid", "1500ms",
         "`1500ms` is not a duration from 1s to 86400s in steps of 1s", Some("1s")),
        ("gzip_min_length", "1g", "`1g` is not a size from 0 to 1m, such as 600 or 4k", Some("1m")),
        ("cpu_limit", "5m", "`5m` is not a number of CPUs from 10m on, such as 2 or 500m", None),
        ("cpu_limit", "0.0005", "`0.0005` is not a number of CPUs from 10m on, such as 2 or 500m", None),
        ("memory_limit", "512m ;", "`512m ;` is not an amount of memory from 1Mi on, such as 512Mi", None),
        ("node_selector", "pool", "`pool` is not labels with their values such as `pool=ingress,zone=a`", None),
        ("pod_anti_affinity", "app=web;", "`app=web;` is not labels with their values such as `pool=ingress,zone=a`", None),
        ("tolerations", "dedicated=ingress",
         "`dedicated=ingress` is not taints such as `dedicated=ingress:NoSchedule` or, for any value, \
          `dedicated:NoSchedule`, with commas between them, none of them the cluster's own (node.kubernetes.io/)", None),
        ("open_file_cache", "max=0",
         "`max=0` is not `off` or max=N (N from 1 to 1000000) [inactive=DURATION in steps of 1s]",
         None),
        ("gzip_types", "text",
         "`text` is not a list of media types such as `text/css application/json`", None),
        ("ssl_protocols", "TLSv1.2 TLSv1.2",
         "`TLSv1.2 TLSv1.2` is not one or more of TLSv1 TLSv1.1 TLSv1.2 TLSv1.3", None),
        ("ssl_session_cache", "nome",
         "`nome` is not `off`, `none` or a size from 32k to 1024m, such as 600 or 4k",
         Some("none")),
        ("ssl_ciphers", "HIGH::MD5", "`HIGH::MD5` is not a cipher list such as `HIGH:!aNULL:!MD5`",
         None),
        (
            "net.ipv4.ip_local_port_range",
            "1024",
            "`1024` is not 2 whole numbers from 1 to 65535 in one value (`first last`), none smaller \
             than the one before",
            None,
        ),
        (
            "net.ipv4.ip_local_port_range",
            "65000 1024",
            "`65000 1024` is not 2 whole numbers from 1 to 65535 in one value (`first last`), none \
             smaller than the one before",
            Some("1024 65000"),
        ),
        ("net.ipv4.ip_local_reserved_ports", "9010-9000",
         "`9010-9000` is not ports and ranges such as `8080,9000-9010`", None),
        (
            "net.ipv4.tcp_congestion_control",
            "cubik",
            "`cubik` is not `bbr`, `bic`, `cdg`, `cubic`, `dctcp`, `highspeed`, `htcp`, `hybla`, \
             `illinois`, `lp`, `nv`, `reno`, `scalable`, `vegas`, `veno`, `westwood` or `yeah`",
            Some("cubic"),
        ),
    ];
    for (id, level, message, nearest) in cases {
        let error = check(id, level).expect_err(level);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.nearest.as_deref(), nearest, "{id} {level}");
    }
}

#[test]
fn what_is_nearest_is_valid() {
    for row in Catalog::builtin().all(Nginx) {
        for wrong in "0|1e99|-7|99999999999999999999|1us|ofn|on |9999h|2G".split('|') {
            let nearest = row.check(wrong).err().and_then(|error| error.nearest);
            if let Some(nearest) = nearest {
                let again = row.check(&nearest);
                assert_eq!(again, Ok(nearest), "{} {wrong}", row.id);
            }
        }
    }
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

proptest! {
    /// A level ends up in a configuration file: no accepted level holds a character that ends a directive, and each is
    /// its own canonical spelling.
    #[test]
    fn an_accepted_level_is_canonical_and_harmless(
        level in r#"([a-z0-9=/ ;{}"'\\#$\n.+-]{0,24})|(max=[0-9]{1,7} inactive=[0-9]{1,3}[smh;]?)|([0-9]{1,5}[ ,-][0-9]{1,6}([ ,-][0-9]{1,6})?)"#
    ) {
        for row in CATALOG.all(Nginx) {
            if let Ok(canonical) = row.check(&level) {
                let ends = [';', '{', '}', '"', '\'', '\\', '$', '\n', '#'];
                prop_assert!(!canonical.contains(ends), "{} took {}", row.id, canonical);
                prop_assert_eq!(row.check(&canonical), Ok(canonical.clone()));
            }
        }
    }
}
