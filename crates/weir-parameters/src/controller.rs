//! Kubernetes controllers that configure a proxy from objects of the cluster: which objects hold a parameter, and how
//! the effective value is read. The data is in `controllers/*.yaml`.

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

/// Expands to the name of a controller, as rows use it, and the text of its file.
macro_rules! builtin {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../controllers/", $name, ".yaml")))
    };
}

const BUILTIN: [(&str, &str); 4] = [
    builtin!("contour"),
    builtin!("envoy-gateway"),
    builtin!("ingress-nginx"),
    builtin!("nginx-ingress"),
];

/// Name in studies of the workload that a controller's pods belong to.
const WORKLOAD: &str = "workload";
/// Name in studies of the ConfigMap with a controller's configuration file.
const FILE: &str = "file";
/// Stands in place of an object's name for the nodes of the controller's pods.
pub const NODE: &str = "node";
/// Name of the init container that sets kernel settings. The next constant is its place in a workload.
const INIT_CONTAINER: &str = "weir-sysctls";
const INIT_CONTAINERS: &str = "/spec/template/spec/initContainers";

/// A Kubernetes controller that configures a proxy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Name in studies and in the rows' `controllers`.
    #[serde(skip)]
    pub name: String,
    /// Name in sentences.
    pub title: String,
    /// The proxy that it configures.
    pub proxy: ProxyKind,
    /// Address of the documentation that the file was written from.
    pub source: String,
    /// Objects that a study can name, by their name in the study.
    pub objects: BTreeMap<String, ObjectKinds>,
    /// Places of the rows that have a key for this controller: a JSON pointer as in [`Site::at`], by object.
    /// `POINTER#POINTER` is a place within the YAML document that is the text at the first pointer.
    pub rows: BTreeMap<String, String>,
    /// Place of kernel settings that belong to a network namespace. `None` if the controller has no pods.
    #[serde(default)]
    pub sysctls: Option<Site>,
    /// Places of settings in the values of the controller's Helm chart: a JSON pointer as in [`Site::at`], by object.
    /// Empty if weir knows no chart of it.
    #[serde(default)]
    pub helm: BTreeMap<String, String>,
    /// Source from which the data plane's running configuration is read.
    pub reads: Reads,
    /// Workload to restart for objects that the controller does not watch. `None`: nothing needs a restart.
    #[serde(default)]
    pub restarts: Option<Restarts>,
    /// Maximum time from acceptance of a setting until it is in force.
    #[serde(deserialize_with = "duration")]
    pub in_force_within: Duration,
    /// Maximum time until all new pods serve.
    #[serde(deserialize_with = "duration")]
    pub rolled_out_within: Duration,
}

/// Kinds of object that are possible for one name of a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectKinds {
    /// Description of the object, in words that fit behind "names".
    pub what: String,
    /// True if a study may leave the object out, as long as it changes nothing there.
    #[serde(default)]
    pub optional: bool,
    /// Possible kinds.
    pub kinds: Vec<ObjectKind>,
}

/// A kind of object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectKind {
    /// Kind, such as `ConfigMap`.
    pub kind: String,
    /// API group and version, such as `apps/v1`.
    pub api: String,
    /// Resource name in URLs, such as `configmaps`.
    pub resource: String,
}

/// A place in an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Name of the object in studies.
    pub object: String,
    /// A JSON pointer (RFC 6901), in which `[name=VALUE]` is the element of a list with that field. `{key}` is the
    /// controller's name of a row, `{path}` is that name with its dots as steps from field to field, and `{id}` is the
    /// row's own id.
    pub at: String,
}

/// Source from which a data plane's running configuration is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Reads {
    /// A command in its pods.
    Command(ReadsCommand),
    /// HTTP requests to a port of its pods.
    Port(ReadsPort),
}

/// A command that prints the proxy's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadsCommand {
    /// Container of the pods that the command runs in.
    pub container: String,
    /// The command with its arguments.
    pub command: Vec<String>,
}

