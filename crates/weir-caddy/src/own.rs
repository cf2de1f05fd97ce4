//! A copy of a user's configuration of Caddy: its JSON, or a Caddyfile as it stands.

use std::path::Path;

use weir_configuration::document::{Format, asked, certificates, change, read, replaced};
use weir_configuration::{
    ConfigurationError, RequestOutcome, ShownCertificate, Source, SourceFile, Surroundings,
    WantedSetting, read_regular,
};
use weir_model::record::ReplacedRecord;
use weir_model::study::AskSpec;
use weir_sut::configuration::Configuration;
use weir_sut::installed::output;
use weir_sut::own::{Copying, about};
use weir_sut::{Language, SutError, Task, UserConfiguration};

use super::language::{CaddyJson, adapt};
use super::layout::{ENVIRONMENT, environment};
use super::{Caddy, FILE, KIND, folders, log};

/// Largest Caddyfile that is read, in bytes; the same as for other languages.
const MOST: u64 = 64 << 20;

pub(super) fn write(
    caddy: &Caddy,
    task: &Task<'_>,
    own: UserConfiguration<'_>,
) -> Result<Configuration, SutError> {
    let [user, changed] = caddy.read(own.file, &task.wanted()?)?;
    let variables = environment(&task.directives()?)?;
    let copying = Copying::begin(task, own, [user, changed], None)?;
    let copy = caddy.adapt(copying.changed(), &copying.surroundings(None))?;
    Ok(Configuration {
        environment: folders().chain(variables).collect(),
        // Caddy takes the language from the name.
        ..copying.finish(caddy, copy, Some(FILE))?
    })
}

impl Language for Caddy {
    fn read(&self, main: &Path, wanted: &[WantedSetting<'_>]) -> Result<[Source; 2], SutError> {
        if main.extension().is_some_and(|it| it == "json") {
            let user = read(main, Format::Json)?;
            let changed = change(&user, &CaddyJson, wanted)?;
            return Ok([user, changed]);
        }
        must_change_nothing(main, wanted)?;
        let adapted = self.adapted(main)?;
        Ok([adapted.clone(), adapted])
    }

    fn look_up(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<RequestOutcome>, ConfigurationError> {
        let lookup = asked(source, &CaddyJson, ask);
        let main = &source.files[0].path;
        if main.extension().is_some_and(|it| it == "json") {
            return lookup;
        }
        // Lines of what a Caddyfile was made to are nobody's.
        let mut lookups = lookup.map_err(|error| in_caddyfile(error, source, main))?;
        for asked in &mut lookups {
            asked.listener.line = 0;
            let spots = [&mut asked.server, &mut asked.location];
            spots.into_iter().flatten().for_each(|spot| spot.line = 0);
        }
        Ok(lookups)
    }

    fn replaced(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
        let mut records = replaced(source, &CaddyJson, ask)?;
        let main = &source.files[0].path;
        if main.extension().is_none_or(|it| it != "json") {
            records.iter_mut().for_each(|it| it.original.line = 0);
        }
        Ok(records)
    }

    fn certificates(
        &self,
        source: &Source,
        ask: &AskSpec,
    ) -> Result<Vec<ShownCertificate>, ConfigurationError> {
        certificates(source, &CaddyJson, ask)
    }

    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError> {
        let main = &source.files[0].path;
        let copy = adapt(source, surroundings);
        copy.map_err(|error| {
            if main.extension().is_some_and(|it| it == "json") {
                error
            } else {
                in_caddyfile(error, source, main)
            }
        })
    }
}

/// Refuses settings that would change a Caddyfile: they go into JSON, in which users would not recognise their
/// Caddyfile.
fn must_change_nothing(
    file: &Path,
    wanted: &[WantedSetting<'_>],
) -> Result<(), ConfigurationError> {
    let of_document = wanted
        .iter()
        .find(|wanted| wanted.row.writes.iter().any(|write| write.context.name() != ENVIRONMENT));
    let Some(wanted) = of_document else {
        return Ok(());
    };
    let message = format!(
        "`{}` cannot be changed in a Caddyfile: settings go into Caddy's JSON",
        wanted.row.id
    );
    let hint = format!(
        "make JSON of it and name that file: caddy adapt --pretty --config {} > caddy.json",
        file.display()
    );
    Err(about(file, message).hint(hint))
}

/// Moves an error about the JSON made from a Caddyfile to its place in the Caddyfile: that of the first word behind the
/// error's own place that also stands in the Caddyfile.
fn in_caddyfile(error: ConfigurationError, made: &Source, file: &Path) -> ConfigurationError {
    // Of the file as a whole.
    if (error.line, error.column) == (1, 1) {
        return error;
    }
    let users = read_regular(file, MOST).unwrap_or_default();
    let users = String::from_utf8_lossy(&users);
    let lines = made.files.first().map(|file| file.text.lines());
    let line = lines.and_then(|mut lines| lines.nth(error.line.saturating_sub(1)));
    let behind: String =
        line.unwrap_or_default().chars().skip(error.column.saturating_sub(1)).collect();
    let mut words = behind.split('"').skip(1).step_by(2).take(4);
    let position = words.find_map(|word| place_of(word, &users));
    let (line, column) = position.unwrap_or((1, 1));
    ConfigurationError { line, column, ..error }
}

/// Returns line and column of a word that stands alone, both counted from 1.
fn place_of(word: &str, text: &str) -> Option<(usize, usize)> {
    text.lines().enumerate().find_map(|(line, content)| {
        let mut places = content.match_indices(word).map(|(at, _)| at);
        let at = places.find(|at| !word.is_empty() && stands_alone(content, *at, word))?;
        Some((line + 1, content[..at].chars().count() + 1))
    })
}

fn stands_alone(content: &str, at: usize, word: &str) -> bool {
    let ends = [content[..at].chars().next_back(), content[at + word.len()..].chars().next()];
    ends.iter().all(|end| end.is_none_or(char::is_whitespace))
}

impl Caddy {
    /// Converts a Caddyfile to JSON, under the Caddyfile's name.
    fn adapted(&self, file: &Path) -> Result<Source, SutError> {
        let file = std::path::absolute(file).map_err(SutError::file("read", file))?;
        // With the place of a byte that is none of a text's, which Caddy would not tell.
        let text = read_regular(&file, MOST)
            .map_err(|error| about(&file, format!("cannot be read: {error}")))?;
        if std::str::from_utf8(&text).is_err() {
            read(&file, Format::Json)?;
        }
        let mut adapt = self.installed.command();
        adapt.args(["adapt", "--adapter", "caddyfile", "--config"]).arg(&file);
        let answer = output(adapt)?;
        if !answer.status.success() {
            let stderr = String::from_utf8_lossy(&answer.stderr);
            return Err(SutError::Refused {
                kind: KIND,
                file,
                words: log::without_notices(&stderr),
                change: Some(String::new()),
            });
        }
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        Ok(Source::new(vec![SourceFile { path: file, text }]))
    }
}
