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
    // 1 + y = 2^e m as in `ln`; m - 1 with all the digits of y, which 1 + y has lost.
    let e = ((1.0 + y).to_bits() as i64 - 0x3fe8_0000_0000_0000) >> 52;
    let power = f64::from_bits(((1023 - e) << 52) as u64);
    let f = y * power + (power - 1.0);
    let e = e as i32 as f64;
    (e * LN_2_LOW + two_atanh(f / (2.0 + f))) + e * LN_2_HIGH
}

/// e^x without branches, for x up to 700, to a few units in the last place; 0 below -700.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    /// Added to a number it leaves the nearest whole one in the last bits.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    let clamped = x.max(-700.0);
    let whole = clamped * core::f64::consts::LOG2_E + WHOLE;
    let n = whole - WHOLE;
    // x = n log 2 + r with |r| <= 0.35, and the series of e^r to its 13th power.
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let (r2, r4) = (r * r, r * r * (r * r));
    let low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0));
    let middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    let high = (1.0 / 40_320.0 + r * (1.0 / 362_880.0)) + r2 * (1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0));
    let highest = 1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0);
    let series = low + r4 * (middle + r4 * (high + r4 * highest));
    let power = whole.to_bits().wrapping_sub(WHOLE.to_bits()).wrapping_add(1023) << 52;
    let keep = u64::from(x > -700.0).wrapping_neg();
    f64::from_bits((series * f64::from_bits(power)).to_bits() & keep)
}

/// exp digamma of positive numbers; faster where all are far from 0.
#[inline(always)]
pub(crate) fn exp_digammas<const N: usize>(x: &[f64; N]) -> [f64; N] {
    let mut out = [0.0; N];
    if all_from(FAR, x) {
        for i in 0..N {
            out[i] = exp_digamma_series(x[i] - 0.5);
        }
    } else {
        for i in 0..N {
            out[i] = exp_digamma(x[i]);
        }
    }
    out
}

/// From here on the series of exp digamma is exact by itself.
const FAR: f64 = 16.0;

/// exp digamma(y + 1/2) by its asymptotic series in 1 / y.
#[inline(always)]
fn exp_digamma_series(y: f64) -> f64 {
    let z = 1.0 / (y * y);
    const C: [f64; 5] = [
        1.0 / 24.0,
        -37.0 / 5760.0,
        10_313.0 / 2_903_040.0,
        -5_509_121.0 / 1_393_459_200.0,
        2_709_398_569.0 / 367_873_228_800.0,
    ];
    let series = C[0] + z * (C[1] + z * (C[2] + z * (C[3] + z * C[4])));
    y + series * z * y
}

/// exp digamma(x) of a positive number, without branches.
#[inline(always)]
pub(crate) fn exp_digamma(x: f64) -> f64 {
    // digamma(x) = digamma(x + 16) - sum of 1 / (x + i) for i < 16; of these, the ones that add up to 2 x + 15 together,
    // and of the eight pairs two together.
    let q = x * (x + 15.0);
    let two = |i: f64, j: f64| {
        let (i, j) = (i * (15.0 - i), j * (15.0 - j));
        (2.0 * q + (i + j)) / ((q + i) * (q + j))
    };
    let sum = (two(0.0, 4.0) + two(1.0, 5.0)) + (two(2.0, 6.0) + two(3.0, 7.0));
    let far = x >= FAR;
    let (y, back) = (if far { x - 0.5 } else { x + 15.5 }, exp(-(2.0 * x + 15.0) * sum));
    exp_digamma_series(y) * if far { 1.0 } else { back }
}

/// log of the gamma function of a positive number.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The digamma function of positive numbers and the logs of their gamma functions; faster where all are far from 0.
#[inline(always)]
pub(crate) fn digamma_ln_gammas<const N: usize>(x: &[f64; N]) -> ([f64; N], [f64; N]) {
    let (mut digamma, mut ln_gamma) = ([0.0; N], [0.0; N]);
    if all_from(RATHER_FAR, x) {
        for i in 0..N {
            (digamma[i], ln_gamma[i]) = digamma_ln_gamma_series(x[i]);
        }
    } else {
        for i in 0..N {
            (digamma[i], ln_gamma[i]) = digamma_ln_gamma(x[i]);
        }
    }
    (digamma, ln_gamma)
}

