//! The table of counts of a command: read as the flags say, told as it was understood, and doubted where it looks wrong. Knows no results.

use crate::args::{DecimalName, HeaderName, TableArgs};
use crate::failure::{Failure, words_of_flags};
use crate::{memory, text};
use bpnmf_io::{Decimal, ReadOptions, Table};
use std::path::Path;

/// Names by which a column of genes is known: most tables of cells have some of them.
const GENES: [&str; 12] =
    ["ACTB", "GAPDH", "B2M", "TP53", "MALAT1", "CD3D", "CD3E", "MS4A1", "LYZ", "NKG7", "Actb", "Gapdh"];

/// Of names such a share must look like genes or types of mutations before somebody is asked.
const MANY: f64 = 0.3;

/// How the flags ask for a file to be read; with `force` whatever memory it takes.
pub(crate) fn options(args: &TableArgs, force: bool) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.transpose = args.transpose;
    options.missing = args.missing;
    options.layer = args.layer.clone();
    options.memory = memory::available().filter(|_| !force);
    options.names = args.names;
    options.header = args.header.map(|header| header == HeaderName::Yes);
    options.decimal = args.decimal.map(|decimal| match decimal {
        DecimalName::Point => Decimal::Point,
        DecimalName::Comma => Decimal::Comma,
    });
    options
}

/// Reads the file `input`; with `force` whatever memory it takes.
pub(crate) fn read(input: &Path, args: &TableArgs, force: bool) -> Result<Table, Failure> {
    let table = bpnmf_io::read(input, &options(args, force)).map_err(Failure::reading)?;
    let given = [
        ("--names", args.names.is_some()),
        ("--header", args.header.is_some()),
        ("--decimal", args.decimal.is_some()),
    ];
    match given.iter().find(|(_, given)| *given && table.layout.is_none()) {
        Some((flag, _)) => {
            Err(Failure::Request(format!("{}: {flag} is for tables of text: leave it out", input.display())))
        }
        None => Ok(table),
    }
}

/// What was understood, in one line.
pub(crate) fn understood(table: &Table, path: &str) -> String {
    let counts = &table.counts;
    let mut line = format!(
        "{path}: {} observations x {} features, {} % of the entries positive",
        text::grouped(counts.observations()),
        text::grouped(counts.features()),
        text::significant(100.0 * counts.density(), 2)
    );
    if counts.missing_entries() > 0 {
        line += &format!(", {} missing", text::grouped(counts.missing_entries()));
    }
    if let Some(layout) = &table.layout {
        line += &format!("; {layout}");
    }
    line
}

/// What may have been understood wrongly, in the words of the flags.
pub(crate) fn doubts(table: &Table, transposed: bool) -> Vec<String> {
    let of_layout = table.layout.iter().flat_map(|layout| &layout.doubts).map(|doubt| words_of_flags(doubt));
    of_layout.chain(turned(table, transposed)).collect()
}

/// Whether rows and columns look exchanged, by their names.
fn turned(table: &Table, transposed: bool) -> Option<String> {
    let kind = feature_like(table.observation_names.as_deref()?)?;
    let features = table.feature_names.as_deref().and_then(feature_like);
    let remedy = if transposed { "leave --transpose out" } else { "use --transpose" };
    features.is_none().then(|| {
        format!(
            "observations have names of {kind} ({}): if these are the features, {remedy}",
            text::shortened(&table.observation_names.as_ref()?[0], 20)
        )
        .into()
    })?
}

/// What names look like, if they look like those of features.
fn feature_like(names: &[String]) -> Option<&'static str> {
    let share = |like: &dyn Fn(&str) -> bool| {
        names.iter().filter(|name| like(name)).count() as f64 / names.len().max(1) as f64
    };
    let gene_id = |name: &str| ["ENSG0", "ENSMUSG0", "ENST0"].iter().any(|start| name.starts_with(start));
    let gene_family =
        |name: &str| ["MT-", "RPL", "RPS", "mt-", "Rpl", "Rps"].iter().any(|start| name.starts_with(start));
    let known = names.iter().filter(|name| GENES.contains(&name.as_str())).count();
    let families = names.iter().filter(|name| gene_family(name)).count();
    if share(&gene_id) > MANY || known >= 2 || known == 1 && families >= 5 || families >= 20 {
        return Some("genes");
    }
    let channel = |name: &str| bpnmf_report::Channels::known(name);
    (share(&channel) > MANY).then_some("types of mutations")
}

#[cfg(test)]
mod tests {
    use super::feature_like;

    #[test]
    fn names_of_genes_and_of_mutations_are_known_and_others_are_not() {
        let kind =
            |names: &[&str]| feature_like(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(kind(&["ACTB", "GAPDH", "unknown"]), Some("genes"));
        assert_eq!(kind(&["ENSG00000141510", "ENSG00000000003"]), Some("genes"));
        assert_eq!(kind(&["A[C>A]A", "T[T>G]C"]), Some("types of mutations"));
        assert_eq!(kind(&["AAACCTGAGAAACCAT-1", "AAACCTGAGAAACCGC-1"]), None);
        assert_eq!(kind(&["PD4199a", "PD4005a"]), None);
        assert_eq!(kind(&["the", "of", "and"]), None);
    }
}
