//! Counts given out by multinomial draws.

use super::{Allocated, Task};
use crate::kernel::doubles::flat_lines;
use crate::random::{Key, Site};
use core::sync::atomic::{AtomicU64, Ordering};

/// A stream is long but not endless: a column with many features uses several.
const FEATURES_TO_A_STREAM: usize = 1 << 12;

/// Draws Z_ft. ~ Multinomial(X_ft, phi) for column `t`. `alone` if no other thread adds to `counted`.
pub(crate) fn sample(
    task: Task<'_>,
    key: Key,
    iteration: u32,
    alone: bool,
    t: usize,
    column: &Allocated,
    shares: &mut [f64],
    counted: &[AtomicU64],
) {
    let features = task.counts.features();
    let dictionary = task.dictionary;
    let parts = &column.parts;
    let (x, rates) = (column.entries(task.counts, t), flat_lines(&column.rate));
    for &(k, _) in parts {
        shares[k] = 0.0;
    }
    let mut give = |k: usize, f: usize, count: u64| {
        shares[k] += count as f64;
        let cell = &counted[k * features + f];
        if alone {
            cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
        } else {
            cell.fetch_add(count, Ordering::Relaxed);
        }
    };
    let mut part = 0;
    let mut stream = key.stream(Site::Allocation, iteration, t as u32, 0);
    for i in 0..x.len() {
        let mut left = x[i] as u64;
        if left == 0 {
            continue;
        }
        let f = if column.rows.is_empty() { i } else { column.rows[i] as usize };
        if f / FEATURES_TO_A_STREAM != part {
            part = f / FEATURES_TO_A_STREAM;
            stream = key.stream(Site::Allocation, iteration, t as u32, part as u32);
        }
        if let [(k, _)] = parts[..] {
            give(k, f, left);
            continue;
        }
        let weight = |k: usize, h: f32| f64::from(dictionary.row(k)[f]) * f64::from(h);
        if left <= 2 * parts.len() as u64 {
            // One count at a time.
            for _ in 0..left {
                let mut point = stream.uniform() * rates[i];
                let mut chosen = usize::MAX;
                for &(k, h) in parts {
                    chosen = k;
                    point -= weight(k, h);
                    if point < 0.0 {
                        break;
                    }
                }
                give(chosen, f, 1);
            }
        } else {
            // One component at a time: binomial of what is left.
            let mut rate = rates[i];
            let mut last = usize::MAX;
            for &(k, h) in parts {
                last = k;
                let own = weight(k, h);
                let count = stream.binomial(left, own / rate);
                if count > 0 {
                    give(k, f, count);
                    left -= count;
                    if left == 0 {
                        break;
                    }
                }
                rate -= own;
            }
            if left > 0 {
                // Rounding left a crumb of probability behind the last component: it is the last one's.
                give(last, f, left);
            }
        }
    }
}
