//! Streams that no recorder sends.
