//! probe
use bpnmf::*;
use std::time::Instant;
fn main() {
    let f = 513; let t = 2325;
    let mut s = bench::stream(7);
    let w: Vec<f64> = (0..f * 10).map(|_| s.gamma(0.5)).collect();
    let mut v = vec![];
    for _ in 0..t { let h: Vec<f64> = (0..10).map(|_| 6.0 * s.gamma(1.0)).collect(); for r in w.chunks(10) { let rate: f64 = r.iter().zip(&h).map(|(a, b)| a * b).sum(); v.push(s.poisson(rate) + 1.0); } }
    let counts = Counts::from_dense(f, t, v).unwrap();
    let prior = Prior { components: 50, ..Default::default() }.check().unwrap();
    let e = Ssmf::default(); let key = Key::new(1); let wk = Workers::serial();
    let mut st = e.init(&counts, &prior, key);
    for i in 0..12 { let n = Instant::now(); let info = e.step(&mut st, &Batch::all(&counts), &prior, key, &wk).unwrap(); println!("{i} {:.1} ms K {} on/col {:.1} ll {:.0} {:?}", n.elapsed().as_secs_f64()*1e3, info.active, info.sites_on as f64 / t as f64, info.log_likelihood, info.tiers); }
    let n: usize = std::env::args().nth(1).map_or(0, |a| a.parse().unwrap());
    for _ in 0..n { let mut s2 = st.clone(); e.step(&mut s2, &Batch::all(&counts), &prior, key, &wk).unwrap(); }
}
