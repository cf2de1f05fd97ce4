//! Writing a configuration: the settings of an arm, laid out in nginx's contexts.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_model::study::{ProxyKind, ProxyRole, Settings, file_target};
use weir_parameters::{Catalog, Context, Directive};
use weir_probe::host;

use super::syntax;
use super::user::WorkerUser;
use super::{Nginx, Site};
use crate::SutError;
use crate::certificate::{CERTIFICATE_FILE, KEY_FILE};
use crate::running::proxy_pid_file;
use crate::work_folder::make_folder;

/// Modules whose folder for temporary files would otherwise be the system's, and their directive.
const TEMP_PATHS: [(&str, &str); 5] = [
    ("", "client_body_temp_path"),
    ("--without-http_proxy_module", "proxy_temp_path"),
    ("--without-http_fastcgi_module", "fastcgi_temp_path"),
    ("--without-http_uwsgi_module", "uwsgi_temp_path"),
    ("--without-http_scgi_module", "scgi_temp_path"),
];

/// A configuration that was written, and the prefix it lives in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    prefix: PathBuf,
    listen: SocketAddr,
    tls_listen: Option<SocketAddr>,
    workers: usize,
}

impl Configuration {
    /// The folder that holds all that this nginx reads and writes.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The configuration file.
    pub fn file(&self) -> PathBuf {
        self.prefix.join("conf/nginx.conf")
    }

    /// Address where it is asked in clear.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Address where it is asked over TLS, if it is.
    pub fn tls_listen(&self) -> Option<SocketAddr> {
        self.tls_listen
    }

    /// The error log.
    pub fn error_log(&self) -> PathBuf {
        self.prefix.join("logs/error.log")
    }

    /// What the program printed since it was last started.
    pub fn output(&self) -> PathBuf {
        self.prefix.join("logs/output")
    }

    /// Number of the master process, while it runs.
    pub fn pid_file(&self) -> PathBuf {
        proxy_pid_file(&self.prefix)
    }

    /// Workers that it will start.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }
}

pub(super) fn write(
    nginx: &Nginx,
    prefix: &Path,
    settings: &Settings,
    site: &Site<'_>,
    catalog: &Catalog,
) -> Result<Configuration, SutError> {
    let directives = directives(settings, catalog)?;
    let user = WorkerUser::find();
    let text = Layout {
        nginx,
        user: user.as_ref(),
        directives: &directives,
    }
    .render(site)?;
    for folder in ["", "conf", "logs", "temp", "files"] {
        let path = prefix.join(folder);
        if !path.is_dir() {
            make_folder(&path)?;
        }
    }
    // Absolute, since nginx is started from elsewhere.
    let prefix = fs::canonicalize(prefix).map_err(SutError::file("read", prefix))?;
    if let Some(user) = &user {
        user.must_reach(&prefix)?;
    }
    if let ProxyRole::StaticFiles { size } = site.role {
        write_files(&prefix.join("files"), *size, site.sizes)?;
    }
    if let Some(tls) = site.tls {
        tls.certificate.copy_to(&prefix.join("conf"))?;
    }
    let configuration = Configuration {
        prefix,
        listen: site.listen,
        tls_listen: site.tls.map(|tls| tls.listen),
        workers: workers(&text)?,
    };
    let file = configuration.file();
    fs::write(&file, text).map_err(SutError::file("write", file))?;
    Ok(configuration)
}

/// The page of a proxy that serves files, and files of other sizes beside it.
fn write_files(folder: &Path, page: u64, sizes: &[u64]) -> Result<(), SutError> {
    let others = sizes.iter().map(|&size| (file_target(size), size));
    for (target, size) in std::iter::once(("/index.html".to_owned(), page)).chain(others) {
        let file = folder.join(target.trim_start_matches('/'));
        write_content(&file, size).map_err(SutError::file("write", file))?;
    }
    Ok(())
}

/// All that the settings lead to, parameter by parameter.
fn directives(settings: &Settings, catalog: &Catalog) -> Result<Vec<Directive>, SutError> {
    let mut all = Vec::new();
    for (id, level) in settings {
        let row = catalog
            .get(ProxyKind::Nginx, id)
            .ok_or_else(|| SutError::UnknownParameter { id: id.clone() })?;
        if !row.scope.is_configuration() {
            return Err(SutError::NotOfProxy { id: id.clone() });
        }
        all.extend(row.directives(level));
    }
    // Left to itself nginx writes the access log that it was built with: the system's.
    let is_logged = |directive: &Directive| directive.text.starts_with("access_log ");
    if !all.iter().any(is_logged) {
        all.push(Directive {
            context: Context::Http,
            text: "access_log {logs}/access.log".to_owned(),
        });
    }
    for directive in &mut all {
        // Relative paths of logs are taken from the prefix.
        directive.text = directive.text.replace("{logs}", "logs");
    }
    Ok(all)
}

