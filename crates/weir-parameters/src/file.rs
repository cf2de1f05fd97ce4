//! Files of rows and their checks: of each row by itself, and of all rows together.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use weir_model::study::ProxyKind;

use crate::constraint::{Clients, Rule};
use crate::level::LevelKind;
use crate::quantity::{DEEPEST, Quantities};
use crate::row::{EffectiveFrom, Parameter, Scope};
use crate::spelling::Spelling;
use crate::template;

/// Placeholder for the arm's log folder, the only one besides the level that a template may hold.
const LOGS: &str = "{logs}";

/// Key in [`Rows::lines`] for all other contexts.
pub(crate) const OTHER: &str = "other";

/// One file of rows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rows {
    /// Name of the file in errors.
    #[serde(skip)]
    pub(crate) file: String,
    /// Proxy whose directives the rows of scope `proxy_directive` are. Rows of the kernel and of limits go with every
    /// proxy.
    #[serde(default)]
    pub(crate) proxy: Option<ProxyKind>,
    /// Blocks of the proxy's configuration that rows may name, each with a description. A user's file may name those
    /// that the proxy's own file declares.
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, String>,
    /// Description of the output in which the proxy's effective configuration is read.
    #[serde(default)]
    pub(crate) asked: Option<String>,
    /// Templates that show a piece of the proxy's configuration, by context: `{context} { {text}; }`. [`OTHER`] is for
    /// all contexts that are not listed.
    #[serde(default)]
    pub(crate) lines: BTreeMap<String, String>,
    /// Version of the program or the kernel that the rows were tried with. For people only.
    #[serde(default)]
    #[allow(dead_code, reason = "part of the file format; read by people")]
    tried_with: Option<String>,
    /// Setting with the number of workers, for a proxy that has no `clients`.
    #[serde(default)]
    pub(crate) workers: Option<String>,
    #[serde(default)]
    pub(crate) clients: Option<Clients>,
    #[serde(default)]
    pub(crate) quantities: Quantities,
    pub(crate) parameters: Vec<Parameter>,
}

/// An error in a file of rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// The file is not YAML, or not the YAML of a catalog.
    #[error("{file}: {message}")]
    Malformed {
        /// Name of the file.
        file: String,
        /// Message of the YAML reader.
        message: String,
    },
    /// A row, or a quantity, contradicts itself or another.
    #[error("{file}: row `{id}`: {message}")]
    Row {
        /// Name of the file.
        file: String,
        /// Id of the row, or name of the quantity.
        id: String,
        /// Description of the error.
        message: String,
    },
}

impl Rows {
    /// Parses one file. [`check`] checks all files together.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Rows, CatalogError> {
        let rows: Rows = serde_saphyr::from_str(text).map_err(|e| CatalogError::Malformed {
            file: file.to_owned(),
            message: e.to_string(),
        })?;
        Ok(Rows { file: file.to_owned(), ..rows })
    }

    fn refuse(&self, id: &str, message: impl Into<String>) -> CatalogError {
        CatalogError::Row { file: self.file.clone(), id: id.to_owned(), message: message.into() }
    }
}

/// Checks what serde cannot see: rows that contradict themselves or name something that does not exist. Rows of one
/// proxy and rows that go with every proxy share one name space.
pub(crate) fn check(files: &[Rows]) -> Result<(), CatalogError> {
    let mut all = All::default();
    for rows in files {
        let contexts = all.contexts.entry(rows.proxy).or_default();
        contexts.extend(rows.contexts.keys().map(String::as_str));
        for row in &rows.parameters {
            // What goes with every proxy is there for each of them, whichever file it stands in.
            let proxy = rows.proxy.filter(|_| row.scope.is_configuration());
            if !all.add(proxy, row) {
                return Err(rows.refuse(&row.id, "the id is there twice"));
            }
        }
        for (name, quantity) in &rows.quantities {
            if all.quantities.insert(name.clone(), quantity.clone()).is_some() {
                return Err(rows.refuse(name, "the quantity is there twice"));
            }
        }
    }
    for rows in files {
        for id in rows.clients.iter().flat_map(Clients::settings) {
            if all.get(rows.proxy, id).is_none() {
                return Err(rows.refuse(id, "`clients` names it, and it is not there"));
            }
        }
        for name in rows.quantities.keys() {
            all.check_quantity(name).map_err(|why| rows.refuse(name, why))?;
        }
        for row in &rows.parameters {
            let checked = check_scope(row, rows.proxy)
                .and_then(|()| check_spellings(row))
                .and_then(|()| all.check_writes(row, rows.proxy))
                .and_then(|()| all.check_row(row, rows.proxy));
            checked.map_err(|why| rows.refuse(&row.id, why))?;
        }
    }
    Ok(())
}

