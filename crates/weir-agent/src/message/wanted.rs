//! What arms need of the proxies' host before they are started, and what of it is not there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_model::record::{AskedRecord, SpotRecord};
use weir_model::study::{AskSpec, LauncherSpec, ProxyKind, Settings};

/// What the host does not have of this, with which arms are to be started besides a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Ways to start a process, by name.
    pub launchers: BTreeMap<String, LauncherSpec>,
    /// Whether some arm's bytes are to go past the kernel's TCP.
    pub sockmap: bool,
    /// Copies of the user's configurations, by the arm's name.
    #[serde(default)]
    pub copies: BTreeMap<String, CopyJob>,
}

/// A copy of a configuration of the user's as an arm is to have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyJob {
    /// Which program.
    pub kind: ProxyKind,
    /// Where it is said to be.
    pub executable: Option<PathBuf>,
    /// The main file on this host.
    pub main: PathBuf,
    /// Its settings, those of the kernel and of the whole host among them.
    pub settings: Settings,
    /// What loads ask of it.
    pub asks: Vec<AskSpec>,
}

/// What is not there of it, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// By the launcher's name.
    pub launchers: BTreeMap<String, String>,
    /// Why bytes cannot go past the kernel's TCP.
    pub sockmap: Option<String>,
    /// By arm, why there can be no copy of the user's configuration for it, and what to do about it.
    #[serde(default)]
    pub copies: BTreeMap<String, (String, Option<String>)>,
    /// By arm, what loads ask of the user's configuration where there can be one.
    #[serde(default)]
    pub asked: BTreeMap<String, Vec<AskedRecord>>,
    /// By arm, hashes of the user's configuration with the arm's settings and of its copy.
    #[serde(default)]
    pub hashes: BTreeMap<String, [u64; 2]>,
    /// By two arms with configurations of their own, where these differ and their copies do not.
    #[serde(default)]
    pub vanished: BTreeMap<String, BTreeMap<String, Vec<SpotRecord>>>,
}
