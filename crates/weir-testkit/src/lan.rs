//! Hosts for tests: network namespaces connected to another one in which weir runs, each with a real sshd.

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_host::Network;
use weir_probe::process::command_line;
use weir_record::Run;

use crate::origin::serving;
use crate::program::{Running, wait_until};
use crate::sandbox::{Sandbox, names_in};
use crate::ssh::{self, Site};

/// Network of all hosts: TEST-NET-2 (RFC 5737).
const NETWORK: [u8; 3] = [198, 51, 100];

/// A network of hosts, and a place to run weir from.
pub struct Lan {
    // Dropped first: who is connected to a host ends before the host does.
    hosts: Vec<Host>,
    here: Network,
    pub sandbox: Sandbox,
}

/// A host of the network.
pub struct Host {
    pub name: String,
    pub network: Network,
    pub ssh: ssh::Host,
}

/// Description of a host.
#[derive(Default)]
pub struct Like {
    /// Time by which its clock is ahead.
    pub ahead: Duration,
    /// Lines for its sshd_config.
    pub lines: &'static str,
    /// Shell commands to run there before its sshd starts; files that they make below `/run` are visible to this host
    /// alone.
    pub commands: &'static str,
}

impl Lan {
    /// Starts hosts `web1`, `web2`, … by their descriptions. Returns `None`, and prints the reason, if that is not
    /// possible.
    pub fn of(hosts: &[Like]) -> Option<Lan> {
        if let Err(error) = weir_host::may_have_networks() {
            ssh::skipped(&error.to_string());
            return None;
        }
        let sandbox = Sandbox::new();
        let here = Network::create().expect("namespaces can be had");
        let commands = "ip link add lan type bridge && ip link set lan up && \
                        ip addr add 198.51.100.1/24 dev lan";
        if let Err(words) = attempt(&here, commands) {
            ssh::skipped(&format!("no bridge here: {words}"));
            return None;
        }
        let mut lan = Lan { hosts: Vec::new(), here, sandbox };
        for (index, like) in hosts.iter().enumerate() {
            let host = lan.attach(index as u8 + 1, like)?;
            lan.hosts.push(host);
        }
        lan.write_configuration();
        Some(lan)
    }

    fn attach(&self, number: u8, like: &Like) -> Option<Host> {
        let network = Network::create().expect("namespaces can be had");
        let [a, b, c] = NETWORK;
        let address = Ipv4Addr::new(a, b, c, 10 + number);
        let (name, file) = (format!("web{number}"), file_of(&network));
        let commands = format!(
            "ip link add {name} type veth peer name wire netns {} && \
             ip link set {name} master lan up",
            file.display()
        );
        attempt(&self.here, &commands).expect("a wire");
        let commands = format!("ip addr add {address}/24 dev wire && ip link set wire up");
        attempt(&network, &commands).expect("a wire");
        let site = Site { network: Some(file), address, ahead: like.ahead };
        let ssh = ssh::Host::start_at(&site, like.lines, like.commands)?;
        ssh.know("host_key");
        Some(Host { name, network, ssh })
    }

    /// Writes the lines that the user would have in ~/.ssh/config.
    fn write_configuration(&self) {
        let all = "Host *\n IdentitiesOnly yes\n IdentityAgent none\n \
                   GlobalKnownHostsFile /dev/null\n";
        let text: String = self.hosts.iter().map(Host::ssh_lines).collect();
        self.sandbox.write("ssh_config", &(text + all));
    }

    /// Returns the network namespace in which weir runs.
    pub fn here(&self) -> &Network {
        &self.here
    }

    /// Returns the host of this number, counted from 1 as their names are.
    pub fn host(&self, number: usize) -> &Host {
        &self.hosts[number - 1]
    }

    /// Starts an origin server in weir's namespace, and returns it with its address, which all hosts reach.
    pub fn origin(&self, flags: &str) -> (Running, String) {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", file_of(&self.here).display()));
        let line = format!("origin --listen 198.51.100.1:0 {flags}");
        let weir = crate::program::weir_program();
        command.arg(weir).args(line.split_whitespace());
        serving(Running::start(&mut command))
    }

    /// Returns a command that runs weir with these arguments, and the ssh options for the hosts.
    fn weir(&self, arguments: &[&str]) -> Command {
        let local = self.sandbox.weir(arguments);
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", file_of(&self.here).display()));
        command.arg(local.get_program()).args(local.get_args());
        command.args(["--ssh-option", "-F", "--ssh-option", "ssh_config"]);
        for (name, value) in local.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("WEIR_JOURNAL", self.sandbox.path("journal"));
        if let Some(folder) = local.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }

    /// Starts weir with the words of a shell line.
    pub fn start(&self, line: &str) -> Running {
        let words = shlex::split(line).expect("a line of a shell");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Running::start(&mut self.weir(&words))
    }

    /// Starts `weir run` of a study with this text, and more arguments.
    pub fn run(&self, study: &str, more: &str) -> Running {
        self.sandbox.write("study.yaml", study);
        self.start(&format!("run study.yaml --out 'a run' {more}"))
    }

    /// Reads the run's records.
    pub fn records(&self) -> Run {
        Run::read(&self.sandbox.run_folder()).expect("the run can be read")
    }

    /// Checks that no process and no file of weir's is left on any host.
    #[track_caller]
    pub fn assert_clean(&self) {
        self.sandbox.assert_clean();
        for host in &self.hosts {
            // The agent ends when its input does, a moment after weir.
            wait_until("the end of the agent", || host.agents().is_empty());
            let folder = host.ssh.temporary();
            wait_until("the end of the proxies", || processes_with(&folder).is_empty());
            wait_until("the end of the agent's files", || names_in(&folder).is_empty());
        }
    }
}

impl Host {
    fn ssh_lines(&self) -> String {
        let folder = self.ssh.folder.path().display();
        format!(
            "Host {}\n HostName {}\n Port {}\n IdentityFile {folder}/key\n \
             UserKnownHostsFile {folder}/known_hosts\n",
            self.name, self.ssh.address, self.ssh.port
        )
    }

    /// Returns all processes that ssh has started there.
    pub fn agents(&self) -> Vec<u32> {
        self.ssh.processes()
    }

    /// Returns the root of the host's file system.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.ssh.sshd.id()))
    }

    /// Runs shell commands there, and returns their output.
    #[track_caller]
    pub fn does(&self, commands: &str) -> String {
        attempt(&self.network, commands).expect("it can be done there")
    }
}

/// Returns the path of a namespace, valid while this process holds it.
fn file_of(network: &Network) -> PathBuf {
    let descriptor = network.as_fd().as_raw_fd();
    PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id()))
}

/// Runs shell commands in a namespace, and returns their output.
fn attempt(network: &Network, commands: &str) -> Result<String, String> {
    let output = Command::new("nsenter")
        .arg(format!("--net={}", file_of(network).display()))
        .args(["sh", "-c", commands])
        .output()
        .map_err(|error| error.to_string())?;
    let is_done = output.status.success();
    let text = String::from_utf8_lossy(if is_done { &output.stdout } else { &output.stderr });
    if is_done { Ok(text.trim().to_owned()) } else { Err(text.trim().to_owned()) }
}

/// Returns processes whose command line names a folder.
fn processes_with(folder: &Path) -> Vec<u32> {
    let path = folder.to_str().expect("names are UTF-8");
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| command_line(pid).is_ok_and(|line| line.contains(path)))
        .collect()
}
