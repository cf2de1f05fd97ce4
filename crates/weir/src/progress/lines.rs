//! Events as lines for people, on standard error: rewritten in place on a terminal, now and then elsewhere.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_host::journal::Restored;
use weir_lab::Event as LabEvent;
use weir_model::progress::LoadState;
use weir_model::record::{AskedRecord, BracketRecord};
use weir_model::study::Until;
use weir_objects::PutBack;
use weir_proposers::Announcement;
use weir_report::{number, words};

use super::phrases::{
    about, at_most, describe_choice, describe_look, describe_pilot, interval_line, listed,
    load_line, together, whole_seconds,
};
use super::{Consumer, Event};
use crate::commands::restore;
use crate::terminal::StatusLine;

/// Time between updates of a load's line: on a terminal, and in a file where lines stay.
const REWRITE: Duration = Duration::from_millis(500);
const PLAIN: Duration = Duration::from_secs(5);
/// Least time between lines about a run's progress in a log file: hours of them must not hide its other lines.
const NEWS: Duration = Duration::from_secs(60);
/// Time between updates of the time left while nothing else happens.
const COUNT_DOWN: Duration = Duration::from_secs(1);

/// Shows progress as lines on standard error.
pub(crate) struct Lines {
    line: StatusLine,
    begun: Instant,
    arms: Vec<String>,
    /// True if more than one arm has answered.
    several: bool,
    /// Lines about requested configurations that were written.
    asked: Vec<String>,
    told: Instant,
    /// Time of the last line about progress in a log file.
    news: Option<Instant>,
    is_resumed: bool,
    is_alone: bool,
    /// Expected end of a load that ends as soon as everything is decided, with the words for its certainty.
    left: Option<(&'static str, Instant)>,
    /// Begin of the whole session, and its expected end.
    session: Option<(Instant, Instant)>,
    /// Words for the certainty of the session's end; `None` until it was announced.
    promised: Option<&'static str>,
    /// Folder of the records, until it is said: nothing is kept of a run whose arms never answer.
    folder: Option<PathBuf>,
    /// Line about the present work, without the time left.
    current: String,
    /// True if each interval of a load is a line that stays, and the load has no other lines.
    stays: bool,
    /// Requests per second that a load demands.
    rate: Option<f64>,
    /// The p99 of a load's last interval, nanoseconds.
    p99: Option<u64>,
    /// Time of a load's last update, and the requests completed by then.
    load: Option<(Instant, u64)>,
}

impl Lines {
    /// Creates a display on standard error. `stays`: each interval of a load is a line.
    pub(crate) fn new(stays: bool) -> Lines {
        Lines::on(StatusLine::new(), stays)
    }

    /// Creates a display that writes nothing and keeps its lines.
    pub(crate) fn silent(stays: bool) -> Lines {
        Lines::on(StatusLine::kept(), stays)
    }

    fn on(line: StatusLine, stays: bool) -> Lines {
        let now = Instant::now();
        Lines {
            line,
            begun: now,
            arms: Vec::new(),
            several: false,
            asked: Vec::new(),
            told: now,
            news: None,
            is_resumed: false,
            is_alone: false,
            left: None,
            session: None,
            promised: None,
            folder: None,
            current: String::new(),
            stays,
            rate: None,
            p99: None,
            load: None,
        }
    }

    /// Continues on standard error, and returns the lines that stay so far.
    pub(crate) fn go_on(&mut self) -> Vec<String> {
        std::mem::replace(&mut self.line, StatusLine::new()).take_said()
    }

    /// Returns the latest lines that were kept.
    pub(crate) fn said(&self) -> &[String] {
        self.line.said()
    }

    /// Returns the line about the present work.
    pub(crate) fn current(&self) -> &str {
        &self.current
    }

