//! groups.json: which parts make which stem, as somebody heard it.

use super::input::check_name;
use crate::failure::Failure;
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
    named: Vec<(String, Vec<usize>)>,
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
            for &part in parts {
                if let Some(other) = taken.insert(part, name) {
                    return Err(wrong(format!(
                        "part {part} is in {other:?} and in {name:?}: a part can be in one group, once"
                    )));
                }
            }
        }
        Ok(Self { path: path.to_owned(), named })
    }

    /// The stems of `components` parts: the groups, and `rest` if there are parts in none.
    pub(crate) fn stems(&self, components: usize) -> Result<Vec<(String, Vec<usize>)>, Failure> {
        let wrong = |what: String| Failure::Request(format!("{}: {what}", self.path.display()));
        let mut free: Vec<usize> = (0..components).collect();
        let mut stems = self.named.clone();
        for (name, parts) in &mut stems {
            if let Some(part) = parts.iter().find(|part| **part >= components) {
                let last = components.saturating_sub(1);
                return Err(wrong(format!(
                    "group {name:?} has part {part}: parts go from 0 to {last} here; the same --seed and options give \
                     the same parts"
                )));
            }
            parts.sort_unstable();
            free.retain(|part| parts.binary_search(part).is_err());
        }
        if !free.is_empty() {
            if stems.iter().any(|(name, _)| name.to_lowercase() == REST) {
                return Err(wrong(format!(
                    "part {} is in no group, and a group is called {REST:?}, as the stem of such parts is: rename it",
                    free[0]
                )));
            }
            stems.push((REST.to_owned(), free));
        }
        Ok(stems)
    }

    /// Whether a group has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(other, _)| other.to_lowercase() == name)
    }
}

/// The entries of an object in their order, also where a name comes twice.
struct Entries(Vec<(String, Vec<usize>)>);

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
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
