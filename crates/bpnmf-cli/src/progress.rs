//! What is seen while a run goes on: a line on a terminal, plain lines in a log, JSON for a program, or nothing. Knows no files.

mod blocks;
mod pace;

use crate::text;
pub(crate) use blocks::Passes;
use bpnmf::{SearchStep, TraceRow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pace::{Chain, Pace};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Who is watching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nobody.
    Silent,
    /// A person at a terminal.
    Terminal,
    /// A person who reads a log: stderr is a file or a pipe.
    Log,
    /// A program reading stdout.
    Json,
}

impl Mode {
    /// Chooses by the flags and by whether stderr is a terminal.
    pub(crate) fn choose(quiet: bool, json: bool) -> Self {
        if json {
            Self::Json
        } else if quiet {
            Self::Silent
        } else if io::stderr().is_terminal() {
            Self::Terminal
        } else {
            Self::Log
        }
    }
}

/// Work shorter than this needs no line.
const PATIENCE: Duration = Duration::from_secs(2);

/// Seconds between two lines of a log: at first, and at last. In between a fourth of the time so far.
const LOG_EVERY: (f64, f64) = (5.0, 600.0);
const LOG_SHARE: f64 = 0.25;

/// Does `work`; a person who has waited for 2 s sees `what` is going on.
pub(crate) fn notice<T: Send>(mode: Mode, what: &str, work: impl FnOnce() -> T) -> T {
    let terminal = match mode {
        Mode::Silent | Mode::Json => return work(),
        Mode::Log => false,
        Mode::Terminal => true,
    };
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            if !terminal {
                log_line(PATIENCE.as_secs_f64(), what);
                return;
            }
            let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}").expect("a good template");
            let line = ProgressBar::new_spinner()
                .with_style(style)
                .with_message(what.to_owned())
                .with_elapsed(PATIENCE);
            line.enable_steady_tick(Duration::from_millis(125));
            // An error, because the other end goes away when the work is done.
            let _ = waiting.recv();
            line.finish_and_clear();
        });
        let result = work();
        drop(done);
        result
    })
}

/// A line of a log, `seconds` after the start of what it tells of. Nobody has to read it.
fn log_line(seconds: f64, line: &str) {
    let _ = writeln!(io::stderr().lock(), "[{}] {line}", clock(seconds));
}

/// Chains whose number of components a line shows one by one.
const MOST_CHAINS: usize = 8;

/// Shows the iterations of one run or of several side by side.
pub(crate) struct Progress {
    mode: Mode,
    iterations: usize,
    bar: ProgressBar,
    start: Instant,
    pace: Pace,
    /// The stage of the search that was last heard of.
    stage: Option<&'static str>,
    /// What one chain says of its iterations.
    own: String,
    /// Seconds from the start to the next line of a log.
    next_line: f64,
    reader_gone: bool,
}

