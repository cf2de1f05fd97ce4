//! The catalog itself: rows by proxy, and questions about whole settings.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_model::study::{ProxyKind, ProxyRole, Settings};

use crate::constraint::{ClientLimits, Clients, Conflict, DescriptorLimits, Rule};
use crate::row::Parameter;
use crate::template;

/// Files of rows that come with weir, by name.
const BUILTIN: [(&str, &str); 1] = [(
    "parameters/nginx.yaml",
    include_str!("../../../parameters/nginx.yaml"),
)];

/// Placeholders that a template may hold besides the level: folders of the arm.
const PLACEHOLDERS: [&str; 2] = [template::VALUE, "{logs}"];

/// All rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    proxies: Vec<Rows>,
}

/// One file of rows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    proxy: ProxyKind,
    /// Version of the program that the rows were tried with; for people.
    #[allow(dead_code, reason = "part of the file format; read by people")]
    tried_with: String,
    clients: Clients,
    parameters: Vec<Parameter>,
}

/// What is wrong with a file of rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// It is not YAML, or not the YAML of a catalog.
    #[error("{file}: {message}")]
    Malformed {
        /// Name of the file.
        file: String,
        /// What the reader said.
        message: String,
    },
    /// A row contradicts itself or another.
    #[error("{file}: row `{id}`: {message}")]
    Row {
        /// Name of the file.
        file: String,
        /// The row.
        id: String,
        /// What is wrong.
        message: String,
    },
}

impl Catalog {
    /// The rows that come with weir.
    pub fn builtin() -> Catalog {
        let proxies = BUILTIN
            .iter()
            .map(|(file, text)| Rows::parse(file, text))
            .collect::<Result<_, _>>()
            .expect("the embedded rows are data of this crate and its tests read them");
        Catalog { proxies }
    }

    /// A catalog with the rows of one file.
    ///
    /// # Errors
    /// The text is no file of rows, or a row contradicts itself or another.
    pub fn parse(file: &str, text: &str) -> Result<Catalog, CatalogError> {
        Ok(Catalog {
            proxies: vec![Rows::parse(file, text)?],
        })
    }

    fn rows(&self, proxy: ProxyKind) -> impl Iterator<Item = &Rows> {
        self.proxies.iter().filter(move |rows| rows.proxy == proxy)
    }

    /// The tunables of `proxy`, in the order of the file.
    pub fn parameters(&self, proxy: ProxyKind) -> impl Iterator<Item = &Parameter> {
        self.rows(proxy).flat_map(|rows| &rows.parameters)
    }

    /// The row with this id.
    pub fn get(&self, proxy: ProxyKind, id: &str) -> Option<&Parameter> {
        self.parameters(proxy).find(|row| row.id == id)
    }

    /// The id that somebody who wrote `id` most likely meant, if any comes near.
    pub fn nearest(&self, proxy: ProxyKind, id: &str) -> Option<&str> {
        let wanted = id.replace('-', "_").to_ascii_lowercase();
        self.parameters(proxy)
            .map(|row| (strsim::damerau_levenshtein(&row.id, &wanted), &*row.id))
            .filter(|(distance, id)| *distance <= id.len().div_ceil(3))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, id)| id)
    }

    /// What Debian's package sets: only what it writes, the rest is the program's default.
    pub fn stock(&self, proxy: ProxyKind) -> Settings {
        let level = |row: &Parameter| Some((row.id.clone(), row.debian.clone()?));
        self.parameters(proxy).filter_map(level).collect()
    }

    /// What the program does when nobody sets anything.
    pub fn defaults(&self, proxy: ProxyKind) -> Settings {
        let level = |row: &Parameter| Some((row.id.clone(), row.default.level.clone()?));
        self.parameters(proxy).filter_map(level).collect()
    }

    /// `settings` with the program's defaults for everything they leave out: two configurations are
    /// the same when these are equal.
    pub fn complete(&self, proxy: ProxyKind, settings: &Settings) -> Settings {
        let mut complete = self.defaults(proxy);
        complete.extend(settings.clone());
        complete
    }

    /// Settings that do not go together, among those in `settings` (the rules of parameters that
    /// are left out do not speak). `descriptor_limit` is the soft limit that the proxy inherits.
    pub fn conflicts(
        &self,
        proxy: ProxyKind,
        settings: &Settings,
        role: &ProxyRole,
        descriptor_limit: u64,
    ) -> Vec<Conflict> {
        let complete = self.complete(proxy, settings);
        let rows = self.parameters(proxy);
        rows.filter_map(|row| Some((row, settings.get(&row.id)?)))
            .flat_map(|(row, level)| {
                let complete = &complete;
                row.constraints.iter().filter_map(move |constraint| {
                    constraint.conflict(row, level, complete, role.into(), descriptor_limit)
                })
            })
            .collect()
    }

    /// How many workers a proxy with `settings` has, where they are a number; `None` for `auto` and
    /// where the catalog has no word on it.
    pub fn workers(&self, proxy: ProxyKind, settings: &Settings) -> Option<u64> {
        let complete = self.complete(proxy, settings);
        let workers = &self.rows(proxy).next()?.clients.workers;
        complete.get(workers)?.parse().ok()
    }

    /// How many clients a proxy with `settings` can serve at once beside `held` connections that ask
    /// nothing. `cpus_online` is what `auto` workers come to. `None` where the catalog has no word
    /// on it.
    pub fn client_limits(
        &self,
        proxy: ProxyKind,
        settings: &Settings,
        role: &ProxyRole,
        limits: DescriptorLimits,
        cpus_online: u64,
        held: u64,
    ) -> Option<ClientLimits> {
        let complete = self.complete(proxy, settings);
        let clients = &self.rows(proxy).next()?.clients;
        clients.limits(&complete, role.into(), limits, cpus_online, held)
    }
}

