//! How much memory there is, as far as the system tells.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that a process can still get: what the machine has left, or its control group. `None` where nobody knows.
pub(crate) fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limits(&groups).filter_map(|limit| limit.left()).chain(machine).min()
}

/// MemAvailable of /proc/meminfo.
fn machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The files of a control group that say how much it may use and how much it does.
#[derive(Debug, PartialEq)]
struct Limit {
    most: PathBuf,
    used: PathBuf,
    statistics: PathBuf,
}

impl Limit {
    fn left(&self) -> Option<u64> {
        let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let cached = fs::read_to_string(&self.statistics).ok().and_then(|text| cached(&text)).unwrap_or(0);
        // Files that were read are in memory as long as nobody else needs it.
        Some(number(&self.most)?.saturating_sub(number(&self.used)?.saturating_sub(cached)))
    }
}

/// The bytes of files that nobody has looked at lately.
fn cached(text: &str) -> Option<u64> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value("total_inactive_file ").or_else(|| value("inactive_file "))
}

/// The control groups of /proc/self/cgroup, and those around them.
fn limits(text: &str) -> impl Iterator<Item = Limit> + '_ {
    let root = Path::new("/sys/fs/cgroup");
    text.lines().flat_map(move |line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (kinds, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let (folder, most, used) = match kinds {
            "" => (root.to_owned(), "memory.max", "memory.current"),
            _ if kinds.split(',').any(|kind| kind == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => return Vec::new(),
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        let limit = |group: PathBuf| Limit {
            most: group.join(most),
            used: group.join(used),
            statistics: group.join("memory.stat"),
        };
        groups.map(|group| limit(folder.join(group))).collect()
    })
}

/// Bytes as people say them.
pub(crate) fn text(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        bytes if bytes < 1e9 => format!("{:.0} MB", (bytes * 1e-6).max(1.0)),
        bytes if bytes < 1e12 => format!("{:.1} GB", bytes * 1e-9),
        bytes => format!("{:.0} GB", bytes * 1e-9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_left_is_read_from_what_the_system_tells() {
        assert_eq!(machine("MemTotal: 9 kB\nMemAvailable:   23232132 kB\n"), Some(23_232_132 * 1024));
        assert_eq!(machine("MemTotal: 9 kB\n"), None);
        assert_eq!(cached("cache 7\ninactive_file 5\ntotal_inactive_file 6\n"), Some(6));
        let found: Vec<PathBuf> = limits("4:memory:/a/b\n1:cpu:/\n0::/c\n").map(|limit| limit.most).collect();
        let expected = [
            "memory/a/b/memory.limit_in_bytes",
            "memory/a/memory.limit_in_bytes",
            "memory/memory.limit_in_bytes",
            "c/memory.max",
            "memory.max",
        ];
        assert_eq!(found, expected.map(|path| Path::new("/sys/fs/cgroup").join(path)));
        assert!(!cfg!(target_os = "linux") || available().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn bytes_are_said_as_people_say_them() {
        let said = [12_300_000u64, 4_560_000_000, 7_800_000_000_000].map(text);
        assert_eq!(said, ["12 MB", "4.6 GB", "7800 GB"]);
    }
}
