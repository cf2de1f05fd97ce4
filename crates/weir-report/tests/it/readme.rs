//! The page by which a run folder explains itself.

use weir_model::record::{ChangedSetting, EndRecord, Outcome, Record, SessionRecord, SettingEnd};
use weir_report::{FolderContent, readme};

use crate::fixture::{self, Fixture};

fn session(number: u32, at: &str) -> Record {
    Record::Session(SessionRecord { session: number, at: at.to_owned() })
}

/// A run that was interrupted and resumed, and changed a setting of its host.
fn resumed() -> Fixture {
    let mut run = fixture::run();
    let somaxconn = ChangedSetting {
        name: "net.core.somaxconn".to_owned(),
        before: Some("4096".to_owned()),
        given: vec!["128".to_owned(), "65535".to_owned()],
        end: SettingEnd::PutBack,
    };
    let interrupted = EndRecord {
        changed: vec![somaxconn.clone()],
        ..EndRecord::new("2026-11-21T06:20:00Z", Outcome::Interrupted)
    };
    let left_alone = SettingEnd::LeftAlone { found: "1024".to_owned() };
    let complete = EndRecord {
        changed: vec![ChangedSetting { end: left_alone, ..somaxconn }],
        ..EndRecord::new("2026-11-21T07:10:00Z", Outcome::Complete)
    };
    run.records.retain(|record| !matches!(record, Record::End(_) | Record::Session(_)));
    run.records.insert(0, session(0, "2026-11-21T06:17:45Z"));
    run.records.push(Record::End(interrupted));
    run.records.push(session(1, "2026-11-21T07:00:00Z"));
    run.records.push(Record::End(complete));
    run
}

fn folder() -> FolderContent {
    FolderContent {
        files: vec![
            ("arms/stock/nginx.conf".to_owned(), 1_006),
            ("records.jsonl".to_owned(), 152_371),
            ("strange <b>name</b>".to_owned(), 1),
            ("study.yaml".to_owned(), 312),
        ],
        sums: "fd0f6343477f16a6869e4960cd80972c473be91cb9277f67d39106e4a5ac182f  run.json\n"
            .to_owned(),
        note: "after the kernel update".to_owned(),
    }
}

#[test]
fn readme_whole() {
    insta::assert_snapshot!(readme(&resumed().input(), &folder()));
}

#[test]
fn a_run_without_an_end_says_so() {
    let mut run = resumed();
    run.records.pop();
    let page = readme(&run.input(), &FolderContent::default());
    assert!(page.contains("no end is recorded"), "{page}");
    assert!(page.contains("`weir restore --dry-run` on the host tells"), "{page}");
}
