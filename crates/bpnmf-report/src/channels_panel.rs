//! The standard picture of a mutational signature: a bar a type of mutation in the order and the colours of the field.

use crate::channels::Channels;
use crate::frame::{Axis, Height, framed};
use crate::report::Report;
use crate::text::{escaped, percent};
use std::fmt::Write as _;

/// The width of a bar's place in the drawing.
const STEP: usize = 10;

/// One component, with error bars if its intervals are known.
pub(crate) fn panel(report: &Report<'_>, channels: &Channels, k: usize) -> String {
    let model = &report.model;
    let total: f64 = (0..model.features).map(|f| model.weight(f, k)).sum::<f64>().max(f64::MIN_POSITIVE);
    let ends = |f: usize| {
        let [low, high] = &report.intervals?.dictionary;
        Some([low, high].map(|end| f64::from(end[f * model.components() + k]) / total))
    };
    let share = |f: usize| model.weight(f, k) / total;
    let reach = |&f: &usize| ends(f).map_or(share(f), |[_, high]| high);
    let top = 1.05 * channels.order.iter().map(reach).fold(1e-6, f64::max);
    let height = |share: f64| 100.0 * (share / top).clamp(0.0, 1.0);
    let width = STEP * channels.order.len();
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{} by type of mutation\">",
        escaped(&report.name(k))
    );
    let mut colors = channels.groups.iter().flat_map(|group| std::iter::repeat_n(group.color, group.size));
    for (i, &f) in channels.order.iter().enumerate() {
        let color = colors.next().unwrap_or("#888");
        let name = report.feature_names.map_or(&channels.names[i], |names| &names[f]);
        let (x, h) = (STEP * i, height(share(f)));
        let _ = write!(svg, "<g><title>{} {}", escaped(name), percent(share(f)));
        if let Some([low, high]) = ends(f) {
            let _ = write!(svg, " ({} to {})", percent(low), percent(high));
        }
        let _ = write!(
            svg,
            "</title><rect x=\"{x}\" width=\"{STEP}\" height=\"100\" fill=\"transparent\"/>\
             <rect x=\"{}\" y=\"{:.2}\" width=\"{}\" height=\"{h:.2}\" fill=\"{color}\"/>",
            x + 1,
            100.0 - h,
            STEP - 3
        );
        if let Some([low, high]) = ends(f) {
            let (low, high) = (height(low), height(high));
            let _ = write!(
                svg,
                "<rect class=\"reach\" x=\"{:.1}\" y=\"{:.2}\" width=\"1.6\" height=\"{:.2}\"/>",
                x as f64 + 3.7,
                100.0 - high,
                high - low
            );
        }
        svg += "</g>";
    }
    svg += "</svg>";
    let mut strip = "<div class=\"groups\">".to_owned();
    let many = channels.groups.len() > 6;
    for group in &channels.groups {
        let label = if many { "" } else { group.name };
        let _ = write!(
            strip,
            "<b style=\"flex:{} 0 0;background:{}\" title=\"{}\" class=\"{}\">{}</b>",
            group.size,
            group.color,
            escaped(group.name),
            if is_dark(group.color) { "dark" } else { "light" },
            escaped(label)
        );
    }
    strip += "</div>";
    let y = Axis::numbers("%", 0.0, 100.0 * top, 4);
    let x = Axis::given("", Vec::new());
    format!("<div class=\"panel\">{}</div>", framed(&(strip + &svg), &x, &y, Height::Low))
}

/// Whether white is read on a colour.
fn is_dark(color: &str) -> bool {
    let part =
        |at: usize| f64::from(u8::from_str_radix(color.get(at..at + 2).unwrap_or("00"), 16).unwrap_or(0));
    0.299 * part(1) + 0.587 * part(3) + 0.114 * part(5) < 140.0
}

#[cfg(test)]
mod tests {
    use super::is_dark;

    #[test]
    fn letters_are_read_on_their_colour() {
        assert_eq!([is_dark("#050708"), is_dark("#cbcacb"), is_dark("#e62725")], [true, false, true]);
    }
}
