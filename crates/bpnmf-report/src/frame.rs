//! Pictures with axes: ticks are HTML beside a picture of any size, so they stay readable on a phone. Knows no model.

use crate::text::{compact, escaped};
use std::fmt::Write as _;

/// One axis.
#[derive(Debug, Clone, Default)]
pub(crate) struct Axis {
    title: String,
    /// Where, from 0 to 1 along the axis, and what stands there.
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Round numbers from `first` to `last`, about `most` of them.
    pub(crate) fn numbers(title: &str, first: f64, last: f64, most: usize) -> Self {
        let range = last - first;
        let ticks = round_numbers(first, last, most);
        let place = |number: f64| if range > 0.0 { (number - first) / range } else { 0.5 };
        let ticks = ticks.into_iter().map(|number| (place(number), compact(number))).collect();
        Self { title: title.to_owned(), ticks }
    }

    /// Whole numbers alone.
    pub(crate) fn whole(mut self) -> Self {
        self.ticks.retain(|(_, text)| !text.contains('.') || text.contains(' '));
        self
    }

    /// Cells with numbers from 0, each tick in the middle of its cell.
    pub(crate) fn cells(title: &str, count: usize, most: usize) -> Self {
        let numbers = round_numbers(0.0, count.saturating_sub(1) as f64, most).into_iter();
        let ticks = numbers.map(|number| ((number + 0.5) / count.max(1) as f64, compact(number)));
        Self { title: title.to_owned(), ticks: ticks.collect() }.whole()
    }

    /// Cells with names if there are few, with numbers if not.
    pub(crate) fn names(title: &str, names: Option<&[String]>, count: usize, most: usize) -> Self {
        match names {
            Some(names) if count <= most => {
                let tick = |(i, name): (usize, &String)| {
                    ((i as f64 + 0.5) / count as f64, crate::text::shortened(name, 12))
                };
                Self { title: title.to_owned(), ticks: names.iter().enumerate().map(tick).collect() }
            }
            _ => Self::cells(title, count, 6),
        }
    }

    /// A logarithmic axis with ticks at 1, 2 and 5 times the powers of ten.
    pub(crate) fn logarithmic(title: &str, first: f64, last: f64) -> Self {
        let mut ticks = Vec::new();
        let mut power = 10f64.powf(first.log10().floor());
        while power <= last {
            for number in [power, 2.0 * power, 5.0 * power] {
                if number >= first && number <= last {
                    ticks.push(((number / first).ln() / (last / first).ln(), compact(number)));
                }
            }
            power *= 10.0;
        }
        Self { title: title.to_owned(), ticks }
    }

    /// The given ticks.
    pub(crate) fn given(title: &str, ticks: Vec<(f64, String)>) -> Self {
        Self { title: title.to_owned(), ticks }
    }

    /// From the other end.
    pub(crate) fn reversed(mut self) -> Self {
        self.ticks.iter_mut().for_each(|(place, _)| *place = 1.0 - *place);
        self
    }
}

/// Round numbers between two others.
fn round_numbers(first: f64, last: f64, most: usize) -> Vec<f64> {
    let range = last - first;
    if !(range > 0.0 && range.is_finite()) {
        return vec![first];
    }
    let least = range / most.max(1) as f64;
    let power = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step =
        steps.into_iter().map(|of| of * power).find(|&step| step >= least * 0.999).unwrap_or(10.0 * power);
    let from = (first / step - 1e-9).ceil() as i64;
    let to = (last / step + 1e-9).floor() as i64;
    (from..=to).map(|i| i as f64 * step).collect()
}

/// How high a picture is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Height {
    /// A heat map.
    Tall,
    /// A curve.
    Low,
}

/// A picture between its axes; the y axis goes upwards.
pub(crate) fn framed(picture: &str, x: &Axis, y: &Axis, height: Height) -> String {
    let longest = y.ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    let class = match height {
        Height::Tall => "tall",
        Height::Low => "low",
    };
    let mut html = format!("<div class=\"frame {class}\"><div class=\"yt\">{}</div>", escaped(&y.title));
    let _ = write!(html, "<div class=\"y\" style=\"width:{}ch\">", longest + 1);
    for (place, text) in &y.ticks {
        let _ = write!(html, "<i style=\"top:{:.1}%\">{}</i>", 100.0 * (1.0 - place), escaped(text));
    }
    let _ = write!(html, "</div><div class=\"plot\">{picture}</div><div class=\"x\">");
    for (place, text) in &x.ticks {
        let edge = match place {
            place if *place < 0.02 => " class=\"a\"",
            place if *place > 0.98 => " class=\"z\"",
            _ => "",
        };
        let _ = write!(html, "<i{edge} style=\"left:{:.1}%\">{}</i>", 100.0 * place, escaped(text));
    }
    let _ = write!(html, "</div><div class=\"xt\">{}</div></div>", escaped(&x.title));
    html
}

/// A figure: what it is, the picture, and a sentence about how to read it. `body` and `about` are HTML.
pub(crate) fn figure(title: &str, body: &str, about: &str) -> String {
    let about = if about.is_empty() { String::new() } else { format!("<p>{about}</p>") };
    format!("<figure><figcaption><b>{}</b>{about}</figcaption><div>{body}</div></figure>\n", escaped(title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_axis() {
        assert_eq!(round_numbers(0.0, 54.1, 6), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(round_numbers(-9935.2, -9899.7, 4), [-9930.0, -9920.0, -9910.0, -9900.0]);
        assert_eq!(round_numbers(3.0, 3.0, 4), [3.0]);
        assert_eq!(round_numbers(0.0, f64::INFINITY, 4), [0.0]);
        let texts = |axis: Axis| axis.ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(Axis::cells("", 1, 5)), ["0"]);
        assert_eq!(texts(Axis::cells("", 3, 9)), ["0", "1", "2"]);
        assert_eq!(texts(Axis::logarithmic("", 43.0, 1100.0)), ["50", "100", "200", "500", "1 k"]);
    }
}
