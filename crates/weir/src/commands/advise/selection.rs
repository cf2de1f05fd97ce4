//! Selection of recommendations: letters of published studies, names of recommendations, a configuration.

use std::path::{Path, PathBuf};

use weir_advice::{About, Book, Installed, Recommendation};
use weir_model::nearest::nearest;
use weir_model::study::ProxyKind;

use crate::args::AdviseArgs;
use crate::failure::Failure;

/// Recommendations, and the configuration on which they are tried.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) recommendations: Vec<Recommendation>,
    /// Main file of a user's own configuration.
    pub(super) file: Option<PathBuf>,
}

/// Reads what is to be tried; all recommendations, if nothing is named.
pub(super) fn read(args: &AdviseArgs) -> Result<Selection, Failure> {
    let book = Book::builtin();
    let (mut named, mut file) = (Vec::new(), None);
    for word in &args.what {
        if is_path(word) {
            if file.replace(PathBuf::from(word)).is_some() {
                return Err(Failure::input(
                    "two files: recommendations are tried on one configuration",
                ));
            }
            continue;
        }
        let ids = find_named(word, book).ok_or_else(|| unknown(word, book))?;
        named.extend(ids);
    }
    let kind = file.as_deref().map(|file| find_kind(args, file)).transpose()?;
    refuse_idle(args, file.is_some())?;
    let wanted = book.recommendations.iter().filter(|advice| {
        let is_named = named.is_empty() || named.contains(&&*advice.id);
        let is_about = match kind.or(args.proxy) {
            None => true,
            // Recommendations for the kernel are for every proxy.
            Some(kind) if file.is_some() => {
                [About::Kernel, About::Proxy(kind)].contains(&advice.about)
            }
            Some(kind) => advice.proxy == kind,
        };
        is_named && is_about
    });
    let recommendations: Vec<Recommendation> = wanted
        .map(|advice| Recommendation { proxy: kind.unwrap_or(advice.proxy), ..advice.clone() })
        .collect();
    if recommendations.is_empty() {
        return Err(Failure::input("none of these recommendations is for this proxy")
            .hint("weir advise lists all of them"));
    }
    Ok(Selection { recommendations, file })
}

/// Returns true if a word is the path of a file and no name.
fn is_path(word: &str) -> bool {
    word.contains('/') || (word.contains('.') && !word.contains("..")) || Path::new(word).is_file()
}

/// Returns the names of the recommendations that a word stands for: `A`, `A..E`, or a name.
fn find_named<'b>(word: &str, book: &'b Book) -> Option<Vec<&'b str>> {
    let all = &book.recommendations;
    if let Some(advice) = all.iter().find(|advice| advice.id == word) {
        return Some(vec![&advice.id]);
    }
    let (first, last) = word.split_once("..").unwrap_or((word, word));
    let [first, last] = [first, last].map(|letter| letter.parse::<char>().ok());
    let letters = first?..=last?;
    let of_studies =
        all.iter().filter(|advice| advice.study.is_some_and(|letter| letters.contains(&letter)));
    let ids: Vec<&str> = of_studies.map(|advice| &*advice.id).collect();
    (!ids.is_empty()).then_some(ids)
}

fn unknown(word: &str, book: &Book) -> Failure {
    let ids: Vec<&str> = book.recommendations.iter().map(|advice| &*advice.id).collect();
    let failure = Failure::input(format!(
        "`{word}` is no published study (A to E), no recommendation and no file"
    ));
    failure.hint(match nearest(word, &ids) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "weir advise lists the recommendations".to_owned(),
    })
}

/// Returns the proxy of a configuration: the given one, or the one that its name says.
fn find_kind(args: &AdviseArgs, file: &Path) -> Result<ProxyKind, Failure> {
    if !file.is_file() {
        return Err(Failure::input(format!("there is no file {}", file.display()))
            .hint("give the main file of a configuration, such as /etc/nginx/nginx.conf"));
    }
    let named = file
        .ancestors()
        .filter_map(Path::file_name)
        .find_map(|name| weir_proxies::kind_by_name(&name.to_string_lossy()));
    args.proxy.or(named).ok_or_else(|| {
        Failure::input(format!(
            "which proxy does {} configure? Its name does not say",
            file.display()
        ))
        .hint("give --proxy nginx, or another one")
    })
}

/// Refuses options about a configuration if there is none.
fn refuse_idle(args: &AdviseArgs, has_file: bool) -> Result<(), Failure> {
    let options = [
        ("--port", args.port.is_some()),
        ("--host", args.host.is_some()),
        ("--path", args.path.is_some()),
    ];
    match options.into_iter().find(|(_, is_given)| *is_given && !has_file) {
        Some((option, _)) => Err(Failure::input(format!(
            "{option} is about a configuration of your own, and no file is given"
        ))),
        None => Ok(()),
    }
}

/// Reads the properties of this host that recommendations depend on.
pub(super) fn find_installed(allows_host_settings: bool, is_own: bool) -> Installed {
    let programs = ProxyKind::started().filter_map(|kind| {
        let program = weir_proxies::find(kind, None).ok()?;
        Some((kind, program.version().to_owned()))
    });
    Installed {
        programs: programs.collect(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        allows_host_settings,
        is_own,
    }
}