impl Progress {
    /// For runs of at most `iterations` each.
    pub(crate) fn new(mode: Mode, iterations: usize, chains: usize) -> Self {
        let length = (iterations * chains) as u64;
        let bar = match mode {
            Mode::Terminal => {
                ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(8))
            }
            Mode::Silent | Mode::Json | Mode::Log => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:10}  {wide_msg}")
            .expect("a template without errors")
            .progress_chars("━━─");
        bar.set_style(style);
        Self {
            mode,
            iterations,
            bar,
            start: Instant::now(),
            pace: Pace::new(iterations, chains),
            stage: None,
            own: String::new(),
            next_line: LOG_EVERY.0,
            reader_gone: false,
        }
    }

    /// A line before the first iteration, for a person.
    pub(crate) fn header(&self, line: &str) {
        match self.mode {
            Mode::Terminal => self.bar.println(line),
            Mode::Log => log_line(self.start.elapsed().as_secs_f64(), line),
            Mode::Silent | Mode::Json => {}
        }
    }

    /// One more step of the search of a chain, counted from 0, is done.
    pub(crate) fn search(&mut self, chain: usize, step: &SearchStep) {
        if self.mode == Mode::Json {
            self.print_json(&json!({
                "event": "search",
                "chain": chain + 1,
                "stage": step.stage,
                "active": step.active,
                "seconds": step.seconds,
            }));
        }
        self.searches(chain, step.stage, step.active);
        self.tick();
    }

    fn searches(&mut self, chain: usize, stage: &'static str, components: usize) {
        self.pace.search(chain, components, self.start.elapsed().as_secs_f64());
        self.stage = Some(stage);
    }

    /// One more iteration of a chain, counted from 0, is done.
    pub(crate) fn step(&mut self, chain: usize, row: &TraceRow) {
        if self.mode == Mode::Json {
            self.print_json(&self.event(chain, row));
        }
        self.pace.step(chain, row.iteration, row.active, self.start.elapsed().as_secs_f64());
        self.stage = None;
        let held_out = row.held_out.map_or_else(String::new, |score| format!("  held out {score:.4}"));
        self.own = format!("  objective {:.5e}{held_out}", row.log_joint);
        self.tick();
    }

    /// A chain is over, perhaps before its last iteration.
    pub(crate) fn chain_over(&mut self, chain: usize) {
        self.pace.over(chain, self.start.elapsed().as_secs_f64());
        self.tick();
    }

    /// Time has gone by: the line is brought up to date, or a log gets one if it is time for it.
    pub(crate) fn tick(&mut self) {
        let now = self.start.elapsed().as_secs_f64();
        match self.mode {
            Mode::Silent | Mode::Json => {}
            Mode::Terminal => {
                self.bar.set_message(self.message(now));
                self.bar.set_length((self.iterations * self.pace.chains().len()) as u64);
                self.bar.set_position(self.pace.so_far() as u64);
            }
            Mode::Log if now >= self.next_line => {
                log_line(now, &self.message(now));
                self.next_line = now + (LOG_SHARE * now).clamp(LOG_EVERY.0, LOG_EVERY.1);
            }
            Mode::Log => {}
        }
    }

    /// The run is over: the line goes.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// The last object of a run.
    pub(crate) fn done(&mut self, event: &Value) {
        self.print_json(event);
    }

    fn event(&self, chain: usize, row: &TraceRow) -> Value {
        json!({
            "event": "iteration",
            "chain": chain + 1,
            "iteration": row.iteration,
            "of": self.iterations,
            "active": row.active,
            "on_anywhere": row.on_anywhere,
            "sites_on": row.sites_on,
            "log_likelihood": row.log_likelihood,
            "log_joint": row.log_joint,
            "held_out": row.held_out,
            "seconds": row.seconds,
        })
    }

    /// A reader that goes away does not end the run: its results are files.
    fn print_json(&mut self, event: &Value) {
        if !self.reader_gone {
            let mut stdout = io::stdout().lock();
            self.reader_gone = writeln!(stdout, "{event}").and_then(|()| stdout.flush()).is_err();
        }
    }

    /// How far the run is, in words.
    fn message(&self, now: f64) -> String {
        let chains = self.pace.chains();
        let how_many = match chains {
            [Chain { components: Some(components), .. }] => {
                text::plural(*components, "component", "components")
            }
            _ => format!("components {}", numbers(chains)),
        };
        let left = match self.pace.left(now) {
            Some(left) => format!("about {} left", clock(left)),
            None => "time left not known before the search is over".to_owned(),
        };
        let clock = match self.mode {
            Mode::Log => String::new(),
            _ => format!("{}, ", clock(now)),
        };
        let what = match self.stage {
            Some(stage) => format!("searching: {how_many} ({stage})"),
            None if !self.pace.begun() => "starting".to_owned(),
            None => {
                let all = self.iterations * chains.len();
                let own = if chains.len() > 1 { "" } else { &self.own };
                format!("iteration {} of {} at most: {how_many}{own}", self.pace.so_far(), text::grouped(all))
            }
        };
        let over = match (self.pace.chains_over(), chains.len()) {
            (_, 1) => String::new(),
            (over, all) => format!("{over} of {all} chains complete, "),
        };
        format!("{what}  {over}{clock}{left}")
    }
}

/// The number of components of every chain; of many chains the smallest and the largest.
fn numbers(chains: &[Chain]) -> String {
    if chains.len() <= MOST_CHAINS {
        let number = |chain: &Chain| chain.components.map_or_else(|| "–".to_owned(), text::grouped);
        return chains.iter().map(number).collect::<Vec<_>>().join(" ");
    }
    let begun = || chains.iter().filter_map(|chain| chain.components);
    let (least, most) = (begun().min().unwrap_or(0), begun().max().unwrap_or(0));
    format!("{} to {}", text::grouped(least), text::grouped(most))
}

/// Minutes and seconds, with hours if there are any.
fn clock(seconds: f64) -> String {
    let seconds = Duration::from_secs_f64(seconds.clamp(0.0, 1e9)).as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::{Chain, Mode, Progress, clock, numbers};

    #[test]
    fn chains_that_have_not_begun_have_no_number_and_many_are_a_range() {
        let begun = |components: usize| Chain { components: Some(components), ..Chain::default() };
        assert_eq!(numbers(&[begun(11), begun(1200), Chain::default()]), "11 1,200 –");
        let mut many = vec![Chain::default(); 9];
        many[2..4].fill(begun(7));
        many[8] = begun(12);
        assert_eq!(numbers(&many), "7 to 12");
    }

    #[test]
    fn a_search_shows_its_components_its_stage_and_no_estimate_it_does_not_have() {
        let mut progress = Progress::new(Mode::Terminal, 40, 1);
        assert_eq!(progress.message(0.0), "starting  0:00, time left not known before the search is over");
        progress.searches(0, "births", 24);
        let unknown = "time left not known before the search is over";
        assert_eq!(progress.message(61.0), format!("searching: 24 components (births)  1:01, {unknown}"));
        let mut progress = Progress::new(Mode::Log, 40, 3);
        progress.searches(1, "chain", 1);
        assert_eq!(
            progress.message(61.0),
            format!("searching: components – 1 – (chain)  0 of 3 chains complete, {unknown}")
        );
    }

    #[test]
    fn a_clock_shows_hours_only_when_there_are_any() {
        assert_eq!(clock(0.4), "0:00");
        assert_eq!(clock(75.0), "1:15");
        assert_eq!(clock(3.0 * 3600.0 + 62.0), "3:01:02");
        assert_eq!(clock(f64::INFINITY), "277777:46:40");
    }
}
