//! Text for people: numbers, names and small pictures. Knows no model.

use crate::failure::Failure;
pub(crate) use bpnmf_report::text::{grouped, plural, resolution, significant};
use std::io::Write;

/// Prints to stdout; a reader who has seen enough ends the program without an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::printing)
}

/// A duration a person would say.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 100.0 => format!("{} s", significant(seconds, 2)),
        seconds if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// A sentence in lines of at most `width` characters, the later ones indented.
pub(crate) fn wrapped(sentence: &str, width: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            text.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
    }
    text.push('\n');
    text
}

/// A name from a file, safe and short enough for a table.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    if name.chars().count() <= most {
        return name.chars().map(clean).collect();
    }
    name.chars().map(clean).take(most - 1).chain(['…']).collect()
}

/// A horizontal bar, `share` of `width` characters long, to an eighth of a character.
pub(crate) fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (8 * width) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8 - 1]);
    }
    let used = eighths.div_ceil(8);
    text + &" ".repeat(width - used)
}

/// The course of `values` in `width` characters: each shows the mean of its stretch against the largest mean.
pub(crate) fn sparkline(values: &[f32], width: usize) -> String {
    let width = width.min(values.len());
    let means: Vec<f64> = (0..width)
        .map(|i| &values[i * values.len() / width..(i + 1) * values.len() / width])
        .map(|stretch| stretch.iter().map(|&value| f64::from(value)).sum::<f64>() / stretch.len() as f64)
        .collect();
    let largest = means.iter().copied().fold(0.0, f64::max);
    let levels = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    means
        .into_iter()
        .map(|mean| if largest > 0.0 { levels[(8.0 * mean / largest).round() as usize] } else { ' ' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_say_them() {
        assert_eq!(duration(0.0421), "0.042 s");
        assert_eq!(duration(1800.0), "30 min");
    }

    #[test]
    fn a_long_sentence_goes_on_in_the_next_line() {
        assert_eq!(wrapped("note: the end", 20), "note: the end\n");
        assert_eq!(wrapped("note: it goes on and on", 12), "note: it\n  goes on\n  and on\n");
        assert_eq!(wrapped("no place-to-break here", 8), "no\n  place-to-break\n  here\n");
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(shortened("a\u{1b}[2Jb", 20), "a?[2Jb");
        assert_eq!(shortened("immunoglobulin", 8), "immunog…");
    }

    #[test]
    fn pictures_have_the_width_they_were_given() {
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.03, 4), "▏   ");
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 4.0], 4), " ▂▄█");
        assert_eq!(sparkline(&[1.0; 2], 9), "██");
        assert_eq!(sparkline(&[0.0; 8], 4), "    ");
    }
}
