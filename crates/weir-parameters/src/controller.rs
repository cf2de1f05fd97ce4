//! Kubernetes controllers that configure a proxy by what objects of the cluster say: which objects hold a parameter, and
//! how the effective value is read. Data of `controllers/*.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use weir_model::quantity::parse_duration;
use weir_model::study::{ProxyKind, Settings};

use crate::catalog::Catalog;
use crate::row::{EffectiveFrom, Parameter, Scope, Spelling};

/// The name of a controller, as rows have it, and its file.
macro_rules! builtin {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../controllers/", $name, ".yaml")),
        )
    };
}

const BUILTIN: [(&str, &str); 4] = [
    builtin!("contour"),
    builtin!("envoy-gateway"),
    builtin!("ingress-nginx"),
    builtin!("nginx-ingress"),
];

/// What a study calls the workload of a controller's pods.
const WORKLOAD: &str = "workload";

/// A controller.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Its name in studies and in the rows' `controllers`.
    #[serde(skip)]
    pub name: String,
    /// Its name in sentences.
    pub title: String,
    /// The proxy that it configures.
    pub proxy: ProxyKind,
    /// Address of the documentation that the file was written from.
    pub source: String,
    /// The objects that a study names, by what it calls them.
    pub objects: BTreeMap<String, ObjectKinds>,
    /// Where rows go that have a key for this controller: a JSON pointer as in [`Site::at`], by object.
    pub rows: BTreeMap<String, String>,
    /// Where kernel settings go that belong to a network namespace; `None`: it has no pods.
    #[serde(default)]
    pub sysctls: Option<Site>,
    /// Where settings stand in the values of its Helm chart: a JSON pointer as in [`Site::at`], by object. Empty: weir knows no
    /// chart of it.
    #[serde(default)]
    pub helm: BTreeMap<String, String>,
    /// How the data plane tells what it runs with.
    pub reads: Reads,
    /// What has to be started anew, where the controller does not look at an object again; `None`: nothing.
    #[serde(default)]
    pub restarts: Option<Restarts>,
    /// How long it may take until a setting is in force that was accepted.
    #[serde(deserialize_with = "duration")]
    pub in_force_within: Duration,
    /// How long new pods may take until all of them serve.
    #[serde(deserialize_with = "duration")]
    pub rolled_out_within: Duration,
}

/// What an object may be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectKinds {
    /// What it is, in words that fit behind "names".
    pub what: String,
    /// Whether a study may leave it out, as long as it changes nothing there.
    #[serde(default)]
    pub optional: bool,
    /// Its kind is one of these.
    pub kinds: Vec<ObjectKind>,
}

/// A kind of object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectKind {
    /// `ConfigMap`.
    pub kind: String,
    /// Group and version, `apps/v1`.
    pub api: String,
    /// Its name in addresses: `configmaps`.
    pub resource: String,
}

/// A place in an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Which object.
    pub object: String,
    /// A JSON pointer (RFC 6901), in which `[name=VALUE]` is the element of a list with that field. `{key}` is the
    /// controller's name of a row, `{path}` the same where its dots lead from field to field, `{id}` the row's own.
    pub at: String,
}

/// How a data plane tells what it runs with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Reads {
    /// By a command in its pods.
    Command(ReadsCommand),
    /// Over HTTP, at a port of its pods.
    Port(ReadsPort),
}

/// A command that prints the proxy's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadsCommand {
    /// The container of its pods.
    pub container: String,
    /// What is run in it.
    pub command: Vec<String>,
}

/// Documents that together are the proxy's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadsPort {
    /// The port, which may be that of the pods' loopback alone.
    pub port: u16,
    /// The documents.
    pub paths: Vec<String>,
}

/// What reads objects at its start only.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restarts {
    /// The object that is not looked at again.
    pub after: String,
    /// A place in the template of its own pods, where another text has them started anew.
    pub by: Site,
}

/// What a setting is to a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// What the study calls the object.
    pub object: String,
    /// Where in it.
    pub at: String,
    /// What stands there for a level.
    pub value: Value,
}

/// Why a controller does not have a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unplaced {
    /// It cannot set the parameter.
    Parameter,
    /// It has no word for the level.
    Level,
}

impl Controller {
    /// Those that come with weir.
    pub fn all() -> &'static [Controller] {
        static READ: LazyLock<Vec<Controller>> = LazyLock::new(|| {
            let read = |(name, text): &(&str, &str)| {
                let read: Result<Controller, _> = serde_saphyr::from_str(text);
                let read = read
                    .expect("the embedded files are data of this crate and its tests read them");
                Controller {
                    name: (*name).to_owned(),
                    ..read
                }
            };
            BUILTIN.iter().map(read).collect()
        });
        &READ
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Controller> {
        Controller::all().iter().find(|one| one.name == name)
    }

