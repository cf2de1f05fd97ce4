//! Generated configurations that are larger than anybody writes by hand.

use std::fmt::Write;

/// Returns a configuration in the manner of ingress-nginx: Lua, and a server per host with a dozen of `set` per
/// location.
pub(crate) fn ingress(servers: usize) -> String {
    let mut text = String::from(
        "# Configuration checksum: 1234567890\npid /tmp/nginx/nginx.pid;\ndaemon off;\n\
         worker_processes 4;\nworker_rlimit_nofile 1047552;\nworker_shutdown_timeout 240s ;\n\
         events {\n\tmulti_accept        on;\n\tworker_connections  16384;\n\tuse                 epoll;\n}\n\
         http {\n\tlua_package_path        \"/etc/nginx/lua/?.lua;;\";\n\
         \tinit_by_lua_block {\n\t\tcollectgarbage(\"collect\")\n\t\tlocal ok, res = pcall(require, \"lua_ingress\")\n\
         \t\tif not ok then error(\"require failed: \" .. tostring(res)) else lua_ingress = res end\n\t}\n\
         \tkeepalive_timeout  75s;\n\tkeepalive_requests 1000;\n\
         \tlog_format upstreaminfo '$remote_addr - $remote_user [$time_local] \"$request\" $status';\n\
         \tmap $request_uri $loggable { default 1; }\n\
         \taccess_log /var/log/nginx/access.log upstreaminfo  if=$loggable;\n\
         \tupstream upstream_balancer {\n\t\tserver 0.0.0.1:1234; # placeholder\n\
         \t\tbalancer_by_lua_block {\n\t\t\tbalancer.balance()\n\t\t}\n\t\tkeepalive 320;\n\
         \t\tkeepalive_timeout  60s;\n\t\tkeepalive_requests 10000;\n\t}\n",
    );
    for number in 0..servers {
        let ports = match number {
            0 => {
                "\t\tlisten 80 default_server reuseport backlog=4096 ;\n\t\tlisten [::]:80 default_server reuseport backlog=4096 ;\n"
            }
            _ => "\t\tlisten 80  ;\n\t\tlisten [::]:80  ;\n",
        };
        write!(
            text,
            "\t## start server host{number}.example.com\n\tserver {{\n\t\tserver_name host{number}.example.com ;\n{ports}\
             \t\tset $proxy_upstream_name \"-\";\n\n\t\tlocation ~* \"^/api{{1}}/(.*)\" {{\n\
             \t\t\tset $namespace      \"default\";\n\t\t\tset $ingress_name   \"app-{number}\";\n\
             \t\t\tset $service_name   \"app\";\n\t\t\tset $service_port   \"80\";\n\
             \t\t\trewrite_by_lua_block {{\n\t\t\t\tlua_ingress.rewrite({{ force_ssl_redirect = false, x = \"}}\" }})\n\t\t\t}}\n\
             \t\t\tclient_max_body_size                    1m;\n\
             \t\t\tproxy_set_header Host                   $best_http_host;\n\
             \t\t\tproxy_set_header                        Upgrade           $http_upgrade;\n\
             \t\t\tproxy_set_header                        Connection        $connection_upgrade;\n\
             \t\t\tproxy_buffering                         off;\n\t\t\tproxy_http_version                      1.1;\n\
             \t\t\tproxy_pass http://upstream_balancer;\n\t\t\tproxy_redirect                          off;\n\t\t}}\n\n\t}}\n\
             \t## end server host{number}.example.com\n\n"
        )
        .unwrap();
    }
    text + "}\n"
}

/// Returns a gateway for many sites, each with its group of origin servers.
pub(crate) fn sites(count: usize) -> String {
    let mut text = String::from(
        "worker_processes auto;\nevents {\n    worker_connections 4096;\n}\n\
         http {\n    server_names_hash_max_size 65536;\n    server_names_hash_bucket_size 128;\n",
    );
    for number in 0..count {
        write!(
            text,
            "\n    upstream app{number} {{\n        server 192.0.2.{}:8080;\n    }}\n\n    server {{\n        \
             listen 80;\n        server_name site{number}.example.com; # tenant {number}\n\n        location / {{\n            \
             proxy_pass http://app{number};\n            proxy_set_header Host $host;\n        }}\n    }}\n",
            number % 250 + 1
        )
        .unwrap();
    }
    text + "}\n"
}
