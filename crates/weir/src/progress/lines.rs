//! Events as lines for people, on standard error: rewritten in place on a terminal, now and then elsewhere.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_host::journal::Restored;
use weir_kube::PutBack;
use weir_lab::Event as LabEvent;
use weir_model::progress::LoadState;
use weir_model::record::{AskedRecord, BracketRecord};
use weir_model::study::Until;
use weir_report::{number, words};

use super::phrases::{
    about, at_most, chosen, interval_line, listed, load_line, looked, pilot, together,
    whole_seconds,
};
use super::{Consumer, Event};
use crate::commands::restore;
use crate::terminal::StatusLine;

/// How often a load's line is rewritten, and how often one is written where lines stay.
const REWRITE: Duration = Duration::from_millis(500);
const PLAIN: Duration = Duration::from_secs(5);
/// How often a log file hears how far a run is, at most: hours of it must not hide what it says besides.
const NEWS: Duration = Duration::from_secs(60);
/// How often the time left is told anew where nothing else happens.
const COUNT_DOWN: Duration = Duration::from_secs(1);

/// Tells people what is going on, on standard error.
pub(crate) struct Lines {
    line: StatusLine,
    begun: Instant,
    arms: Vec<String>,
    /// Whether more than one arm has answered.
    several: bool,
    /// What was said of what loads ask.
    asked: Vec<String>,
    told: Instant,
    /// When a log file heard news.
    news: Option<Instant>,
    is_resumed: bool,
    is_alone: bool,
    /// When a load that ends as soon as everything is decided will have ended, and how sure that is.
    left: Option<(&'static str, Instant)>,
    /// When the whole session began, and will have ended, about.
    session: Option<(Instant, Instant)>,
    /// How sure it is when the whole session will have ended, once that was promised.
    promised: Option<&'static str>,
    /// Where records go, until it is said: nothing is kept of a run whose arms never answer.
    folder: Option<PathBuf>,
    /// What goes on, without the time left.
    current: String,
    /// Each interval of a load is a line that stays, and there are no others of it.
    stays: bool,
    /// Requests per second that a load asks for.
    rate: Option<f64>,
    /// The p99 of a load's last interval, nanoseconds.
    p99: Option<u64>,
    /// When a load was shown, and what it had completed then.
    load: Option<(Instant, u64)>,
}

impl Lines {
    /// On standard error; `stays`: each interval of a load is a line.
    pub(crate) fn new(stays: bool) -> Lines {
        Lines::on(StatusLine::new(), stays)
    }

    /// Nothing is shown, and all is known.
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

    /// The lines that stay, of one that shows nothing; they are said from here on.
    pub(crate) fn go_on(&mut self) -> Vec<String> {
        std::mem::replace(&mut self.line, StatusLine::new()).take_said()
    }

    /// The latest lines that stay, of one that shows nothing.
    pub(crate) fn said(&self) -> &[String] {
        self.line.said()
    }

    /// What goes on at the moment.
    pub(crate) fn current(&self) -> &str {
        &self.current
    }

