//! ART's and Dalvik's method-trace bytes: headers, records, packets. Pure functions over `&[u8]`.
