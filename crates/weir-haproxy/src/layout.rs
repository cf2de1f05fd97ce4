//! Writes a configuration: the settings of an arm in HAProxy's sections.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::{fs, io};

use weir_parameters::Directive;
use weir_sut::certificate::{CERTIFICATE_FILE, KEY_FILE};
use weir_sut::configuration::{ADMIN_SOCKET, Configuration};
use weir_sut::user::WorkerUser;
use weir_sut::{Site, SutError, Task};

use super::{Haproxy, own, request_log};

const FILE: &str = "haproxy.cfg";

/// Path of the access log that HAProxy writes to its standard output.
pub(super) const ACCESS_LOG: &str = "logs/access.log";

/// Users for the workers: the one that packages of HAProxy make, and those that exist everywhere.
pub(super) const USERS: [&str; 3] = ["haproxy", "www-data", "nobody"];

/// Maximum time that a softly stopped worker, as after a reload, waits for its clients. Without a limit, a connection
/// without requests keeps the former worker until the connection ends.
const HARD_STOP_AFTER: &str = "10s";

pub(super) fn write(haproxy: &Haproxy, task: &Task<'_>) -> Result<Configuration, SutError> {
    if let Some(own) = task.site.own {
        return own::write(haproxy, task, own);
    }
    let layout = Layout { directives: task.directives()?, user: WorkerUser::find(&USERS) };
    // The master reads everything as the user it was started by, so its worker gets nowhere.
    let configuration = Configuration {
        stdout: Some(ACCESS_LOG.into()),
        request_log: task.site.request_log.then(|| ACCESS_LOG.into()),
        workers: 1,
        shares_port: layout.shares_port(),
        ..Configuration::prepare(task, FILE, None)?
    };
    if task.site.tls.is_some() {
        let folder = configuration.prefix().join("conf");
        offer_key(&folder).map_err(SutError::file("write", folder))?;
    }
    configuration.write(&layout.render(task.site, task.origin()?))?;
    Ok(configuration)
}

/// Links the key to `FILE.key`, where HAProxy looks for the key if it is not in the certificate's file.
pub(super) fn offer_key(folder: &Path) -> io::Result<()> {
    let link = folder.join(format!("{CERTIFICATE_FILE}.key"));
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(KEY_FILE, link)
}

/// Renders the sections around the directives.
struct Layout {
    directives: Vec<Directive>,
    user: Option<WorkerUser>,
}

impl Layout {
    /// Returns true if several sockets listen at one port, for which HAProxy needs SO_REUSEPORT.
    fn shares_port(&self) -> bool {
        let mut options = self.of("bind");
        options.any(|option| option.starts_with("shards ") && option != "shards 1")
    }

    fn render(&self, site: &Site<'_>, origin: SocketAddr) -> String {
        let mut text = String::from(
            "# Written by weir. Paths are relative to the prefix, in which HAProxy is started.\n",
        );
        section(&mut text, "global", self.global());
        let defaults = ["mode http".to_owned()].into_iter();
        section(&mut text, "defaults", defaults.chain(self.lines("defaults")));
        section(&mut text, "frontend weir", self.frontend(site));
        section(&mut text, "backend origin", self.backend(origin));
        // Else HAProxy tries whether the host's name servers can be reached, since 2.6.
        let nameserver = [format!("nameserver origin {origin}")];
        section(&mut text, "resolvers default", nameserver.into_iter());
        text
    }

    fn global(&self) -> impl Iterator<Item = String> {
        let user = self.user.iter().flat_map(|user| {
            let (name, group) = (&user.name, &user.group);
            [format!("user {name}"), format!("group {group}")]
        });
        let settings = [
            format!("stats socket unix@{ADMIN_SOCKET} mode 600 level admin"),
            format!("hard-stop-after {HARD_STOP_AFTER}"),
        ];
        // Else it would listen beside another program of the same user that sets SO_REUSEPORT, and
        // the kernel would share the connections out among them.
        let alone = (!self.shares_port()).then(|| "noreuseport".to_owned());
        user.chain(settings).chain(alone).chain(self.lines("global"))
    }

    fn frontend(&self, site: &Site<'_>) -> impl Iterator<Item = String> {
        let options = self.joined("bind");
        let clear = format!("bind {}{options}", site.listen);
        let tls = site.tls.map(|tls| {
            let certificate = format!("conf/{CERTIFICATE_FILE}");
            format!("bind {} ssl crt {certificate}{options}", tls.listen)
        });
        let has_log = self.of("defaults").any(|line| line.starts_with("log "));
        // Another log would have each line twice.
        let log: Vec<String> = [request_log::LOG, request_log::FORMAT]
            .into_iter()
            .skip(usize::from(has_log))
            .map(str::to_owned)
            .filter(|_| site.request_log)
            .collect();
        // The one in clear stands first: options are read back from it.
        std::iter::once(clear)
            .chain(tls)
            .chain(self.lines("frontend"))
            .chain(log)
            .chain(["default_backend origin".to_owned()])
    }

    fn backend(&self, origin: SocketAddr) -> impl Iterator<Item = String> {
        let server = format!("server origin {origin}{}", self.joined("server"));
        self.lines("backend").chain([server])
    }

    fn of(&self, context: &str) -> impl Iterator<Item = &str> {
        self.directives
            .iter()
            .filter(move |directive| directive.context.name() == context)
            .map(|directive| &*directive.text)
    }

    fn lines(&self, context: &str) -> impl Iterator<Item = String> {
        self.of(context).map(str::to_owned)
    }

    /// Joins the options of a context for the end of a line.
    fn joined(&self, context: &str) -> String {
        self.of(context).map(|option| format!(" {option}")).collect()
    }
}

fn section(text: &mut String, name: &str, lines: impl Iterator<Item = String>) {
    writeln!(text, "\n{name}").expect("writing to a String cannot fail");
    for line in lines {
        writeln!(text, "    {line}").expect("writing to a String cannot fail");
    }
}
