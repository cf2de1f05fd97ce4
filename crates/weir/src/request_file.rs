//! Files of requests, from the path that was typed to what a load sends.

use std::path::Path;

use weir_load::request_set::{RequestSet, SetError};
use weir_load::template::Files;
use weir_model::load::RequestSpec;
use weir_model::request::WeightedRequest;
use weir_study::parse_requests;

use crate::failure::Failure;
use crate::terminal;

/// Reads the file and everything it names, and finds out whether its requests can be sent. `host` is the
/// authority for Host fields; `add` may put something to every request.
pub(crate) fn read(
    path: &Path,
    host: &str,
    files: &mut Files,
    add: impl Fn(&mut RequestSpec),
) -> Result<Vec<WeightedRequest>, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))?;
    let mut read_file = |path: &Path| std::fs::read(path);
    let mut read = parse_requests(&text, &name, &mut read_file)
        .map_err(|errors| Failure::described(errors.render(terminal::color_on_stderr())))?;
    let requests = read.requests.iter_mut();
    requests.for_each(|one| add(&mut one.request));
    RequestSet::weighted(&read.requests, host, files)
        .map_err(|error| refused(&error, &name, &read.places))?;
    Ok(read.requests)
}

/// What is found out only when the requests are made still has its place in the file.
fn refused(error: &SetError, name: &str, places: &[(usize, usize)]) -> Failure {
    let place = error.number().and_then(|number| places.get(number - 1));
    let failure = match place {
        Some((line, column)) => Failure::input(format_args!("{name}:{line}:{column}: {error}")),
        None => Failure::input(format_args!("{name}: {error}")),
    };
    failure.maybe_hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<WeightedRequest>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.yaml");
        std::fs::write(&path, text).unwrap();
        let place = format!("{}/", folder.path().display());
        read(&path, "example:80", &mut Files::default(), |_| ())
            .map_err(|failure| failure.rendered(false).replace(&place, ""))
    }

    #[test]
    fn a_file_becomes_requests() {
        let file = read_text("requests:\n- {path: /, weight: 3}\n- {path: \"/{{random}}\"}\n");
        let file = file.unwrap();
        assert_eq!((file.len(), file[0].weight, file[1].weight), (2, 3.0, 1.0));
        assert_eq!(file[1].request.target, "/{{random}}");
    }

    #[test]
    fn what_is_wrong_has_its_place_whoever_finds_it() {
        let unknown = read_text("requests:\n- {path: /}\n- {path: \"/{{randon}}\"}\n");
        let expected = "weir: requests.yaml:3:3: request 2 (GET /{{randon}}): \
                        the target, character 2: `randon` is not a slot\n\
                        hint: did you mean `{{random}}`?";
        assert_eq!(unknown.unwrap_err(), expected);
        let typed = read_text("requests:\n- {pth: /}\n").unwrap_err();
        assert!(typed.contains("requests.yaml:2:4"), "{typed}");
        assert!(typed.contains("did you mean `path`?"), "{typed}");
    }

    #[test]
    fn a_file_that_is_not_there() {
        let error = read(
            Path::new("/nonexistent/r.yaml"),
            "h",
            &mut Files::default(),
            |_| (),
        );
        let text = error.unwrap_err().rendered(false);
        assert!(
            text.starts_with("weir: cannot read /nonexistent/r.yaml: No such"),
            "{text}"
        );
    }
}
