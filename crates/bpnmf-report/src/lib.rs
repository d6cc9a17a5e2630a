//! What was found, as one self-contained page. Pure functions: values in, text out.
