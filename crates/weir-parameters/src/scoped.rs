use crate::Catalog;
use weir_model::study::{ProxyKind, Settings};
/// Temporary.
#[derive(Debug, Clone, Default)]
pub struct Scoped {
    /// a
    pub proxy: Settings,
    /// b
    pub netns: Settings,
    /// c
    pub host: Settings,
    /// d
    pub launch: Settings,
}
impl Catalog {
    /// Temporary.
    pub fn split(&self, _: ProxyKind, settings: &Settings) -> Scoped {
        Scoped {
            proxy: settings.clone(),
            ..Scoped::default()
        }
    }
    /// Temporary.
    pub fn sysctls(&self, _: ProxyKind) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }
    /// Temporary.
    pub fn inert(
        &self,
        _: ProxyKind,
        _: &Settings,
        _: &Settings,
        _: &Settings,
    ) -> Vec<weir_model::record::Inert> {
        Vec::new()
    }
}
