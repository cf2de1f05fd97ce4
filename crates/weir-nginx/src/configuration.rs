//! Writes a configuration: the settings of an arm in nginx's contexts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use weir_model::study::ProxyRole;
use weir_parameters::{Context, Directive};
use weir_probe::host;
use weir_sut::certificate::{CERTIFICATE_FILE, KEY_FILE};
use weir_sut::configuration::{ADMIN_SOCKET, Configuration};
use weir_sut::user::WorkerUser;
use weir_sut::{Site, SutError, Task};

use super::{Nginx, own, request_log};
use crate::language;

const FILE: &str = "nginx.conf";

/// Users that packages of nginx make or use, Debian's first; `nobody` is everywhere.
pub(super) const USERS: [&str; 4] = ["www-data", "nginx", "http", "nobody"];

/// Directives for folders of temporary files, which would otherwise be the system's, each with the build option that
/// leaves its module out.
const TEMP_PATHS: [(&str, &str); 5] = [
    ("", "client_body_temp_path"),
    ("--without-http_proxy_module", "proxy_temp_path"),
    ("--without-http_fastcgi_module", "fastcgi_temp_path"),
    ("--without-http_uwsgi_module", "uwsgi_temp_path"),
    ("--without-http_scgi_module", "scgi_temp_path"),
];

pub(super) fn write(nginx: &Nginx, task: &Task<'_>) -> Result<Configuration, SutError> {
    if let Some(own) = task.site.own {
        return own::write(nginx, task, own);
    }
    let directives = add_access_log(task.directives()?);
    let user = WorkerUser::find(&USERS);
    let text = Layout { nginx, user: user.as_ref(), directives: &directives }.render(task.site)?;
    let tree = language::directives(&text)?;
    let configuration = Configuration {
        error_log: Some("logs/error.log".into()),
        workers: own::workers(&tree),
        shares_port: own::shares_port(&tree),
        ..Configuration::prepare(task, FILE, user.as_ref())?
    };
    if let Some(user) = &user {
        user.must_reach(configuration.prefix())?;
    }
    configuration.write(&text)?;
    Ok(configuration)
}

/// Adds an access log of weir's own, unless the settings have another. By default nginx writes the one that it was
/// built with: the system's.
fn add_access_log(mut all: Vec<Directive>) -> Vec<Directive> {
    if !all.iter().any(|directive| directive.text.starts_with("access_log ")) {
        all.push(Directive {
            context: Context::new("http"),
            at: None,
            text: "access_log logs/access.log".to_owned(),
        });
    }
    all
}

/// Returns the number of workers for a level of `worker_processes`.
pub(super) fn workers_of(level: &str) -> usize {
    // `auto` counts the CPUs that are online, whatever the process may use.
    level.parse().unwrap_or_else(|_| host::online_cpus().map_or(1, |cpus| cpus.cpus().len()))
}

/// Renders the contexts around the directives.
struct Layout<'a> {
    nginx: &'a Nginx,
    user: Option<&'a WorkerUser>,
    directives: &'a [Directive],
}

