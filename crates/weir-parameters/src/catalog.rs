//! The catalog itself: rows of proxies and of the kernel, and questions about whole settings.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use weir_model::record::Inert;
use weir_model::study::{ProxyKind, ProxyRole, Settings};

use crate::constraint::{ClientLimits, Clients, Conflict, Facts, Means, Unsaid};
use crate::file::{CatalogError, OTHER, Rows, check};
use crate::quantity::{self, Quantities, Quantity};
use crate::row::{Context, EffectiveFrom, Hop, Parameter, Scope};
use crate::scoped::Scoped;

/// The name of a file in `parameters/`, and its text.
macro_rules! builtin {
    ($name:expr) => {
        (
            concat!("parameters/", $name, ".yaml"),
            include_str!(concat!("../../../parameters/", $name, ".yaml")),
        )
    };
}

/// Files of rows that come with weir, by name: one for each proxy, and what goes with every proxy.
macro_rules! builtin_files {
    ($($variant:ident $name:ident $title:literal $files:literal;)*) => {
        &[$(builtin!(stringify!($name)),)* builtin!("kernel"), builtin!("process"), builtin!("workload")]
    };
}

const BUILTIN: &[(&str, &str)] = weir_model::proxies!(builtin_files);

/// All rows. A clone shares them.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    shared: Arc<Shared>,
    /// Release of the kernel whose defaults count; `None`: the newest that the rows know.
    kernel: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Shared {
    files: Vec<Rows>,
    quantities: Quantities,
    /// Users' files: name and text.
    user: Vec<(String, String)>,
}

impl Catalog {
    /// The rows that come with weir.
    pub fn builtin() -> Catalog {
        static READ: LazyLock<Catalog> = LazyLock::new(|| {
            Catalog::parse(BUILTIN)
                .expect("the embedded rows are data of this crate and its tests read them")
        });
        READ.clone()
    }

    /// A catalog with the rows of some files, each a name and its text, and of no others.
    ///
    /// # Errors
    /// A text is no file of rows, or a row contradicts itself or another.
    pub fn parse(files: &[(&str, &str)]) -> Result<Catalog, CatalogError> {
        let read = files.iter().map(|(file, text)| Rows::parse(file, text));
        Catalog::of(read.collect::<Result<_, _>>()?, Vec::new())
    }

    fn of(files: Vec<Rows>, user: Vec<(String, String)>) -> Result<Catalog, CatalogError> {
        check(&files)?;
        let quantities = files.iter().flat_map(|rows| rows.quantities.clone());
        let quantities = quantities.collect();
        Ok(Catalog {
            shared: Arc::new(Shared {
                files,
                quantities,
                user,
            }),
            kernel: None,
        })
    }

    /// The same catalog with the rows of a user's file. `file` is what errors call it.
    ///
    /// # Errors
    /// The text is no file of rows, or a row contradicts itself or another, or has an id that there
    /// is already.
    pub fn with_rows(self, file: &str, text: &str) -> Result<Catalog, CatalogError> {
        let Shared {
            mut files,
            mut user,
            ..
        } = Arc::unwrap_or_clone(self.shared);
        files.push(Rows::parse(file, text)?);
        user.push((file.to_owned(), text.to_owned()));
        let kernel = self.kernel;
        Ok(Catalog {
            kernel,
            ..Catalog::of(files, user)?
        })
    }

    /// The same catalog with the defaults of this kernel, by its release (uname(2)).
    #[must_use]
    pub fn for_kernel(self, release: &str) -> Catalog {
        Catalog {
            kernel: Some(release.to_owned()),
            ..self
        }
    }

    /// The same catalog with the defaults of this version of a proxy, as it names itself
    /// (`nginx/1.22.1`).
    #[must_use]
    pub fn for_proxy(mut self, proxy: ProxyKind, program: &str) -> Catalog {
        let version = program.rsplit('/').next().unwrap_or_default();
        let files = Arc::make_mut(&mut self.shared).files.iter_mut();
        let rows = files
            .filter(|rows| rows.proxy == Some(proxy))
            .flat_map(|rows| &mut rows.parameters);
        rows.filter(|row| row.scope.is_configuration())
            .for_each(|row| row.default = row.default.only(version));
        self
    }

    /// Names and texts of the users' files, in the order in which they were added: with
    /// [`Catalog::with_rows`] they make the same catalog elsewhere.
    pub fn user_rows(&self) -> &[(String, String)] {
        &self.shared.user
    }

    fn rows(&self, proxy: ProxyKind) -> impl Iterator<Item = &Rows> {
        let of_proxy = move |rows: &&Rows| rows.proxy == Some(proxy);
        self.shared.files.iter().filter(of_proxy)
    }

