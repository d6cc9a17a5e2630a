//! The whole page.
