//! An sshd of the test's own: keys, home folders and configuration in a temporary folder, a port on loopback or in a
//! network namespace, and nothing of the user's.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weir_agent::ssh::{Connected, SshError, SshPlace, connect};

/// Time limit far above anything that works; only a hang reaches it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// An option given by the user, which takes precedence over weir's own.
pub const UNCOMPRESSED: &str = "Compression=no";
/// Time limit for sshd's processes to end by themselves after a test.
const GRACE: Duration = Duration::from_secs(3);

/// A host reachable by ssh: the test's own sshd, with a home of its own.
pub struct Host {
    pub sshd: Child,
    pub address: Ipv4Addr,
    pub port: u16,
    pub folder: TempDir,
    log: Arc<Mutex<String>>,
}

/// Location and clock of a host.
pub struct Site {
    /// File that stands for the host's network namespace; `None`: the test's own namespace.
    pub network: Option<PathBuf>,
    /// Address that sshd listens on.
    pub address: Ipv4Addr,
    /// Offset by which the host's clock is ahead (time_namespaces(7)).
    pub ahead: Duration,
}

impl Default for Site {
    fn default() -> Site {
        Site { network: None, address: Ipv4Addr::LOCALHOST, ahead: Duration::ZERO }
    }
}

impl Host {
    /// Starts a host that accepts the test's key. Returns `None`, and prints the reason, if sshd cannot be run.
    pub fn start() -> Option<Host> {
        Host::start_with("", "")
    }

    /// Starts a host with additional lines in sshd_config, and with commands that are run first in sshd's private mount
    /// namespace. Mounts need root: without it, the result is `None` if there are commands.
    pub fn start_with(lines: &str, commands: &str) -> Option<Host> {
        Host::start_at(&Site::default(), lines, commands)
    }

    /// Starts a host at a given site. A namespace or a clock of its own needs root.
    pub fn start_at(site: &Site, lines: &str, commands: &str) -> Option<Host> {
        let Some(program) = sshd() else {
            skipped("no sshd here (Debian: apt-get install openssh-server)");
            return None;
        };
        let root = rustix::process::geteuid().is_root();
        if !commands.is_empty() && !root {
            skipped("a mount needs root");
            return None;
        }
        let folder = tempfile::tempdir().expect("the folder for temporary files can be written");
        prepare(folder.path());
        // A port is picked before it is taken, and the machine may be shared.
        for _ in 0..10 {
            let port = free_port();
            write_configuration(folder.path(), SocketAddrV4::new(site.address, port), lines);
            let mut command = if root {
                in_its_own_mounts(&program, folder.path(), commands, site)
            } else {
                let mut sshd = Command::new(&program);
                sshd.args(["-D", "-e", "-f"]).arg(folder.path().join("sshd_config"));
                sshd
            };
            let mut sshd = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("sshd, or unshare(1), starts");
            let log = gather(&mut sshd);
            let listens =
                || log.lock().expect("no reader of the log panics").contains("Server listening on");
            wait_until("sshd", || listens() || has_ended(&mut sshd));
            if listens() && !has_ended(&mut sshd) {
                return Some(Host { sshd, address: site.address, port, folder, log });
            }
            let log_text = log.lock().expect("no reader of the log panics").clone();
            if log_text.contains("Operation not permitted") || log_text.contains("unshare failed") {
                skipped(&format!("no mount namespace to be had here: {log_text}"));
                return None;
            }
            assert!(log_text.contains("Address already in use"), "sshd: {log_text}");
        }
        panic!("ten free ports were taken by others")
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Folder of the copied executables.
    pub fn copies(&self) -> PathBuf {
        self.home().join(".cache/weir/agent")
    }

    /// Folder for temporary files of everything that runs on the host.
    #[allow(dead_code)] // Used where weir itself runs there.
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("temporary")
    }

    /// Returns the place for ssh, without the user's own configuration.
    pub fn place(&self) -> SshPlace {
        let mut destination = SshPlace::new(self.address.to_string());
        destination.options = vec![
            "-F".to_owned(),
            "none".to_owned(),
            "-p".to_owned(),
            self.port.to_string(),
            "-i".to_owned(),
            self.path_of("key"),
        ];
        let known_hosts = format!("UserKnownHostsFile={}", self.path_of("known_hosts"));
        for option in [
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "GlobalKnownHostsFile=/dev/null",
            // A weir with debug information is large and the line short.
            UNCOMPRESSED,
            &known_hosts,
        ] {
            destination.options.extend(["-o".to_owned(), option.to_owned()]);
        }
        self.know("host_key");
        destination
    }

