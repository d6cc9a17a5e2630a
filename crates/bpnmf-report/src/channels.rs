//! The types of mutations that the field draws in one way: 96 substitutions in their context, and 83 insertions and
//! deletions. Names in, order and colours out; it knows no model.

/// The six substitutions with the colours by which they are known.
const SUBSTITUTIONS: [(&str, &str); 6] = [
    ("C>A", "#1ebff0"),
    ("C>G", "#050708"),
    ("C>T", "#e62725"),
    ("T>A", "#cbcacb"),
    ("T>C", "#a1cf64"),
    ("T>G", "#edc8c5"),
];

/// The sixteen groups of insertions and deletions, with their colours and how many types each has.
const INDELS: [(&str, &str, &str, usize); 16] = [
    ("DEL:C:1", "1 bp deletion C", "#fdbe6f", 6),
    ("DEL:T:1", "1 bp deletion T", "#ff8001", 6),
    ("INS:C:1", "1 bp insertion C", "#b0dd8b", 6),
    ("INS:T:1", "1 bp insertion T", "#36a12e", 6),
    ("DEL:R:2", "deletion of 2 bp", "#fdcab5", 6),
    ("DEL:R:3", "deletion of 3 bp", "#fc8a6a", 6),
    ("DEL:R:4", "deletion of 4 bp", "#f14432", 6),
    ("DEL:R:5", "deletion of 5+ bp", "#bc141a", 6),
    ("INS:R:2", "insertion of 2 bp", "#d0e1f2", 6),
    ("INS:R:3", "insertion of 3 bp", "#94c4df", 6),
    ("INS:R:4", "insertion of 4 bp", "#4a98c9", 6),
    ("INS:R:5", "insertion of 5+ bp", "#1764ab", 6),
    ("DEL:M:2", "microhomology, 2 bp", "#e2e2ef", 1),
    ("DEL:M:3", "microhomology, 3 bp", "#b6b6d8", 2),
    ("DEL:M:4", "microhomology, 4 bp", "#8683bd", 3),
    ("DEL:M:5", "microhomology, 5+ bp", "#61409b", 5),
];

/// One type of mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Channel {
    indel: bool,
    /// Its place in the order of the field.
    place: usize,
    group: usize,
}

/// A group of neighbouring bars of one colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What stands above it.
    pub name: &'static str,
    /// As in CSS.
    pub color: &'static str,
    /// Bars.
    pub size: usize,
}

/// Features that are all 96 substitutions or all 83 insertions and deletions, in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channels {
    /// The features in the order of the field.
    pub order: Vec<usize>,
    /// The names in that order: ACA, or DEL:C:1:0.
    pub names: Vec<String>,
    /// From left to right.
    pub groups: Vec<Group>,
}

impl Channels {
    /// The channels of features with these names; `None` if they are anything else.
    pub fn of(names: &[String]) -> Option<Self> {
        if names.len() != 96 && names.len() != 83 {
            return None;
        }
        let channels: Vec<Channel> = names.iter().map(|name| parse(name)).collect::<Option<_>>()?;
        let indel = names.len() == 83;
        let mut at = vec![None; names.len()];
        for (f, channel) in channels.iter().enumerate() {
            let place =
                at.get_mut(channel.place).filter(|place| channel.indel == indel && place.is_none())?;
            *place = Some(f);
        }
        let order: Vec<usize> = at.into_iter().collect::<Option<_>>()?;
        let label = |&f: &usize| if indel { normal(&names[f]) } else { context(&names[f]) };
        let group = |(name, color, size)| Group { name, color, size };
        let groups: Vec<Group> = if indel {
            INDELS.into_iter().map(|(_, name, color, size)| group((name, color, size))).collect()
        } else {
            SUBSTITUTIONS.into_iter().map(|(name, color)| group((name, color, 16))).collect()
        };
        Some(Self { names: order.iter().map(label).collect(), order, groups })
    }

    /// Whether a name is that of one of the types.
    pub fn known(name: &str) -> bool {
        parse(name).is_some()
    }

    /// The key by which the same type is known whatever way it is written; the name itself if it is no type.
    pub fn key(name: &str) -> String {
        match parse(name) {
            Some(Channel { indel: false, place, .. }) => format!("SBS {place}"),
            Some(Channel { indel: true, place, .. }) => format!("ID {place}"),
            None => name.to_owned(),
        }
    }
}

fn parse(name: &str) -> Option<Channel> {
    substitution(name).or_else(|| indel(name))
}

/// A[C>A]A, C>A:ACA, ACA:C>A, C>A ACA, or ACA>A.
fn substitution(name: &str) -> Option<Channel> {
    let name = name.trim().to_uppercase().replace('U', "T");
    let letters: Vec<char> = name.chars().filter(char::is_ascii_alphabetic).collect();
    let pair = name.find('>')?;
    let (from, to) = (name[..pair].chars().next_back()?, name[pair + 1..].chars().next()?);
    let bases = |text: &[char]| text.iter().all(|base| "ACGT".contains(*base));
    let (before, base, after) = match &letters[..] {
        // A C > A A
        [before, base, _, after] if name.contains('[') => (*before, *base, *after),
        [_, _, before, base, after] if pair == 1 => (*before, *base, *after),
        [before, base, after, _, _] => (*before, *base, *after),
        // ACA>A: from the middle of the three.
        [before, base, after, _] if pair == 3 => (*before, *base, *after),
        _ => return None,
    };
    if !bases(&letters) || (letters.len() != 4 || name.contains('[')) && from != base {
        return None;
    }
    let group = SUBSTITUTIONS.iter().position(|(known, _)| *known == format!("{base}>{to}"))?;
    let number = |base: char| "ACGT".find(base);
    Some(Channel { indel: false, place: 16 * group + 4 * number(before)? + number(after)?, group })
}

