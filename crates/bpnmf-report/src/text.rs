//! Text for people: numbers as they are said, and names that cannot be mistaken for markup. Knows no model.

/// A whole number in groups of three digits.
pub fn grouped(number: usize) -> String {
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
pub fn significant(number: f64, digits: usize) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = number.abs().log10().floor() as i32;
    let decimals = (digits as i32 - 1 - magnitude).clamp(0, 12) as usize;
    format!("{number:.decimals$}")
}

/// "1 part", "2 parts".
pub fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// The name of component `index`, counted from 0, of `count`: C1, or C01 if there are more than nine, so that names have the
/// order of the components. The same name stands in the tables, on the page, in the program's lines and in Python.
pub fn component_name(index: usize, count: usize) -> String {
    let digits = count.to_string().len();
    format!("C{:0digits$}", index + 1)
}

/// A power of the likelihood as people say it: "full", "1/3".
pub fn resolution(coarsening: f64) -> String {
    let parts = 1.0 / coarsening;
    match parts {
        parts if parts <= 1.0 => "full".to_owned(),
        parts if parts < 2.5 => format!("1/{}", significant(parts, 2)),
        parts => format!("1/{}", grouped(parts.round() as usize)),
    }
}

/// A number in the room of a few characters: "0.25", "1.5 k", "20 M".
pub(crate) fn compact(number: f64) -> String {
    if !number.is_finite() {
        return number.to_string();
    }
    let (size, unit) = match number.abs() {
        size if size >= 999.5e12 => return format!("{number:.0e}"),
        size if size >= 999.5e9 => (1e12, " T"),
        size if size >= 999.5e6 => (1e9, " G"),
        size if size >= 999.5e3 => (1e6, " M"),
        size if size >= 999.5 => (1e3, " k"),
        size if size > 0.0 && size < 1e-4 => return format!("{number:.0e}"),
        _ => (1.0, ""),
    };
    let text = significant(number / size, 3);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    match 100.0 * share {
        hundredths if hundredths > 0.0 && hundredths < 0.05 => "< 0.1 %".to_owned(),
        hundredths => format!("{hundredths:.1} %"),
    }
}

/// Text that means itself inside HTML, in attributes too.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // HTML has no way to say these.
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// The beginning of a name that is too long.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// Bytes as text, RFC 4648 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(*three.get(i).unwrap_or(&0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
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
        assert_eq!(plural(1, "part", "parts"), "1 part");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(1e-9), "< 0.1 %");
        assert_eq!(percent(0.0), "0.0 %");
    }

    #[test]
    fn a_number_on_an_axis_takes_little_room() {
        let numbers = [0.0, 0.25, 5.0, 20.0, 100.0, 1000.0, 1500.0, 22050.0, 2e6, -3e9, 1e15, 1e-7];
        let texts = ["0", "0.25", "5", "20", "100", "1 k", "1.5 k", "22.1 k", "2 M", "-3 G", "1e15", "1e-7"];
        assert_eq!(numbers.map(compact), texts);
    }

    #[test]
    fn names_of_components_have_their_order() {
        assert_eq!([component_name(0, 9), component_name(8, 9)], ["C1", "C9"]);
        assert_eq!([component_name(0, 10), component_name(99, 100)], ["C01", "C100"]);
    }

    #[test]
    fn names_cannot_be_markup() {
        assert_eq!(escaped("<b onclick='x(\"&\")'>"), "&lt;b onclick=&#39;x(&quot;&amp;&quot;)&#39;&gt;");
        assert_eq!(escaped("a\0b\u{1b}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(shortened("immunoglobulin", 8), "immunog…");
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        let texts = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (n, text) in texts.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..n]), text);
        }
    }
}
