//! What a proxy's module does with configurations that users wrote.

use std::path::Path;

use weir_configuration::{
    Asked, ConfigurationError, ShownCertificate, Source, Surroundings, Wanted,
};
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;

use crate::SutError;

/// What a proxy cannot do whose language is not known here.
pub(crate) const NOT_YET: &str =
    "be started with your own configuration: weir cannot change its configurations yet";

/// What a proxy's module does with configurations that users wrote.
pub trait Language {
    /// Reads a configuration with all that it includes, and puts settings into it: as it is, and changed.
    ///
    /// # Errors
    /// A file cannot be read or understood, or has no place for a setting.
    fn read(&self, main: &Path, wanted: &[Wanted<'_>]) -> Result<[Source; 2], SutError>;

    /// What answers the requests of a load: one for each.
    ///
    /// # Errors
    /// No listener is as asked, or a host or path that is named meets nothing.
    fn look_up(&self, source: &Source, ask: &AskSpec) -> Result<Vec<Asked>, ConfigurationError>;

    /// Finds what a copy replaces, of what the requests of a load meet.
    ///
    /// # Errors
    /// As for [`Language::look_up`].
    fn replaced(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ReplacedRecord>, ConfigurationError>;

    /// The certificates that a configuration shows to the clients of a load.
    ///
    /// # Errors
    /// As for [`Language::look_up`].
    fn certificates(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ShownCertificate>, ConfigurationError>;

    /// Makes a copy fit to run in a trial.
    ///
    /// # Errors
    /// No listener is as asked, or something cannot be as a copy needs it.
    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError>;
}
