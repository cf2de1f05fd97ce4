//! Kubernetes controllers that configure a proxy by what objects of the cluster say: which objects hold a parameter, and
//! how the effective value is read. Data of `controllers/*.yaml`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use weir_model::quantity::parse_duration;
use weir_model::study::{ProxyKind, Settings, SysctlMeans};

use crate::catalog::Catalog;
use crate::row::{EffectiveFrom, Parameter, Scope};
use crate::spelling::Spelling;

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
/// What a study calls the ConfigMap with a controller's configuration file.
const FILE: &str = "file";
/// What stands for the nodes of those pods where an object's name does.
pub const NODE: &str = "node";
/// The init container that sets settings of the kernel, and where it stands in a workload.
const INIT_CONTAINER: &str = "weir-sysctls";
const INIT_CONTAINERS: &str = "/spec/template/spec/initContainers";

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
    /// Where rows go that have a key for this controller: a JSON pointer as in [`Site::at`], by object. `POINTER#POINTER` is a
    /// place in the YAML document that stands as a text at the first one.
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
    /// The objects that are not looked at again.
    pub after: BTreeSet<String>,
    /// A place in the template of its own pods, where another text has them started anew.
    pub by: Site,
}

/// What a study lets weir change for its arms, which decides where settings go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The objects that it names, by what the controller's file calls them.
    pub objects: BTreeSet<String>,
    /// How pods get settings of the kernel.
    pub sysctls: SysctlMeans,
}

impl Given {
    /// Those of a study that names these objects.
    pub fn of<T>(objects: &BTreeMap<String, T>, sysctls: SysctlMeans) -> Given {
        Given {
            objects: objects.keys().cloned().collect(),
            sysctls,
        }
    }
}

/// What a setting is to a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// What the study calls the object, or [`NODE`].
    pub object: String,
    /// Where in it; of nodes, `/` and the name of the setting.
    pub at: String,
    /// What stands there for a level; `null`: nothing, nor the element of a list that the place is within. `{"$from": POINTER}`
    /// within it is what stands at that place of the object.
    pub value: Value,
}

impl Placed {
    /// The object that a study has to name for it: nodes are known by the pods of the workload.
    pub fn named(&self) -> &str {
        match &*self.object {
            NODE => WORKLOAD,
            object => object,
        }
    }
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

    /// Where a setting stands, and as what. In an object of one route, where the row has a word for that and the study names
    /// one: that counts for the route, and what all routes have stays as it is.
    ///
    /// # Errors
    /// The controller does not have it.
    pub fn place(&self, row: &Parameter, level: &str, means: &Given) -> Result<Placed, Unplaced> {
        match (row.scope, self.spelling(row, means)) {
            (scope, _) if scope.is_kernel() => self.place_sysctl(row, level, means.sysctls),
            (Scope::Workload, _) => self.place_in_workload(row, level),
            (_, Some(spelling)) => {
                let (object, at) = self.site_of(&spelling).ok_or(Unplaced::Parameter)?;
                Ok(Placed {
                    object: object.clone(),
                    at: filled(at, &spelling.key, row),
                    value: spelling.json_value(level).ok_or(Unplaced::Level)?,
                })
            }
            (_, None) => Err(Unplaced::Parameter),
        }
    }

    /// The same of a setting of the kernel. What is of the whole host, only nodes have.
    fn place_sysctl(
        &self,
        row: &Parameter,
        level: &str,
        by: SysctlMeans,
    ) -> Result<Placed, Unplaced> {
        let Site { object, at } = self.sysctls.as_ref().ok_or(Unplaced::Parameter)?;
        match by {
            SysctlMeans::Node => Ok(Placed {
                object: NODE.to_owned(),
                at: format!("/{}", row.id),
                value: Value::from(level),
            }),
            _ if row.scope == Scope::KernelHost => Err(Unplaced::Parameter),
            SysctlMeans::Pods => Ok(Placed {
                object: object.clone(),
                at: filled(at, "", row),
                value: Value::from(level),
            }),
            SysctlMeans::InitContainer => {
                let init = self.init_container(&[(row, level)]);
                init.ok_or(Unplaced::Parameter)
            }
        }
    }