#[inline(always)]
fn all_from<const N: usize>(least: f64, x: &[f64; N]) -> bool {
    let mut all = true;
    for x in x {
        all &= *x >= least;
    }
    all
}

/// From here on the series of digamma and log gamma are exact by themselves.
const RATHER_FAR: f64 = 8.0;

/// The digamma function and the log of the gamma function, without branches.
#[inline(always)]
fn digamma_ln_gamma(x: f64) -> (f64, f64) {
    // Both at y = x + 8; x (x + 1) ... (x + 7) and its logarithmic derivative lead back, the factors that add up to 2 x + 7
    // taken together.
    let far = x >= RATHER_FAR;
    let q = x * (x + 7.0);
    let (two, four) = (q * (q + 6.0), (q + 10.0) * (q + 12.0));
    let derivative = (2.0 * x + 7.0) * ((2.0 * q + 6.0) / two + (2.0 * q + 22.0) / four);
    let (digamma, ln_gamma) = digamma_ln_gamma_series(if far { x } else { x + RATHER_FAR });
    let (shift, product) = if far { (0.0, 1.0) } else { (derivative, two * four) };
    (digamma - shift, ln_gamma - ln(product))
}

/// Both by their asymptotic series.
#[inline(always)]
fn digamma_ln_gamma_series(y: f64) -> (f64, f64) {
    let (log, inverse) = (ln(y), 1.0 / y);
    let z = inverse * inverse;
    let digamma_tail = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32_760.0))))));
    let tail = inverse
        * (1.0 / 12.0
            - z * (1.0 / 360.0
                - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z * (1.0 / 1188.0 - z * (691.0 / 360_360.0))))));
    const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;
    (log - 0.5 * inverse - digamma_tail, (y - 0.5) * log - y + HALF_LN_TWO_PI + tail)
}

/// The digamma function of a positive number.
#[inline]
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let tail = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z / 132.0))));
    shift + ln(x) - 0.5 / x - tail
}

/// The trigamma function of a positive number, the derivative of [`digamma`].
pub(crate) fn trigamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 15.0 {
        shift += 1.0 / (x * x);
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let tail = 1.0 / 6.0
        - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0 - z * 691.0 / 2730.0))));
    shift + (1.0 + 0.5 / x + z * tail) / x
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

/// From this shape on the cube root of a gamma variable is close enough to a normal one.
const NORMAL_SHAPE: f64 = 200.0;

/// The x below which a Gamma(shape, 1) variable is with probability p; good to 1e-4 of itself. 0 where it is less than can be
/// said.
pub(crate) fn gamma_quantile(shape: f64, p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    // Wilson and Hilferty; below shape 1 the first terms of the series, as in Numerical Recipes.
    let mut x = if shape > 1.0 {
        let root = 1.0 - 1.0 / (9.0 * shape) + normal_quantile(p) / (3.0 * shape.sqrt());
        shape * root.max(0.01).powi(3)
    } else {
        let turn = 1.0 - shape * (0.253 + 0.12 * shape);
        if p < turn { libm::pow(p / turn, 1.0 / shape) } else { 1.0 - ln((1.0 - p) / (1.0 - turn)) }
    };
    if shape >= NORMAL_SHAPE {
        return x;
    }
    let norm = ln_gamma(shape);
    // Halley's steps.
    for _ in 0..12 {
        if x < f64::MIN_POSITIVE {
            return 0.0;
        }
        let density = libm::exp((shape - 1.0) * ln(x) - x - norm);
        let newton = (gamma_below(shape, x, norm) - p) / density;
        let step = newton / (1.0 - 0.5 * (newton * ((shape - 1.0) / x - 1.0)).min(1.0));
        x = if step < x { x - step } else { 0.5 * x };
        if step.abs() < 1e-6 * x {
            break;
        }
    }
    x
}

