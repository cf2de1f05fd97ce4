//! Whether there can be a copy of a user's configuration, and what loads would ask of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use weir_configuration::{Ask, Copied, Source, Surroundings, record};
use weir_model::record::{AskedRecord, SpotRecord};
use weir_model::study::{AskSpec, Settings};
use weir_parameters::Catalog;

use crate::certificate::CertificateKind;
use crate::language::NOT_YET;
use crate::own::{nobody, replaced};
use crate::shown::kind_of;
use crate::task::wanted;
use crate::{Proxy, SutError};

/// A copy of a user's configuration that can be made.
#[derive(Debug)]
pub struct PlacedCopy {
    /// What loads ask of it.
    pub asked: Vec<AskedRecord>,
    /// Hashes of the configuration with its settings and of its copy, to be compared with others of this process.
    pub hashes: [u64; 2],
    /// The configuration with its settings, and its copy.
    pub sides: [Source; 2],
}

/// By two arms with configurations of their own, where these differ and their copies do not.
pub fn vanished(
    placed: &BTreeMap<String, PlacedCopy>,
) -> BTreeMap<String, BTreeMap<String, Vec<SpotRecord>>> {
    let all = placed.iter().map(|(arm, PlacedCopy { sides, .. })| {
        let [original, copy] = sides;
        (arm, &original.files[0].path, Copied::of(original, copy))
    });
    let all: Vec<_> = all.collect();
    let of = |first: &Copied<'_>, main: &PathBuf| {
        let others = all.iter().filter(|(_, other, _)| *other != main);
        let spots = others
            .map(|(arm, _, second)| (arm.to_string(), weir_configuration::vanished(first, second)));
        spots.filter(|(_, spots)| !spots.is_empty()).collect()
    };
    all.iter()
        .map(|(arm, main, first)| (arm.to_string(), of(first, main)))
        .collect()
}

impl dyn Proxy + '_ {
    /// What loads ask of a configuration of the user's, once these settings are in it and a copy is made of
    /// it. Nothing is written and nothing is started.
    ///
    /// # Errors
    /// Why there can be no such copy: as for [`dyn Proxy::write`].
    pub fn place(
        &self,
        main: &Path,
        settings: &Settings,
        asks: &[AskSpec],
        catalog: &Catalog,
    ) -> Result<PlacedCopy, SutError> {
        let unable = || SutError::Unable {
            kind: self.kind(),
            what: NOT_YET.to_owned(),
        };
        let language = self.language().ok_or_else(unable)?;
        let wanted = wanted(self.kind(), settings, catalog)?;
        let [user, changed] = language.read(main, &wanted)?;
        let mut records = Vec::new();
        for ask in asks {
            let asked = language.look_up(&user, ask)?;
            let replaced = replaced(language, [&user, &changed], ask)?;
            let record = record(&user, ask, &asked);
            records.extend(record.map(|record| AskedRecord { replaced, ..record }));
        }
        let nobody = nobody()?;
        let at_nobody = |spec: &AskSpec| Ask {
            spec: spec.clone(),
            at: nobody,
        };
        let surroundings = Surroundings {
            prefix: Path::new("/weir"),
            asks: asks.iter().map(at_nobody).collect(),
            certificate: None,
            origin: nobody,
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

    /// The kind of certificate that a copy of a configuration of the user's shows, once these settings are in it: that of
    /// the first load over TLS, and [`CertificateKind::USUAL`] where it cannot be told.
    ///
    /// # Errors
    /// As for [`dyn Proxy::place`].
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

/// Hash of the words of all files, and of the kind of certificate that is shown.
fn hash_of(source: &Source, kind: Option<CertificateKind>) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    for word in source
        .files
        .iter()
        .flat_map(|file| file.text.split_whitespace())
    {
        word.hash(&mut hasher);
    }
    hasher.finish()
}