    /// The one init container that sets these settings in the pods' network namespace, before the proxy starts. It has the
    /// image of the proxy, which nodes have.
    fn init_container(&self, settings: &[(&Parameter, &str)]) -> Option<Placed> {
        let image = format!(
            "/spec/template/spec/containers/[name={}]/image",
            self.container()?
        );
        let line = |(row, level): &(&Parameter, &str)| {
            Some(format!("echo '{level}' >/proc/sys/{}", sysctl_path(row)?))
        };
        let lines: Vec<String> = settings.iter().filter_map(line).collect();
        Some(Placed {
            object: WORKLOAD.to_owned(),
            at: format!("{INIT_CONTAINERS}/[name={INIT_CONTAINER}]"),
            value: json!({
                "name": INIT_CONTAINER,
                "image": {"$from": image},
                "command": ["/bin/sh", "-ec", lines.join("\n")],
                // /proc/sys is read-only in others.
                "securityContext": {"privileged": true, "runAsUser": 0, "runAsNonRoot": false},
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }),
        })
    }

    /// Where a setting stands in the values of the controller's Helm chart, as a JSON pointer, and as what; `None`: the
    /// chart has no place for it, or the controller does not have it.
    pub fn place_in_values(
        &self,
        row: &Parameter,
        level: &str,
        means: &Given,
    ) -> Option<(String, Value)> {
        let placed = self.place(row, level, means).ok()?;
        let at = self.helm.get(&placed.object)?;
        let spelling = self.spelling(row, means);
        let key = match (row.scope, &spelling) {
            (Scope::KernelNetns, _) if means.sysctls == SysctlMeans::Pods => "",
            (Scope::KernelNetns, _) => return None,
            (_, Some(spelling)) => &*spelling.key,
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
            value: place.value(row, level),
        })
    }

    /// The container of its proxy's pods; `None`: their workload is another controller's work, or there are none.
    pub fn container(&self) -> Option<&str> {
        match &self.reads {
            Reads::Command(reads) if self.objects.contains_key(WORKLOAD) => Some(&reads.container),
            _ => None,
        }
    }

    /// How it spells a row for a study with these means.
    fn spelling<'r>(&self, row: &'r Parameter, means: &Given) -> Option<Cow<'r, Spelling>> {
        let usual = row.controllers.get(&self.name)?;
        let file = usual.file.as_ref();
        if let Some(key) = file.filter(|_| means.objects.contains(FILE)) {
            return Some(Cow::Owned(Spelling {
                object: Some(FILE.to_owned()),
                key: key.clone(),
                ..usual.clone()
            }));
        }
        let is_named = |route: &&Spelling| {
            let object = route.object.as_ref();
            object.is_some_and(|object| means.objects.contains(object))
        };
        let own = usual.route.as_deref().filter(is_named).unwrap_or(usual);
        Some(Cow::Borrowed(own))
    }

    /// The object that has a row, and the pointer: where the row names none, the one that every study names.
    fn site_of(&self, spelling: &Spelling) -> Option<(&String, &String)> {
        let is_always_there = |role: &String| {
            let kinds = self.objects.get(role);
            kinds.is_some_and(|kinds| !kinds.optional)
        };
        match &spelling.object {
            Some(object) => self.rows.get_key_value(object),
            None => self.rows.iter().find(|(role, _)| is_always_there(role)),
        }
    }

    /// Ids of the parameters that it can set: of the proxy, of its pods, and of the kernel by these means.
    pub fn can_set<'c>(&self, catalog: &'c Catalog, by: SysctlMeans) -> BTreeSet<&'c str> {
        let has = |row: &&Parameter| match row.scope {
            Scope::KernelNetns => self.sysctls.is_some(),
            Scope::KernelHost => self.sysctls.is_some() && by == SysctlMeans::Node,
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
    pub fn placed(&self, catalog: &Catalog, settings: &Settings, means: &Given) -> Vec<Placed> {
        let rows = settings.iter();
        let rows = rows.filter_map(|(id, level)| Some((catalog.get(self.proxy, id)?, &**level)));
        let is_together = |row: &Parameter| {
            row.scope == Scope::KernelNetns && means.sysctls == SysctlMeans::InitContainer
        };
        let (together, others): (Vec<_>, Vec<_>) = rows.partition(|(row, _)| is_together(row));
        let init = self
            .init_container(&together)
            .filter(|_| !together.is_empty());
        let others = others.into_iter();
        let others = others.filter_map(|(row, level)| self.place(row, level, means).ok());
        others.chain(init).collect()
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
