//! `weir load` with a server of the test's.

use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_origin::Origin;

use crate::faulty::Faulty;
use crate::program::{Ended, Running, run, wait_until};
use crate::secure::Nginx;

/// A target of `weir load`; its URL comes last in the command line.
pub trait Server {
    fn url(&self) -> String;

    /// Like [`report`], with this server's URL.
    fn report(&self, flags: &str) -> (LoadReport, Ended) {
        let url = self.url();
        report(&format!("{flags} {url}"))
    }

    /// Like [`reported`], with this server's URL.
    #[track_caller]
    fn reported(&self, flags: &str) -> LoadReport {
        let url = self.url();
        reported(&format!("{flags} {url}"))
    }

    /// Runs `weir load` with text output.
    fn load(&self, flags: &str) -> Ended {
        let url = self.url();
        run(&format!("load {flags} {url}"))
    }
}

impl Server for Origin {
    fn url(&self) -> String {
        format!("http://{}/", self.addresses()[0])
    }
}

impl Server for Faulty {
    fn url(&self) -> String {
        format!("{}://{}/", self.scheme(), self.address)
    }
}

impl Server for Nginx {
    fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

/// Runs `weir load`, and returns its JSON report.
pub fn report(line: &str) -> (LoadReport, Ended) {
    let ended = run(&format!("load --quiet --format json {line}"));
    (ended.document(), ended)
}

/// Runs `weir load`, which must succeed, and returns its JSON report.
#[track_caller]
pub fn reported(line: &str) -> LoadReport {
    let (report, ended) = report(line);
    ended.with_code(0);
    report
}

/// Kind and words of an error.
pub type Error = (ErrorKind, &'static str);

/// Returns the status and the number of all answers, which must have the same status.
#[track_caller]
pub fn only_status(report: &LoadReport) -> (u16, u64) {
    let [all] = &report.results.statuses[..] else {
        panic!("{:?} {:?}", report.results.statuses, report.results.errors)
    };
    (all.status, all.count)
}

/// Returns kind, words and number of the errors, which must be alike.
#[track_caller]
pub fn only_error(report: &LoadReport) -> (ErrorKind, &str, u64) {
    let [error] = &report.results.errors[..] else { panic!("{:?}", report.results.errors) };
    (error.kind, &error.words, error.count)
}

/// Waits until a process has a thread of this name.
pub fn wait_until_thread(process: &Running, name: &str) {
    let threads = format!("/proc/{}/task", process.pid());
    wait_until("the thread", || {
        std::fs::read_dir(&threads)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
            .any(|comm| comm.trim() == name)
    });
}
