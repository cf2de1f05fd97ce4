//! The catalog: rows of proxies and of the kernel, and methods that answer questions about whole settings.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use weir_model::record::Inert;
use weir_model::study::{ProxyKind, ProxyRole, Settings};

use crate::constraint::{ClientLimits, Clients, Conflict, Facts, Means, Unsaid};
use crate::file::{CatalogError, OTHER, Rows, check};
use crate::quantity::{self, Quantities, Quantity};
use crate::row::{Context, EffectiveFrom, Hop, Parameter, Scope};
use crate::scoped::Scoped;

/// Expands to the name of a file in `parameters/` and its text.
macro_rules! builtin {
    ($name:expr) => {
        (
            concat!("parameters/", $name, ".yaml"),
            include_str!(concat!("../../../parameters/", $name, ".yaml")),
        )
    };
}

/// Built-in files of rows by name: one for each proxy, and those of the parameters that every proxy has.
macro_rules! builtin_files {
    ($($variant:ident $name:ident $title:literal $files:literal;)*) => {
        &[$(builtin!(stringify!($name)),)* builtin!("kernel"), builtin!("process"), builtin!("workload")]
    };
}

const BUILTIN: &[(&str, &str)] = weir_model::proxies!(builtin_files);

/// All rows. Clones share them.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    shared: Arc<Shared>,
    /// Kernel release whose defaults apply. `None`: the newest release that the rows know.
    kernel: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Shared {
    files: Vec<Rows>,
    quantities: Quantities,
    /// Name and text of each user's file.
    user: Vec<(String, String)>,
}

impl Catalog {
    /// Returns the catalog of the rows that come with weir.
    pub fn builtin() -> Catalog {
        static READ: LazyLock<Catalog> = LazyLock::new(|| {
            Catalog::parse(BUILTIN)
                .expect("the embedded rows are data of this crate and its tests read them")
        });
        READ.clone()
    }

    /// Creates a catalog with the rows of these files alone, each a name and its text.
    ///
    /// # Errors
    /// Returns an error if a text is not a file of rows, or if a row contradicts itself or another.
    pub fn parse(files: &[(&str, &str)]) -> Result<Catalog, CatalogError> {
        let read = files.iter().map(|(file, text)| Rows::parse(file, text));
        Catalog::of(read.collect::<Result<_, _>>()?, Vec::new())
    }

    fn of(files: Vec<Rows>, user: Vec<(String, String)>) -> Result<Catalog, CatalogError> {
        check(&files)?;
        let quantities = files.iter().flat_map(|rows| rows.quantities.clone()).collect();
        Ok(Catalog { shared: Arc::new(Shared { files, quantities, user }), kernel: None })
    }

    /// Adds the rows of a user's file. `file` is its name in errors.
    ///
    /// # Errors
    /// Returns an error if the text is not a file of rows, or if a row contradicts itself or another, or has an id that
    /// exists already.
    pub fn with_rows(self, file: &str, text: &str) -> Result<Catalog, CatalogError> {
        let Shared { mut files, mut user, .. } = Arc::unwrap_or_clone(self.shared);
        files.push(Rows::parse(file, text)?);
        user.push((file.to_owned(), text.to_owned()));
        let kernel = self.kernel;
        Ok(Catalog { kernel, ..Catalog::of(files, user)? })
    }

    /// Returns the catalog with the defaults of the kernel of this release (uname(2)).
    #[must_use]
    pub fn for_kernel(self, release: &str) -> Catalog {
        Catalog { kernel: Some(release.to_owned()), ..self }
    }

    /// Returns the catalog with the defaults of this version of a proxy. `program` is the proxy's own version string
    /// (`nginx/1.22.1`).
    #[must_use]
    pub fn for_proxy(mut self, proxy: ProxyKind, program: &str) -> Catalog {
        let version = program.rsplit('/').next().unwrap_or_default();
        Arc::make_mut(&mut self.shared)
            .files
            .iter_mut()
            .filter(|rows| rows.proxy == Some(proxy))
            .flat_map(|rows| &mut rows.parameters)
            .filter(|row| row.scope.is_configuration())
            .for_each(|row| row.default = row.default.only(version));
        self
    }

