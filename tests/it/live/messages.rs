//! Messages beside the batches: numbers, launches, triggers and gaps.