/// Workers that a configuration asks for.
fn workers(text: &str) -> Result<usize, SutError> {
    let tree = syntax::parse(text)?;
    let directive = tree
        .iter()
        .find(|directive| directive.name == "worker_processes");
    let Some(level) = directive.and_then(|directive| directive.arguments.first()) else {
        return Ok(1);
    };
    match level.parse() {
        Ok(number) => Ok(number),
        // `auto` counts the CPUs that are online, whatever the process may use.
        Err(_) => Ok(host::online_cpus().map_or(1, |cpus| cpus.cpus().len())),
    }
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
        self.context(&mut text, Context::Events, 1);
        text += "}\n\nhttp {\n";
        self.http(&mut text);
        if let ProxyRole::ReverseProxy = site.role {
            let origin = site.origin.ok_or(SutError::NoOrigin)?;
            text += "\n    upstream origin {\n";
            line(&mut text, 2, &format!("server {origin}"));
            self.context(&mut text, Context::Upstream, 2);
            text += "    }\n";
        }
        self.server(&mut text, site);
        text += "}\n";
        Ok(text)
    }

    fn main(&self, text: &mut String) {
        if let Some(user) = self.user {
            line(text, 0, &format!("user {} {}", user.name, user.group));
        }
        // In the foreground: weir is the parent and learns at once how it ended.
        line(text, 0, "daemon off");
        line(text, 0, "pid nginx.pid");
        line(text, 0, "lock_file temp/nginx.lock");
        line(text, 0, "error_log logs/error.log");
        self.context(text, Context::Main, 0);
    }

    fn http(&self, text: &mut String) {
        match self.nginx.media_types() {
            Some(file) => line(text, 1, &format!("include {}", quoted(&file))),
            None => *text += "    types { text/html html; text/plain txt; }\n",
        }
        line(text, 1, "default_type application/octet-stream");
        // As Debian has it; without it nginx complains about Debian's list of media types.
        line(text, 1, "types_hash_max_size 2048");
        for (left_out, directive) in TEMP_PATHS {
            if left_out.is_empty() || !self.nginx.build.contains(left_out) {
                let folder = directive.trim_end_matches("_temp_path");
                line(text, 1, &format!("{directive} temp/{folder}"));
            }
        }
        self.context(text, Context::Http, 1);
    }

    fn server(&self, text: &mut String, site: &Site<'_>) {
        let flags = self.of(Context::Listen);
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
        self.context(text, Context::Server, 2);
        match site.role {
            ProxyRole::ReverseProxy => {
                *text += "\n        location / {\n";
                line(text, 3, "proxy_pass http://origin");
            }
            // As Debian's default site has it.
            ProxyRole::StaticFiles { .. } => {
                line(text, 2, "root files");
                line(
                    text,
                    2,
                    "index index.html index.htm index.nginx-debian.html",
                );
                *text += "\n        location / {\n";
                line(text, 3, "try_files $uri $uri/ =404");
            }
        }
        self.context(text, Context::Location, 3);
        *text += "        }\n    }\n";
    }

    fn of(&self, context: Context) -> impl Iterator<Item = &str> {
        self.directives
            .iter()
            .filter(move |directive| directive.context == context)
            .map(|directive| &*directive.text)
    }

    fn context(&self, text: &mut String, context: Context, depth: usize) {
        for directive in self.of(context) {
            line(text, depth, directive);
        }
    }
}

impl Nginx {
    /// The packaged list of media types, beside the configuration that nginx was built with.
    fn media_types(&self) -> Option<String> {
        let configured = self
            .build
            .split_ascii_whitespace()
            .find_map(|argument| argument.strip_prefix("--conf-path="));
        let beside = |file: &str| {
            Path::new(file)
                .parent()
                .map(|folder| folder.join("mime.types"))
        };
        [
            configured.and_then(beside),
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

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes a page of `size` bytes. It is made of words in an order that is always the same, so it
/// compresses about as text does and equal studies serve equal files.
fn write_content(path: &Path, size: u64) -> io::Result<()> {
    const WORDS: [&str; 16] = [
        "gateway ",
        "origin ",
        "request ",
        "response ",
        "connection ",
        "capacity ",
        "the ",
        "of ",
        "and ",
        "a ",
        "is ",
        "under ",
        "load ",
        "measured ",
        "quantile ",
        "arrives.\n",
    ];
    let mut file = BufWriter::new(File::create(path)?);
    let mut left = usize::try_from(size).map_err(io::Error::other)?;
    // Knuth's 64-bit linear congruential generator (MMIX); the upper bits are the good ones.
    let mut state = 1_u64;
    while left > 0 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let word = WORDS[(state >> 60) as usize].as_bytes();
        let part = &word[..word.len().min(left)];
        file.write_all(part)?;
        left -= part.len();
    }
    file.flush()
}
