//! A copy of a user's configuration of Caddy: its JSON, or a Caddyfile as it stands.

use std::path::Path;

use weir_configuration::document::{Dialect, Format, adapt_caddy, asked, change, read};
use weir_configuration::{Asked, ConfigurationError, Source, SourceFile, Surroundings, Wanted};
use weir_model::study::AskSpec;

use super::layout::{ENVIRONMENT, environment};
use super::{Caddy, FILE, KIND, folders, log};
use crate::configuration::Configuration;
use crate::installed::output;
use crate::own::{Copying, about};
use crate::{Language, Own, SutError, Task};

pub(super) fn write(
    caddy: &Caddy,
    task: &Task<'_>,
    own: Own<'_>,
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
    fn read(&self, main: &Path, wanted: &[Wanted<'_>]) -> Result<[Source; 2], SutError> {
        if main.extension().is_some_and(|it| it == "json") {
            let user = read(main, Format::Json)?;
            let changed = change(&user, Dialect::Caddy, wanted)?;
            return Ok([user, changed]);
        }
        must_change_nothing(main, wanted)?;
        let adapted = self.adapted(main)?;
        Ok([adapted.clone(), adapted])
    }

    fn look_up(&self, source: &Source, ask: &AskSpec) -> Result<Vec<Asked>, ConfigurationError> {
        let found = asked(source, Dialect::Caddy, ask);
        let main = &source.files[0].path;
        if main.extension().is_some_and(|it| it == "json") {
            return found;
        }
        // Lines of what a Caddyfile was made to are nobody's.
        let mut found = found.map_err(|error| ConfigurationError {
            hint: error.hint,
            ..about(main, error.what)
        })?;
        for asked in &mut found {
            asked.listener.line = 0;
            let spots = [&mut asked.server, &mut asked.location];
            spots.into_iter().flatten().for_each(|spot| spot.line = 0);
        }
        Ok(found)
    }

    fn adapt(
        &self,
        source: &Source,
        surroundings: &Surroundings<'_>,
    ) -> Result<Source, ConfigurationError> {
        adapt_caddy(source, surroundings)
    }
}

/// Settings are put into JSON, and nobody would find his Caddyfile again in what was made of it.
fn must_change_nothing(file: &Path, wanted: &[Wanted<'_>]) -> Result<(), ConfigurationError> {
    let is_of_document = |wanted: &&Wanted<'_>| {
        let mut writes = wanted.row.writes.iter();
        writes.any(|write| write.context.name() != ENVIRONMENT)
    };
    let Some(wanted) = wanted.iter().find(is_of_document) else {
        return Ok(());
    };
    let what = format!(
        "`{}` cannot be changed in a Caddyfile: settings go into Caddy's JSON",
        wanted.row.id
    );
    let hint = format!(
        "make JSON of it and name that file: caddy adapt --pretty --config {} > caddy.json",
        file.display()
    );
    Err(about(file, what).hint(hint))
}

impl Caddy {
    /// A Caddyfile as JSON, under its own name.
    fn adapted(&self, file: &Path) -> Result<Source, SutError> {
        let file = std::path::absolute(file).map_err(SutError::file("read", file))?;
        // With the place of a byte that is none of a text's, which Caddy would not tell.
        let text = std::fs::read(&file);
        let text = text.map_err(|error| about(&file, format!("cannot be read: {error}")))?;
        if std::str::from_utf8(&text).is_err() {
            read(&file, Format::Json)?;
        }
        let mut adapt = self.installed.command();
        adapt
            .args(["adapt", "--adapter", "caddyfile", "--config"])
            .arg(&file);
        let answer = output(adapt)?;
        if !answer.status.success() {
            let said = String::from_utf8_lossy(&answer.stderr);
            return Err(SutError::Refused {
                kind: KIND,
                file,
                words: log::without_notices(&said),
                change: Some(String::new()),
            });
        }
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        Ok(Source::new(vec![SourceFile { path: file, text }]))
    }
}