/// Rows, contexts and quantities of all files by name.
#[derive(Default)]
struct All<'a> {
    /// Rows by id. Rows of several proxies may have the same id.
    rows: BTreeMap<&'a str, Vec<(Option<ProxyKind>, &'a Parameter)>>,
    contexts: BTreeMap<Option<ProxyKind>, BTreeSet<&'a str>>,
    quantities: Quantities,
}

impl<'a> All<'a> {
    /// Adds a row. Returns false if a row with this id exists already.
    fn add(&mut self, of: Option<ProxyKind>, row: &'a Parameter) -> bool {
        let same = self.rows.entry(&row.id).or_default();
        let is_free = same.iter().all(|(other, _)| of.is_some() && other.is_some() && *other != of);
        same.push((of, row));
        is_free
    }

    /// Returns the row that an id means in a proxy's file. For rows that go with every proxy (`None`), the row may be
    /// any proxy's.
    fn get(&self, of: Option<ProxyKind>, id: &str) -> Option<&'a Parameter> {
        self.rows
            .get(id)?
            .iter()
            .find(|(other, _)| of.is_none() || other.is_none() || *other == of)
            .map(|(_, row)| *row)
    }

    fn check_row(&self, row: &Parameter, of: Option<ProxyKind>) -> Result<(), String> {
        let defaults = row.default.all().iter().filter_map(|d| d.level.as_ref());
        let off = row.shows.iter().flat_map(|shows| &shows.off);
        let written = row.writes.iter().flat_map(|w| w.only.iter().chain(&w.except)).chain(off);
        let spelled = row
            .controllers
            .values()
            .flat_map(Spelling::all)
            .flat_map(|c| c.values.keys().chain(&c.except));
        let levels = defaults.chain(&row.debian).chain(written).chain(spelled);
        check_levels(row, levels)?;
        if let EffectiveFrom::Transport { bypassed } = &row.effective {
            check_levels(row, bypassed.keys())?;
        }
        if let Some(name) = &row.quantity
            && !self.quantities.contains_key(name)
        {
            return Err(format!("it controls `{name}`, which is no quantity here"));
        }
        for constraint in &row.constraints {
            check_levels(row, &constraint.only)?;
            let (settings, levels): ([Option<&String>; 2], &[String]) = match &constraint.rule {
                Rule::AtMost { setting, or, .. } => ([Some(setting), or.as_ref()], &[]),
                Rule::AtLeast { setting } => ([Some(setting), None], &[]),
                Rule::NotWith { setting, levels } => ([Some(setting), None], levels),
                Rule::OnlyRole(_) => continue,
            };
            for setting in settings.into_iter().flatten() {
                let other_row = self
                    .get(of, setting)
                    .ok_or_else(|| format!("a constraint names `{setting}`, which is not there"))?;
                check_levels(other_row, levels)?;
            }
        }
        Ok(())
    }

    /// Checks that each text is one directive, or one value, in a declared context, and that only directives have
    /// texts.
    fn check_writes(&self, row: &Parameter, of: Option<ProxyKind>) -> Result<(), String> {
        if row.scope.is_configuration() == row.writes.is_empty() {
            return Err(if row.scope.is_configuration() {
                "it has no `writes`: how does the proxy spell it?".to_owned()
            } else {
                "`writes` is for rows of scope `proxy_directive`".to_owned()
            });
        }
        for write in &row.writes {
            if let Some(unknown) = template::placeholders(&write.text)
                .find(|name| !template::LEVELS.contains(name) && *name != LOGS)
            {
                return Err(format!("`{unknown}` is no placeholder"));
            }
            if write.at.is_none() && write.text.contains([';', '\n']) {
                return Err(format!("`{}` is more than one directive", write.text));
            }
        }
        let read = match &row.effective {
            EffectiveFrom::Directive { context, .. } | EffectiveFrom::Value { context, .. } => {
                Some(context)
            }
            _ => None,
        };
        let declared = self.contexts.get(&of);
        for context in row.writes.iter().map(|write| &write.context).chain(read) {
            if !declared.is_some_and(|declared| declared.contains(context.name())) {
                return Err(format!(
                    "`{}` is none of the `contexts` of the proxy's file",
                    context.name()
                ));
            }
        }
        let pointers = row.writes.iter().filter_map(|write| write.at.as_deref());
        let read = match &row.effective {
            EffectiveFrom::Value { at, .. } => Some(&**at),
            _ => None,
        };
        match pointers.chain(read).find(|at| !at.starts_with('/')) {
            Some(at) => Err(format!("`{at}` is no JSON pointer: it begins with `/`")),
            None => Ok(()),
        }
    }

    fn check_quantity(&self, name: &str) -> Result<(), String> {
        if self.rows.contains_key(name) {
            return Err("a parameter has this name".to_owned());
        }
        self.check_members(name, DEEPEST)
    }

    fn check_members(&self, name: &str, deeper: usize) -> Result<(), String> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(format!("quantities within quantities, deeper than {DEEPEST}"));
        };
        for member in self.quantities[name].members() {
            if self.quantities.contains_key(member) {
                self.check_members(member, deeper)?;
            } else if !self.rows.contains_key(member.as_str()) {
                return Err(format!("it is made of `{member}`, which is not there"));
            }
        }
        Ok(())
    }
}