    /// The directives of `proxy`, in the order of the files.
    pub fn parameters(&self, proxy: ProxyKind) -> impl Iterator<Item = &Parameter> {
        let rows = self.rows(proxy).flat_map(|rows| &rows.parameters);
        rows.filter(|row| row.scope.is_configuration())
    }

    /// What goes with every proxy, the kernel's parameters and the limits of processes, in the order
    /// of the files.
    pub fn host_parameters(&self) -> impl Iterator<Item = &Parameter> {
        let rows = self.shared.files.iter().flat_map(|rows| &rows.parameters);
        rows.filter(|row| row.scope.is_of_host())
    }

    /// What the pods of a controller's proxy have, with every proxy.
    pub fn workload_parameters(&self) -> impl Iterator<Item = &Parameter> {
        let rows = self.shared.files.iter().flat_map(|rows| &rows.parameters);
        rows.filter(|row| row.scope == Scope::Workload)
    }

    /// Names of the kernel settings that have a row.
    pub fn sysctls(&self) -> impl Iterator<Item = String> {
        self.host_parameters()
            .filter_map(|row| match &row.effective {
                EffectiveFrom::Sysctl { name } if row.scope.is_kernel() => Some(name.clone()),
                _ => None,
            })
    }

    /// All that can be set for `proxy`: its directives, then what goes with every proxy.
    pub fn all(&self, proxy: ProxyKind) -> impl Iterator<Item = &Parameter> {
        let rows = self.parameters(proxy).chain(self.host_parameters());
        rows.chain(self.workload_parameters())
    }

    /// The row with this id.
    pub fn get(&self, proxy: ProxyKind, id: &str) -> Option<&Parameter> {
        self.all(proxy).find(|row| row.id == id)
    }

    /// What a change of a parameter reaches.
    pub fn scope(&self, proxy: ProxyKind, id: &str) -> Option<Scope> {
        self.get(proxy, id).map(|row| row.scope)
    }

    /// The parameter that says what a proxy's process is started through.
    pub fn launcher(&self) -> Option<&Parameter> {
        let is_it = |row: &&Parameter| row.effective == EffectiveFrom::Launcher;
        self.host_parameters().find(is_it)
    }

    /// The parameter that says what carries an arm's bytes.
    pub fn transport(&self) -> Option<&Parameter> {
        let is_it = |row: &&Parameter| matches!(row.effective, EffectiveFrom::Transport { .. });
        self.host_parameters().find(is_it)
    }

