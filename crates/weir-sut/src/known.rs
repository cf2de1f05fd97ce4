//! The proxies that weir starts, by their kinds.

use std::path::Path;
use std::sync::Arc;

use weir_model::study::ProxyKind;

use crate::installed::{Installed, Marks};
use crate::{Proxy, SutError};

/// Looks for a proxy's program, where it is said to be or else on PATH and in the folders of system
/// programs, and asks its version.
///
/// # Errors
/// [`SutError::NotFound`]; or the program is something else; or weir does not start this kind.
pub fn find(kind: ProxyKind, executable: Option<&Path>) -> Result<Arc<dyn Proxy>, SutError> {
    let marks = marks(kind).ok_or(SutError::NotStartable { kind })?;
    (marks.open)(Installed::find(marks, executable)?)
}

/// How the proxies of weir's list are known: each has a module here by its name.
macro_rules! marks_by_kind {
    ($($variant:ident $name:ident $title:literal $files:literal;)*) => {
        /// How a kind of proxy is known; `None` for one that weir does not start.
        fn marks(kind: ProxyKind) -> Option<&'static Marks> {
            match kind {
                $(ProxyKind::$variant => Some(&crate::$name::MARKS),)*
                ProxyKind::External => None,
            }
        }
    };
}

weir_model::proxies!(marks_by_kind);
