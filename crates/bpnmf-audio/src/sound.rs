//! A sound in memory: one channel of samples at one rate.

/// One channel of samples, full scale at 1 and -1.
#[derive(Debug, Clone, PartialEq)]
pub struct Sound {
    /// The samples in time order.
    pub samples: Vec<f32>,
    /// Samples a second.
    pub rate: u32,
}

impl Sound {
    /// How long it lasts.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }
}
