//! What a run says while it goes on.

use std::time::{Duration, Instant};

use weir_host::journal::Restored;
use weir_lab::Event;
use weir_model::record::{AskedRecord, LookRecord, PilotRecord};
use weir_model::study::Until;
use weir_report::{number, words};

use super::{about, whole_seconds};
use crate::commands::restore;
use crate::terminal::StatusLine;

/// Tells people what is going on, on standard error.
pub(super) struct Narrator {
    pub(super) line: StatusLine,
    begun: Instant,
    arms: Vec<String>,
    /// What was said of what loads ask.
    asked: Vec<String>,
    told: Instant,
    is_resumed: bool,
    is_alone: bool,
    /// When a load that ends as soon as everything is decided will have ended, and how sure that is.
    left: Option<(&'static str, Instant)>,
    /// When the run was begun, and when it will have ended by what was promised: at most, where it ends as soon as
    /// everything is decided.
    started: Instant,
    whole: Option<(&'static str, Instant)>,
}

impl Narrator {
    pub(super) fn new() -> Narrator {
        let now = Instant::now();
        Narrator {
            line: StatusLine::new(),
            begun: now,
            arms: Vec::new(),
            asked: Vec::new(),
            told: now,
            is_resumed: false,
            is_alone: false,
            left: None,
            started: now,
            whole: None,
        }
    }

    /// What is left of the whole run, behind what is being done; nothing where nobody knows.
    fn left_of_run(&self) -> String {
        let Some((about, end)) = self.whole else {
            return String::new();
        };
        let left = end.saturating_duration_since(Instant::now());
        match left.is_zero() {
            // Nobody promises no time.
            true => String::new(),
            false => format!(
                " · {about} {} left of the run",
                number::length(whole_seconds(left))
            ),
        }
    }

    fn say(&mut self, text: &str) {
        self.line.say(text);
    }

    /// Says how long it will take.
    fn promise(&mut self, takes: Duration, until: Until) {
        self.say_arms();
        let what = match self.is_resumed {
            true => "What remains",
            false => "The whole run",
        };
        self.whole = Some((about(until), self.started + takes));
        let takes = number::length(whole_seconds(takes));
        self.say(&format!("{what} takes {} {takes}", about(until)));
    }

    pub(super) fn tell(&mut self, event: Event) {
        match event {
            Event::Begun {
                folder,
                is_resumed,
                remarks,
            } => {
                self.say(&format!("Records go to {}", folder.display()));
                self.is_resumed = is_resumed;
                for remark in remarks {
                    self.say(&format!("Note: {remark}"));
                }
            }
            Event::Takes(takes, until) => self.promise(takes, until),
            Event::TakesAtMost(takes) => self.say(&at_most(takes)),
            Event::ArmReady {
                arm,
                address,
                asked,
                remarks,
            } => self.ready(arm, &address, &asked, &remarks),
            Event::Bracket { bracket, left } => {
                self.say_arms();
                self.say(&words::bracket(&bracket, left));
            }
            Event::Capacity(found) => self.say(&words::capacity(&found)),
            alone @ (Event::AloneBegun { .. }
            | Event::AloneTurn { .. }
            | Event::StretchBegun { .. }) => self.alone(alone),
            Event::NotAlone(why) => self.say(&format!("No arm is measured alone: {why}")),
            Event::PilotBegun { load } => {
                self.say_arms();
                let left = self.left_of_run();
                self.say(&format!("{load}: a pilot of all arms{left}"));
            }
            Event::PilotEnded(pilot) => self.say(&chosen(&pilot)),
            begun @ Event::TrialBegun { .. } => self.begin(begun),
            Event::Looked {
                look,
                left,
                at_most,
            } => {
                self.say(&looked(&look, left, at_most));
                self.left = (!look.is_done()).then(|| ("about", Instant::now() + left));
            }
            Event::TimeIsUp { left_out } => self.say(&format!(
                "The budget is nearly used up: less than planned, or nothing, is measured of {left_out}"
            )),
            Event::Block {
                loads,
                done,
                of,
                baseline_rate,
            } => self.show_block(&together(&loads), (done, of), baseline_rate),
            Event::PutBack(restored) => self.put_back(&restored),
            Event::TrialEnded { loads } => {
                let left = self.left_of_run();
                self.say(&format!("{}: done{left}", together(&loads)));
            }
        }
    }

    /// An arm has the load alone.
    fn alone(&mut self, event: Event) {
        let run = self.left_of_run();
        match event {
            Event::AloneBegun {
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
            Event::AloneTurn { arm, stretch, of } => {
                self.show(&format!("{arm} alone: stretch {stretch} of {of}{run}"));
            }
            Event::StretchBegun {
                arm,
                load,
                stretch,
                of,
                length,
            } => {
                if stretch == 1 {
                    self.say("Each arm has the load alone now, to see what limits it");
                }
                let length = number::length(whole_seconds(length));
                self.show(&format!(
                    "{load}: {arm} alone for {length}, {stretch} of {of}{run}"
                ));
            }
            _ => {}
        }
    }

    /// The trial of a load begins.
    fn begin(&mut self, begun: Event) {
        let Event::TrialBegun {
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
        let rate = rate.map_or(String::new(), |rate| format!(" at {rate:.0} requests/s"));
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
        self.left = (!most.is_empty()).then(|| ("at most", self.begun + length));
    }

    /// On a terminal alone: what the next line replaces.
    fn show(&mut self, text: &str) {
        if self.line.rewrites() {
            self.line.show(text);
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
        self.show(&format!("{arm} answers on {address}"));
        self.arms.push(arm);
    }

    /// How far a load is: on a terminal after every block, in a log file now and then.
    fn show_block(&mut self, load: &str, (done, of): (u32, u32), baseline_rate: f64) {
        if self.line.rewrites() || self.told.elapsed().as_secs() >= 10 {
            self.told = Instant::now();
            let planned = || {
                self.begun.elapsed().as_secs_f64() / f64::from(done.max(1))
                    * f64::from(of - done.min(of))
            };
            let (about, left) = match self.left {
                None => ("about", planned()),
                Some((about, end)) => {
                    let left = end.saturating_duration_since(Instant::now());
                    (about, left.as_secs_f64().max(1.0))
                }
            };
            let whole = self.left_of_run();
            self.line.show(&format!(
                "{load}: block {done} of {of} · baseline {baseline_rate:.0} requests/s · \
                 {about} {left:.0} s left{whole}"
            ));
        }
    }

    /// Nobody needs to hear of settings that are as they were.
    fn put_back(&mut self, restored: &[Restored]) {
        for one in restored.iter().filter(|one| !one.outcome.is_restored()) {
            self.say(restore::described(one, false).trim_end());
        }
    }

    /// Once all arms answer, one line for all of them.
    fn say_arms(&mut self) {
        if !self.arms.is_empty() {
            let arms = std::mem::take(&mut self.arms);
            self.say(&match &arms[..] {
                [one] => format!("{one} answers"),
                all => format!("{} arms answer: {}", all.len(), all.join(", ")),
            });
        }
    }
}

/// Loads that share a trial, in short.
fn together(loads: &[String]) -> String {
    match loads {
        [first, .., last] => format!("{first} to {last}, in turns"),
        _ => loads.concat(),
    }
}

/// What a pilot has chosen.
fn chosen(pilot: &PilotRecord) -> String {
    let time = |ns| number::length(Duration::from_nanos(ns));
    let chosen = format!("{}: slices of {}", pilot.load, time(pilot.slice_ns));
    match pilot.wanted_ns {
        None => chosen,
        Some(wanted) => format!(
            "{chosen}; its slowest arm needs {}, for which the load is too short",
            time(wanted)
        ),
    }
}

/// How long a search takes at most.
pub(crate) fn at_most(takes: Duration) -> String {
    let takes = number::length(whole_seconds(takes));
    format!("It takes {takes} at most, if a rate that holds for seconds does not last")
}

/// What a look has decided, and how long what is open takes.
fn looked(look: &LookRecord, left: Duration, at_most: Duration) -> String {
    let decided = look.decided.iter().map(|one| match one.is_given_up {
        true => format!("{} cannot be told from {} any more", one.arm, one.against),
        false => format!("{} is {}", one.arm, one.verdict),
    });
    let decided: Vec<String> = decided.collect();
    let decided = match decided.is_empty() {
        true => "nothing is decided".to_owned(),
        false => decided.join(", "),
    };
    let rest = match look.is_done() {
        true => String::new(),
        false => format!(
            "; {} go on for about {}, {} at most",
            look.open.join(", "),
            number::length(whole_seconds(left)),
            number::length(whole_seconds(at_most))
        ),
    };
    format!(
        "{}: look {} after {} blocks: {decided}{rest}",
        look.load, look.look, look.blocks
    )
}

/// `12, 18 and 27`.
pub(super) fn listed(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    weir_analysis::listed(&numbers)
}
