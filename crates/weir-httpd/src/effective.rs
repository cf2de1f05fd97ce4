//! httpd's effective configuration, read back from its own reports.

use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};
use weir_sut::proxy::answer;
use weir_sut::{Configuration, Effective, SutError};

use super::{Httpd, with};

/// Beginning of the directive of the one origin; the parameters of its worker follow.
const ORIGIN: &str = "ProxyPass \"/\" ";

/// Heading of the list of modules.
const MODULES: &str = "Loaded Modules:";

impl Httpd {
    /// Returns mod_info's listing of a configuration that is not running, with the MPM added from the list of loaded
    /// modules, since the listing lacks it.
    pub(super) fn dump(&self, configuration: &Configuration) -> Result<String, SutError> {
        let dumps = ["-t", "-D", "DUMP_CONFIG", "-D", "DUMP_MODULES"];
        let output = answer(self, configuration, with(configuration, &dumps))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let (tree, modules) = text.split_once(MODULES).unwrap_or((&text, ""));
        Ok(with_mpm(mpm_in(modules), tree))
    }
}

/// Returns a text of directives, led by the one that loads the MPM.
pub(super) fn with_mpm(mpm: Option<&str>, tree: &str) -> String {
    match mpm {
        Some(mpm) => {
            format!("LoadModule mpm_{mpm}_module modules/mod_mpm_{mpm}.so\n{tree}")
        }
        None => tree.to_owned(),
    }
}

/// Returns `event` from ` mpm_event_module (shared)` in the list of modules.
fn mpm_in(modules: &str) -> Option<&str> {
    modules.lines().find_map(|line| {
        let name = line.split_ascii_whitespace().next()?;
        name.strip_prefix("mpm_")?.strip_suffix("_module")
    })
}

/// Reads the levels of all parameters. Process limits are known only of a proxy that runs.
pub(super) fn read(text: String, catalog: &Catalog, nofile: Option<u64>) -> Effective {
    let lines = parse(&text);
    let rows = (catalog, ProxyKind::Httpd);
    Effective::of(text.clone(), rows, |row| level(row, &lines, nofile))
}

fn level(row: &Parameter, lines: &[Line<'_>], nofile: Option<u64>) -> Option<String> {
    let values = match &row.effective {
        EffectiveFrom::Directive { name, context } => {
            let of_context = texts(lines, context.name());
            of_context.filter(|text| is_named(text, name)).collect()
        }
        EffectiveFrom::ProcessLimit { .. } => nofile.iter().map(u64::to_string).collect(),
        EffectiveFrom::Value { .. }
        | EffectiveFrom::ListenFlag { .. }
        | EffectiveFrom::Sysctl { .. }
        | EffectiveFrom::Launcher
        | EffectiveFrom::CpuSet
        | EffectiveFrom::Workload(_)
        | EffectiveFrom::Transport { .. } => Vec::new(),
    };
    // The last one counts. Of those that go together (LoadModule) only some are the row's.
    let level = values.iter().rev().find_map(|text| row.read_back(Some(text)));
    match values.last() {
        Some(last) => level.or_else(|| Some(last.clone())),
        None => row.read_back(None),
    }
}

/// A directive and the heads of the sections around it.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    sections: Vec<&'a str>,
    text: &'a str,
}

/// Parses directives as mod_info prints them, with comments for files and line numbers.
fn parse(text: &str) -> Vec<Line<'_>> {
    let mut sections = Vec::new();
    let mut lines = Vec::new();
    for text in text.lines().map(str::trim) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if text.starts_with("</") {
            sections.pop();
        } else if let Some(head) = text.strip_prefix('<') {
            sections.push(head.trim_end_matches('>'));
        } else {
            lines.push(Line { sections: sections.clone(), text });
        }
    }
    lines
}

/// Returns the directives of a context, in order.
fn texts(lines: &[Line<'_>], context: &str) -> impl Iterator<Item = String> {
    let of_context = lines.iter().filter(move |line| match context {
        "directory" => matches!(
            line.sections[..],
            [head] if head.starts_with("Directory ") && head != "Directory \"/\""
        ),
        "proxy" => line.sections.is_empty() && line.text.starts_with(ORIGIN),
        // Sections that ask for a module are gone when httpd has read them.
        _ => line.sections.is_empty(),
    });
    of_context.flat_map(move |line| match context {
        "proxy" => line.text.split_ascii_whitespace().skip(3).map(str::to_owned).collect(),
        _ => vec![line.text.to_owned()],
    })
}

/// Returns true if a directive, or a parameter of a worker, has this name, which may be several words.
fn is_named(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '=']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"LoadModule mpm_worker_module modules/mod_mpm_worker.so
# In file: /prefix/conf/httpd.conf
#  22:
KeepAliveTimeout 1500ms
MaxRequestWorkers 100
MaxRequestWorkers 150
AcceptFilter http none
AcceptFilter https none
<Directory "/">
  #  36:
  AllowOverride All
</Directory>
<Directory "/prefix/files">
  Options None
</Directory>
ProxyPass "/.weir/" "!"
ProxyPass "/" "http://127.0.0.1:1/" max=20 ttl=60 keepalive=on nocanon
SSLProtocol -all +TLSv1.2 +TLSv1.3
<VirtualHost 127.0.0.1:3>
  KeepAliveTimeout 9000ms
</VirtualHost>
"#;

    #[test]
    fn the_section_decides_and_the_last_counts() {
        let levels = read(TEXT.to_owned(), &Catalog::builtin(), None).levels;
        for (id, level) in [
            ("mpm", "worker"),
            ("keepalive_timeout", "1500ms"),
            ("max_request_workers", "150"),
            ("accept_filter", "none"),
            ("allow_override", "None"),
            ("follow_symlinks", "off"),
            ("proxy_max", "20"),
            ("proxy_ttl", "60s"),
            ("proxy_keepalive", "on"),
            ("keepalive", "on"),
            ("ssl_protocols", "TLSv1.2 TLSv1.3"),
        ] {
            assert_eq!(levels.get(id).map(String::as_str), Some(level), "{id}");
        }
        assert_eq!(levels.get("proxy_acquire"), None);
    }

    #[test]
    fn a_text_that_no_level_leads_to_stands_as_it_is() {
        let text = "CustomLog \"|/bin/cat\" common".to_owned();
        let levels = read(text, &Catalog::builtin(), None).levels;
        assert_eq!(levels["access_log"], "CustomLog \"|/bin/cat\" common");
    }

    #[test]
    fn the_mpm_is_the_module_of_that_name() {
        let words = "Loaded Modules:\n core_module (static)\n mpm_prefork_module (shared)\n";
        assert_eq!(mpm_in(words), Some("prefork"));
        assert_eq!(mpm_in("Syntax OK"), None);
    }
}
