//! Whether another rollback in a row is allowed.

/// `consecutive` stays below `max_consecutive − 1`: a setting of 5 allows 4 in a row.
#[must_use]
pub const fn is_left(consecutive: u32, max_consecutive: u32) -> bool {
    consecutive < max_consecutive.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::is_left;

    #[test]
    fn five_allows_four() {
        let allowed = (0..10).filter(|&consecutive| is_left(consecutive, 5)).count();
        assert_eq!(allowed, 4);
        assert!(!is_left(0, 1));
        assert!(!is_left(0, 0));
    }
}
