//! `--baseline DIR`: a run is judged by the runs that a folder keeps, and kept there unless it is worse.
//!
//! The folder belongs to weir: the file [`MARKER`] says so, without which no folder that has anything in it is taken. The
//! file is also the lock, held while a run is judged and added. A run is copied under another name and renamed, so that
//! no reader sees half of it; what a killed weir left of that is removed by the next one.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_conditions::Judged;
use weir_conditions::runs::Conditions;
use weir_files::{only_ours_named, only_ours_to_be_made};
use weir_history::{
    BaselineFindings, DatedRun, RunFigures, RunVerdict, differences, judge_by_baseline, surplus,
};
use weir_model::record::{Outcome, RunHeader};
use weir_model::study::Study;
use weir_record::{HEADER_FILE, HISTOGRAMS_FILE, RECORDS_FILE, Run, STUDY_FILE};
use weir_sentences::baseline::{describe_kept, describe_verdict, explain_left_out};
use weir_sentences::history::explain_left_out as explain_run;

use crate::args::BaselineArgs;
use crate::commands::fail_if;
use crate::commands::kept_runs::{
    KeptHeader, date, is_same_study, name_of, read_dated, read_headers,
};
use crate::failure::Failure;
use crate::terminal;

/// File that makes a folder a baseline, and its lock.
const MARKER: &str = ".weir-baseline";
/// Beginning of the name of a run that is being copied or removed.
const UNFINISHED: &str = ".unfinished-";
/// Maximum time to wait for another weir that adds a run.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// Files of a run that its figures are computed from.
const FILES: [&str; 4] = [STUDY_FILE, HISTOGRAMS_FILE, RECORDS_FILE, HEADER_FILE];

/// A folder of kept runs, with what is asked about them.
#[derive(Debug)]
pub(super) struct Baseline {
    folder: PathBuf,
    /// Maximum number of runs.
    most: usize,
    renews: bool,
    conditions: Conditions,
}

/// Conditions of `--fail-if` that are not about the baseline.
pub(super) type OtherConditions = Vec<String>;

impl Baseline {
    /// Reads the options and checks the folder before anything is measured. Takes the conditions that are about the
    /// baseline, if there is one. Where nothing is to be measured, no folder is made into a baseline.
    pub(super) fn read(
        args: &BaselineArgs,
        fail_if: &[String],
        is_measured: bool,
    ) -> Result<(Option<Baseline>, OtherConditions), Failure> {
        let Some(folder) = args.baseline.clone() else { return Ok((None, fail_if.to_vec())) };
        let (own, others): (Vec<String>, Vec<String>) = fail_if
            .iter()
            .cloned()
            .partition(|text| matches!(text.trim(), "worse" | "inconclusive"));
        let conditions = Conditions::read(&own).map_err(fail_if::refused)?;
        if !is_measured && !folder.join(MARKER).exists() {
            return Ok((None, others));
        }
        prepare(&folder)?;
        let (most, renews) = (usize::from(args.keep), args.renew);
        Ok((Some(Baseline { folder, most, renews, conditions }), others))
    }

    /// Refuses a study of which the folder has no runs, but those of another one.
    pub(super) fn check(&self, study: &Study) -> Result<(), Failure> {
        let (headers, _) = read_headers(&self.folder)?;
        match headers.iter().find(|kept| !is_same_study(&kept.header.study, study)) {
            Some(kept) if !self.renews => Err(self.refuse_study(&kept.header, &study.name)),
            _ => Ok(()),
        }
    }

    fn refuse_study(&self, kept: &RunHeader, study: &str) -> Failure {
        Failure::input(format!(
            "--baseline {}: it keeps runs of {}, which have no arm and load in common with {study}, or another time or objective",
            self.folder.display(),
            kept.study.name
        ))
        .hint("give each study a folder of its own; --renew begins it anew with this run")
    }