impl Rows {
    fn parse(file: &str, text: &str) -> Result<Rows, CatalogError> {
        let rows: Rows = serde_saphyr::from_str(text).map_err(|e| CatalogError::Malformed {
            file: file.to_owned(),
            message: e.to_string(),
        })?;
        rows.check(file)?;
        Ok(rows)
    }

    /// What serde cannot see: rows that contradict themselves or name what is not there.
    fn check(&self, file: &str) -> Result<(), CatalogError> {
        let mut by_id = BTreeMap::new();
        for row in &self.parameters {
            if by_id.insert(row.id.as_str(), row).is_some() {
                return Err(refuse(file, &row.id, "the id is there twice".to_owned()));
            }
        }
        let ids = [
            &self.clients.workers,
            &self.clients.connections,
            &self.clients.descriptors,
        ];
        for id in ids {
            if !by_id.contains_key(id.as_str()) {
                return Err(refuse(
                    file,
                    id,
                    "`clients` names it, and it is not there".to_owned(),
                ));
            }
        }
        for row in &self.parameters {
            check_row(row, &by_id).map_err(|message| refuse(file, &row.id, message))?;
        }
        Ok(())
    }
}

fn refuse(file: &str, id: &str, message: String) -> CatalogError {
    CatalogError::Row {
        file: file.to_owned(),
        id: id.to_owned(),
        message,
    }
}

fn check_row(row: &Parameter, by_id: &BTreeMap<&str, &Parameter>) -> Result<(), String> {
    let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if row.id.is_empty() || !row.id.chars().all(fit) {
        return Err("an id has lower-case letters, digits and `_` only".to_owned());
    }
    let mut levels: Vec<&String> = row.default.level.iter().chain(&row.debian).collect();
    for write in &row.writes {
        levels.extend(write.only.iter().chain(&write.except));
        if let Some(unknown) = template::placeholders(&write.text)
            .find(|placeholder| !PLACEHOLDERS.contains(placeholder))
        {
            return Err(format!("`{unknown}` is no placeholder"));
        }
        if write.text.contains([';', '\n']) {
            return Err(format!("`{}` is more than one directive", write.text));
        }
    }
    check_levels(row, &levels)?;
    for constraint in &row.constraints {
        let (setting, levels): (_, &[String]) = match &constraint.rule {
            Rule::AtMost { setting, .. } => (setting, &[]),
            Rule::NotWith { setting, levels } => (setting, levels),
            Rule::OnlyRole(_) => continue,
        };
        let other = by_id
            .get(setting.as_str())
            .ok_or_else(|| format!("a constraint names `{setting}`, which is not there"))?;
        check_levels(other, &levels.iter().collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Levels that stand in rows must be canonical, because they are compared as text.
fn check_levels(row: &Parameter, levels: &[&String]) -> Result<(), String> {
    for level in levels {
        let canonical = row.check(level).map_err(|e| e.to_string())?;
        if canonical != **level {
            return Err(format!("`{level}` must be written `{canonical}`"));
        }
    }
    Ok(())
}
