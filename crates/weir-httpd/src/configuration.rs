//! Writes a configuration: the settings of an arm in httpd's sections.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use weir_model::study::ProxyRole;
use weir_parameters::{Context, Directive};
use weir_sut::certificate::{CERTIFICATE_FILE, KEY_FILE};
use weir_sut::configuration::Configuration;
use weir_sut::language::NOT_YET;
use weir_sut::user::WorkerUser;
use weir_sut::{Site, SutError, Task};

use super::counters::{CONFIGURATION, HIDDEN, STATUS};
use super::{Httpd, request_log};

const FILE: &str = "httpd.conf";

/// Path of the file with httpd's process number, below the prefix.
pub(super) const PID_FILE: &str = "run/httpd.pid";

/// Path of the error log, below the prefix.
pub(super) const ERROR_LOG: &str = "logs/error.log";

/// File of media types for the files that are served, with its content. The system's mime.types may be missing.
const MEDIA_TYPES: (&str, &str) = ("conf/mime.types", "text/html html htm\ntext/plain txt\n");

/// Users that packages of httpd make or use, Debian's first; `nobody` is everywhere.
const USERS: [&str; 5] = ["www-data", "apache", "httpd", "http", "nobody"];

/// Log format `combined`, as every installation of httpd defines it.
const COMBINED: &str =
    r#"LogFormat "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" combined"#;

/// MPM if settings name none.
const MPM: &str = "event";

/// Defaults if settings do not set them: threads of a process, and requests at once (processes for prefork).
const THREADS: usize = 25;
const WORKERS: usize = 400;
const WORKERS_OF_PREFORK: usize = 256;

/// Default limits of httpd: processes of an MPM with threads, and threads of each.
const SERVER_LIMIT: usize = 16;
const THREAD_LIMIT: usize = 64;

pub(super) fn write(httpd: &Httpd, task: &Task<'_>) -> Result<Configuration, SutError> {
    if task.site.own.is_some() {
        return Err(task.unable(NOT_YET));
    }
    let directives = task.directives()?;
    let user = WorkerUser::find(&USERS);
    let configuration = Configuration::prepare(task, FILE, user.as_ref())?;
    if let Some(user) = &user {
        user.must_reach(configuration.prefix())?;
    }
    httpd.modules.link(configuration.prefix())?;
    let (name, text) = MEDIA_TYPES;
    let file = configuration.prefix().join(name);
    weir_files::write(&file, text).map_err(SutError::file("write", file))?;

    let pool = Pool::of(&directives);
    let text = Layout {
        httpd,
        user: user.as_ref(),
        directives: &directives,
        pool: &pool,
        prefix: configuration.prefix(),
    }
    .render(task.site)?;
    let configuration = Configuration {
        error_log: Some(ERROR_LOG.into()),
        workers: pool.processes,
        ..configuration
    };
    configuration.write(&text)?;
    Ok(configuration)
}

/// Returns true if a configuration gives its listeners SO_REUSEPORT.
pub(super) fn shares_ports(configuration: &Configuration) -> Result<bool, SutError> {
    let file = configuration.file();
    let text = fs::read_to_string(&file).map_err(SutError::file("read", &file))?;
    let ratio = text.lines().find_map(|line| line.trim().strip_prefix("ListenCoresBucketsRatio "));
    Ok(ratio.is_some_and(|ratio| ratio.trim() != "0"))
}

/// Pool of processes, all of which run from the start to the end: see `parameters/httpd.yaml`.
#[derive(Debug, PartialEq, Eq)]
struct Pool {
    processes: usize,
    /// Directives that set the pool up.
    lines: Vec<String>,
}