/// Checks that a controller's spelling has no placeholders but those of the level, and is JSON if it says so.
fn check_spellings(row: &Parameter) -> Result<(), String> {
    for spelling in row.controllers.values().flat_map(Spelling::all).filter(|of| of.json) {
        let mut texts = spelling.values.values();
        if let Some(text) =
            texts.find(|text| serde_json::from_str::<serde_json::Value>(text).is_err())
        {
            return Err(format!("`{text}` is to be JSON (`json: true`) and is not"));
        }
    }
    let texts = row.controllers.values().flat_map(Spelling::all).filter_map(|of| of.text.as_ref());
    let mut names = texts.flat_map(|text| template::placeholders(text));
    match names.find(|name| !template::LEVELS.contains(name)) {
        Some(unknown) => Err(format!("`{unknown}` is no placeholder")),
        None => Ok(()),
    }
}

/// Checks that a row has what its scope requires and nothing that its scope excludes.
fn check_scope(row: &Parameter, proxy: Option<ProxyKind>) -> Result<(), String> {
    if row.scope.is_kernel() {
        let EffectiveFrom::Sysctl { name } = &row.effective else {
            return Err("a kernel parameter is read as `effective: {sysctl: {name}}`".to_owned());
        };
        // A sysctl may be named after an interface; nothing here can climb out of /proc/sys.
        if ![&row.id, name]
            .into_iter()
            .all(|name| is_dotted(name, |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c)))
        {
            return Err("a sysctl's name is words with dots between them, as sysctl(8) has it, \
                        such as `net.core.somaxconn`"
                .to_owned());
        }
        if row.scope == Scope::KernelNetns && !name.starts_with("net.") {
            return Err("only `net.` belongs to a network namespace: the scope of this is \
                        `kernel_host`"
                .to_owned());
        }
        return check_kernel_level(row);
    }
    if row.id.is_empty()
        || !row.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    {
        return Err("an id has lower-case letters, digits and `_` only".to_owned());
    }
    match (&row.effective, row.scope) {
        (EffectiveFrom::Sysctl { .. }, _) => {
            Err("a sysctl has the scope `kernel_netns` or `kernel_host`".to_owned())
        }
        (_, Scope::ProxyDirective) if proxy.is_none() => {
            Err("whose directive is it? Write `proxy: nginx` at the head of the file".to_owned())
        }
        (EffectiveFrom::ProcessLimit { .. }, Scope::ProcessLaunch)
            if !matches!(row.level, LevelKind::Integer { .. }) =>
        {
            Err("the level of a limit is an `integer`".to_owned())
        }
        (EffectiveFrom::ProcessLimit { .. }, Scope::ProcessLaunch)
        | (EffectiveFrom::Launcher, Scope::ProcessLaunch)
        | (EffectiveFrom::CpuSet, Scope::CpuSet)
        | (EffectiveFrom::Transport { .. }, Scope::Transport) => Ok(()),
        (EffectiveFrom::Workload(place), Scope::Workload) => place.check(),
        (EffectiveFrom::Workload(_), _) | (_, Scope::Workload) => {
            Err("the scope `workload` and `effective: {workload: ...}` go together".to_owned())
        }
        (EffectiveFrom::Launcher | EffectiveFrom::CpuSet | EffectiveFrom::Transport { .. }, _)
        | (_, Scope::CpuSet | Scope::Transport) => Err(
            "`launcher`, `cpus` and `transport` are weir's own: a file of rows cannot add another"
                .to_owned(),
        ),
        (_, Scope::ProcessLaunch) => {
            Err("a limit is read as `effective: {process_limit: {name}}`".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_dotted(name: &str, fit: impl Fn(char) -> bool) -> bool {
    let mut words = name.split('.');
    name.contains('.') && words.all(|word| !word.is_empty() && word.chars().all(&fit))
}

/// Checks that a kernel parameter has a kind of level that is written as it stands, without units.
fn check_kernel_level(row: &Parameter) -> Result<(), String> {
    match row.level {
        LevelKind::Integer { .. }
        | LevelKind::Integers { .. }
        | LevelKind::Ports
        | LevelKind::Choice(_) => Ok(()),
        _ => Err("the level of a kernel parameter is `integer`, `integers`, `choice` or `ports`: \
                  the kernel knows no units"
            .to_owned()),
    }
}

/// Checks that levels in rows are canonical, because they are compared as text.
fn check_levels<'a>(
    row: &Parameter,
    levels: impl IntoIterator<Item = &'a String>,
) -> Result<(), String> {
    for level in levels {
        let canonical = row.check(level).map_err(|e| e.to_string())?;
        if canonical != *level {
            return Err(format!("`{level}` must be written `{canonical}`"));
        }
    }
    Ok(())
}
