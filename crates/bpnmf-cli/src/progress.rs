//! What is seen while a run goes on: a line on a terminal, JSON for a program, or nothing. Knows no files.

use crate::text;
use bpnmf::{SearchStep, TraceRow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
    /// A program reading stdout.
    Json,
}

impl Mode {
    /// Chooses by the flags and by whether stderr is a terminal.
    pub(crate) fn choose(quiet: bool, json: bool) -> Self {
        if json {
            Self::Json
        } else if quiet || !io::stderr().is_terminal() {
            Self::Silent
        } else {
            Self::Terminal
        }
    }
}

/// Work shorter than this needs no line.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does `work`; a person at a terminal who has waited for 2 s sees `what` is going on.
pub(crate) fn notice<T: Send>(what: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let style =
                    ProgressStyle::with_template("{spinner} {msg}  {elapsed}").expect("a good template");
                let line = ProgressBar::new_spinner()
                    .with_style(style)
                    .with_message(what.to_owned())
                    .with_elapsed(PATIENCE);
                line.enable_steady_tick(Duration::from_millis(125));
                // An error, because the other end goes away when the work is done.
                let _ = waiting.recv();
                line.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Chains whose number of parts a line shows one by one.
const MOST_CHAINS: usize = 8;

/// Shows the iterations of one run or of several side by side.
pub(crate) struct Progress {
    mode: Mode,
    iterations: usize,
    bar: ProgressBar,
    start: Instant,
    /// Seconds from the start to each step of any chain.
    times: Vec<f64>,
    chains: Vec<Chain>,
    reader_gone: bool,
}

/// How far a chain is.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    /// Iterations done, or that will not be done.
    done: usize,
    /// Its number of parts, once it has begun.
    parts: Option<usize>,
}

impl Progress {
    /// For runs of at most `iterations` each.
    pub(crate) fn new(mode: Mode, iterations: usize, chains: usize) -> Self {
        let length = (iterations * chains) as u64;
        let bar = match mode {
            Mode::Terminal => {
                ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(8))
            }
            Mode::Silent | Mode::Json => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:10}  {wide_msg}")
            .expect("a template without errors")
            .progress_chars("━━─");
        bar.set_style(style);
        let chains = vec![Chain::default(); chains];
        Self { mode, iterations, bar, start: Instant::now(), times: vec![0.0], chains, reader_gone: false }
    }

    /// A line before the first iteration, for a person.
    pub(crate) fn header(&self, line: &str) {
        self.bar.println(line);
    }

    /// One more step of the search of a chain, counted from 0, is done.
    pub(crate) fn search(&mut self, chain: usize, step: &SearchStep) {
        match self.mode {
            Mode::Silent => {}
            Mode::Json => self.print_json(&json!({
                "event": "search",
                "chain": chain + 1,
                "stage": step.stage,
                "active": step.active,
                "seconds": step.seconds,
            })),
            Mode::Terminal => {
                self.chain(chain).parts = Some(step.active);
                let now = self.start.elapsed().as_secs_f64();
                // A search says nothing about the pace of the iterations.
                self.times = vec![now];
                self.bar.set_message(searching(&self.chains, step.stage, now));
            }
        }
    }

    /// One more iteration of a chain, counted from 0, is done.
    pub(crate) fn step(&mut self, chain: usize, row: &TraceRow) {
        match self.mode {
            Mode::Silent => {}
            Mode::Json => self.print_json(&self.event(chain, row)),
            Mode::Terminal => {
                *self.chain(chain) = Chain { done: row.iteration, parts: Some(row.active) };
                let message = self.message(row);
                self.bar.set_message(message);
                self.bar.set_position(self.so_far() as u64);
            }
        }
    }

    /// A chain is over, perhaps before its last iteration.
    pub(crate) fn chain_over(&mut self, chain: usize) {
        self.chain(chain).done = self.iterations;
        self.bar.set_position(self.so_far() as u64);
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

    /// A chain, counted from 0: there may be more than there were to begin with.
    fn chain(&mut self, chain: usize) -> &mut Chain {
        if chain >= self.chains.len() {
            self.chains.resize(chain + 1, Chain::default());
            self.bar.set_length((self.iterations * self.chains.len()) as u64);
        }
        &mut self.chains[chain]
    }

    fn so_far(&self) -> usize {
        self.chains.iter().map(|chain| chain.done).sum()
    }

    fn message(&mut self, row: &TraceRow) -> String {
        let (now, all) = (self.start.elapsed().as_secs_f64(), self.iterations * self.chains.len());
        self.times.push(now);
        // The later half of the run so far: the first iterations are slow and say little about the rest.
        let (steps, middle) = (self.times.len() - 1, (self.times.len() - 1) / 2);
        let pace = (now - self.times[middle]) / (steps - middle) as f64;
        let left = pace * (all - self.so_far()) as f64;
        let what = if self.chains.len() > 1 {
            format!("parts {}", numbers(&self.chains))
        } else {
            let held_out = row.held_out.map_or_else(String::new, |score| format!("  held out {score:.4}"));
            let parts = text::plural(row.active, "part", "parts");
            format!("{parts}  objective {:.5e}{held_out}", row.log_joint)
        };
        format!("{}/{all}  {what}  {}, at most {} left", self.so_far(), clock(now), clock(left))
    }
}

/// The line while a chain searches.
fn searching(chains: &[Chain], stage: &str, seconds: f64) -> String {
    let parts = match chains {
        [Chain { parts: Some(parts), .. }] => text::plural(*parts, "part", "parts"),
        _ => format!("parts {}", numbers(chains)),
    };
    format!("searching: {parts} ({stage})  {}", clock(seconds))
}

/// The number of parts of every chain; of many chains the smallest and the largest.
fn numbers(chains: &[Chain]) -> String {
    if chains.len() <= MOST_CHAINS {
        let number = |chain: &Chain| chain.parts.map_or_else(|| "–".to_owned(), text::grouped);
        return chains.iter().map(number).collect::<Vec<_>>().join(" ");
    }
    let begun = || chains.iter().filter_map(|chain| chain.parts);
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
    use super::{Chain, clock, numbers, searching};

    #[test]
    fn chains_that_have_not_begun_have_no_number_of_parts_and_many_are_a_range() {
        let begun = |parts: usize| Chain { done: 1, parts: Some(parts) };
        assert_eq!(numbers(&[begun(11), begun(1200), Chain::default()]), "11 1,200 –");
        let mut many = vec![Chain::default(); 9];
        many[2..4].fill(begun(7));
        many[8] = begun(12);
        assert_eq!(numbers(&many), "7 to 12");
    }

    #[test]
    fn a_search_shows_its_parts_and_its_stage() {
        let begun = |parts: usize| Chain { done: 0, parts: Some(parts) };
        assert_eq!(searching(&[begun(24)], "births", 1.2), "searching: 24 parts (births)  0:01");
        let chains = [begun(24), begun(1), Chain::default()];
        assert_eq!(searching(&chains, "chain", 61.0), "searching: parts 24 1 – (chain)  1:01");
    }

    #[test]
    fn a_clock_shows_hours_only_when_there_are_any() {
        assert_eq!(clock(0.4), "0:00");
        assert_eq!(clock(75.0), "1:15");
        assert_eq!(clock(3.0 * 3600.0 + 62.0), "3:01:02");
        assert_eq!(clock(f64::INFINITY), "277777:46:40");
    }
}