    /// Judges a run and keeps it unless it is worse. Prints the verdict and returns the judged conditions.
    pub(super) fn judge(&self, run: &Run, prints: bool) -> Result<Vec<Judged>, Failure> {
        let _lock = self.lock()?;
        self.remove_unfinished();
        let name = name_kept(&run.header);
        let new = date(run, &name_of(&run.dir))
            .map_err(|why| Failure::failed(format!("--baseline: {}", explain_run(&why))))?;
        let is_complete = run.outcome() == Some(Outcome::Complete);
        let runs = self.read_kept(&run.header)?;
        let findings = if self.renews { None } else { self.compare(&runs, &new) };
        let mut lines: Vec<String> = findings.iter().map(describe_verdict).collect();
        let may_be_kept = match &findings {
            Some(findings) => findings.may_be_kept(),
            None => new.figures.figures.iter().any(|figure| figure.value.is_some()),
        };
        let folder = self.folder.display().to_string();
        if is_complete && may_be_kept {
            if !self.folder.join(&name).exists() {
                self.add(run, &name)?;
            }
            let count = self.make_room(runs, &name)?;
            lines.push(describe_kept(&folder, count, self.most));
        } else {
            let is_valid = new.figures.figures.iter().any(|figure| figure.value.is_some());
            lines.push(explain_left_out(&folder, is_complete, is_valid));
        }
        let text = lines.join("\n") + "\n";
        if prints {
            terminal::print(&text)?;
        } else {
            terminal::tell(&text);
        }
        Ok(self.judge_conditions(findings.as_ref()))
    }

    fn compare(&self, kept: &[KeptRun], new: &DatedRun) -> Option<BaselineFindings> {
        let earlier: Vec<&KeptRun> =
            kept.iter().filter(|kept| !is_same_run(&kept.run.header, &new.header)).collect();
        let around = differences(&earlier.last()?.run.header, &new.header);
        let figures: Vec<&RunFigures> = earlier.iter().map(|kept| &kept.run.figures).collect();
        judge_by_baseline(&figures, &new.figures, &around, self.most)
    }

    /// Judges the conditions. While the baseline begins nothing is known to be worse, which is no failure: a pipeline
    /// must be able to fill it.
    fn judge_conditions(&self, found: Option<&BaselineFindings>) -> Vec<Judged> {
        let judged =
            found.filter(|found| !found.is_beginning() || found.runs.verdict == RunVerdict::Worse);
        judged.map(|found| self.conditions.judge(&found.runs)).unwrap_or_default()
    }

    /// Reads the kept runs, in order of time. Those that cannot be used are named on standard error.
    fn read_kept(&self, new: &RunHeader) -> Result<Vec<KeptRun>, Failure> {
        let (headers, left_out) = read_headers(&self.folder)?;
        for one in left_out {
            let path = self.folder.join(&one.name);
            terminal::tell(&format!(
                "weir: {} is left out: {}; remove it\n",
                path.display(),
                explain_run(&one.why)
            ));
        }
        let mut runs = Vec::new();
        for KeptHeader { path, header } in headers {
            if !self.renews {
                self.refuse_unlike(&header, new)?;
            }
            match read_dated(&path) {
                Ok(run) => runs.push(KeptRun { path, run }),
                Err(why) => terminal::tell(&format!(
                    "weir: {} is left out: {}; remove it\n",
                    path.display(),
                    explain_run(&why)
                )),
            }
        }
        Ok(runs)
    }

    /// Refuses a run of another study, or on another machine, than those that are kept.
    fn refuse_unlike(&self, kept: &RunHeader, new: &RunHeader) -> Result<(), Failure> {
        if !is_same_study(&kept.study, &new.study) {
            return Err(self.refuse_study(kept, &new.study.name));
        }
        let all = differences(kept, new);
        let Some(one) = all.iter().find(|one| one.is_of_machine) else { return Ok(()) };
        Err(Failure::failed(format!(
            "--baseline {}: its runs are of another machine ({}: {}, now {}), so nothing is judged and the run is not kept",
            self.folder.display(),
            one.what,
            one.old,
            one.new
        ))
        .hint("give each kind of machine a folder of its own; --renew begins it anew with this run"))
    }

