//! Text for people: numbers, names and small pictures. Knows no model.

use crate::failure::Failure;
use std::io::Write;

/// Prints to stdout; a reader who has seen enough ends the program without an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Failure::printing)
}

/// A whole number in groups of three digits.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number below 1000 or so with this many significant digits, none of them behind an unneeded point.
pub(crate) fn significant(number: f64, digits: usize) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = number.abs().log10().floor() as i32;
    let decimals = (digits as i32 - 1 - magnitude).clamp(0, 12) as usize;
    format!("{number:.decimals$}")
}

/// A duration a person would say.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 100.0 => format!("{} s", significant(seconds, 2)),
        seconds if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// "1 part", "2 parts".
pub(crate) fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
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
    fn numbers_are_written_as_people_write_them() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(123_456), "123,456");
        assert_eq!(grouped(1_000_000), "1,000,000");
        assert_eq!(significant(12.34, 2), "12");
        assert_eq!(significant(0.01234, 2), "0.012");
        assert_eq!(significant(0.0, 2), "0");
        assert_eq!(duration(0.0421), "0.042 s");
        assert_eq!(duration(1800.0), "30 min");
        assert_eq!(plural(1, "part", "parts"), "1 part");
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
