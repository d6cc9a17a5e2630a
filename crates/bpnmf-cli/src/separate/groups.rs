//! groups.json: which parts, or which of their events, make which stem, as somebody heard it.

use super::input::check_name;
use crate::failure::Failure;
use bpnmf_audio::Event;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The stem of parts that are in no group.
pub(crate) const REST: &str = "rest";

/// The size of a file with a name for each of ten thousand parts; a larger one is something else.
const MOST_BYTES: u64 = 1 << 20;

/// Groups in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Groups {
    path: PathBuf,
    named: Vec<(String, Vec<Member>)>,
}

/// What somebody gives to a stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Member {
    /// A part, but for events that are given by themselves.
    Part(usize),
    /// An event of a part.
    Event(usize),
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(part) => write!(f, "part {part}"),
            Self::Event(event) => write!(f, "event {event}"),
        }
    }
}

/// The stems that groups make.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Made {
    /// Of whole parts.
    Parts(Vec<Vec<usize>>),
    /// The stem of every event.
    Events(Vec<usize>),
}

impl Groups {
    /// Reads the file and checks all that can be checked before the number of parts is known.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::Request(format!("{}: {what}", path.display()));
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => wrong("there is no such file".to_owned()),
            io::ErrorKind::InvalidData => wrong("this is not text".to_owned()),
            _ => wrong(error.to_string()),
        };
        let about = fs::metadata(path).map_err(unreadable)?;
        if !about.is_dir() && !about.is_file() {
            return Err(wrong("this is not a regular file: copy what it gives to a file first".to_owned()));
        }
        if about.len() > MOST_BYTES {
            return Err(wrong(format!(
                "the file has {} bytes, groups have at most {MOST_BYTES}: is this the right file?",
                about.len()
            )));
        }
        Self::parse(path, &fs::read_to_string(path).map_err(unreadable)?)
    }

    /// Reads what the file holds.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::Request(format!("{}: {what}", path.display()));
        let Entries(named) = serde_json::from_str(text).map_err(|error| {
            wrong(format!("{error}: groups are written as {{\"name\": [part, ...], ...}}"))
        })?;
        if named.is_empty() {
            return Err(wrong("there is no group in it: name at least one".to_owned()));
        }
        let (mut names, mut taken) = (HashSet::new(), HashMap::new());
        for (name, parts) in &named {
            check_name(name, path)?;
            if !names.insert(name.to_lowercase()) {
                return Err(wrong(format!("two groups are called {name:?}: join them or rename one")));
            }
            if parts.is_empty() {
                return Err(wrong(format!("group {name:?} has no parts: name some or take it out")));
            }
            for &member in parts {
                if let Some(other) = taken.insert(member, name) {
                    let kind = if matches!(member, Member::Part(_)) { "a part" } else { "an event" };
                    return Err(wrong(format!(
                        "{member} is in {other:?} and in {name:?}: {kind} can be in one group, once"
                    )));
                }
            }
        }
        Ok(Self { path: path.to_owned(), named })
    }

    /// The stems of `components` parts and their events: the groups, and `rest` if there is anything in none.
    pub(crate) fn stems(&self, components: usize, events: &[Event]) -> Result<(Vec<String>, Made), Failure> {
        let wrong = |what: String| Failure::Request(format!("{}: {what}", self.path.display()));
        let mut of_part: Vec<Option<usize>> = vec![None; components];
        let mut of_event: Vec<Option<usize>> = vec![None; events.len()];
        for (stem, (name, members)) in self.named.iter().enumerate() {
            for member in members {
                let (place, last) = match *member {
                    Member::Part(part) => (of_part.get_mut(part), components.saturating_sub(1)),
                    Member::Event(event) => (of_event.get_mut(event), events.len().saturating_sub(1)),
                };
                let kind = if matches!(member, Member::Part(_)) { "parts" } else { "events" };
                *place.ok_or_else(|| {
                    wrong(format!(
                        "group {name:?} has {member}: {kind} go from 0 to {last} here; the same --seed and options \
                         give the same parts"
                    ))
                })? = Some(stem);
            }
        }
        let mut names: Vec<String> = self.named.iter().map(|(name, _)| name.clone()).collect();
        let rest = names.len();
        let whole = of_event.iter().all(Option::is_none);
        for (of, event) in of_event.iter_mut().zip(events) {
            *of = of.or(of_part[event.part]);
        }
        let left = |of: &[Option<usize>]| of.iter().position(Option::is_none);
        let (kind, left) = if whole { ("part", left(&of_part)) } else { ("event", left(&of_event)) };
        if let Some(left) = left {
            if names.iter().any(|name| name.to_lowercase() == REST) {
                return Err(wrong(format!(
                    "{kind} {left} is in no group, and a group is called {REST:?}, as the stem of such {kind}s is: \
                     rename it"
                )));
            }
            names.push(REST.to_owned());
        }
        let stem = |of: Option<usize>| of.unwrap_or(rest);
        if !whole {
            return Ok((names, Made::Events(of_event.into_iter().map(stem).collect())));
        }
        let mut members = vec![Vec::new(); names.len()];
        of_part.into_iter().enumerate().for_each(|(part, of)| members[stem(of)].push(part));
        Ok((names, Made::Parts(members)))
    }

    /// Whether a group has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(other, _)| other.to_lowercase() == name)
    }
}

/// The entries of an object in their order, also where a name comes twice.
struct Entries(Vec<(String, Vec<Member>)>);

/// A part as a number, an event as "e12".
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Part(usize),
    Event(String),
}

impl Written {
    fn member(self) -> Option<Member> {
        match self {
            Self::Part(part) => Some(Member::Part(part)),
            Self::Event(text) => Some(Member::Event(text.strip_prefix('e')?.parse().ok()?)),
        }
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names with lists of parts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, written)) = map.next_entry::<String, Vec<Written>>()? {
                    let members: Option<Vec<Member>> = written.into_iter().map(Written::member).collect();
                    let members = members.ok_or_else(|| {
                        serde::de::Error::custom(format!(
                            "group {name:?} has text that is no event like \"e12\""
                        ))
                    })?;
                    entries.push((name, members));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
