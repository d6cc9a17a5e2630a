//! report.html: what the chains found, as a page for people. Values in, nothing written.

use super::output::{Results, r_hat_text};
use crate::text;
use bpnmf_report::{Data, Report};
use std::path::Path;

impl<'a> Results<'a> {
    /// What the page shows of a fit to `data`.
    pub(crate) fn report(&self, data: Data<'a>) -> Report<'a> {
        let (source, chains) = (self.source, self.chains);
        let name = Path::new(&source.path).file_name();
        let mut report = Report::new(data, chains);
        report.title = name.map_or_else(|| source.path.clone(), |name| name.to_string_lossy().into_owned());
        report.source = format!(
            "{} features x {} observations, {} of the entries positive{}, {} in all",
            text::grouped(source.features),
            text::grouped(source.observations),
            text::grouped(source.nonzeros),
            match source.missing {
                0 => String::new(),
                missing => format!(", {} missing (drawn as zero)", text::grouped(missing)),
            },
            if source.whole_counts {
                text::plural(source.total as usize, "count", "counts")
            } else {
                text::significant(source.total, 4)
            }
        );
        report.forced = self.config.job.forced();
        report.feature_names = source.feature_names.as_deref();
        report.observation_names = source.observation_names.as_deref();
        report.warnings = self.warnings();
        let reading = self.how_it_was_read().map(|sentence| sentence.replace('\n', " "));
        let noise = self.fit().noise_sentence();
        report.notes = noise.into_iter().chain(reading).chain(self.notes()).collect();
        report.facts = self.facts();
        report
    }

    /// How the result was made.
    fn facts(&self) -> Vec<(String, String)> {
        let config = self.config;
        let mut facts = vec![
            ("file", self.source.path.clone()),
            ("read as", self.source.read_as.clone().unwrap_or_default()),
            ("method", config.job.engine.name().to_owned()),
            ("preset", config.job.plan.preset.name().to_owned()),
            ("seed", config.job.options.seed.to_string()),
            ("chains", self.chains.fits.len().to_string()),
            ("end", self.why_it_stopped()),
            ("time", text::duration(self.seconds)),
            ("version", bpnmf::VERSION.to_owned()),
        ];
        let quantities = [("components", "R-hat of the number"), ("log_joint", "R-hat of the log joint")];
        for (name, told) in quantities {
            let quantity = self.chains.convergence.iter().find(|quantity| quantity.name == name);
            if let Some(r_hat) = quantity.and_then(|quantity| quantity.r_hat) {
                facts.push((told, r_hat_text(r_hat)));
            }
        }
        facts.retain(|(_, value)| !value.is_empty());
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
