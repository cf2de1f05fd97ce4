//! Check that a user's configuration can be copied, and of what its copy answers to loads.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use weir_configuration::{Ask, Copied, Source, Surroundings, record};
use weir_model::record::{AskedRecord, SpotRecord};
use weir_model::study::{AskSpec, Settings};
use weir_parameters::Catalog;

use crate::certificate::CertificateKind;
use crate::language::NOT_YET;
use crate::own::{find_replaced, nobody};
use crate::shown::kind_of;
use crate::task::wanted;
use crate::{Proxy, SutError};

/// A copy of a user's configuration that can be made.
#[derive(Debug)]
pub struct PlacedCopy {
    /// Parts that answer the loads' requests.
    pub asked: Vec<AskedRecord>,
    /// Hashes of the configuration with its settings and of its copy, for comparison within this process.
    pub hashes: [u64; 2],
    /// The configuration with its settings, and its copy.
    pub sides: [Source; 2],
}

/// Finds the places at which two arms' own configurations differ and their copies do not, by the names of the two arms.
pub fn vanished(
    placed: &BTreeMap<String, PlacedCopy>,
) -> BTreeMap<String, BTreeMap<String, Vec<SpotRecord>>> {
    let all = placed.iter().map(|(arm, PlacedCopy { sides, .. })| {
        let [original, copy] = sides;
        (arm, &original.files[0].path, Copied::of(original, copy))
    });
    let all: Vec<_> = all.collect();
    all.iter()
        .map(|(arm, main, first)| {
            let spots = all
                .iter()
                .filter(|(_, other, _)| other != main)
                .map(|(arm, _, second)| {
                    (arm.to_string(), weir_configuration::vanished(first, second))
                })
                .filter(|(_, spots)| !spots.is_empty())
                .collect();
            (arm.to_string(), spots)
        })
        .collect()
}

impl dyn Proxy + '_ {
    /// Returns the copy that can be made of a user's configuration with these settings. Nothing is written and nothing
    /// is started.
    ///
    /// # Errors
    /// The reason why there can be no such copy: same as [`dyn Proxy::write`].
    pub fn place(
        &self,
        main: &Path,
        settings: &Settings,
        asks: &[AskSpec],
        catalog: &Catalog,
    ) -> Result<PlacedCopy, SutError> {
        let language = self
            .language()
            .ok_or_else(|| SutError::Unable { kind: self.kind(), what: NOT_YET.to_owned() })?;
        let [user, changed] = language.read(main, &wanted(self.kind(), settings, catalog)?)?;
        let mut records = Vec::new();
        for ask in asks {
            let matches = language.look_up(&user, ask)?;
            let replaced = find_replaced(language, [&user, &changed], ask)?;
            records.extend(
                record(&user, ask, &matches).map(|record| AskedRecord { replaced, ..record }),
            );
        }
        let listener = nobody()?;
        let surroundings = Surroundings {
            prefix: Path::new("/weir"),
            asks: asks.iter().map(|spec| Ask { spec: spec.clone(), at: listener }).collect(),
            certificate: None,
            origin: listener,
            user: None,
        };
        let copy = language.adapt(&changed, &surroundings)?;
        let kind = self.certificate_kind(main, settings, asks, catalog)?;
        Ok(PlacedCopy {
            asked: records,
            hashes: [hash_of(&changed, None), hash_of(&copy, Some(kind))],
            sides: [changed, copy],
        })
    }

    /// Returns the kind of certificate that a copy of a user's configuration shows with these settings: that of the
    /// first load over TLS, or [`CertificateKind::USUAL`] if it cannot be determined.
    ///
    /// # Errors
    /// Same as [`dyn Proxy::place`].
    pub fn certificate_kind(
        &self,
        main: &Path,
        settings: &Settings,
        asks: &[AskSpec],
        catalog: &Catalog,
    ) -> Result<CertificateKind, SutError> {
        let secure = asks.iter().find(|ask| ask.tls);
        let (Some(language), Some(ask)) = (self.language(), secure) else {
            return Ok(CertificateKind::USUAL);
        };
        let [_, changed] = language.read(main, &wanted(self.kind(), settings, catalog)?)?;
        let shown = language.certificates(&changed, ask)?;
        Ok(kind_of(&shown).unwrap_or(CertificateKind::USUAL))
    }
}

/// Returns a hash of the words of all files, and of the kind of certificate that is shown.
fn hash_of(source: &Source, kind: Option<CertificateKind>) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    for word in source.files.iter().flat_map(|file| file.text.split_whitespace()) {
        word.hash(&mut hasher);
    }
    hasher.finish()
}
