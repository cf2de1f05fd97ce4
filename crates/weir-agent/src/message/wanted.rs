//! Things that arms need on the proxies' host before they are started, and those that are missing there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_model::record::{AskedRecord, SpotRecord};
use weir_model::study::{AskSpec, LauncherSpec, ProxyKind, Settings};

/// Request to check which of these things the host lacks. Arms need them in addition to a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRequirements {
    /// Ways to start a process, by name.
    pub launchers: BTreeMap<String, LauncherSpec>,
    /// True if some arm's bytes are to bypass the kernel's TCP.
    pub sockmap: bool,
    /// Copies of the user's configurations, by the arm's name.
    #[serde(default)]
    pub copies: BTreeMap<String, CopyJob>,
}

/// A planned copy of a user's configuration for an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyJob {
    /// Kind of the proxy's program.
    pub kind: ProxyKind,
    /// Path of the executable as the user gave it; `None`: to be searched for.
    pub executable: Option<PathBuf>,
    /// The main file on this host.
    pub main: PathBuf,
    /// Settings of the arm, including those of the kernel and of the whole host.
    pub settings: Settings,
    /// Requests that loads send to the copy.
    pub asks: Vec<AskSpec>,
}

/// Things that the host lacks, with reasons, and findings about copies of configurations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Reason for each missing launcher, by the launcher's name.
    pub launchers: BTreeMap<String, String>,
    /// Reason why bytes cannot bypass the kernel's TCP; `None`: they can.
    pub sockmap: Option<String>,
    /// Reason why a user's configuration cannot be copied, and advice if there is any, by arm.
    #[serde(default)]
    pub copies: BTreeMap<String, (String, Option<String>)>,
    /// Parts of the user's configuration that the loads' requests meet, by arm; only for arms whose copy can be made.
    #[serde(default)]
    pub asked: BTreeMap<String, Vec<AskedRecord>>,
    /// Hashes of the user's configuration with the arm's settings, and of its copy, by arm.
    #[serde(default)]
    pub hashes: BTreeMap<String, [u64; 2]>,
    /// Parts in which the configurations of two arms differ but their copies do not, by the first arm and then by the
    /// second.
    #[serde(default)]
    pub vanished: BTreeMap<String, BTreeMap<String, Vec<SpotRecord>>>,
}
