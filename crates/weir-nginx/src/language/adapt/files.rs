//! Files that nginx writes, which move below the copy's prefix, and files that it reads, which stay.

use std::collections::BTreeMap;

use super::Adaptation;
use crate::language::paths::{Base, base_of, is_relative};
use crate::language::syntax::{Word, quoted};
use crate::language::view::Node;

/// Directives of files that nginx writes for the whole process, each with its path below the prefix.
pub(super) const OF_MAIN: [(&str, &str); 3] =
    [("pid", "nginx.pid"), ("lock_file", "temp/nginx.lock"), ("error_log", "logs/error.log")];

/// Directives for temporary files of HTTP, each with the argument in `nginx -V` by which a build has no such directive.
pub(super) const TEMP_PATHS: [(&str, &str); 5] = [
    ("", "client_body_temp_path"),
    ("--without-http_proxy_module", "proxy_temp_path"),
    ("--without-http_fastcgi_module", "fastcgi_temp_path"),
    ("--without-http_uwsgi_module", "uwsgi_temp_path"),
    ("--without-http_scgi_module", "scgi_temp_path"),
];

/// New paths of files that nginx writes.
#[derive(Default)]
pub(super) struct Files {
    /// New paths, by folder and the user's path.
    new: BTreeMap<String, String>,
    /// Number of files with each name.
    names: BTreeMap<String, usize>,
}

impl Files {
    /// Returns a new path for a path of the user's, always the same for the same path: `name` in `folder`, with a
    /// number from the second one on.
    fn path(&mut self, folder: &str, name: &str, user: &str) -> String {
        let key = format!("{folder} {user}");
        if let Some(path) = self.new.get(&key) {
            return path.clone();
        }
        let path = format!("{folder}/{name}");
        let count = self.names.entry(path.clone()).or_default();
        *count += 1;
        let path = match count {
            1 => path,
            count => format!("{folder}/{count}-{name}"),
        };
        self.new.insert(key, path.clone());
        path
    }
}

impl Adaptation<'_> {
    /// Adapts a directive that may name a file.
    pub(super) fn file(&mut self, node: &Node<'_>) {
        let directive = node.directive;
        let name = &*directive.name.text;
        let Some(first) = directive.arguments.first() else {
            return;
        };
        let new = match name {
            "daemon" => "off".to_owned(),
            "user" => return self.user(node),
            "pid" | "lock_file" | "error_log" if first.text.starts_with("memory:") => return,
            "pid" | "lock_file" | "error_log" => {
                let default = OF_MAIN.iter().find(|(directive, _)| *directive == name);
                self.below_prefix(default.map_or(name, |(_, file)| file))
            }
            "access_log" if first.text == "off" => return,
            "access_log" => self.log(&first.text),
            "ssl_certificate" | "ssl_certificate_key"
                if self.surroundings.certificate.is_some() =>
            {
                self.certificate(name)
            }
            "proxy_store" | "fastcgi_store" | "uwsgi_store" | "scgi_store" => {
                if first.text == "off" {
                    return;
                }
                // One file for all responses: a rewrite can put anything into `$uri`, and other variables hold anything.
                let file = self.files.path("temp", name, &first.text);
                self.below_prefix(&(file + "-$nginx_version"))
            }
            "google_perftools_profiles" => self.below_prefix("temp/profile"),
            name if name.ends_with("_temp_path") || name.ends_with("_cache_path") => {
                let folder = name.trim_end_matches("_temp_path").trim_end_matches("_path");
                let path = self.files.path("temp", folder, &first.text);
                self.below_prefix(&path)
            }
            name => {
                if let Some(base) = base_of(name) {
                    self.make_absolute(node, first, base);
                }
                return;
            }
        };
        self.replace(node.file, first, new);
    }

    /// Returns the path that replaces a certificate or a key.
    fn certificate(&self, name: &str) -> String {
        let path = self.surroundings.certificate.map(|pem| match name {
            "ssl_certificate" => pem.certificate,
            _ => pem.key,
        });
        path.map_or_else(String::new, |path| quoted(&path.to_string_lossy()))
    }

    fn user(&mut self, node: &Node<'_>) {
        let words = &node.directive.arguments;
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return;
        };
        match self.surroundings.user {
            Some((user, group)) => {
                let text = format!("{user} {group}");
                self.put(node.file, first.span.start, last.span.end, text);
            }
            None => self.remove(node.file, node.directive),
        }
    }

    /// Returns the new path of a log. One with variables, which may hold any path, gets a variable that holds none: nginx
    /// opens such a log for each line, as the user's.
    fn log(&mut self, user: &str) -> String {
        let name = if user.starts_with("syslog:") {
            "syslog.log"
        } else if user.contains('$') {
            "of-variables-$nginx_version.log"
        } else {
            user.rsplit('/').next().unwrap_or(user)
        };
        let path = self.files.path("logs", name, user);
        self.below_prefix(&path)
    }

    pub(super) fn make_absolute(&mut self, node: &Node<'_>, word: &Word, base: Base) {
        if !is_relative(&word.text) {
            return;
        }
        let folder = match base {
            Base::Configuration => &self.source.base,
            Base::Prefix => &self.prefix,
        };
        let path = self.absolute(folder, &word.text);
        self.replace(node.file, word, path);
    }
}
