//! SIMD: sixteen single-precision lanes at a time, on whatever the machine has.
//!
//! Code that bounds is generic over [`Lanes`] and may round differently from machine to machine: the bounds carry
//! margins for that. Code whose result is kept (`exact`, `doubles`, and of [`Lanes`] the products called `fused` and the
//! functions that say so) is arithmetic in a fixed order in which every step is rounded the same way, so it gives the same
//! bits however it was compiled.

pub(crate) mod doubles;
pub(crate) mod exact;
mod lanes;

pub(crate) use lanes::{ABOVE_ERROR, LN_ERROR, Lanes, Plain, each};
#[cfg(target_arch = "x86_64")]
pub(crate) use lanes::{Avx2, Avx512};

use core::sync::atomic::{AtomicU8, Ordering};

/// The number of lanes, and of components in a tile.
pub(crate) const LANES: usize = 16;

/// The number of words of 16 bits that are compared at once.
pub(crate) const WORDS: usize = 32;

/// Sixteen neighbouring values on a cache line of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Tile(pub(crate) [f32; LANES]);

impl Tile {
    pub(crate) const ZERO: Self = Self([0.0; LANES]);
}

impl Default for Tile {
    fn default() -> Self {
        Self::ZERO
    }
}

/// `tiles` as one flat slice.
#[inline(always)]
pub(crate) fn flat(tiles: &[Tile]) -> &[f32] {
    // SAFETY: a Tile is exactly LANES f32 without padding (64 bytes, repr(C)).
    unsafe { core::slice::from_raw_parts(tiles.as_ptr().cast(), tiles.len() * LANES) }
}

/// The bits of a tile.
#[inline(always)]
pub(crate) fn words_of(tile: &Tile) -> &[u32; LANES] {
    // SAFETY: f32 and u32 have the same size and alignment, and all bits are a u32.
    unsafe { &*(&raw const tile.0).cast() }
}

/// `tiles` as one flat mutable slice.
#[inline(always)]
pub(crate) fn flat_mut(tiles: &mut [Tile]) -> &mut [f32] {
    // SAFETY: as in `flat`, and the borrow is exclusive.
    unsafe { core::slice::from_raw_parts_mut(tiles.as_mut_ptr().cast(), tiles.len() * LANES) }
}

/// Asks for an element that will be needed soon.
#[inline(always)]
pub(crate) fn prefetch<T>(from: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < from.len() {
        // SAFETY: the address is inside the slice, and a prefetch has no effect but on time.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                from.as_ptr().add(at).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, at);
}

/// The same, but for later: into the second cache.
#[inline(always)]
pub(crate) fn prefetch_early<T>(from: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < from.len() {
        // SAFETY: as in `prefetch`.
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T1 }>(
                from.as_ptr().add(at).cast(),
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, at);
}

/// Which instructions to use. Results do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Simd {
    /// The best the machine has.
    #[default]
    Auto,
    /// AVX-512 (F, BW, DQ, VL).
    Avx512,
    /// AVX2 with FMA.
    Avx2,
    /// No particular instructions.
    Plain,
}

impl Simd {
    /// What will really run: `Auto` resolved, and anything the machine lacks replaced by the next best.
    #[inline]
    pub fn resolved(self) -> Self {
        match (self, best()) {
            (Self::Auto, best) => best,
            (Self::Avx512, Self::Avx512) => Self::Avx512,
            (Self::Avx512 | Self::Avx2, Self::Avx512 | Self::Avx2) => Self::Avx2,
            _ => Self::Plain,
        }
    }

    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Plain => "plain",
        }
    }
}

/// The best the machine has; asked for before every kernel, so it is looked up once.
#[inline]
fn best() -> Simd {
    static BEST: AtomicU8 = AtomicU8::new(0);
    match BEST.load(Ordering::Relaxed) {
        1 => Simd::Plain,
        2 => Simd::Avx2,
        3 => Simd::Avx512,
        _ => {
            let best = detected();
            let number = match best {
                Simd::Avx512 => 3,
                Simd::Avx2 => 2,
                _ => 1,
            };
            BEST.store(number, Ordering::Relaxed);
            best
        }
    }
}

#[cold]
fn detected() -> Simd {
    #[cfg(target_arch = "x86_64")]
    {
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if avx512 && avx2 {
            return Simd::Avx512;
        }
        if avx2 {
            return Simd::Avx2;
        }
    }
    Simd::Plain
}

/// Defines `$name`, which runs the `#[inline(always)]` function `$body` compiled for the given [`Simd`].
/// The body's last generic parameter is the lane type.
macro_rules! dispatch {
    ($(#[$doc:meta])* $vis:vis fn $name:ident [$($generic:ident : $bound:path),*] ($($arg:ident : $ty:ty),* $(,)?) $(-> $out:ty)? = $body:ident) => {
        $(#[$doc])*
        // Other processors have one way to do it.
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
        $vis fn $name<$($generic: $bound),*>(simd: $crate::kernel::Simd, $($arg: $ty),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
                unsafe fn wide<$($generic: $bound),*>($($arg: $ty),*) $(-> $out)? {
                    $body::<$($generic,)* $crate::kernel::Avx512>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
                unsafe fn half<$($generic: $bound),*>($($arg: $ty),*) $(-> $out)? {
                    $body::<$($generic,)* $crate::kernel::Avx2>($($arg),*)
                }
                match simd.resolved() {
                    // SAFETY: `resolved` says so only when the machine has these features.
                    $crate::kernel::Simd::Avx512 => return unsafe { wide($($arg),*) },
                    // SAFETY: as above.
                    $crate::kernel::Simd::Avx2 => return unsafe { half($($arg),*) },
                    _ => {}
                }
            }
            $body::<$($generic,)* $crate::kernel::Plain>($($arg),*)
        }
    };
}
pub(crate) use dispatch;
