//! What is seen of passes over blocks: how much of the work is done, and what is left at this pace.

use super::{LOG_EVERY, LOG_SHARE, Mode, clock, log_line};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::io::{self, Write};
use std::time::Instant;

/// Steps of the bar.
const LENGTH: u64 = 1000;

/// Shows one kind of work on blocks, from its beginning.
pub(crate) struct Passes {
    mode: Mode,
    bar: ProgressBar,
    /// Of the whole fit, and of this work.
    start: Instant,
    begun: Instant,
    next_line: f64,
}

impl Passes {
    /// Of a fit that began at `start`.
    pub(crate) fn new(mode: Mode, start: Instant) -> Self {
        let bar = match mode {
            Mode::Terminal => {
                ProgressBar::with_draw_target(Some(LENGTH), ProgressDrawTarget::stderr_with_hz(8))
            }
            Mode::Silent | Mode::Json | Mode::Log => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{bar:10}  {wide_msg}").expect("a template without errors");
        bar.set_style(style.progress_chars("━━─"));
        Self {
            mode,
            bar,
            start,
            begun: Instant::now(),
            next_line: start.elapsed().as_secs_f64() + LOG_EVERY.0,
        }
    }

    /// So much of `all` is done.
    pub(crate) fn worked(&mut self, stage: &str, done: usize, all: usize) {
        let (now, seconds) = (self.start.elapsed().as_secs_f64(), self.begun.elapsed().as_secs_f64());
        let share = done as f64 / all.max(1) as f64;
        // Blocks cost about the same, so the pace so far is that of the rest.
        let left = seconds * (1.0 - share) / share.max(1e-9);
        let message = || {
            let percent = (100.0 * share).floor();
            format!("{stage}: {percent} % done, {}, about {} left", clock(now), clock(left))
        };
        match self.mode {
            Mode::Silent => {}
            Mode::Terminal => {
                self.bar.set_message(message());
                self.bar.set_position((share * LENGTH as f64) as u64);
            }
            Mode::Log if now >= self.next_line => {
                log_line(now, &message());
                self.next_line = now + (LOG_SHARE * now).clamp(LOG_EVERY.0, LOG_EVERY.1);
            }
            Mode::Log => {}
            Mode::Json => {
                let event = json!({
                    "event": "blocks", "stage": stage, "done": share, "seconds": now, "seconds_left": left,
                });
                // A reader that goes away does not end the run.
                let _ = writeln!(io::stdout().lock(), "{event}");
            }
        }
    }

    /// The work is over: the line goes.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
