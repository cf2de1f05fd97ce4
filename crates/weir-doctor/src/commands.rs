//! Makes a finding's commands name the program, configuration and process that they are for. Commands that would affect
//! an nginx other than the examined one are left out.

use weir_model::foreign::in_a_line;

use crate::facts::Facts;
use crate::finding::{Finding, Then};
use crate::shell::quoted;

impl Facts {
    /// Returns true if the files that were read belong to another root folder, which commands on this host do not
    /// reach.
    fn is_elsewhere(&self) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| proxy.own_root)
    }

    /// Returns the command that has nginx check the configuration and, if a process runs with it, reload it.
    fn check_and_reload(&self) -> Option<String> {
        let file = &self.configuration.as_ref()?.file;
        let (mut program, mut prefix) = ("nginx".to_owned(), String::new());
        if let Some(proxy) = &self.proxy {
            program = proxy.program.as_deref().map_or(program, quoted);
            let folder = proxy.prefix.as_deref();
            prefix = folder.map_or(prefix, |folder| format!(" -p {}", quoted(folder)));
        }
        let check = format!("{program}{prefix} -t -c {}", quoted(file));
        Some(match self.reload() {
            Some(reload) => format!("{check} && {reload}"),
            None => check,
        })
    }

    /// Returns the command that has the process read its files again; `None` if they are not the examined ones.
    fn reload(&self) -> Option<String> {
        let proxy = self.proxy.as_ref()?;
        let file = self.configuration.as_ref().map(|it| &it.file);
        (proxy.file.as_ref() == file).then(|| format!("kill -HUP {}", proxy.master))
    }

    fn restart(&self) -> Option<String> {
        let proxy = self.proxy.as_ref()?;
        let why = "a reload leaves queues as they are";
        Some(match &proxy.unit {
            Some(unit) if !proxy.own_root => {
                format!("systemctl restart {}   # {why}", quoted(unit))
            }
            _ => format!("# stop and start nginx (process {}): {why}", proxy.master),
        })
    }
}

/// Completes a finding's commands with the program, files and process that they are for. A remark among the commands,
/// which may quote a path or a value, is put on one line, so that nothing of it is run as a command.
pub(crate) fn address(finding: &mut Finding, facts: &Facts) {
    for command in finding.change.iter_mut().chain(&mut finding.persist) {
        if command.starts_with('#') {
            *command = in_a_line(command);
        }
    }
    let master = facts.proxy.as_ref().map_or(0, |proxy| proxy.master);
    let then = finding.then;
    let has_edits = finding.change.iter().any(|command| is_edit(command));
    if then == Then::Reload && facts.is_elsewhere() && has_edits {
        finding.change.retain(|command| !is_edit(command));
        finding.change.push(format!(
            "# in the container of process {master}: its files are not this host's, and are made elsewhere"
        ));
    } else if then == Then::Reload && has_edits {
        finding.change.extend(facts.check_and_reload());
    }
    match then {
        Then::Again => finding.change.extend(facts.reload()),
        Then::Restart => finding.change.extend(facts.restart()),
        Then::Nothing | Then::Reload => {}
    }
    if facts.proxy.as_ref().is_some_and(|proxy| proxy.own_network) {
        within_network(finding, master);
    }
}

pub(crate) fn is_edit(command: &str) -> bool {
    command.starts_with("sed ")
}

/// Has sysctls of a network namespace set within that namespace, and drops the commands that persist them: no file of
/// the host sets them at boot. Netfilter's sysctls are left as they are, since only the initial namespace has them.
fn within_network(finding: &mut Finding, master: u32) {
    for command in &mut finding.change {
        if is_namespaced(command, "sysctl -w ") {
            *command = format!("nsenter --net=/proc/{master}/ns/net {command}");
        }
    }
    finding.persist.retain(|command| !is_namespaced(command, "echo '"));
}

fn is_namespaced(command: &str, begin: &str) -> bool {
    let name = command.strip_prefix(begin).unwrap_or_default();
    name.starts_with("net.") && !name.starts_with("net.netfilter.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{Search, Statement};
    use crate::problem::HttpProblem;

    /// A user whose own file is included must not be able to put a command into the text that an administrator pastes.
    #[test]
    fn nothing_foreign_is_a_command() {
        for (name, file) in [
            ("default", "/srv/a\nintruder\n"),
            ("default", "/srv/a b;intruder"),
            ("~x/'; intruder; '", "/srv/a"),
            ("~x/\nintruder", "/srv/a\nintruder"),
        ] {
            let entry = Statement {
                file: file.into(),
                line: 3,
                search: Search::ByName,
                name: name.to_owned(),
                arguments: vec!["close".to_owned()],
                block: None,
                entries: Vec::new(),
            };
            let command = entry.precede_with("\"\" \"\"");
            let mut finding = Finding::note(HttpProblem::AccessLogUnbuffered, "").change(command);
            address(&mut finding, &Facts::default());
            let command = &finding.change[0];
            // One command of sed's, or none: a shell's words, comments left out.
            let words = shell_words(command);
            assert!(words.is_empty() || words.len() == 4, "{command}: {words:?}");
        }
    }

    fn shell_words(line: &str) -> Vec<String> {
        let script = format!(
            "sed() {{ for w in sed \"$@\"; do printf '%s\\0' \"$w\"; done; }}\n\
                              intruder() {{ printf 'intruder\\0'; }}\n{line}\n"
        );
        let output = std::process::Command::new("sh").args(["-c", &script]).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }
}
