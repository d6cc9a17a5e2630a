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

/// log(1 + y) for y >= 0, accurate for small y, without branches.
#[inline(always)]
pub(crate) fn ln_1p(y: f64) -> f64 {
    let small = two_atanh(y / (2.0 + y));
    let large = ln(1.0 + y);
    if y < 0.5 { small } else { large }
}

/// log of the gamma function of a positive number.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// log of the beta function.
pub(crate) fn ln_beta(x: f64, y: f64) -> f64 {
    ln_gamma(x) + ln_gamma(y) - ln_gamma(x + y)
}

#[cfg(test)]
mod tests {
    use super::*;

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