impl Layout<'_> {
    fn render(&self, site: &Site<'_>) -> Result<String, SutError> {
        let mut text =
            String::from("# Written by weir. Relative paths are below the prefix (nginx -p).\n");
        self.main(&mut text);
        text += "\nevents {\n";
        self.context(&mut text, "events", 1);
        text += "}\n\nhttp {\n";
        self.http(&mut text, site.request_log);
        if let ProxyRole::ReverseProxy = site.role {
            let origin = site.origin.ok_or(SutError::NoOrigin)?;
            text += "\n    upstream origin {\n";
            line(&mut text, 2, &format!("server {origin}"));
            self.context(&mut text, "upstream", 2);
            text += "    }\n";
        }
        self.server(&mut text, site);
        self.status(&mut text);
        text += "}\n";
        Ok(text)
    }

    fn main(&self, text: &mut String) {
        if let Some(user) = self.user {
            line(text, 0, &format!("user {} {}", user.name, user.group));
        }
        // In the foreground: weir is the parent and learns at once how it ended.
        line(text, 0, "daemon off");
        line(text, 0, "pid run/nginx.pid");
        line(text, 0, "lock_file temp/nginx.lock");
        line(text, 0, "error_log logs/error.log");
        self.context(text, "main", 0);
    }

    fn http(&self, text: &mut String, is_logged: bool) {
        match self.nginx.media_types() {
            Some(file) => line(text, 1, &format!("include {}", quote(&file))),
            None => *text += "    types { text/html html; text/plain txt; }\n",
        }
        line(text, 1, "default_type application/octet-stream");
        // As Debian has it; without it nginx complains about Debian's list of media types.
        line(text, 1, "types_hash_max_size 2048");
        for (left_out, directive) in TEMP_PATHS {
            if left_out.is_empty() || !self.nginx.installed.version_output.contains(left_out) {
                let folder = directive.trim_end_matches("_temp_path");
                line(text, 1, &format!("{directive} temp/{folder}"));
            }
        }
        self.context(text, "http", 1);
        if is_logged {
            line(text, 1, request_log::FORMAT);
        }
    }

    fn server(&self, text: &mut String, site: &Site<'_>) {
        let flags = self.of("listen");
        let flags: String = flags.map(|flag| format!(" {flag}")).collect();
        *text += "\n    server {\n";
        // The one in clear stands first: flags are read back from it.
        line(text, 2, &format!("listen {}{flags}", site.listen));
        if let Some(tls) = site.tls {
            line(text, 2, &format!("listen {} ssl{flags}", tls.listen));
            // Relative to the configuration file's folder, unlike other paths.
            line(text, 2, &format!("ssl_certificate {CERTIFICATE_FILE}"));
            line(text, 2, &format!("ssl_certificate_key {KEY_FILE}"));
        }
        line(text, 2, "server_name _");
        if site.request_log {
            // A server with a log has none of those outside.
            self.of("http")
                .filter(|text| text.starts_with("access_log "))
                .filter(|text| *text != "access_log off")
                .for_each(|log| line(text, 2, log));
            line(text, 2, &request_log::log());
        }
        self.context(text, "server", 2);
        match site.role {
            ProxyRole::ReverseProxy => {
                *text += "\n        location / {\n";
                line(text, 3, "proxy_pass http://origin");
            }
            // As Debian's default site has it.
            ProxyRole::StaticFiles { .. } => {
                line(text, 2, "root files");
                line(text, 2, "index index.html index.htm index.nginx-debian.html");
                *text += "\n        location / {\n";
                line(text, 3, "try_files $uri $uri/ =404");
            }
        }
        self.context(text, "location", 3);
        *text += "        }\n    }\n";
    }

    /// Writes the server for nginx's own counters, if this nginx was built with them.
    fn status(&self, text: &mut String) {
        if !self.nginx.tells_status() {
            return;
        }
        *text += "\n    server {\n";
        line(text, 2, &format!("listen unix:{ADMIN_SOCKET}"));
        line(text, 2, "access_log off");
        line(text, 2, "stub_status");
        *text += "    }\n";
    }

    fn of(&self, context: &str) -> impl Iterator<Item = &str> {
        self.directives
            .iter()
            .filter(move |directive| directive.context.name() == context)
            .map(|directive| &*directive.text)
    }

    fn context(&self, text: &mut String, context: &str, depth: usize) {
        for directive in self.of(context) {
            line(text, depth, directive);
        }
    }
}

impl Nginx {
    /// Returns the path of the packaged list of media types, beside the configuration that nginx was built with.
    fn media_types(&self) -> Option<String> {
        let configured = self
            .installed
            .version_output
            .split_ascii_whitespace()
            .find_map(|argument| argument.strip_prefix("--conf-path="));
        [
            configured
                .and_then(|file| Path::new(file).parent().map(|folder| folder.join("mime.types"))),
            Some(PathBuf::from("/etc/nginx/mime.types")),
        ]
        .into_iter()
        .flatten()
        .find(|file| file.is_file())
        .and_then(|file| file.to_str().map(str::to_owned))
    }
}

fn line(text: &mut String, depth: usize, directive: &str) {
    writeln!(text, "{:1$}{directive};", "", depth * 4).expect("writing to a String cannot fail");
}

fn quote(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}