/// Documents that together are the proxy's configuration, fetched over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadsPort {
    /// The port, which may be open on the pods' loopback only.
    pub port: u16,
    /// Paths of the documents.
    pub paths: Vec<String>,
}

/// Restart of a controller that reads some objects at its start only.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restarts {
    /// Objects whose changes need a restart.
    pub after: BTreeSet<String>,
    /// Place in the template of the controller's own pods. Another text there restarts them.
    pub by: Site,
}

/// Objects and means that a study lets weir use for its arms. They decide where settings are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControllerMeans {
    /// Objects that the study names, by their name in the controller's file.
    pub objects: BTreeSet<String>,
    /// Means by which pods get kernel settings.
    pub sysctls: SysctlMeans,
}

impl ControllerMeans {
    /// Returns the means of a study that names these objects.
    pub fn of<T>(objects: &BTreeMap<String, T>, sysctls: SysctlMeans) -> ControllerMeans {
        ControllerMeans { objects: objects.keys().cloned().collect(), sysctls }
    }
}

/// A setting as a value at a place of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Name of the object in the study, or [`NODE`].
    pub object: String,
    /// JSON pointer to the place in the object. For nodes: `/` and the name of the setting.
    pub at: String,
    /// Value of the level. `null` removes the place, and the element of a list that the place is within. `{"$from":
    /// POINTER}` within the value is replaced by the value at that place of the object.
    pub value: Value,
}

impl Placed {
    /// Returns the object that a study must name for this setting. For nodes that is the workload, whose pods tell the
    /// nodes.
    pub fn named(&self) -> &str {
        match &*self.object {
            NODE => WORKLOAD,
            object => object,
        }
    }
}

/// Reason why a controller cannot place a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unplaced {
    /// The controller cannot set the parameter.
    Parameter,
    /// The controller has no spelling for the level.
    Level,
}

