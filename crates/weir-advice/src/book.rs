//! The recommendations, read from data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use weir_model::study::{Metric, ProxyKind, Settings};

use crate::findings::Untried;

/// Expands to the name of a file in `advice/` and its text.
macro_rules! builtin {
    ($name:expr) => {
        (
            concat!("advice/", $name, ".yaml"),
            include_str!(concat!("../../../advice/", $name, ".yaml")),
        )
    };
}

/// Files of recommendations: one for each proxy, and that of the kernel.
macro_rules! builtin_files {
    ($($variant:ident $name:ident $title:literal $files:literal;)*) => {
        &[$(builtin!(stringify!($name)),)* builtin!("kernel")]
    };
}

const FILES: &[(&str, &str)] = weir_model::proxies!(builtin_files);

/// An error in a file of `advice/`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct BookError {
    /// Name of the file.
    pub file: String,
    /// Description of the error.
    pub what: String,
}

/// All recommendations, with their sources and the situations in which they claim to help.
#[derive(Debug, Clone)]
pub struct Book {
    /// Sources by name.
    pub sources: BTreeMap<String, Source>,
    /// Situations by name.
    pub situations: BTreeMap<String, Situation>,
    /// Recommendations in the order of the files.
    pub recommendations: Vec<Recommendation>,
}

/// A publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Author or publisher.
    pub author: String,
    /// Title.
    pub title: String,
    /// Date, as exact as it is known; `None` if the publication has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Address of the publication.
    pub link: String,
}

/// A load, and what both sides of a comparison have in common under it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Situation {
    /// The situation in a few words.
    pub title: String,
    /// Metric by which arms are compared.
    pub metric: Metric,
    /// Size of the file that a proxy serves; `None` for a reverse proxy.
    #[serde(default)]
    pub file: Option<String>,
    /// Length of a slice, if the load needs one.
    #[serde(default)]
    pub slice: Option<String>,
    /// Section `origin` of the study.
    #[serde(default)]
    pub origin: Option<serde_json::Value>,
    /// Keys of the study's load, without its name and duration.
    pub load: serde_json::Map<String, serde_json::Value>,
    /// Settings on top of the distribution's configuration, by proxy.
    #[serde(default)]
    pub settings: BTreeMap<ProxyKind, Settings>,
}

impl Situation {
    /// Returns true if the load can be sent to a user's own configuration of a reverse proxy.
    pub fn suits_any_configuration(&self) -> bool {
        let needs = ["tls", "size"];
        self.file.is_none()
            && self.origin.is_none()
            && !needs.iter().any(|key| self.load.contains_key(*key))
    }
}

/// Subject of a recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The kernel, whichever proxy runs.
    Kernel,
    /// A proxy.
    #[serde(untagged)]
    Proxy(ProxyKind),
}

/// A file of recommendations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: About,
    with: ProxyKind,
    recommendations: Vec<Row>,
}

/// A recommendation as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    #[serde(default)]
    study: Option<char>,
    source: String,
    claim: String,
    #[serde(default)]
    says: Option<String>,
    #[serde(default)]
    figure: Option<(f64, f64)>,
    written_for: String,
    changes: BTreeMap<String, (String, String)>,
    load: String,
    mechanism: String,
    #[serde(default)]
    not_here: Option<Untried>,
    #[serde(default)]
    obsolete: Option<Obsolete>,
    #[serde(default)]
    harmful_because: Option<String>,
}

/// A published recommendation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recommendation {
    /// Name.
    pub id: String,
    /// Subject: a proxy or the kernel.
    pub about: About,
    /// Proxy that it is tried with.
    pub proxy: ProxyKind,
    /// Letter of the published study that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub study: Option<char>,
    /// The publication.
    pub source: Source,
    /// The claim, in words of our own.
    pub claim: String,
    /// Effect as published; `None` if no figure was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Lowest and highest published ratio of the metric; `None` if no ratio was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<(f64, f64)>,
    /// Versions that it was written for.
    pub written_for: String,
    /// Levels by parameter: the one before, `stock` for that of the distribution, and the recommended one.
    pub changes: BTreeMap<String, (String, String)>,
    /// Name of the situation in which it claims to help.
    pub load: String,
    /// Metric that it claims to improve.
    pub metric: Metric,
    /// Mechanism, in a sentence or two.
    pub mechanism: String,
    /// Reason why a single host cannot show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_here: Option<Untried>,
    /// Change of the software that took its reason away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obsolete: Option<Obsolete>,
    /// Harm that it is known to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harmful_because: Option<String>,
}

/// A change of the software that took the reason for a recommendation away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Obsolete {
    /// First version of the subject with the change.
    pub since: String,
    /// The change, as a clause.
    pub because: String,
}

impl Recommendation {
    /// Returns the recommended levels.
    pub fn settings(&self) -> Settings {
        self.changes.iter().map(|(id, (_, to))| (id.clone(), to.clone())).collect()
    }
}

impl Book {
    /// Returns the recommendations that come with weir.
    pub fn builtin() -> &'static Book {
        static READ: LazyLock<Book> = LazyLock::new(|| {
            Book::read(builtin!("sources"), builtin!("loads"), FILES)
                .expect("the embedded files are data of this crate and its tests read them")
        });
        &READ
    }

    /// Reads files, each a name and its text.
    ///
    /// # Errors
    /// A text is not such a file, or names a source or a situation that does not exist.
    pub fn read(
        sources: (&str, &str),
        situations: (&str, &str),
        files: &[(&str, &str)],
    ) -> Result<Book, BookError> {
        let mut book = Book {
            sources: parse(sources)?,
            situations: parse(situations)?,
            recommendations: Vec::new(),
        };
        for (name, text) in files {
            let file: File = parse((name, text))?;
            for row in file.recommendations {
                let added = book
                    .complete(row, file.about, file.with)
                    .map_err(|what| BookError { file: (*name).to_owned(), what })?;
                book.recommendations.push(added);
            }
        }
        Ok(book)
    }

    /// Completes a row with its source and the metric of its situation.
    fn complete(&self, row: Row, about: About, proxy: ProxyKind) -> Result<Recommendation, String> {
        let Row { id, source, load, .. } = &row;
        if self.recommendations.iter().any(|other| other.id == *id) {
            return Err(format!("{id} is there twice"));
        }
        let publication = self.sources.get(source);
        let publication =
            publication.ok_or_else(|| format!("{id}: there is no source {source}"))?.clone();
        let situation = self.situations.get(load);
        let metric = situation.ok_or_else(|| format!("{id}: there is no load {load}"))?.metric;
        Ok(Recommendation {
            about,
            proxy,
            source: publication,
            metric,
            id: row.id,
            study: row.study,
            claim: row.claim,
            says: row.says,
            figure: row.figure,
            written_for: row.written_for,
            changes: row.changes,
            load: row.load,
            mechanism: row.mechanism,
            not_here: row.not_here,
            obsolete: row.obsolete,
            harmful_because: row.harmful_because,
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>((file, text): (&str, &str)) -> Result<T, BookError> {
    serde_saphyr::from_str(text)
        .map_err(|error| BookError { file: file.to_owned(), what: error.to_string() })
}