impl Pool {
    fn of(directives: &[Directive]) -> Pool {
        let number = |name| argument(directives, name).and_then(|text| text.parse().ok());
        let is_prefork = mpm(directives).is_some_and(|text| text.contains("mpm_prefork_module"));
        let (threads, otherwise) = if is_prefork {
            (1, WORKERS_OF_PREFORK)
        } else {
            (number("ThreadsPerChild").unwrap_or(THREADS), WORKERS)
        };
        let workers = number("MaxRequestWorkers").unwrap_or(otherwise);
        let processes = (workers / threads.max(1)).max(1);
        let lines = if is_prefork {
            vec![
                format!("ServerLimit {}", processes.max(WORKERS_OF_PREFORK)),
                format!("StartServers {processes}"),
                // Above it httpd ends one a second.
                format!("MaxSpareServers {processes}"),
            ]
        } else {
            vec![
                format!("ThreadLimit {}", threads.max(THREAD_LIMIT)),
                // Twice: those that finish what they began while others take their place.
                format!("ServerLimit {}", (2 * processes).max(SERVER_LIMIT)),
                format!("StartServers {processes}"),
                format!("MaxSpareThreads {}", (processes + 1) * threads),
            ]
        };
        Pool { processes, lines }
    }
}

/// Returns the directive that loads the MPM.
fn mpm(directives: &[Directive]) -> Option<&str> {
    let mut texts = directives.iter().map(|directive| &*directive.text);
    texts.find(|text| text.starts_with("LoadModule mpm_"))
}

/// Returns the argument of the directive with this name.
fn argument<'a>(directives: &'a [Directive], name: &str) -> Option<&'a str> {
    let mut texts = directives.iter().map(|directive| &*directive.text);
    texts.find_map(|text| text.strip_prefix(name)?.strip_prefix(' '))
}

/// Renders the sections around the directives.
struct Layout<'a> {
    httpd: &'a Httpd,
    user: Option<&'a WorkerUser>,
    directives: &'a [Directive],
    pool: &'a Pool,
    prefix: &'a Path,
}

impl Layout<'_> {
    fn render(&self, site: &Site<'_>) -> Result<String, SutError> {
        let mut text =
            String::from("# Written by weir. Relative paths are below the prefix (httpd -d).\n");
        self.main(&mut text, site);
        self.context(&mut text, 0, "main");
        if site.request_log {
            line(&mut text, 0, &request_log::log());
        }
        self.section(&mut text, "IfModule !mpm_prefork_module", "threads");
        self.section(&mut text, "IfModule mpm_event_module", "event");
        self.administration(&mut text);
        match site.role {
            ProxyRole::ReverseProxy => self.proxy(&mut text, site)?,
            ProxyRole::StaticFiles { .. } => self.files(&mut text),
        }
        if let Some(tls) = site.tls {
            // All else it has from outside the section.
            line(&mut text, 0, &format!("\n<VirtualHost {}>", tls.listen));
            // It is not had from outside, and without one the resolver is asked here too.
            line(&mut text, 1, "ServerName localhost");
            line(&mut text, 1, "SSLEngine on");
            line(&mut text, 1, &format!("SSLCertificateFile conf/{CERTIFICATE_FILE}"));
            line(&mut text, 1, &format!("SSLCertificateKeyFile conf/{KEY_FILE}"));
            line(&mut text, 0, "</VirtualHost>");
        }
        Ok(text)
    }

    fn main(&self, text: &mut String, site: &Site<'_>) {
        if mpm(self.directives).is_none() {
            let load = format!("LoadModule mpm_{MPM}_module modules/mod_mpm_{MPM}.so");
            line(text, 0, &load);
        }
        for directive in self.httpd.modules.directives() {
            line(text, 0, &directive);
        }
        if let Some(user) = self.user {
            line(text, 0, &format!("User {}", user.name));
            line(text, 0, &format!("Group {}", user.group));
        }
        for directive in [
            "DefaultRuntimeDir run",
            &format!("PidFile {PID_FILE}"),
            &format!("ErrorLog {ERROR_LOG}"),
            &format!("TypesConfig {}", MEDIA_TYPES.0),
            // Without one it asks the resolver for the host's.
            "ServerName localhost",
            COMBINED,
            &format!("Listen {}", site.listen),
        ] {
            line(text, 0, directive);
        }
        if let Some(tls) = site.tls {
            line(text, 0, &format!("Listen {} https", tls.listen));
        }
        for directive in &self.pool.lines {
            line(text, 0, directive);
        }
    }

    /// Writes the locations for httpd's reports about itself, open to this host alone.
    fn administration(&self, text: &mut String) {
        for (target, handler) in [(STATUS, "server-status"), (CONFIGURATION, "server-info")] {
            line(text, 0, &format!("\n<Location \"{target}\">"));
            line(text, 1, &format!("SetHandler {handler}"));
            line(text, 1, "Require local");
            line(text, 0, "</Location>");
        }
        // As Debian has it, and so that nothing outside of the prefix is ever looked at.
        line(text, 0, "\nDocumentRoot files");
        line(text, 0, "<Directory \"/\">");
        line(text, 1, "Require all denied");
        line(text, 0, "</Directory>");
    }

    fn proxy(&self, text: &mut String, site: &Site<'_>) -> Result<(), SutError> {
        let origin = site.origin.ok_or(SutError::NoOrigin)?;
        // Targets go on as they came, whatever is encoded in them.
        line(text, 0, "\nAllowEncodedSlashes NoDecode");
        line(text, 0, &format!("ProxyPass \"{HIDDEN}\" \"!\""));
        let parameters = self.of("proxy");
        let parameters: String = parameters.map(|parameter| format!(" {parameter}")).collect();
        let pass = format!("ProxyPass \"/\" \"http://{origin}/\"{parameters} nocanon");
        line(text, 0, &pass);
        Ok(())
    }

    fn files(&self, text: &mut String) {
        let files = self.prefix.join("files");
        line(text, 0, "\nDirectoryIndex index.html index.htm");
        line(text, 0, &format!("<Directory {}>", quote(&files)));
        line(text, 1, "Require all granted");
        self.context(text, 1, "directory");
        line(text, 0, "</Directory>");
        // httpd itself gives a file without an extension no media type.
        line(text, 0, "<FilesMatch \"^[0-9]+$\">");
        line(text, 1, "ForceType application/octet-stream");
        line(text, 0, "</FilesMatch>");
    }

    fn section(&self, text: &mut String, head: &str, context: &str) {
        if self.of(context).next().is_some() {
            line(text, 0, &format!("<{head}>"));
            self.context(text, 1, context);
            line(text, 0, "</IfModule>");
        }
    }

    fn of(&self, context: &str) -> impl Iterator<Item = &str> {
        let context = Context::new(context);
        self.directives
            .iter()
            .filter(move |directive| directive.context == context)
            .map(|directive| &*directive.text)
    }

    fn context(&self, text: &mut String, depth: usize, context: &str) {
        // What others need comes first.
        let (load, rest): (Vec<&str>, Vec<&str>) =
            self.of(context).partition(|directive| directive.starts_with("LoadModule "));
        for directive in load.into_iter().chain(rest) {
            line(text, depth, directive);
        }
    }
}