    /// Returns names and texts of the users' files in the order in which they were added. Passed to
    /// [`Catalog::with_rows`], they make the same catalog elsewhere.
    pub fn user_rows(&self) -> &[(String, String)] {
        &self.shared.user
    }

    fn rows(&self, proxy: ProxyKind) -> impl Iterator<Item = &Rows> {
        self.shared.files.iter().filter(move |rows| rows.proxy == Some(proxy))
    }

    /// Returns the directives of `proxy`, in the order of the files.
    pub fn parameters(&self, proxy: ProxyKind) -> impl Iterator<Item = &Parameter> {
        self.rows(proxy)
            .flat_map(|rows| &rows.parameters)
            .filter(|row| row.scope.is_configuration())
    }

    /// Returns the parameters that go with every proxy (of the kernel and limits of processes), in the order of the
    /// files.
    pub fn host_parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.shared
            .files
            .iter()
            .flat_map(|rows| &rows.parameters)
            .filter(|row| row.scope.is_of_host())
    }

    /// Returns the parameters of the pods of a controller's proxy, the same for every proxy.
    pub fn workload_parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.shared
            .files
            .iter()
            .flat_map(|rows| &rows.parameters)
            .filter(|row| row.scope == Scope::Workload)
    }

    /// Returns the names of the kernel settings that have a row.
    pub fn sysctls(&self) -> impl Iterator<Item = String> {
        self.host_parameters().filter_map(|row| match &row.effective {
            EffectiveFrom::Sysctl { name } if row.scope.is_kernel() => Some(name.clone()),
            _ => None,
        })
    }

    /// Returns all parameters that can be set for `proxy`: its directives, then those that go with every proxy.
    pub fn all(&self, proxy: ProxyKind) -> impl Iterator<Item = &Parameter> {
        self.parameters(proxy).chain(self.host_parameters()).chain(self.workload_parameters())
    }

    /// Returns the row with this id.
    pub fn get(&self, proxy: ProxyKind, id: &str) -> Option<&Parameter> {
        self.all(proxy).find(|row| row.id == id)
    }

    /// Returns the scope of a parameter: the part of the system that a change of it reaches.
    pub fn scope(&self, proxy: ProxyKind, id: &str) -> Option<Scope> {
        self.get(proxy, id).map(|row| row.scope)
    }

    /// Returns the parameter that names the launcher of a proxy's process.
    pub fn launcher(&self) -> Option<&Parameter> {
        self.host_parameters().find(|row| row.effective == EffectiveFrom::Launcher)
    }

    /// Returns the parameter that is the number of a proxy's CPUs.
    pub fn cpus(&self) -> Option<&Parameter> {
        self.host_parameters().find(|row| row.effective == EffectiveFrom::CpuSet)
    }

    /// Returns the parameter that selects what carries an arm's bytes.
    pub fn transport(&self) -> Option<&Parameter> {
        self.host_parameters().find(|row| matches!(row.effective, EffectiveFrom::Transport { .. }))
    }

    /// Returns the name of the launcher that `settings` start a proxy through. `None` if they name none or the default.
    pub fn started_through<'a>(&self, settings: &'a Settings) -> Option<&'a str> {
        let row = self.launcher()?;
        let level = settings.get(&row.id)?;
        (Some(level) != row.default.newest().level.as_ref()).then_some(level)
    }

    /// Returns the hops on which the bytes of an arm with `settings` bypass the kernel's TCP.
    pub fn bypassed(&self, settings: &Settings) -> BTreeSet<Hop> {
        let row = self.transport();
        row.map_or_else(BTreeSet::new, |row| {
            row.bypassed(settings.get(&row.id).map(String::as_str))
        })
    }

    /// Returns the transport's id and its level that bypasses exactly these hops.
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

    /// Returns the id that was most likely meant by `id`, or `None` if no id is similar. The last word of a sysctl's
    /// name is enough.
    pub fn nearest(&self, proxy: ProxyKind, id: &str) -> Option<&str> {
        self.nearest_among(&[proxy], id)
    }

    /// Like [`Catalog::nearest`], among all parameters that can be set for any of `proxies`.
    pub fn nearest_among(&self, proxies: &[ProxyKind], id: &str) -> Option<&str> {
        let wanted = folded(id);
        proxies
            .iter()
            .flat_map(|proxy| self.all(*proxy))
            .filter_map(|row| Some((distance(&folded(&row.id), &wanted)?, &*row.id)))
            .min_by_key(|(distance, id)| (*distance, id.len()))
            .map(|(_, id)| id)
    }

    /// Returns the settings that Debian's package writes. Parameters that it leaves out have the program's default.
    pub fn stock(&self, proxy: ProxyKind) -> Settings {
        self.parameters(proxy)
            .filter_map(|row| Some((row.id.clone(), row.debian.clone()?)))
            .collect()
    }

    /// Returns the program's defaults: those of its version if that is known ([`Catalog::for_proxy`]), else those of
    /// the newest.
    pub fn defaults(&self, proxy: ProxyKind) -> Settings {
        self.parameters(proxy)
            .filter_map(|row| Some((row.id.clone(), row.default.newest().level.clone()?)))
            .collect()
    }

    /// Returns the kernel's defaults that are fixed levels: those of its release if that is known
    /// ([`Catalog::for_kernel`]), else those of the newest.
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

    /// Completes `settings` with the program's defaults. Two configurations are the same if their complete settings are
    /// equal.
    ///
    /// Defaults that depend on an unknown version ([`Catalog::for_proxy`]) are not filled in. Neither are the kernel's,
    /// because a host may have other values than its kernel came with; [`Catalog::inert`] finds the changes that have
    /// no effect there.
    pub fn complete(&self, proxy: ProxyKind, settings: &Settings) -> Settings {
        let mut complete: Settings = self
            .parameters(proxy)
            .filter_map(|row| Some((row.id.clone(), row.default.always()?.to_owned())))
            .collect();
        complete.extend(settings.clone());
        complete
    }

    /// Like [`Catalog::complete`], and fills in launcher and transport too. Two arms are the same if their complete
    /// settings are equal.
    pub fn complete_arm(&self, proxy: ProxyKind, settings: &Settings) -> Settings {
        self.complete_start(&self.complete(proxy, settings))
    }

    /// Completes `settings` with launcher and transport alone. The program's defaults are not assumed, because these
    /// arms are copies of a user's configuration, which may set anything. Two such arms are the same if their complete
    /// settings are equal.
    pub fn complete_start(&self, settings: &Settings) -> Settings {
        let mut complete: Settings = self
            .host_parameters()
            .filter(|row| {
                matches!(row.effective, EffectiveFrom::Launcher | EffectiveFrom::Transport { .. })
            })
            .filter_map(|row| Some((row.id.clone(), row.default.newest().level.clone()?)))
            .collect();
        complete.extend(settings.clone());
        complete
    }

    /// Splits `settings` by scope, that is by the component that applies them.
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

    /// Returns the `changes` of an arm that make no difference to the arm that it is compared with: the controlled
    /// value is the same in both, although the levels differ.
    ///
    /// `effective` and `against` hold the values read back from the two arms, by parameter id and by name of the
    /// quantity. Changes whose values are missing there are left out, because nothing is known of them.
    pub fn inert(
        &self,
        proxy: ProxyKind,
        changes: &Settings,
        effective: &Settings,
        against: &Settings,
    ) -> Vec<Inert> {
        let quantities = self.quantities_of(proxy);
        changes
            .iter()
            .filter_map(|(id, level)| Some((self.get(proxy, id)?, level)))
            .filter_map(|(row, level)| quantity::inert(row, level, effective, against, &quantities))
            .collect()
    }

    /// Returns the quantities of a proxy, without members that do not exist for it.
    fn quantities_of(&self, proxy: ProxyKind) -> Quantities {
        let all = &self.shared.quantities;
        all.iter()
            .map(|(name, quantity)| {
                let mut of_proxy = quantity.clone();
                for ids in [&mut of_proxy.smallest_of, &mut of_proxy.first_of] {
                    ids.retain(|id| all.contains_key(id) || self.get(proxy, id).is_some());
                }
                (name.clone(), of_proxy)
            })
            .collect()
    }

    /// Returns the blocks of a proxy's configuration that rows may name, each with a description.
    pub fn contexts(&self, proxy: ProxyKind) -> impl Iterator<Item = (&str, &str)> {
        self.rows(proxy)
            .flat_map(|rows| &rows.contexts)
            .map(|(name, words)| (name.as_str(), words.as_str()))
    }

    /// Returns a description of the output in which a proxy's effective configuration is read, such as "what nginx -T
    /// prints".
    pub fn asked(&self, proxy: ProxyKind) -> &str {
        self.rows(proxy)
            .find_map(|rows| rows.asked.as_deref())
            .unwrap_or("nothing: it is not asked")
    }

    /// Formats a piece of a proxy's configuration as a line for people: `http { gzip on; }`.
    pub fn line(&self, proxy: ProxyKind, context: &Context, text: &str) -> String {
        let line = [context.name(), OTHER]
            .into_iter()
            .find_map(|name| self.rows(proxy).find_map(|rows| rows.lines.get(name)));
        line.map_or("{context}: {text}", String::as_str)
            .replace("{context}", context.name())
            .replace("{text}", text)
    }

    /// Returns the conflicts of `settings` with each other and with the values of unset parameters, which `unsaid`
    /// decides. Constraints of parameters that are not in `settings` are not checked.
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
                row.constraints
                    .iter()
                    .filter_map(|constraint| constraint.conflict(row, level, &facts))
            })
            .collect()
    }

    /// Returns false if a parameter has no effect with these settings or in this role, whatever its level.
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

    /// Returns the number of workers of a proxy with `settings`. `None` if it is no number (`auto`) or the catalog has
    /// no setting for it.
    pub fn workers(&self, proxy: ProxyKind, settings: &Settings) -> Option<u64> {
        self.complete(proxy, settings).get(self.workers_id(proxy)?)?.parse().ok()
    }

    /// Returns the setting with the number of workers of a proxy; `None` if the catalog has none.
    pub fn workers_id(&self, proxy: ProxyKind) -> Option<&str> {
        self.rows(proxy).find_map(|rows| {
            let clients = rows.clients.as_ref().map(|clients| &clients.workers);
            rows.workers.as_ref().or(clients).map(String::as_str)
        })
    }

    /// Returns the number of clients that a proxy with `settings` can serve at once. `None` if the catalog cannot tell.
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

/// Normalizes an id for comparison: `-` becomes `_`, and a path below /proc/sys gets dots.
fn folded(id: &str) -> String {
    let id = id.strip_prefix("/proc/sys/").unwrap_or(id).replace('-', "_");
    id.replace('/', ".").to_ascii_lowercase()
}

/// Returns the edit distance between an id and `wanted`, both folded. `None` if it is too large for `wanted` to mean
/// this id.
fn distance(id: &str, wanted: &str) -> Option<usize> {
    // `nofile` for `rlimit_nofile`: the end of a name is as good as all of it.
    let is_end =
        wanted.len() >= 4 && id.strip_suffix(wanted).is_some_and(|rest| rest.ends_with(['_', '.']));
    // By the last word alone it is a little less sure.
    let by_last_word = near_distance(last_word(id), last_word(wanted)).map(|distance| distance + 1);
    let all = [near_distance(id, wanted), by_last_word, is_end.then_some(1)];
    all.into_iter().flatten().min()
}

fn near_distance(id: &str, wanted: &str) -> Option<usize> {
    let distance = strsim::damerau_levenshtein(id, wanted);
    (distance <= id.len().div_ceil(3)).then_some(distance)
}

fn last_word(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}
