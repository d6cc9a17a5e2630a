//! Files in and out: matrices of counts from the formats people have, arrays to the formats numpy reads. Knows no model.
//!
//! A file is read as features x observations, as in the paper; [`ReadOptions::transpose`] turns it.
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("bpnmf-io-doctest-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! let path = folder.join("counts.csv");
//! std::fs::write(&path, "gene,cell 1,cell 2\nACTB,3,0\nGAPDH,1,4\nTP53,0,2\n").unwrap();
//!
//! let table = bpnmf_io::read(&path, &bpnmf_io::ReadOptions::default())?;
//! assert_eq!((table.counts.features(), table.counts.observations()), (3, 2));
//! assert_eq!(table.observation_names.unwrap(), ["cell 1", "cell 2"]);
//!
//! let weights = [0.5f32, 1.5, 2.5, 3.5, 4.5, 5.5];
//! let model = folder.join("model.npz");
//! bpnmf_io::write_npz(&model, &[("w", bpnmf_io::Array::new(&[3, 2], &weights[..]))])?;
//! assert_eq!(bpnmf_io::read_npz_arrays(&model)?[0].1.shape(), [3, 2]);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), bpnmf_io::Error>(())
//! ```

mod array;
mod delimited;
mod dtype;
mod error;
mod hdf5;
mod lines;
mod mtx;
mod npy;
mod npz;
mod read;
mod sparse;
mod ten_x;
mod write;

pub use array::{Array, Values};
pub use delimited::{Decimal, Layout};
pub use error::{Error, Fault};
pub use hdf5::BlockFile;
#[doc(hidden)]
pub use read::read_bytes;
pub use read::{ReadOptions, STDIN, Table, open_blocks, read, read_npy_array, read_npz_arrays};
pub use write::{NewFile, write_atomically, write_npy, write_npz};
