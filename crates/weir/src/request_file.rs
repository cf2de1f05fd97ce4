//! Reading of request files, from the path to the requests of a load.

use std::path::Path;

use weir_load::files::{LARGEST_DATA, LARGEST_DESCRIPTION, read_at_most};
use weir_load::har;
use weir_model::load::RequestSpec;
use weir_model::request::WeightedRequest;
use weir_study::{Engine, parse_requests, utf8};

use crate::commands::study::must_be_own;
use crate::engine::ENGINE;
use crate::failure::Failure;
use crate::{other_tools, recorded, terminal};

/// Engine for files given on the command line, which may be pipes, unlike those of a study.
const TYPED: Engine = Engine { read: |path| read_at_most(path, LARGEST_DATA), ..ENGINE };

/// Reads the file and everything it names, and checks that its requests can be sent. Takes only the requests to `host`
/// of a recorded session. `add` may change every request.
pub(crate) fn read(
    path: &Path,
    host: &str,
    add: impl Fn(&mut RequestSpec),
) -> Result<Vec<WeightedRequest>, Failure> {
    let name = path.display().to_string();
    // A session has all responses too.
    let most = match path.extension() {
        Some(name) if name == "har" => LARGEST_DATA,
        _ => LARGEST_DESCRIPTION,
    };
    let bytes = read_at_most(path, most)
        .map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))?;
    let mut requests = if har::is_har(&bytes) {
        recorded::requests(&name, &bytes, host)?
    } else {
        must_be_own(path, "a set of requests")?;
        utf8(bytes, &name).and_then(|text| parse_requests(&text, &name, TYPED)).map_err(
            |errors| match other_tools::recognised(&name) {
                Some(other) => other,
                None => Failure::described(errors.render(terminal::color_on_stderr())),
            },
        )?
    };
    requests.iter_mut().for_each(|request| add(&mut request.request));
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<WeightedRequest>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.yaml");
        std::fs::write(&path, text).unwrap();
        let folder_path = format!("{}/", folder.path().display());
        read(&path, "a.test", |_| ())
            .map_err(|failure| failure.rendered(false).replace(&folder_path, ""))
    }

    #[test]
    fn a_file_becomes_requests() {
        let file =
            read_text("requests:\n- {path: /, weight: 3}\n- {path: \"/{{random}}\"}\n").unwrap();
        assert_eq!((file.len(), file[0].weight, file[1].weight), (2, 3.0, 1.0));
        assert_eq!(file[1].request.target, "/{{random}}");
    }

    #[test]
    fn what_is_wrong_has_its_place_whoever_finds_it() {
        let unknown = read_text(
            "requests:\n- {path: '/{{randon}}', fields: {X: '{{a}}{{line:/none}}'}}\n\
             - {path: '/{{randon'}\n- {path: /, weight: 1e308}\n",
        )
        .unwrap_err();
        let places = ["2:10", "2:37", "2:37", "3:10", "4:21"];
        let locations: Vec<_> = unknown.split("--> requests.yaml:").skip(1).collect();
        assert_eq!(locations.len(), places.len(), "{unknown}");
        for (location, place) in locations.iter().zip(places) {
            assert!(location.starts_with(place), "{place}: {unknown}");
        }
        assert!(unknown.contains("did you mean `{{random}}`?"), "{unknown}");
        let typed = read_text("requests:\n- {pth: /}\n").unwrap_err();
        assert!(typed.contains("requests.yaml:2:4"), "{typed}");
        assert!(typed.contains("did you mean `path`?"), "{typed}");
    }

    #[test]
    fn a_file_that_is_not_there() {
        let error = read(Path::new("/nonexistent/r.yaml"), "a.test", |_| ());
        let text = error.unwrap_err().rendered(false);
        assert!(text.starts_with("weir: cannot read /nonexistent/r.yaml: No such"), "{text}");
    }
}
