//! Children as they are seen from outside.
