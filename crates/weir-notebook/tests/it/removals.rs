//! Removal of runs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use weir_model::record::Outcome;
use weir_notebook::{Refusal, check_removal, remove};
use weir_record::RunWriter;

use crate::made::{Notebook, VERSION, names_in};

#[test]
fn a_run_is_removed_whole_and_what_a_killed_removal_left_too() {
    let notebook = Notebook::new();
    let dir = notebook.add("old", 1, Some(Outcome::Complete));
    notebook.add("kept", 2, Some(Outcome::Complete));
    fs::create_dir_all(notebook.path(".removed-1/older/arms")).unwrap();
    let run = check_removal(&dir, VERSION, false).unwrap();
    remove(&run).unwrap();
    assert_eq!(names_in(&notebook.path("")), ["kept"]);
}

fn refusal(notebook: &Notebook, name: &str, awaits_restore: bool) -> Option<Refusal> {
    check_removal(&notebook.path(name), VERSION, awaits_restore).err()
}

#[test]
fn what_somebody_needs_is_not_removed() {
    let notebook = Notebook::new();
    fs::create_dir(notebook.path("folder")).unwrap();
    assert!(matches!(refusal(&notebook, "folder", false), Some(Refusal::NotARun)));
    assert!(matches!(refusal(&notebook, "nowhere", false), Some(Refusal::Io(_))));

    let dir = notebook.add("run", 1, None);
    symlink(&dir, notebook.path("link")).unwrap();
    assert!(matches!(refusal(&notebook, "link", false), Some(Refusal::Link)));
    assert!(refusal(&notebook, "run", false).is_none());
    // Its settings may be those that wait.
    assert!(matches!(refusal(&notebook, "run", true), Some(Refusal::Unrestored)));
    notebook.add("ended", 2, Some(Outcome::Failed));
    assert!(refusal(&notebook, "ended", true).is_none());

    let writer = RunWriter::resume(&dir).unwrap();
    assert!(matches!(refusal(&notebook, "run", false), Some(Refusal::Running)));
    drop(writer);
    assert!(refusal(&notebook, "run", false).is_none());

    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(refusal(&notebook, "run", false), Some(Refusal::NotOurs(_))));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(notebook.path("ended"), Some(54_321), None).unwrap();
        assert!(matches!(refusal(&notebook, "ended", false), Some(Refusal::OtherOwner)));
    }
    notebook.add("last", 3, Some(Outcome::Complete));
    fs::write(notebook.path(".weir-baseline"), "").unwrap();
    assert!(matches!(refusal(&notebook, "last", false), Some(Refusal::InBaseline)));
    assert_eq!(names_in(&notebook.path("last")).len(), 5);
}
