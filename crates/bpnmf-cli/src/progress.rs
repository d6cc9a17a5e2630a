//! What is seen while a run goes on: a line on a terminal, JSON for a program, or nothing. Knows no files.

use crate::text;
use bpnmf::TraceRow;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

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

/// Shows the iterations of one run.
pub(crate) struct Progress {
    mode: Mode,
    iterations: usize,
    bar: ProgressBar,
    /// Seconds from the start to the end of each iteration.
    times: Vec<f64>,
    reader_gone: bool,
}

impl Progress {
    /// For a run of at most `iterations`.
    pub(crate) fn new(mode: Mode, iterations: usize) -> Self {
        let bar = match mode {
            Mode::Terminal => {
                ProgressBar::with_draw_target(Some(iterations as u64), ProgressDrawTarget::stderr_with_hz(8))
            }
            Mode::Silent | Mode::Json => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:10}  {wide_msg}")
            .expect("a template without errors")
            .progress_chars("━━─");
        bar.set_style(style);
        Self { mode, iterations, bar, times: vec![0.0], reader_gone: false }
    }

    /// A line before the first iteration, for a person.
    pub(crate) fn header(&self, line: &str) {
        self.bar.println(line);
    }

    /// One more iteration is done.
    pub(crate) fn step(&mut self, row: &TraceRow) {
        match self.mode {
            Mode::Silent => {}
            Mode::Json => self.print_json(&self.event(row)),
            Mode::Terminal => {
                let message = self.message(row);
                self.bar.set_message(message);
                self.bar.set_position(row.iteration as u64);
            }
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

    fn event(&self, row: &TraceRow) -> Value {
        json!({
            "event": "iteration",
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

    fn message(&mut self, row: &TraceRow) -> String {
        self.times.push(row.seconds);
        // The later half of the run so far: the first iterations are slow and say little about the rest.
        let (now, middle) = (row.iteration, row.iteration / 2);
        let pace = (row.seconds - self.times[middle]) / (now - middle) as f64;
        let left = pace * (self.iterations - now) as f64;
        let held_out = row.held_out.map_or_else(String::new, |score| format!("  held out {score:.4}"));
        format!(
            "{}/{}  {}  objective {:.5e}  {}, at most {} left{held_out}",
            row.iteration,
            self.iterations,
            text::plural(row.active, "part", "parts"),
            row.log_joint,
            clock(row.seconds),
            clock(left)
        )
    }
}

/// Minutes and seconds, with hours if there are any.
fn clock(seconds: f64) -> String {
    let seconds = Duration::from_secs_f64(seconds.clamp(0.0, 1e9)).as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::clock;

    #[test]
    fn a_clock_shows_hours_only_when_there_are_any() {
        assert_eq!(clock(0.4), "0:00");
        assert_eq!(clock(75.0), "1:15");
        assert_eq!(clock(3.0 * 3600.0 + 62.0), "3:01:02");
        assert_eq!(clock(f64::INFINITY), "277777:46:40");
    }
}
