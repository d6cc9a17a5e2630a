//! Exactness.
