//! Interface of a program whose configuration is one document.

use std::fmt::Debug;
use std::path::Path;

use serde_json::Value as Json;
use weir_model::study::AskSpec;

use super::asked::{Document, Parts};
use super::pointer::Pointer;
use super::tree::Format;
use crate::asked::{Request, look_up};
use crate::replaced::Replacements;
use crate::{ConfigurationError, RequestOutcome, ShownCertificate};

/// Language of a program whose configuration is one document: the objects that names of contexts stand for, and the
/// ways of requests.
pub trait Dialect: Debug + Sync {
    /// Returns the name of the program, for messages.
    fn name(&self) -> &'static str;

    /// Returns the format of a file, by its name.
    fn format(&self, path: &Path) -> Format;

    /// Returns the folder where packages of the program have their logs.
    fn logs(&self) -> &'static str;

    /// Returns the objects that a context's name stands for; `None` if there is no such context.
    fn objects(&self, document: &Json, context: &str) -> Option<Vec<Pointer>>;

    /// Returns the further values that an object needs when something is put into it at `at`: the type of an object
    /// that is made for it, and defaults that would be lost. `None` if the object cannot be made without a loss.
    fn companions(
        &self,
        document: &Json,
        context: &str,
        object: &Pointer,
        at: &str,
    ) -> Option<Vec<(Pointer, Json)>>;

    /// Returns the object that is in force where `object` is missing; `object` itself if it is there.
    fn in_force(&self, _document: &Json, _context: &str, object: Pointer) -> Pointer {
        object
    }

    /// Returns true if an item without a name is for all requests.
    fn is_for_all(&self, _item: &Json) -> bool {
        true
    }

    /// Returns the access logs outside of the objects that rows of the catalog name.
    fn other_logs(&self, _document: &Json) -> Vec<Pointer> {
        Vec::new()
    }

    /// Returns the text of a value in the style of the value that it replaces.
    fn in_style(&self, _existing: &Json, value: String) -> String {
        value
    }

    /// Prepares a document for looking up the ways of requests.
    fn document<'a>(&self, parts: Parts<'a>) -> Document<'a>;

    /// Looks up the answers to the requests of a load, one for each, in the document as this load meets it.
    ///
    /// # Errors
    /// No listener matches the load, or a host or path that the load names matches nothing.
    fn look_up<'a>(
        &self,
        parts: Parts<'a>,
        ask: &AskSpec,
    ) -> Result<(Document<'a>, Vec<RequestOutcome>), ConfigurationError> {
        let document = self.document(parts);
        let outcomes = look_up(&document, ask)?;
        Ok((document, outcomes))
    }

    /// Finds the certificates that clients of a load are shown, each with the value that says where it is.
    ///
    /// # Errors
    /// Same as [`Dialect::look_up`].
    fn certificates(
        &self,
        document: &Document<'_>,
        ask: &AskSpec,
    ) -> Result<Vec<(Pointer, Json)>, ConfigurationError>;

    /// Returns the certificate that the program gets by itself for a name, if it does so.
    fn automatic_certificate(
        &self,
        _document: &Document<'_>,
        _server_name: &str,
    ) -> Option<ShownCertificate> {
        None
    }

    /// Adds the parts on the way of a request that a copy replaces.
    fn add_replaced(
        &self,
        document: &Document<'_>,
        way: (&Request<'_>, &RequestOutcome),
        replacements: &mut Replacements<'_>,
    );
}
