//! What was found, as one self-contained page. Pure functions: values in, text out.
//!
//! The page is pieces of text with CSS and a script from files of their own; a template engine would bring a compiler of
//! templates for ten places where a value enters. All names go through one function that escapes them.

mod channels;
mod channels_panel;
mod chart;
mod frame;
mod grid;
mod page;
mod parts;
mod picture;
mod pictures;
mod plateau;
mod report;
mod residuals;
mod roll;
mod sound;
#[cfg(test)]
mod tests;
pub mod text;

pub use channels::{Channels, Group};
pub use page::{html, with_sound};
pub use plateau::plateau_sentence;
pub use report::{Data, Model, Pieces, PlayedNote, Report, Residual, SoundPage, Stem, Step, Trace};