    /// Takes the lock, which the kernel releases however its holder ends.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.folder.join(MARKER);
        let file = weir_files::append(&path).map_err(|error| cannot("open", &path, &error))?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => {
                    std::thread::sleep(LOOK);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::failed(format!(
                        "--baseline {}: another weir has been adding a run for {} s",
                        self.folder.display(),
                        PATIENCE.as_secs()
                    )));
                }
                Err(TryLockError::Error(error)) => return Err(cannot("lock", &path, &error)),
            }
        }
    }

    /// Removes what a killed weir left. Nothing is as well as removed if that fails: it is no run.
    fn remove_unfinished(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if name_of(&path).starts_with(UNFINISHED) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }

    /// Copies a run's records into the baseline: whole, or not at all.
    fn add(&self, run: &Run, name: &str) -> Result<(), Failure> {
        let copy = self.folder.join(format!("{UNFINISHED}{name}"));
        let copied = weir_files::make_folder(&copy).and_then(|()| {
            FILES.iter().try_for_each(|file| {
                weir_files::replace(&copy.join(file), &weir_files::read(&run.dir.join(file))?)
            })
        });
        copied.map_err(|error| cannot("write", &copy, &error))?;
        Run::read(&copy).map_err(|error| {
            Failure::failed(format!("--baseline: the copy is damaged: {error}"))
        })?;
        let target = self.folder.join(name);
        fs::rename(&copy, &target)
            .and_then(|()| File::open(&self.folder)?.sync_all())
            .map_err(|error| cannot("write", &target, &error))
    }

    /// Removes the runs that have to go for a new one, and returns the number of those that are kept now.
    fn make_room(&self, kept: Vec<KeptRun>, added: &str) -> Result<usize, Failure> {
        let mut paths: Vec<PathBuf> = kept.into_iter().map(|kept| kept.path).collect();
        paths.retain(|path| name_of(path) != added);
        let count = paths.len() + 1;
        let going = if self.renews { 0..paths.len() } else { surplus(count, self.most) };
        self.remove(&paths[going.clone()])?;
        Ok(count - going.len())
    }

    /// Removes kept runs, each at once.
    fn remove(&self, runs: &[PathBuf]) -> Result<(), Failure> {
        for path in runs {
            let away = self.folder.join(format!("{UNFINISHED}{}", name_of(path)));
            fs::rename(path, &away)
                .and_then(|()| fs::remove_dir_all(&away))
                .map_err(|error| cannot("remove", path, &error))?;
        }
        Ok(())
    }
}

/// A run of the baseline.
struct KeptRun {
    path: PathBuf,
    run: DatedRun,
}

/// Makes the folder, or checks that it is a baseline of this user.
fn prepare(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        only_ours_named(folder)
            .map_err(|why| refuse_folder(folder, format!("others could have written {why}")))?;
    } else {
        only_ours_to_be_made(folder)
            .map_err(|why| refuse_folder(folder, format!("others could have written {why}")))?;
        weir_files::make_folders(folder)
            .map_err(|error| refuse_folder(folder, format!("cannot make it: {error}")))?;
    }
    let marker = folder.join(MARKER);
    if marker.symlink_metadata().is_ok() {
        return Ok(());
    }
    let is_empty = fs::read_dir(folder)
        .map_err(|error| refuse_folder(folder, format!("cannot read it: {error}")))?
        .next()
        .is_none();
    if !is_empty {
        return Err(refuse_folder(folder, "it has files in it, and is no baseline".to_owned())
            .hint("give a new or an empty folder: weir removes runs from it"));
    }
    weir_files::append(&marker)
        .map(drop)
        .map_err(|error| refuse_folder(folder, format!("cannot write into it: {error}")))
}

fn refuse_folder(folder: &Path, why: String) -> Failure {
    Failure::input(format!("--baseline {}: {why}", folder.display()))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("--baseline: cannot {what} {}: {error}", path.display()))
}

fn is_same_run(one: &RunHeader, other: &RunHeader) -> bool {
    (&one.started_at, &one.run) == (&other.started_at, &other.run)
}

/// Returns the name that a run is kept under: when it began, and its own name.
fn name_kept(header: &RunHeader) -> String {
    let time: String = header.started_at.chars().filter(char::is_ascii_alphanumeric).collect();
    let name: String = header
        .run
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .take(80)
        .collect();
    format!("{time}-{name}")
}
