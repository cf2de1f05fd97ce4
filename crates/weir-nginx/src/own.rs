//! A copy of a user's nginx.conf.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_configuration::{
    ConfigurationError, RequestOutcome, ShownCertificate, Source, SourceFile, Surroundings,
    WantedSetting,
};
use weir_model::record::ReplacedRecord;
use weir_model::study::{AskSpec, HOST, RequestedSpec};
use weir_probe::process::command_line;
use weir_sut::configuration::Configuration;
use weir_sut::own::Copying;
use weir_sut::proxy::Started;
use weir_sut::route_match::{RequestRoute, RouteMatch};
use weir_sut::user::{Id, WorkerUser};
use weir_sut::{Language, SutError, Task, UserConfiguration};

use super::Nginx;
use super::configuration::{USERS, workers_of};
use crate::language::{Plain, adapt, asked, certificates, change, expanded, read, replaced};

/// Name that messages use for the output of an nginx elsewhere.
const PRINTED: &str = "nginx -T";

pub(super) fn write(
    nginx: &Nginx,
    task: &Task<'_>,
    own: UserConfiguration<'_>,
) -> Result<Configuration, SutError> {
    let [user, changed] = nginx.read(own.file, &task.wanted()?)?;
    let tree = expanded(&changed)?;
    let names = arguments(&tree, "user");
    // Without a group it is the one that is called as the user is (`ngx_set_user`).
    let names = [names.first(), names.last()];
    let [named, group] = names.map(|name| name.map(|name| Id::Name(name)));
    let workers_user = WorkerUser::named(named, group, &USERS);
    let user_of_workers = workers_user.as_ref();
    let copying = Copying::begin(task, own, [user, changed], user_of_workers)?;
    if let Some(user) = user_of_workers {
        user.must_reach(copying.configuration.prefix())?;
    }
    let surroundings = copying.surroundings(user_of_workers);
    let copy = nginx.adapt(copying.changed(), &surroundings)?;
    let configuration = copying.finish(nginx, copy, None)?;
    Ok(Configuration {
        error_log: Some("logs/error.log".into()),
        workers: workers(&tree),
        shares_port: shares_port(&tree),
        ..configuration
    })
}

/// Finds the blocks that a load reaches in the output of `nginx -T`: the server of its host, and the location of its
/// path. Included files stand behind the main file there, and have no servers if a controller writes the main file as a
/// whole.
pub(super) fn match_route(text: &str, meeting: &RequestRoute) -> Result<RouteMatch, SutError> {
    let file = SourceFile { path: PRINTED.into(), text: text.to_owned() };
    let source = Source { files: vec![file], base: PathBuf::new(), includes: BTreeMap::new() };
    let request = RequestedSpec { target: meeting.target.clone(), ..RequestedSpec::default() };
    let ask = AskSpec {
        tls: meeting.is_secure,
        certified: true,
        host: (meeting.host != HOST).then(|| meeting.host.clone()),
        requests: vec![request],
        ..AskSpec::default()
    };
    let route_match =
        asked(&source, &ask, "")?.first().map(|asked| RouteMatch::of(meeting.at, asked));
    Ok(route_match.unwrap_or_else(|| RouteMatch::at(meeting.at, meeting.is_secure)))
}

impl Language for Nginx {
    fn read(&self, main: &Path, wanted: &[WantedSetting<'_>]) -> Result<[Source; 2], SutError> {
        let user = read(main, None)?;
        let changed = change(&user, wanted)?;
        Ok([user, changed])
    }

    fn look_up(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<RequestOutcome>, ConfigurationError> {
        asked(source, ask, &self.installed.version_output)
    }

    fn replaced(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
        replaced(source, ask, &self.installed.version_output)
    }

    fn certificates(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ShownCertificate>, ConfigurationError> {
        certificates(source, ask, &self.installed.version_output)
    }

    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError> {
        adapt(source, surroundings, &self.installed.version_output)
    }
}

/// Returns the arguments of the first directive of a name outside all blocks.
fn arguments<'t>(tree: &'t [Plain], name: &str) -> &'t [String] {
    tree.iter()
        .find(|directive| directive.name == name)
        .map_or(&[], |directive| &directive.arguments)
}

/// Returns the first argument of the first directive of a name outside all blocks.
fn first_argument<'t>(tree: &'t [Plain], name: &str) -> Option<&'t str> {
    arguments(tree, name).first().map(String::as_str)
}

/// Returns the number of workers in a configuration; 0 if the only process does the work itself.
pub(super) fn workers(tree: &[Plain]) -> usize {
    match (first_argument(tree, "master_process"), first_argument(tree, "worker_processes")) {
        (Some("off"), _) => 0,
        (_, level) => level.map_or(1, workers_of),
    }
}

/// Returns true if a listener has SO_REUSEPORT.
pub(super) fn shares_port(tree: &[Plain]) -> bool {
    tree.iter().any(|directive| {
        let mut flags = directive.arguments.iter();
        let is_shared = directive.name == "listen" && flags.any(|flag| flag == "reuseport");
        is_shared || directive.block.as_deref().is_some_and(shares_port)
    })
}

/// Does the same as [`Started::has_workers`] if cache processes may run beside the workers. Every process must have set
/// its title.
pub(super) fn has_workers(started: &Started<'_>) -> bool {
    let running = started.proxy;
    // What it was started through, and what that started besides, are none of nginx's.
    let titles: Vec<String> = running
        .below()
        .into_iter()
        .filter_map(|pid| command_line(pid).ok())
        .filter(|title| title.starts_with("nginx: "))
        .collect();
    // Until it has said what it is a process looks like the one that it came from.
    let unsaid = titles.iter().filter(|title| is_master_title(title)).count();
    let is_main = command_line(running.find_main()).is_ok_and(|title| is_master_title(&title));
    let workers = titles.iter().filter(|title| title.contains("worker process"));
    let there = workers.count();
    let is_said = unsaid == usize::from(!is_main);
    started.configuration.workers == 0 || (is_said && started.has_enough(there))
}

fn is_master_title(title: &str) -> bool {
    title.starts_with("nginx: master process")
}

/// Returns true if a process reads the content of a cache on the disk, and ends afterwards.
pub(super) fn is_cache_loader(pid: u32) -> bool {
    command_line(pid).is_ok_and(|line| line.contains("cache loader process"))
}

/// Reads the directives of a copy that was written.
pub(super) fn tree(configuration: &Configuration) -> Result<Vec<Plain>, SutError> {
    Ok(expanded(&read(&configuration.file(), None)?)?)
}