    /// How long the whole session still takes, about, where that was promised.
    pub(crate) fn session_left(&self) -> Option<Duration> {
        let (_, end) = self.session?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    /// How much of the session is over, 0 to 1.
    pub(crate) fn session_share(&self) -> Option<f64> {
        let (begun, end) = self.session?;
        let length = end.saturating_duration_since(begun).as_secs_f64();
        Some((begun.elapsed().as_secs_f64() / length.max(1e-9)).min(1.0))
    }

    fn say(&mut self, text: &str) {
        self.line.say(text);
    }

    /// Says what is soon out of date: a terminal shows it until the next of it comes, a log file gets one of them every
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

    /// Says how long it will take.
    fn promise(&mut self, takes: Duration, until: Until) {
        self.say_folder();
        self.say_arms();
        self.ends_in(takes);
        let what = match self.is_resumed {
            true => "What remains",
            false => "The whole run",
        };
        self.promised = Some(about(until));
        let takes = number::length(whole_seconds(takes));
        self.say(&format!("{what} takes {} {takes}", about(until)));
    }

    /// What is left of the whole run, behind what is being done; nothing where nobody knows.
    fn left_of_run(&self) -> String {
        // Who keeps the lines shows the time left by themselves.
        let promised = self.promised.filter(|_| !self.line.is_kept());
        match (promised, self.session_left()) {
            (Some(about), Some(left)) if !left.is_zero() => {
                let left = number::length(whole_seconds(left));
                format!(" · {about} {left} left of the run")
            }
            _ => String::new(),
        }
    }

    /// The session takes so long from its begin on.
    fn ends_in(&mut self, takes: Duration) {
        let (begun, _) = self.session.unwrap_or((Instant::now(), self.begun));
        self.session = Some((begun, begun + takes));
    }

    fn tell(&mut self, event: LabEvent) {
        match event {
            LabEvent::RollOutAwaited { workload, within } => self.say(&awaited(&workload, within)),
            LabEvent::Begun {
                folder,
                is_resumed,
                remarks,
                takes,
                ..
            } => {
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
            LabEvent::ArmReady {
                arm,
                address,
                asked,
                remarks,
            } => self.ready(arm, &address, &asked, &remarks),
            LabEvent::Bracket { bracket, left } => self.search(&bracket, left),
            LabEvent::Capacity(found) => self.say(&words::capacity(&found)),
            alone @ (LabEvent::AloneBegun { .. }
            | LabEvent::AloneTurn { .. }
            | LabEvent::StretchBegun { .. }) => self.alone(alone),
            LabEvent::NotAlone { why } => self.say(&format!("No arm is measured alone: {why}")),
            LabEvent::PilotBegun { load } => {
                self.say_arms();
                let left = self.left_of_run();
                let pilot = pilot(&load, self.several);
                self.tell_news(format!("{pilot}{left}"));
                self.show(pilot);
            }
            LabEvent::PilotEnded(pilot) if pilot.wanted_ns.is_some() => self.say(&chosen(&pilot)),
            LabEvent::PilotEnded(pilot) => self.tell_news(chosen(&pilot)),
            begun @ LabEvent::TrialBegun { .. } => self.begin(begun),
            LabEvent::Looked {
                look,
                left,
                at_most,
            } => {
                self.say(&looked(&look, left, at_most));
                self.left = (!look.is_done()).then(|| ("about", Instant::now() + left));
            }
            LabEvent::TimeIsUp { left_out } => self.say(&time_is_up(&left_out)),
            LabEvent::Block {
                loads,
                done,
                of,
                baseline_rate,
            } => self.show_block(&together(&loads), (done, of), baseline_rate),
            LabEvent::PutBack { settings } => self.put_back(&settings),
            LabEvent::ObjectsPutBack { objects } => self.objects_put_back(&objects),
            LabEvent::TrialEnded { loads } => {
                self.tell_news(format!("{}: done{}", together(&loads), self.left_of_run()));
            }
        }
    }

    /// A search knows more, and still takes as long as `left`.
    fn search(&mut self, bracket: &BracketRecord, left: Duration) {
        self.say_folder();
        self.say_arms();
        self.session = self
            .session
            .map(|(begun, _)| (begun, Instant::now() + left));
        self.tell_news(words::bracket(bracket, left));
        if !self.line.rewrites() {
            self.show(format!("{}: searching", bracket.arm));
        }
    }

    /// An arm has the load alone.
    fn alone(&mut self, event: LabEvent) {
        match event {
            LabEvent::AloneBegun {
                arms: [against, arm],
                why,
                stretches,
                length,
            } => {
                self.is_alone = true;
                let length = number::length(whole_seconds(length));
                self.say(&format!(
                    "{arm} and {against} one at a time, because {why}: {stretches} stretches in {length}"
                ));
            }
            LabEvent::AloneTurn { arm, stretch, of } => {
                self.show(format!("{arm} alone: stretch {stretch} of {of}"));
            }
            LabEvent::StretchBegun {
                arm,
                load,
                stretch,
                of,
                length,
            } => {
                if stretch == 1 {
                    self.say(&match self.several {
                        true => "Each arm has the load alone now, to see what limits it".to_owned(),
                        false => format!("A load now that shows what limits {arm}"),
                    });
                }
                let length = number::length(whole_seconds(length));
                let alone = if self.several { " alone" } else { "" };
                self.show(format!(
                    "{load}: {arm}{alone} for {length}, {stretch} of {of}"
                ));
            }
            _ => {}
        }
    }

    /// The trial of a load begins.
    fn begin(&mut self, begun: LabEvent) {
        let LabEvent::TrialBegun {
            loads,
            blocks,
            length,
            rate,
            looks,
        } = begun
        else {
            return;
        };
        self.say_arms();
        let (load, lasts) = (together(&loads), number::length(length));
        let rate = rate.map_or(String::new(), |rate| {
            format!(" at {} requests/s", number::asked(rate))
        });
        let (most, looks) = match looks.is_empty() {
            true => ("", String::new()),
            false => ("at most ", format!("; looked at after {}", listed(&looks))),
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

    /// What goes on, with what is left of the session: on a terminal alone, until the next line replaces it.
    fn show(&mut self, text: String) {
        self.current = text;
        self.show_current();
    }

    fn show_current(&mut self) {
        self.told = Instant::now();
        if self.line.rewrites() {
            self.line.show(&self.known_now());
        }
    }

    fn known_now(&self) -> String {
        match self.session_left() {
            Some(left) if !self.current.contains(" left") => {
                let left = number::length(whole_seconds(left));
                format!("{} · about {left} left", self.current)
            }
            _ => self.current.clone(),
        }
    }

    /// Where a load is.
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

    /// Alone, each arm starts again and again: that is said once. So is what loads ask of a configuration that
    /// several arms are copies of.
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

    /// How far a load is: on a terminal after every block, in a log file now and then.
    fn show_block(&mut self, load: &str, (done, of): (u32, u32), baseline_rate: f64) {
        let planned = || {
            let share = f64::from(of - done.min(of)) / f64::from(done.max(1));
            self.begun.elapsed().mul_f64(share)
        };
        let (about, left) = match self.left {
            None => ("about", planned()),
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

    /// Nobody needs to hear of settings that are as they were.
    fn put_back(&mut self, restored: &[Restored]) {
        for one in restored.iter().filter(|one| !one.outcome.is_restored()) {
            self.say(restore::described(one, false).trim_end());
        }
    }

    fn objects_put_back(&mut self, objects: &[PutBack]) {
        for one in objects.iter().filter(|one| !one.is_whole()) {
            self.say(restore::object(one, false).trim_end());
        }
    }

    /// Once all arms answer, one line for all of them.
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
            Event::Lab(event) => self.tell(event.clone()),
            Event::Verdicts { .. } => {}
        }
    }

    fn look(&mut self) {
        let counts_down = self.session.is_some() && !self.current.is_empty();
        if counts_down && self.line.rewrites() && self.told.elapsed() >= COUNT_DOWN {
            self.show_current();
        }
    }

    fn known(&self) -> Option<String> {
        (!self.current.is_empty()).then(|| self.known_now())
    }

    fn end(&mut self) {
        self.line.clear();
    }
}
