use super::*;

fn counts(features: usize, observations: usize) -> Counts {
    Counts::from_dense(features, observations, vec![1.0; features * observations]).unwrap()
}

#[test]
fn there_are_four_chains_and_two_of_large_data_unless_a_number_is_asked_for() {
    let chains = |plan: Plan, counts: &Counts| plan.job(counts).map(|(job, _)| job.chains);
    let (small, large) = (counts(2, 3), counts(500, 500));
    assert_eq!((chains(Plan::default(), &small), chains(Plan::default(), &large)), (Ok(4), Ok(2)));
    assert_eq!(chains(Plan { chains: Some(5), ..Plan::default() }, &large), Ok(5));
    assert_eq!(chains(Plan { preset: Preset::Paper, ..Plan::default() }, &small), Ok(1));
    assert!(chains(Plan { chains: Some(0), ..Plan::default() }, &small).is_err());
    assert!(Plan { chains: Some(1001), ..Plan::default() }.check().is_err());
}

#[test]
fn what_is_held_out_is_no_longer_there_to_be_fitted() {
    let all = counts(20, 30);
    let (job, kept) = Plan { held_out: Some(0.5), ..Plan::default() }.job(&all).unwrap();
    assert!(job.options.held_out.is_some());
    assert!((200.0..400.0).contains(&kept.unwrap().total()));
    assert!(Plan::default().job(&all).unwrap().1.is_none());
    for share in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(Plan { held_out: Some(share), ..Plan::default() }.check().is_err(), "{share}");
    }
    let fractions = Counts::from_dense(1, 2, vec![0.5, 1.0]).unwrap();
    assert!(Plan { held_out: Some(0.5), ..Plan::default() }.job(&fractions).is_err());
}

#[test]
fn a_burn_in_is_judged_by_the_iterations_that_the_data_get() {
    let plan = Plan { burn_in: Some(60), ..Plan::default() };
    let many = Counts::from_dense(2, 2, vec![1e7; 4]).unwrap();
    assert!(plan.check().is_ok() && plan.job(&counts(2, 2)).is_ok(), "weak data get 120");
    assert!(plan.job(&many).is_err(), "and strong data 40");
}