    fn path_of(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Makes ssh trust this key as the host's.
    pub fn know(&self, key: &str) {
        let public = fs::read_to_string(self.folder.path().join(format!("{key}.pub")))
            .expect("it was just written");
        let line = format!("[{}]:{} {public}", self.address, self.port);
        fs::write(self.folder.path().join("known_hosts"), line)
            .expect("the folder of the test can be written");
    }

    /// Makes ssh know no host keys at all.
    pub fn know_nothing(&self) {
        fs::write(self.folder.path().join("known_hosts"), "")
            .expect("the folder of the test can be written");
    }

    pub fn connect(&self, weir: &Path) -> Result<Connected, SshError> {
        connect(&self.place(), weir, "test", PATIENCE)
    }

    /// Number of logins so far.
    pub fn logins(&self) -> usize {
        self.logged("Accepted publickey")
    }

    /// Number of occurrences of a text in sshd's log so far.
    pub fn logged(&self, words: &str) -> usize {
        let log = self.log.lock().expect("no reader of the log panics");
        log.matches(words).count()
    }

    /// All descendants of sshd.
    pub fn processes(&self) -> Vec<u32> {
        below(self.sshd.id())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // What serves a connection outlives the sshd that listens. Most of it ends by itself, and what
        // does not is killed from its leaves on, so that every parent can wait for its children.
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let processes = self.processes();
            if processes.is_empty() {
                break;
            }
            if begun.elapsed() > GRACE {
                processes.iter().rev().for_each(|&pid| signal(pid, Signal::KILL));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// Creates a minimal agent: a script that sends a greeting, runs until its input ends, and then writes a marker file.
pub fn agent(folder: &Path, name: &str) -> PathBuf {
    let hello = format!(
        r#"{{"magic":"weir-agent","protocol":{},"weir":"{name}"}}"#,
        weir_agent::hello::PROTOCOL
    );
    let text = format!(
        "#!/bin/sh\n\
         [ \"$1\" = --version ] && exit 0\n\
         echo $$ > '{folder}/{name}.pid'\n\
         printf '\\000\\000\\000\\{length:03o}%s' '{hello}'\n\
         cat > /dev/null\n\
         echo > '{folder}/{name}.ended'\n",
        folder = folder.display(),
        length = hello.len(),
    );
    program(folder, name, &text)
}

/// Prints why a test is skipped.
#[allow(clippy::print_stderr)]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Creates an executable script. Another process copies it into place: a file that this process holds open for writing
/// is also held by a child that another test starts at that moment, and the kernel does not run a program that is open
/// for writing.
pub fn program(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (path, source) = (folder.join(name), folder.join(format!("{name}.text")));
    fs::write(&source, text).expect("the folder of the test can be written");
    let mut install = Command::new("install");
    let status = install.args(["-m", "755"]).arg(source).arg(&path).status();
    assert!(status.is_ok_and(|status| status.success()), "{name}");
    path
}

pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "{what}: waited in vain");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process has a number");
    // It may have ended meanwhile.
    let _ = kill_process(pid, signal);
}

pub fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub fn below(parent: u32) -> Vec<u32> {
    let mut pids = vec![parent];
    let mut next = 0;
    while let Some(&parent) = pids.get(next) {
        // Children belong to threads; sshd and shells have one.
        let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
            .unwrap_or_default();
        pids.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        next += 1;
    }
    pids.split_off(1)
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|status| status.is_some())
}

fn sshd() -> Option<PathBuf> {
    ["/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.is_file())
}

fn prepare(folder: &Path) {
    for name in ["home", "temporary"] {
        let subfolder = folder.join(name);
        fs::create_dir(&subfolder).expect("the folder of the test can be written");
        open(&subfolder);
    }
    open(folder);
    for key in ["host_key", "other_key", "key"] {
        let status = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", key, "-f"])
            .arg(folder.join(key))
            .stdin(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "ssh-keygen");
    }
    fs::copy(folder.join("key.pub"), folder.join("authorized_keys"))
        .expect("the folder of the test can be written");
}

/// Makes a folder accessible to others, since proxies' workers run as another user when root starts them.
fn open(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("own folder");
}

fn write_configuration(folder: &Path, listen: SocketAddrV4, lines: &str) {
    // sshd takes the first value it meets, so the test's lines come first. The home is the test's for
    // all that goes by HOME, and so are temporary files and the journal; the account is whoever runs
    // the test.
    let text = format!(
        "{lines}\n\
         ListenAddress {listen}\n\
         HostKey {folder}/host_key\n\
         AuthorizedKeysFile {folder}/authorized_keys\n\
         SetEnv HOME={folder}/home XDG_CACHE_HOME={folder}/home/.cache \
         TMPDIR={folder}/temporary WEIR_JOURNAL={folder}/journal\n\
         PidFile none\n\
         StrictModes no\n\
         UsePAM no\n\
         PrintMotd no\n\
         PermitRootLogin yes\n\
         PasswordAuthentication no\n\
         MaxStartups 100\n",
        folder = folder.display(),
    );
    fs::write(folder.join("sshd_config"), text).expect("the folder of the test can be written");
}

/// Builds a command that runs sshd in a private mount namespace. sshd requires /run/sshd when root starts it; a private
/// one is invisible to others and vanishes with the namespace.
fn in_its_own_mounts(sshd: &Path, folder: &Path, commands: &str, site: &Site) -> Command {
    let script = format!(
        "mount -t tmpfs tmpfs /run && mkdir /run/sshd && cd '{folder}' && {{ {commands}\n:; }} && \
         exec '{sshd}' -D -e -f '{folder}/sshd_config'",
        sshd = sshd.display(),
        folder = folder.display(),
    );
    let mut command = match &site.network {
        None => Command::new("unshare"),
        Some(network) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net={}", network.display()));
            command.arg("unshare");
            command
        }
    };
    if !site.ahead.is_zero() {
        let seconds = site.ahead.as_secs().to_string();
        command.args(["--time", "--monotonic", &seconds]);
    }
    command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    command
}

fn gather(sshd: &mut Child) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    let gathered = Arc::clone(&log);
    let stderr = sshd.stderr.take().expect("it is a pipe");
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            gathered.lock().expect("no reader of the log panics").push_str(&(line + "\n"));
        }
    });
    log
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("some port is free");
    listener.local_addr().expect("it is bound").port()
}