    /// The object that a study names for a role: its kind, its namespace where that is said, and its name. `None`: it can
    /// be no such object.
    pub fn object<'c, 't>(
        &'c self,
        role: &str,
        text: &'t str,
    ) -> Option<(&'c ObjectKind, Option<&'t str>, &'t str)> {
        let (kind, of) = text.split_once('/')?;
        let mut kinds = self.objects.get(role)?.kinds.iter();
        let kind = kinds.find(|one| one.kind.eq_ignore_ascii_case(kind))?;
        let (namespace, name) = match of.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, of),
        };
        let fit = [namespace, Some(name)].into_iter().flatten().all(is_name);
        fit.then_some((kind, namespace, name))
    }

    /// Where a setting stands, and as what.
    ///
    /// # Errors
    /// The controller does not have it.
    pub fn place(&self, row: &Parameter, level: &str) -> Result<Placed, Unplaced> {
        let (object, at, key, value) = match (row.scope, row.controllers.get(&self.name)) {
            (Scope::KernelNetns, _) => {
                let Site { object, at } = self.sysctls.as_ref().ok_or(Unplaced::Parameter)?;
                (object, at, &row.id, Some(Value::from(level)))
            }
            (Scope::Workload, _) => return self.place_in_workload(row, level),
            (_, Some(spelling)) => {
                let (object, at) = self.site_of(spelling).ok_or(Unplaced::Parameter)?;
                (object, at, &spelling.key, spelling.json_value(level))
            }
            (_, None) => return Err(Unplaced::Parameter),
        };
        Ok(Placed {
            object: object.clone(),
            at: filled(at, key, row),
            value: value.ok_or(Unplaced::Level)?,
        })
    }

    /// Where a setting stands in the values of the controller's Helm chart, as a JSON pointer, and as what; `None`: the
    /// chart has no place for it, or the controller does not have it.
    pub fn place_in_values(&self, row: &Parameter, level: &str) -> Option<(String, Value)> {
        let placed = self.place(row, level).ok()?;
        let at = self.helm.get(&placed.object)?;
        let key = match (row.scope, row.controllers.get(&self.name)) {
            (Scope::KernelNetns, _) => "",
            (_, Some(spelling)) => &spelling.key,
            (_, None) => return None,
        };
        Some((filled(at, key, row), placed.value))
    }

    /// The same of what its pods have.
    fn place_in_workload(&self, row: &Parameter, level: &str) -> Result<Placed, Unplaced> {
        let EffectiveFrom::Workload(place) = &row.effective else {
            return Err(Unplaced::Parameter);
        };
        Ok(Placed {
            object: WORKLOAD.to_owned(),
            at: place.at_of(self.container().ok_or(Unplaced::Parameter)?),
            value: row.level.json(level),
        })
    }

    /// The container of its proxy's pods; `None`: their workload is another controller's work, or there are none.
    pub fn container(&self) -> Option<&str> {
        match &self.reads {
            Reads::Command(reads) if self.objects.contains_key(WORKLOAD) => Some(&reads.container),
            _ => None,
        }
    }

    /// The object that has a row, and the pointer: the only one, where the row names none.
    fn site_of(&self, spelling: &Spelling) -> Option<(&String, &String)> {
        match &spelling.object {
            Some(object) => self.rows.get_key_value(object),
            None => self.rows.iter().next().filter(|_| self.rows.len() == 1),
        }
    }

    /// Ids of the parameters that it can set: of the proxy, and of the pods' network namespace.
    pub fn can_set<'c>(&self, catalog: &'c Catalog) -> BTreeSet<&'c str> {
        let has = |row: &&Parameter| match row.scope {
            Scope::KernelNetns => self.sysctls.is_some(),
            Scope::Workload => self.container().is_some(),
            _ => {
                let spelling = row.controllers.get(&self.name);
                spelling.is_some_and(|of| self.site_of(of).is_some())
            }
        };
        let rows = catalog.all(self.proxy).filter(has);
        rows.map(|row| row.id.as_str()).collect()
    }

    /// All settings of an arm where they stand. What the controller does not have was refused with the study.
    pub fn placed(&self, catalog: &Catalog, settings: &Settings) -> Vec<Placed> {
        let rows = settings
            .iter()
            .filter_map(|(id, level)| Some((catalog.get(self.proxy, id)?, level)));
        rows.filter_map(|(row, level)| self.place(row, level).ok())
            .collect()
    }

    /// Whether a parameter is in force with a level, where this was read of the data plane. A word that stands for a
    /// number, such as `auto`, may be read as the number that it came to.
    pub fn is_in_force(row: &Parameter, level: &str, found: &str) -> bool {
        let is_word = || row.level.words().any(|word| word == level);
        let is_number = found.parse::<u64>().is_ok();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        words(level) == words(found) || (is_number && is_word())
    }
}

/// Whether a text can be the name of an object (RFC 1123 subdomain).
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    !text.is_empty() && text.len() <= 253 && text.chars().all(fits)
}

/// The pointer of a row.
fn filled(at: &str, key: &str, row: &Parameter) -> String {
    at.replace("{key}", &escaped(key))
        .replace("{path}", &escaped(key).replace('.', "/"))
        .replace("{id}", &escaped(&row.id))
}

/// A name within a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Name below /proc/sys of a kernel setting, with slashes; `None`: it is no kernel setting.
pub fn sysctl_path(row: &Parameter) -> Option<String> {
    match &row.effective {
        EffectiveFrom::Sysctl { name } => Some(name.replace('.', "/")),
        _ => None,
    }
}

fn duration<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).map_err(serde::de::Error::custom)
}