impl Controller {
    /// Returns the controllers that come with weir.
    pub fn all() -> &'static [Controller] {
        static READ: LazyLock<Vec<Controller>> = LazyLock::new(|| {
            BUILTIN
                .iter()
                .map(|(name, text)| {
                    let read: Controller = serde_saphyr::from_str(text).expect(
                        "the embedded files are data of this crate and its tests read them",
                    );
                    Controller { name: (*name).to_owned(), ..read }
                })
                .collect()
        });
        &READ
    }

    /// Returns the controller with this name.
    pub fn named(name: &str) -> Option<&'static Controller> {
        Controller::all().iter().find(|one| one.name == name)
    }

    /// Parses the object that a study names for a role into its kind, its namespace (if given) and its name. `None` if
    /// it cannot be such an object.
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

    /// Returns the place and the value of a setting. If the row has a spelling for an object of one route and the study
    /// names that object, the place is in that object, which affects this route alone and leaves the settings of all
    /// routes as they are.
    ///
    /// # Errors
    /// Returns an error if the controller cannot set the parameter or the level.
    pub fn place(
        &self,
        row: &Parameter,
        level: &str,
        means: &ControllerMeans,
    ) -> Result<Placed, Unplaced> {
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

    /// Places a kernel setting. Settings of the whole host can be placed on nodes only.
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

    /// Returns the one init container that sets these settings in the pods' network namespace before the proxy starts.
    /// Its image is the proxy's, which the nodes have already.
    fn init_container(&self, settings: &[(&Parameter, &str)]) -> Option<Placed> {
        let image = format!("/spec/template/spec/containers/[name={}]/image", self.container()?);
        let lines: Vec<String> = settings
            .iter()
            .filter_map(|(row, level)| {
                Some(format!("echo '{level}' >/proc/sys/{}", sysctl_path(row)?))
            })
            .collect();
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

    /// Returns the place of a setting in the values of the controller's Helm chart (a JSON pointer) and its value.
    /// `None` if the chart has no place for it, or the controller cannot set it.
    pub fn place_in_values(
        &self,
        row: &Parameter,
        level: &str,
        means: &ControllerMeans,
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

    /// Places a setting of the pods in their workload.
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

    /// Returns the container of the proxy in its pods. `None` if another controller manages their workload, or there
    /// are no pods.
    pub fn container(&self) -> Option<&str> {
        match &self.reads {
            Reads::Command(reads) if self.objects.contains_key(WORKLOAD) => Some(&reads.container),
            _ => None,
        }
    }

    /// Returns the controller's spelling of a row for a study with these means.
    fn spelling<'r>(
        &self,
        row: &'r Parameter,
        means: &ControllerMeans,
    ) -> Option<Cow<'r, Spelling>> {
        let usual = row.controllers.get(&self.name)?;
        let file = usual.file.as_ref();
        if let Some(key) = file.filter(|_| means.objects.contains(FILE)) {
            return Some(Cow::Owned(Spelling {
                object: Some(FILE.to_owned()),
                key: key.clone(),
                ..usual.clone()
            }));
        }
        let spelling = usual
            .route
            .as_deref()
            .filter(|route| {
                let object = route.object.as_ref();
                object.is_some_and(|object| means.objects.contains(object))
            })
            .unwrap_or(usual);
        Some(Cow::Borrowed(spelling))
    }

    /// Returns the object and the pointer for a spelling. If the spelling names no object, that is the one that every
    /// study names.
    fn site_of(&self, spelling: &Spelling) -> Option<(&String, &String)> {
        match &spelling.object {
            Some(object) => self.rows.get_key_value(object),
            None => self
                .rows
                .iter()
                .find(|(role, _)| self.objects.get(*role).is_some_and(|kinds| !kinds.optional)),
        }
    }

    /// Returns the ids of the parameters that the controller can set: of the proxy, of its pods, and of the kernel by
    /// these means.
    pub fn can_set<'c>(&self, catalog: &'c Catalog, by: SysctlMeans) -> BTreeSet<&'c str> {
        catalog
            .all(self.proxy)
            .filter(|row| match row.scope {
                Scope::KernelNetns => self.sysctls.is_some(),
                Scope::KernelHost => self.sysctls.is_some() && by == SysctlMeans::Node,
                Scope::Workload => self.container().is_some(),
                _ => {
                    let spelling = row.controllers.get(&self.name);
                    spelling.is_some_and(|of| self.site_of(of).is_some())
                }
            })
            .map(|row| row.id.as_str())
            .collect()
    }

    /// Returns the places of all settings of an arm. Settings that the controller cannot place are left out; a study
    /// with them is refused before.
    pub fn placed(
        &self,
        catalog: &Catalog,
        settings: &Settings,
        means: &ControllerMeans,
    ) -> Vec<Placed> {
        let rows = settings
            .iter()
            .filter_map(|(id, level)| Some((catalog.get(self.proxy, id)?, &**level)));
        let (together, others): (Vec<_>, Vec<_>) = rows.partition(|(row, _)| {
            row.scope == Scope::KernelNetns && means.sysctls == SysctlMeans::InitContainer
        });
        let init = self.init_container(&together).filter(|_| !together.is_empty());
        others
            .into_iter()
            .filter_map(|(row, level)| self.place(row, level, means).ok())
            .chain(init)
            .collect()
    }

    /// Returns true if `found`, read from the data plane, shows that a parameter is in force at `level`. For a word
    /// that stands for a number, such as `auto`, any number will do.
    pub fn is_in_force(row: &Parameter, level: &str, found: &str) -> bool {
        level.split_whitespace().eq(found.split_whitespace())
            || (found.parse::<u64>().is_ok() && row.level.words().any(|word| word == level))
    }
}

/// Returns true if a text can be the name of an object (RFC 1123 subdomain).
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
}

/// Returns the pointer `at` with its placeholders filled in for a row.
fn filled(at: &str, key: &str, row: &Parameter) -> String {
    at.replace("{key}", &escaped(key))
        .replace("{path}", &escaped(key).replace('.', "/"))
        .replace("{id}", &escaped(&row.id))
}

/// Escapes a name for a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the name of a kernel setting below /proc/sys, with slashes. `None` for other parameters.
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
