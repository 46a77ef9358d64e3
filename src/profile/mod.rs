//! Method profiles: exclusive and inclusive times, callers and callees, call trees, diffs.
