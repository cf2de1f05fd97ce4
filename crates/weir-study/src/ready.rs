//! The studies that come with weir.

/// A study that can be run by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyMade {
    /// What `weir run` calls it: the name in the file.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

const STUDIES: [ReadyMade; 3] = [
    ReadyMade {
        name: "stock-reverse-proxy",
        text: include_str!("../../../studies/stock-reverse-proxy.yaml"),
    },
    ReadyMade {
        name: "static-files",
        text: include_str!("../../../studies/static-files.yaml"),
    },
    ReadyMade {
        name: "same-twice",
        text: include_str!("../../../studies/same-twice.yaml"),
    },
];

/// The ready-made studies, the one to begin with first.
pub fn studies() -> &'static [ReadyMade] {
    &STUDIES
}