    /// Name of the launcher that `settings` start a proxy through, where they name one.
    pub fn started_through<'a>(&self, settings: &'a Settings) -> Option<&'a str> {
        let row = self.launcher()?;
        let level = settings.get(&row.id)?;
        (Some(level) != row.default.newest().level.as_ref()).then_some(level)
    }

    /// Hops on which `settings` have an arm's bytes go past the kernel's TCP.
    pub fn bypassed(&self, settings: &Settings) -> BTreeSet<Hop> {
        let row = self.transport();
        row.map_or_else(BTreeSet::new, |row| {
            row.bypassed(settings.get(&row.id).map(String::as_str))
        })
    }

    /// The transport's id and its level that bypasses exactly these hops.
    pub fn level_bypassing(&self, hops: &BTreeSet<Hop>) -> Option<(&str, String)> {
        let row = self.transport()?;
        let mut levels = row.level.words();
        let level = levels.find(|level| row.bypassed(Some(level)) == *hops)?;
        Some((&row.id, level.to_owned()))
    }

    /// All quantities, by name.
    pub fn quantities(&self) -> impl Iterator<Item = (&String, &Quantity)> {
        self.shared.quantities.iter()
    }

    /// The quantity with this name.
    pub fn quantity(&self, name: &str) -> Option<&Quantity> {
        self.shared.quantities.get(name)
    }

    /// The id that somebody who wrote `id` most likely meant, if any comes near. The last word of a
    /// sysctl's name is enough.
    pub fn nearest(&self, proxy: ProxyKind, id: &str) -> Option<&str> {
        self.nearest_among(&[proxy], id)
    }

    /// The same among what can be set for any of `proxies`.
    pub fn nearest_among(&self, proxies: &[ProxyKind], id: &str) -> Option<&str> {
        let wanted = folded(id);
        let rows = proxies.iter().flat_map(|proxy| self.all(*proxy));
        rows.filter_map(|row| Some((distance(&folded(&row.id), &wanted)?, &*row.id)))
            .min_by_key(|(distance, id)| (*distance, id.len()))
            .map(|(_, id)| id)
    }

    /// What Debian's package sets: only what it writes, the rest is the program's default.
    pub fn stock(&self, proxy: ProxyKind) -> Settings {
        let level = |row: &Parameter| Some((row.id.clone(), row.debian.clone()?));
        self.parameters(proxy).filter_map(level).collect()
    }

    /// What the program does when nobody sets anything: by its version ([`Catalog::for_proxy`]), else as
    /// the newest does.
    pub fn defaults(&self, proxy: ProxyKind) -> Settings {
        let level = |row: &Parameter| Some((row.id.clone(), row.default.newest().level.clone()?));
        self.parameters(proxy).filter_map(level).collect()
    }

    /// What the kernel does when nobody sets anything, where that is a fixed level: by its release
    /// ([`Catalog::for_kernel`]), else as the newest does.
    pub fn kernel_defaults(&self) -> Settings {
        let kernel = self.host_parameters().filter(|row| row.scope.is_kernel());
        kernel
            .filter_map(|row| {
                let default = match &self.kernel {
                    Some(release) => row.default.at(release),
                    None => row.default.newest(),
                };
                Some((row.id.clone(), default.level.clone()?))
            })
            .collect()
    }

    /// `settings` with the program's defaults for everything they leave out: two configurations are
    /// the same when these are equal. A default that depends on a version that nobody has said
    /// ([`Catalog::for_proxy`]) is not filled in, and the kernel's are not, because a host may have
    /// others than its kernel came with; [`Catalog::inert`] finds what changes nothing there.
    pub fn complete(&self, proxy: ProxyKind, settings: &Settings) -> Settings {
        let always = |row: &Parameter| Some((row.id.clone(), row.default.always()?.to_owned()));
        let mut complete: Settings = self.parameters(proxy).filter_map(always).collect();
        complete.extend(settings.clone());
        complete
    }

    /// The same with how a proxy is started and what carries its bytes, where nothing is said of it:
    /// two arms are the same when these are equal.
    pub fn complete_arm(&self, proxy: ProxyKind, settings: &Settings) -> Settings {
        self.complete_start(&self.complete(proxy, settings))
    }

    /// `settings` with how a proxy is started and what carries its bytes alone. Nothing is taken for
    /// the program's default: of arms that are copies of a user's configuration, which may say
    /// anything, two are the same when these are equal.
    pub fn complete_start(&self, settings: &Settings) -> Settings {
        let of_arm = |row: &&Parameter| {
            matches!(
                row.effective,
                EffectiveFrom::Launcher | EffectiveFrom::Transport { .. }
            )
        };
        let level = |row: &Parameter| Some((row.id.clone(), row.default.newest().level.clone()?));
        let rows = self.host_parameters().filter(of_arm);
        let mut complete: Settings = rows.filter_map(level).collect();
        complete.extend(settings.clone());
        complete
    }

    /// Shares `settings` out to those who put them into force.
    pub fn split(&self, proxy: ProxyKind, settings: &Settings) -> Scoped {
        let mut scoped = Scoped {
            launcher: self.started_through(settings).map(str::to_owned),
            bypassed: self.bypassed(settings),
            ..Scoped::default()
        };
        for (id, level) in settings {
            scoped.add(id, level, self.get(proxy, id));
        }
        scoped
    }

    /// Those of an arm's `changes` that change nothing against the arm it is compared with: what
    /// their rows control has the same value in both, although the levels differ.
    ///
    /// `effective` and `against` are what was read back of the two arms, by parameter id and by the
    /// name of the quantity. What is missing there is not known, and nothing is said of it.
    pub fn inert(
        &self,
        proxy: ProxyKind,
        changes: &Settings,
        effective: &Settings,
        against: &Settings,
    ) -> Vec<Inert> {
        let quantities = self.quantities_of(proxy);
        let rows = changes
            .iter()
            .filter_map(|(id, level)| Some((self.get(proxy, id)?, level)));
        rows.filter_map(|(row, level)| quantity::inert(row, level, effective, against, &quantities))
            .collect()
    }

    /// The quantities as a proxy has them: of the parameters that are there for it.
    fn quantities_of(&self, proxy: ProxyKind) -> Quantities {
        let all = &self.shared.quantities;
        let is_there = |id: &String| all.contains_key(id) || self.get(proxy, id).is_some();
        let of_proxy = |(name, quantity): (&String, &Quantity)| {
            let mut quantity = quantity.clone();
            quantity.smallest_of.retain(is_there);
            quantity.first_of.retain(is_there);
            (name.clone(), quantity)
        };
        all.iter().map(of_proxy).collect()
    }

    /// Blocks of a proxy's configuration that rows may name, and what each is, in words.
    pub fn contexts(&self, proxy: ProxyKind) -> impl Iterator<Item = (&str, &str)> {
        let contexts = self.rows(proxy).flat_map(|rows| &rows.contexts);
        contexts.map(|(name, words)| (name.as_str(), words.as_str()))
    }

    /// What a proxy is asked for its effective configuration, in words.
    pub fn asked(&self, proxy: ProxyKind) -> &str {
        let mut asked = self.rows(proxy).filter_map(|rows| rows.asked.as_deref());
        asked.next().unwrap_or("nothing: it is not asked")
    }

    /// A piece of a proxy's configuration as a line for people: `http { gzip on; }`.
    pub fn line(&self, proxy: ProxyKind, context: &Context, text: &str) -> String {
        let lines = || self.rows(proxy).map(|rows| &rows.lines);
        let own = lines().find_map(|lines| lines.get(context.name()));
        let line = own.or_else(|| lines().find_map(|lines| lines.get(OTHER)));
        line.map_or("{context}: {text}", String::as_str)
            .replace("{context}", context.name())
            .replace("{text}", text)
    }

    /// Settings that do not go together, among those in `settings` (the rules of parameters that
    /// are left out do not speak), and what holds where those say nothing.
    pub fn conflicts(
        &self,
        proxy: ProxyKind,
        settings: &Settings,
        role: &ProxyRole,
        unsaid: Unsaid,
    ) -> Vec<Conflict> {
        let (all, descriptor_limit) = match unsaid {
            Unsaid::Defaults { descriptor_limit } => {
                (self.complete(proxy, settings), Some(descriptor_limit))
            }
            Unsaid::Users => (settings.clone(), None),
        };
        let facts = Facts {
            settings: &all,
            kernel: &self.kernel_defaults(),
            role: role.into(),
            descriptor_limit,
        };
        let rows = self.all(proxy);
        rows.filter_map(|row| Some((row, settings.get(&row.id)?)))
            .flat_map(|(row, level)| {
                let constraints = row.constraints.iter();
                constraints.filter_map(|constraint| constraint.conflict(row, level, &facts))
            })
            .collect()
    }

    /// Returns false if a parameter has no effect beside these settings or in this role, whatever its level.
    pub fn has_effect(
        &self,
        proxy: ProxyKind,
        id: &str,
        settings: &Settings,
        role: &ProxyRole,
    ) -> bool {
        let rows = self.get(proxy, id).into_iter();
        !rows
            .flat_map(|row| &row.constraints)
            .any(|constraint| constraint.rules_out(settings, role.into()))
    }

    fn clients(&self, proxy: ProxyKind) -> Option<&Clients> {
        self.rows(proxy).find_map(|rows| rows.clients.as_ref())
    }

    /// How many workers a proxy with `settings` has, where they are a number; `None` for `auto` and
    /// where the catalog has no word on it.
    pub fn workers(&self, proxy: ProxyKind, settings: &Settings) -> Option<u64> {
        let of_file = |rows: &Rows| {
            let clients = rows.clients.as_ref().map(|clients| &clients.workers);
            rows.workers.as_ref().or(clients).cloned()
        };
        let id = self.rows(proxy).find_map(of_file)?;
        self.complete(proxy, settings).get(&id)?.parse().ok()
    }

    /// How many clients a proxy with `settings` can serve at once. `None` where the catalog has no word
    /// on it.
    pub fn client_limits(
        &self,
        proxy: ProxyKind,
        settings: &Settings,
        role: &ProxyRole,
        means: Means,
    ) -> Option<ClientLimits> {
        let complete = self.complete(proxy, settings);
        let clients = self.clients(proxy)?;
        clients.limits(&complete, role.into(), means)
    }
}

/// An id as it is compared with what somebody wrote: `-` as `_`, and a path below /proc/sys with
/// dots.
fn folded(id: &str) -> String {
    let id = id.strip_prefix("/proc/sys/").unwrap_or(id);
    id.replace('-', "_").replace('/', ".").to_ascii_lowercase()
}

/// How far `wanted` is from an id, both folded; `None`: too far to be meant.
fn distance(id: &str, wanted: &str) -> Option<usize> {
    let near = |id: &str, wanted: &str| {
        let distance = strsim::damerau_levenshtein(id, wanted);
        (distance <= id.len().div_ceil(3)).then_some(distance)
    };
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    // `nofile` for `rlimit_nofile`: the end of a name is as good as all of it.
    let is_end = wanted.len() >= 4
        && id
            .strip_suffix(wanted)
            .is_some_and(|rest| rest.ends_with(['_', '.']));
    // By the last word alone it is a little less sure.
    let by_last_word = near(&last(id), &last(wanted)).map(|distance| distance + 1);
    let all = [near(id, wanted), by_last_word, is_end.then_some(1)];
    all.into_iter().flatten().min()
}