fn line(text: &mut String, depth: usize, directive: &str) {
    writeln!(text, "{:1$}{directive}", "", depth * 4).expect("writing to a String cannot fail");
}

/// Quotes a path as one word.
fn quote(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(texts: &[&str]) -> Pool {
        Pool::of(
            &texts
                .iter()
                .map(|text| Directive {
                    context: Context::new("main"),
                    at: None,
                    text: (*text).to_owned(),
                })
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn all_processes_are_there_from_the_begin() {
        let stock = pool(&["MaxRequestWorkers 150", "ThreadsPerChild 25"]);
        assert_eq!(stock.processes, 6);
        assert_eq!(
            stock.lines,
            ["ThreadLimit 64", "ServerLimit 16", "StartServers 6", "MaxSpareThreads 175"]
        );
        assert_eq!(pool(&[]).processes, 16);
        assert_eq!(pool(&["MaxRequestWorkers 5"]).processes, 1);
        let large = pool(&["MaxRequestWorkers 1000", "ThreadsPerChild 100"]);
        assert_eq!(large.processes, 10);
        assert_eq!(large.lines[..2], ["ThreadLimit 100", "ServerLimit 20"]);
    }

    #[test]
    fn prefork_has_a_process_for_each_request() {
        let prefork = pool(&[
            "LoadModule mpm_prefork_module modules/mod_mpm_prefork.so",
            "MaxRequestWorkers 300",
            "ThreadsPerChild 25",
        ]);
        assert_eq!(prefork.processes, 300);
        assert_eq!(prefork.lines, ["ServerLimit 300", "StartServers 300", "MaxSpareServers 300"]);
    }
}
