//! Logarithms and gamma functions in plain arithmetic: the same bits on every machine, free to vectorise.

const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 2 atanh(s) for |s| <= 0.21 by its Taylor series, error below 1 unit in the last place of the result.
#[inline(always)]
fn two_atanh(s: f64) -> f64 {
    let z = s * s;
    let mut p = 2.0 / 23.0;
    p = p * z + 2.0 / 21.0;
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    2.0 * s + s * (z * p)
}

/// Natural logarithm of a normal positive number, without branches.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    // x = 2^e m with m in [0.75, 1.5).
    let bits = x.to_bits() as i64;
    let shifted = bits - 0x3fe8_0000_0000_0000;
    let e = shifted >> 52;
    let m = f64::from_bits((bits - (e << 52)) as u64);
    let f = m - 1.0;
    let log = two_atanh(f / (2.0 + f));
    let e = e as i32 as f64;
    (e * LN_2_LOW + log) + e * LN_2_HIGH
}

/// log(1 + f) = f + f^2 P(f) for f in [-0.25, 0.5], relative error 1e-7.
pub(crate) const LN_NEAR_ONE: [f32; 8] = [
    -0.500_000_6,
    0.333_335_5,
    -0.249_934_42,
    0.199_770_78,
    -0.168_228_12,
    0.149_839_16,
    -0.120_673_64,
    0.054_132_44,
];

/// Natural logarithm of a normal positive f32, absolute error below 2e-7 (1 + |log|), nothing fused.
#[inline(always)]
pub(crate) fn ln_single(x: f32) -> f32 {
    const P: [f32; 8] = LN_NEAR_ONE;
    let bits = x.to_bits() as i32;
    let e = bits.wrapping_sub(0x3f40_0000) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(e << 23) as u32) - 1.0;
    let mut p = P[7];
    let mut i = 7;
    while i > 0 {
        i -= 1;
        p = p * f + P[i];
    }
    e as f32 * core::f32::consts::LN_2 + (f * f * p + f)
}

/// log(1 + y) for y >= 0, accurate for small y, without branches.
#[inline(always)]
pub(crate) fn ln_1p(y: f64) -> f64 {
    let small = two_atanh(y / (2.0 + y));
    let large = ln(1.0 + y);
    // Chosen by bits: a choice that could be a jump would keep compilers from taking several at once.
    let near = u64::from(y < 0.5).wrapping_neg();
    f64::from_bits(small.to_bits() & near | large.to_bits() & !near)
}

/// log of the gamma function of a positive number.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The digamma function of a positive number.
#[inline]
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 6.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let tail = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z / 132.0))));
    shift + ln(x) - 0.5 / x - tail
}

/// log of the beta function.
pub(crate) fn ln_beta(x: f64, y: f64) -> f64 {
    ln_gamma(x) + ln_gamma(y) - ln_gamma(x + y)
}

/// The x below which a standard normal number is with probability p, 0 < p < 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    // Abramowitz and Stegun 26.2.23, good to 5e-4, for the smaller tail; two of Halley's steps do the rest.
    let tail = p.min(1.0 - p);
    let t = (-2.0 * ln(tail)).sqrt();
    let mut x = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..2 {
        let above = 0.5 * libm::erfc(x * core::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * x * x) / (2.0 * core::f64::consts::PI).sqrt();
        let step = (above - tail) / density;
        x += step / (1.0 - 0.5 * x * step);
    }
    if p < 0.5 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of `scipy.stats.norm.ppf`.
    #[test]
    fn normal_quantiles_are_good_to_1e_14() {
        for (p, x) in [
            (1e-300, -37.047_096_299_361_2),
            (1e-12, -7.034_483_825_301_131),
            (1e-5, -4.264_890_793_922_825),
            (0.001, -3.090_232_306_167_813),
            (0.024_25, -1.972_961_051_311_885),
            (0.25, -0.674_489_750_196_081_7),
            (0.4, -0.253_347_103_135_799_7),
            (0.9, 1.281_551_565_544_600_4),
            (0.999_999, 4.753_424_308_817_087),
        ] {
            let ours = normal_quantile(p);
            assert!((ours / x - 1.0).abs() < 1e-14, "{p}: {ours}, {x}");
        }
        assert!(normal_quantile(0.5).abs() < 1e-15);
    }

    #[test]
    fn ln_agrees_with_libm_to_two_units_in_the_last_place() {
        let mut x = 1e-300;
        while x < 1e300 {
            let (ours, theirs) = (ln(x), libm::log(x));
            assert!(
                (ours - theirs).abs() <= 4.5e-16 * theirs.abs().max(1e-3),
                "ln({x:e}) = {ours:e}, {theirs:e}"
            );
            x *= 1.000_37 + 0.01 * (x.to_bits() % 7) as f64;
        }
        for i in -4000..4000 {
            let x = 1.0 + i as f64 * 1e-4;
            assert!((ln(x) - libm::log(x)).abs() <= 4.5e-16 * libm::log(x).abs().max(1e-4), "ln({x})");
        }
    }

    #[test]
    fn ln_single_is_good_to_2e_7() {
        let mut x = f32::MIN_POSITIVE;
        while x < 1e38 {
            let truth = libm::log(f64::from(x));
            assert!(
                (f64::from(ln_single(x)) - truth).abs() <= 2e-7 * (1.0 + truth.abs()),
                "ln_single({x:e})"
            );
            x *= 1.000_11;
        }
    }

    #[test]
    fn ln_1p_agrees_with_libm_from_tiny_to_huge() {
        let mut y = 1e-290;
        while y < 1e290 {
            let (ours, theirs) = (ln_1p(y), libm::log1p(y));
            assert!((ours - theirs).abs() <= 6e-16 * theirs, "ln_1p({y:e}) = {ours:e}, {theirs:e}");
            y *= 1.003_7;
        }
        assert_eq!(ln_1p(0.0), 0.0);
    }
}