/// The base and its neighbours: ACA.
fn context(name: &str) -> String {
    let place = substitution(name).map_or(0, |channel| channel.place);
    let (group, within) = (place / 16, place % 16);
    let base = |i: usize| char::from(b"ACGT"[i]);
    format!("{}{}{}", base(within / 4), &SUBSTITUTIONS[group].0[..1], base(within % 4))
}

/// DEL:C:1:0, DEL_C_1_0, DEL:repeats:2:0, or 1:Del:C:0.
fn indel(name: &str) -> Option<Channel> {
    let upper = name.trim().to_uppercase();
    let parts: Vec<&str> = upper.split([':', '_', ' ']).filter(|part| !part.is_empty()).collect();
    let [first, second, third, fourth] = parts[..] else { return None };
    // SigProfiler writes the size first.
    let (kind, of, size, count) = if first.starts_with(|c: char| c.is_ascii_digit()) {
        (second, third, first, fourth)
    } else {
        (first, second, third, fourth)
    };
    let number = |text: &str| text.trim_end_matches('+').parse::<usize>().ok();
    let (size, count) = (number(size)?, number(count)?);
    let of = match of {
        "C" | "T" if size == 1 => of,
        "REPEATS" | "R" if size > 1 => "R",
        "MH" | "M" if size > 1 => "M",
        _ => return None,
    };
    let start = format!("{kind}:{of}:{}", size.min(5));
    let group = INDELS.iter().position(|(known, ..)| *known == start)?;
    let before: usize = INDELS[..group].iter().map(|(.., size)| size).sum();
    // Microhomology counts from 1, everything else from 0.
    let within = if of == "M" { count.checked_sub(1)? } else { count };
    (within < INDELS[group].3).then_some(Channel { indel: true, place: before + within, group })
}

/// DEL:C:1:0.
fn normal(name: &str) -> String {
    let place = indel(name).map_or(0, |channel| channel.place);
    let mut before = 0;
    for (start, .., size) in INDELS {
        if place < before + size {
            let first = usize::from(start.contains(":M:"));
            return format!("{start}:{}", place - before + first);
        }
        before += size;
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 96 in the order of the field.
    fn substitutions() -> Vec<String> {
        let mut names = Vec::new();
        for (group, _) in SUBSTITUTIONS {
            for before in "ACGT".chars() {
                names.extend("ACGT".chars().map(|after| format!("{before}[{group}]{after}")));
            }
        }
        names
    }

    #[test]
    fn substitutions_have_the_order_of_the_field_whatever_their_order_in_the_file() {
        let mut names = substitutions();
        let channels = Channels::of(&names).unwrap();
        assert_eq!(channels.order, (0..96).collect::<Vec<_>>());
        assert_eq!((&*channels.names[0], &*channels.names[95]), ("ACA", "TTT"));
        assert_eq!(channels.groups.len(), 6);
        names.reverse();
        assert_eq!(Channels::of(&names).unwrap().order, (0..96).rev().collect::<Vec<_>>());
        names[3] = names[4].clone();
        assert_eq!(Channels::of(&names), None, "one is twice there");
        assert_eq!(Channels::of(&names[..95]), None);
    }

    #[test]
    fn a_substitution_is_known_in_all_its_ways_of_writing() {
        for name in ["T[C>A]G", "C>A:TCG", "TCG:C>A", "C>A TCG", "TCG>A", "t[c>a]g"] {
            assert_eq!(substitution(name), Some(Channel { indel: false, place: 14, group: 0 }), "{name}");
        }
        for name in ["T[G>A]G", "C>C:TCG", "C>A:TTG", "TP53", "A>B", "", ">", "C>A"] {
            assert_eq!(substitution(name), None, "{name}");
        }
    }

    #[test]
    fn the_83_insertions_and_deletions_are_all_there_and_in_order() {
        let mut names = Vec::new();
        for (start, .., size) in INDELS {
            let first = usize::from(start.contains(":M:"));
            names.extend((first..first + size).map(|count| format!("{start}:{count}")));
        }
        assert_eq!(names.len(), 83);
        let channels = Channels::of(&names).unwrap();
        assert_eq!((channels.order, &channels.names), ((0..83).collect::<Vec<_>>(), &names));
        for name in ["DEL:repeats:5+:5+", "5:Del:R:5", "DEL_repeats_5+_5+", "DEL:R:5:5"] {
            assert_eq!(indel(name).map(|channel| channel.place), Some(47), "{name}");
        }
        assert_eq!(
            [indel("DEL:MH:5+:5+"), indel("DEL:MH:2:1")].map(|channel| channel.unwrap().place),
            [82, 72]
        );
        assert_eq!([indel("DEL:MH:2:2"), indel("DEL:A:1:0"), indel("a:b:c:d")], [None, None, None]);
    }

    #[test]
    fn keys_do_not_depend_on_the_way_of_writing() {
        assert_eq!(Channels::key("A[C>A]A"), Channels::key("C>A:ACA"));
        assert_eq!(Channels::key("TP53"), "TP53");
        assert!(Channels::known("1:Del:C:0") && !Channels::known("TP53"));
    }
}