/// The probability that a Gamma(shape, 1) variable is below x, by the series or the continued fraction.
fn gamma_below(shape: f64, x: f64, ln_gamma_shape: f64) -> f64 {
    let scale = libm::exp(shape * ln(x) - x - ln_gamma_shape);
    if x < shape + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / shape, 1.0 / shape, shape);
        while term > 1e-9 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return scale * sum;
    }
    // Lentz.
    let mut b = x + 1.0 - shape;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut fraction = d;
    for i in 1..500 {
        let a = f64::from(i) * (shape - f64::from(i));
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-9 {
            break;
        }
    }
    1.0 - scale * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_and_ln_gamma_are_those_of_the_library() {
        for power in -60..120 {
            let x = libm::pow(10.0, f64::from(power) / 10.0);
            let (psi, log) = digamma_ln_gamma(x);
            let ([one, _], [other, _]) = digamma_ln_gammas(&[x, 1.0]);
            assert_eq!((digamma_ln_gammas(&[x]), one, other), (([psi], [log]), psi, log), "{x:e}");
            let close = |ours: f64, exact: f64| (ours - exact).abs() <= 4e-13 * (1.0 + exact.abs());
            assert!(close(psi, digamma(x)), "digamma({x}): {psi} {}", digamma(x));
            assert!(close(log, libm::lgamma(x)), "ln_gamma({x}): {log} {}", libm::lgamma(x));
        }
    }

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
    fn gamma_quantiles_are_good_to_1e_4() {
        let close = |shape: f64, p: f64, exact: f64| {
            let ours = gamma_quantile(shape, p);
            assert!((ours - exact).abs() <= 1e-4 * exact, "shape {shape}, {p}: {ours}, {exact}");
        };
        for p in [1e-6, 0.001, 0.05, 0.3, 0.5, 0.9, 0.95, 0.9999] {
            close(1.0, p, -libm::log1p(-p));
            close(0.5, p, 0.5 * normal_quantile(0.5 * (1.0 + p)).powi(2));
        }
        // Where x is tiny, P(a, x) is x^a / gamma(a + 1).
        close(0.02, 0.5, libm::exp((ln(0.5) + ln_gamma(1.02)) / 0.02));
        assert_eq!((gamma_quantile(1e-4, 0.5), gamma_quantile(3.0, 0.0)), (0.0, 0.0));
        // Whole shapes are waiting times: the probability is that of at least so many events.
        for shape in [2u32, 5, 30, 150, 199, 200, 400] {
            for p in [0.001, 0.05, 0.5, 0.95] {
                let x = gamma_quantile(f64::from(shape), p);
                let fewer: f64 = (0..shape)
                    .map(|n| libm::exp(f64::from(n) * ln(x) - x - ln_gamma(f64::from(n) + 1.0)))
                    .sum();
                assert!(
                    (1.0 - fewer - p).abs() < 0.01 * p.min(1.0 - p),
                    "shape {shape}, {p}: {}",
                    1.0 - fewer
                );
            }
        }
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
    fn exp_agrees_with_libm() {
        let mut x = -699.0;
        while x < 700.0 {
            let (ours, theirs) = (exp(x), libm::exp(x));
            assert!((ours - theirs).abs() <= 8e-16 * theirs, "exp({x}) = {ours:e}, {theirs:e}");
            x += 0.1237;
        }
        assert_eq!((exp(0.0), exp(-701.0), exp(f64::NEG_INFINITY)), (1.0, 0.0, 0.0));
    }

    #[test]
    fn exp_digamma_agrees_with_digamma() {
        let mut x = 2e-3;
        while x < 1e12 {
            // Far from 0 its own series is exact.
            let exact = digamma(x + 40.0) - (0..40).map(|i| 1.0 / (x + f64::from(i))).sum::<f64>();
            let (ours, theirs) = (exp_digamma(x), libm::exp(exact));
            assert_eq!((exp_digammas(&[x]), exp_digammas(&[x, 1.0])[0]), ([ours], ours), "{x:e}");
            // What digamma loses is multiplied by its size.
            let tolerance = 1e-15 * (10.0 + exact.abs());
            assert!((ours - theirs).abs() <= tolerance * theirs, "{x:e}: {ours:e}, {theirs:e}");
            x *= 1.0137;
        }
        assert_eq!(exp_digamma(1e-300), 0.0);
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
