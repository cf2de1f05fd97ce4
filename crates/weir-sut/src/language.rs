//! Handling of users' configurations by a proxy's module.

use std::path::Path;

use weir_configuration::{
    ConfigurationError, RequestOutcome, ShownCertificate, Source, Surroundings, WantedSetting,
};
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;

use crate::SutError;

/// Reason given for proxies whose language is not supported.
pub const NOT_YET: &str =
    "be started with your own configuration: weir cannot change its configurations yet";

/// Handling of users' configurations, implemented by a proxy's module.
pub trait Language {
    /// Reads a configuration with all that it includes, and puts settings into it. Returns it unchanged and changed.
    ///
    /// # Errors
    /// A file cannot be read or understood, or has no place for a setting.
    fn read(&self, main: &Path, wanted: &[WantedSetting<'_>]) -> Result<[Source; 2], SutError>;

    /// Finds the parts that answer the requests of a load, one result for each request.
    ///
    /// # Errors
    /// No listener fits the ask, or nothing answers a host or path that it names.
    fn look_up(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<RequestOutcome>, ConfigurationError>;

    /// Finds the parts that a copy replaces among those that answer the requests of a load.
    ///
    /// # Errors
    /// Same as [`Language::look_up`].
    fn replaced(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ReplacedRecord>, ConfigurationError>;

    /// Returns the certificates that a configuration shows to the clients of a load.
    ///
    /// # Errors
    /// Same as [`Language::look_up`].
    fn certificates(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ShownCertificate>, ConfigurationError>;

    /// Makes a copy fit to run in a trial.
    ///
    /// # Errors
    /// No listener fits the ask, or something cannot be changed as a copy needs it.
    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError>;
}