    /// Returns the approximate time left of the whole session; `None` if it is not known.
    pub(crate) fn session_left(&self) -> Option<Duration> {
        let (_, end) = self.session?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    /// Returns the share of the session that is over, 0 to 1.
    pub(crate) fn session_share(&self) -> Option<f64> {
        let (begun, end) = self.session?;
        let length = end.saturating_duration_since(begun).as_secs_f64();
        Some((begun.elapsed().as_secs_f64() / length.max(1e-9)).min(1.0))
    }

    fn say(&mut self, text: &str) {
        self.line.say(text);
    }

    /// Shows a line that is soon out of date: a terminal shows it until the next one, a log file gets one every
    /// [`NEWS`].
    fn tell_news(&mut self, text: String) {
        if self.line.is_kept() {
            self.line.keep(&text);
        } else if self.line.rewrites() {
            self.show(text);
        } else if self.news.is_none_or(|news| news.elapsed() >= NEWS) {
            self.news = Some(Instant::now());
            self.line.show(&text);
        }
    }

    fn say_folder(&mut self) {
        if let Some(folder) = self.folder.take() {
            self.say(&format!("Records go to {}", folder.display()));
        }
    }

    /// Announces the expected time.
    fn promise(&mut self, takes: Duration, until: Until) {
        self.say_folder();
        self.say_arms();
        self.ends_in(takes);
        let scope = if self.is_resumed { "What remains" } else { "The whole run" };
        self.promised = Some(about(until));
        let takes = number::length(whole_seconds(takes));
        self.say(&format!("{scope} takes {} {takes}", about(until)));
    }

    /// Returns the time left of the whole run, to follow the present work; empty if it is not known.
    fn left_of_run(&self) -> String {
        // Who keeps the lines shows the time left by themselves.
        let promised = self.promised.filter(|_| !self.line.is_kept());
        match (promised, self.session_left()) {
            (Some(about), Some(left)) if !left.is_zero() => {
                let time = number::length(whole_seconds(left));
                format!(" · {about} {time} left of the run")
            }
            _ => String::new(),
        }
    }

    /// Sets the length of the session, from its begin.
    fn ends_in(&mut self, takes: Duration) {
        let (begun, _) = self.session.unwrap_or((Instant::now(), self.begun));
        self.session = Some((begun, begun + takes));
    }

    fn tell(&mut self, event: LabEvent) {
        match event {
            LabEvent::RollOutAwaited { workload, within } => self.say(&awaited(&workload, within)),
            LabEvent::Begun { folder, is_resumed, remarks, takes, .. } => {
                self.ends_in(takes);
                for remark in remarks {
                    self.say(&format!("Note: {remark}"));
                }
                self.folder = Some(folder);
                self.is_resumed = is_resumed;
                self.show("starting what is measured".to_owned());
            }
            LabEvent::Takes { takes, until } => self.promise(takes, until),
            LabEvent::TakesAtMost { takes } => self.say(&at_most(takes)),
            LabEvent::ArmReady { arm, address, asked, remarks } => {
                self.ready(arm, &address, &asked, &remarks);
            }
            LabEvent::Measured(_) | LabEvent::Sampled { .. } => {}
            LabEvent::Block { loads, done, of, baseline_rate } => {
                self.show_block(&together(&loads), done, of, baseline_rate);
            }
            LabEvent::PutBack { settings } => self.put_back(&settings),
            LabEvent::ObjectsPutBack { objects } => self.objects_put_back(&objects),
            LabEvent::Announced(announcement) => self.announce(announcement),
        }
    }

    /// Shows what the proposer measures, or what it has found.
    fn announce(&mut self, announcement: Announcement) {
        match announcement {
            Announcement::Bracket { bracket, left } => self.search(&bracket, left),
            Announcement::Capacity(found) => self.say(&weir_sentences::capacity::of_record(&found)),
            Announcement::AloneBegun { arms: [against, arm], why, stretches, length } => {
                self.is_alone = true;
                let length = number::length(whole_seconds(length));
                self.say(&format!(
                    "{arm} and {against} one at a time, because {why}: {stretches} stretches in {length}"
                ));
            }
            Announcement::AloneTurn { arm, stretch, of } => {
                self.show(format!("{arm} alone: stretch {stretch} of {of}"));
            }
            Announcement::StretchBegun { arm, load, stretch, of, length } => {
                self.begin_stretch(&arm, &load, (stretch, of), length);
            }
            Announcement::NotAlone { why } => {
                self.say(&format!("No arm is measured alone: {why}"));
            }
            Announcement::PilotBegun { load } => {
                self.say_arms();
                let time_left = self.left_of_run();
                let pilot = describe_pilot(&load, self.several);
                self.tell_news(format!("{pilot}{time_left}"));
                self.show(pilot);
            }
            Announcement::PilotEnded(pilot) if pilot.wanted_ns.is_some() => {
                self.say(&describe_choice(&pilot));
            }
            Announcement::PilotEnded(pilot) => self.tell_news(describe_choice(&pilot)),
            Announcement::TrialBegun { loads, blocks, length, rate, looks } => {
                self.begin(&loads, blocks, length, rate, &looks);
            }
            Announcement::Looked { look, left, at_most } => {
                self.say(&describe_look(&look, left, at_most));
                self.left = (!look.is_done()).then(|| ("about", Instant::now() + left));
            }
            Announcement::TimeIsUp { left_out } => self.say(&time_is_up(&left_out)),
            Announcement::TrialEnded { loads } => {
                self.tell_news(format!("{}: done{}", together(&loads), self.left_of_run()));
            }
        }
    }

    /// Shows a search's new bracket, and `left`, the time that it still takes.
    fn search(&mut self, bracket: &BracketRecord, left: Duration) {
        self.say_folder();
        self.say_arms();
        self.session = self.session.map(|(begun, _)| (begun, Instant::now() + left));
        self.tell_news(words::bracket(bracket, left));
        if !self.line.rewrites() {
            self.show(format!("{}: searching", bracket.arm));
        }
    }

    /// Shows the begin of a stretch, `stretch` of `of`, in which an arm has a load alone.
    fn begin_stretch(
        &mut self,
        arm: &str,
        load: &str,
        (stretch, of): (u32, u32),
        length: Duration,
    ) {
        if stretch == 1 {
            self.say(&if self.several {
                "Each arm has the load alone now, to see what limits it".to_owned()
            } else {
                format!("A load now that shows what limits {arm}")
            });
        }
        let length = number::length(whole_seconds(length));
        let alone = if self.several { " alone" } else { "" };
        self.show(format!("{load}: {arm}{alone} for {length}, {stretch} of {of}"));
    }

    /// Shows the begin of a load's trial.
    fn begin(
        &mut self,
        loads: &[String],
        blocks: u32,
        length: Duration,
        rate: Option<f64>,
        looks: &[u32],
    ) {
        self.say_arms();
        let (load, lasts) = (together(loads), number::length(length));
        let rate =
            rate.map_or(String::new(), |rate| format!(" at {} requests/s", number::asked(rate)));
        let (most, looks) = if looks.is_empty() {
            ("", String::new())
        } else {
            ("at most ", format!("; looked at after {}", listed(looks)))
        };
        self.say(&format!(
            "{load}: {most}{blocks} blocks in {lasts}{rate}{looks}{}",
            self.left_of_run()
        ));
        self.begun = Instant::now();
        self.told = self.begun;
        self.news = Some(self.begun);
        self.left = (!most.is_empty()).then(|| ("at most", self.begun + length));
    }

    /// Shows the present work with the time left of the session: on a terminal alone, until the next line replaces it.
    fn show(&mut self, text: String) {
        self.current = text;
        self.show_current();
    }

    fn show_current(&mut self) {
        self.told = Instant::now();
        if self.line.rewrites() {
            self.line.show(&self.describe_now());
        }
    }

    fn describe_now(&self) -> String {
        match self.session_left() {
            Some(left) if !self.current.contains(" left") => {
                let time = number::length(whole_seconds(left));
                format!("{} · about {time} left", self.current)
            }
            _ => self.current.clone(),
        }
    }

    /// Shows the state of a load.
    fn show_load(&mut self, state: &LoadState) {
        let now = Instant::now();
        let (shown, before) = *self.load.get_or_insert((now, state.completed));
        let passed = now - shown;
        let every = if self.line.rewrites() { REWRITE } else { PLAIN };
        self.current = load_line(state, (self.rate, self.p99), before, passed);
        if passed >= every {
            self.load = Some((now, state.completed));
            if !self.stays {
                self.line.show(&self.current);
            }
        }
    }

    /// Shows that an arm is ready. Alone, each arm starts again and again, which is shown once. The parts of a
    /// configuration that loads request are also shown once, though several arms may be copies of it.
    fn ready(&mut self, arm: String, address: &str, asked: &[AskedRecord], remarks: &[String]) {
        if self.is_alone {
            return;
        }
        for line in asked.iter().map(words::asked) {
            if !self.asked.contains(&line) {
                self.say(&line);
                self.asked.push(line);
            }
        }
        for remark in remarks {
            self.say(&format!("{arm}: {remark}"));
        }
        self.show(format!("{arm} answers on {address}"));
        self.arms.push(arm);
    }

    /// Shows the progress of a load: on a terminal after every block, in a log file now and then.
    fn show_block(&mut self, load: &str, done: u32, of: u32, baseline_rate: f64) {
        let (about, left) = match self.left {
            None => {
                let share = f64::from(of - done.min(of)) / f64::from(done.max(1));
                ("about", self.begun.elapsed().mul_f64(share))
            }
            Some((about, end)) => (about, end.saturating_duration_since(Instant::now())),
        };
        self.current = format!(
            "{load}: block {} of {} · baseline {}/s · {about} {} left{}",
            number::count(done.into()),
            number::count(of.into()),
            number::rate(baseline_rate),
            number::length(whole_seconds(left)),
            self.left_of_run()
        );
        self.told = Instant::now();
        if !self.line.is_kept() {
            self.tell_news(self.current.clone());
        }
    }

    /// Shows settings that could not be restored; others need no line.
    fn put_back(&mut self, restored: &[Restored]) {
        for setting in restored.iter().filter(|setting| !setting.outcome.is_restored()) {
            self.say(restore::describe_setting(setting, false).trim_end());
        }
    }

    fn objects_put_back(&mut self, objects: &[PutBack]) {
        for object in objects.iter().filter(|object| !object.is_whole()) {
            self.say(restore::object(object, false).trim_end());
        }
    }

    /// Shows one line for all arms, once all of them answer.
    fn say_arms(&mut self) {
        if !self.arms.is_empty() {
            let arms = std::mem::take(&mut self.arms);
            self.several |= arms.len() > 1;
            self.say(&match &arms[..] {
                [one] => format!("{one} answers"),
                all => format!("{} arms answer: {}", all.len(), all.join(", ")),
            });
        }
    }
}

fn awaited(workload: &str, within: Duration) -> String {
    let within = number::length(within);
    format!(
        "The pods of {workload} are being replaced: the run begins when they serve, within {within}"
    )
}

fn time_is_up(left_out: &str) -> String {
    format!(
        "The budget is nearly used up: less than planned, or nothing, is measured of {left_out}"
    )
}

impl Consumer for Lines {
    fn take(&mut self, event: &Event) {
        match event {
            Event::LoadBegun { rate, .. } => self.rate = *rate,
            Event::LoadState(state) => self.show_load(state),
            Event::Interval(interval) => {
                self.p99 = Some(interval.interval.response_time.p99);
                if self.stays {
                    self.say(&interval_line(interval));
                }
            }
            Event::Asked { text } => self.say(text),
            Event::Lab(LabEvent::Measured(_) | LabEvent::Sampled { .. })
            | Event::Verdicts { .. }
            | Event::Flow(_) => {}
            Event::Lab(event) => self.tell(event.clone()),
        }
    }

    fn look(&mut self) {
        let counts_down = self.session.is_some() && !self.current.is_empty();
        if counts_down && self.line.rewrites() && self.told.elapsed() >= COUNT_DOWN {
            self.show_current();
        }
    }

    fn known(&self) -> Option<String> {
        (!self.current.is_empty()).then(|| self.describe_now())
    }

    fn end(&mut self) {
        self.line.clear();
    }
}
