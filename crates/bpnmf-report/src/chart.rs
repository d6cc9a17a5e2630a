//! Curves and bars as small SVG pictures that stretch to the room they get. Knows no axes.

use std::fmt::Write as _;

/// The width of a drawing in its own units; it is stretched to what the page has.
const WIDTH: usize = 300;

/// The height of a drawing in its own units.
const HEIGHT: f64 = 100.0;

/// The height of a small drawing: finer steps are not seen, and cost bytes.
const SMALL: i64 = 50;

/// A drawing.
fn drawing(inside: &str, width: usize, height: i64, label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\">\
         {inside}</svg>"
    )
}

/// The outline of steps from 0 to 1, one a unit of width, closed along the bottom.
fn outline(values: &[f64]) -> String {
    let mut path = format!("M0 {SMALL}");
    let (mut at, mut run) = (SMALL, 0);
    for &value in values {
        let next = SMALL - (SMALL as f64 * value.clamp(0.0, 1.0)).round() as i64;
        if next != at {
            if run > 0 {
                let _ = write!(path, "h{run}");
            }
            let _ = write!(path, "v{}", next - at);
            (at, run) = (next, 0);
        }
        run += 1;
    }
    let _ = write!(path, "h{run}V{SMALL}z");
    path
}

/// A small area under `values`, from 0 to 1 each.
pub(crate) fn area(values: &[f64], class: &str, label: &str) -> String {
    let path = format!("<path class=\"{class}\" d=\"{}\"/>", outline(values));
    drawing(&path, values.len().max(1), SMALL, label)
}

/// Bars from 0 to 1, those for which `bright` says so brighter.
pub(crate) fn bars(values: &[f64], bright: impl Fn(usize) -> bool, label: &str) -> String {
    let mut inside = String::new();
    for (i, &value) in values.iter().enumerate() {
        let class = if bright(i) { "on" } else { "off" };
        let height = ((HEIGHT * value.clamp(0.0, 1.0)).round() as i64).max(i64::from(value > 0.0));
        let _ = write!(
            inside,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"8\" height=\"{height}\"/>",
            10 * i + 1,
            100 - height
        );
    }
    drawing(&inside, 10 * values.len().max(1), 100, label)
}

/// One curve: points with both coordinates from 0 to 1, and its class.
pub(crate) type Curve = (Vec<(f64, f64)>, &'static str);

/// Curves over a shaded beginning that reaches to `shaded`.
pub(crate) fn curves(curves: &[Curve], shaded: f64, label: &str) -> String {
    let mut inside = String::new();
    if shaded > 0.0 {
        let _ =
            write!(inside, "<rect class=\"shade\" width=\"{:.1}\" height=\"100\"/>", shaded * WIDTH as f64);
    }
    for (points, class) in curves {
        inside += &path(points, class);
    }
    drawing(&inside, WIDTH, 100, label)
}

/// One curve.
fn path(points: &[(f64, f64)], class: &str) -> String {
    let mut path = format!("<path class=\"{class}\" d=\"");
    for (i, (x, y)) in points.iter().enumerate() {
        let start = if i == 0 { "M" } else { "L" };
        let _ = write!(path, "{start}{:.1} {:.1}", x * WIDTH as f64, HEIGHT * (1.0 - y));
    }
    path + "\"/>"
}

/// Dots under curves, with both coordinates from 0 to 1.
pub(crate) fn dots(points: &[(f64, f64)], above: &[Curve], label: &str) -> String {
    let mut inside = "<path class=\"dots\" d=\"".to_owned();
    for (x, y) in points {
        let _ = write!(inside, "M{:.1} {:.1}h0", x * WIDTH as f64, HEIGHT * (1.0 - y));
    }
    inside.push_str("\"/>");
    for (points, class) in above {
        inside += &path(points, class);
    }
    drawing(&inside, WIDTH, 100, label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_are_drawn_as_one() {
        assert_eq!(outline(&[0.0, 0.0, 1.0, 1.0, 0.5]), "M0 50h2v-50h2v25h1V50z");
        assert_eq!(outline(&[]), "M0 50h0V50z");
        assert_eq!(outline(&[f64::NAN, 2.0]).matches("NaN").count(), 0);
    }

    #[test]
    fn a_small_bar_is_still_seen() {
        assert!(bars(&[1e-6, 0.0], |_| true, "").contains("height=\"1\"/><rect"));
    }
}
