//! Comma-separated values as dcgm-exporter reads them: no quotes, so no value holds a comma.

/// Writes one row. A comma or line break in a value becomes a semicolon.
pub fn row(values: &[&str]) -> String {
    let values: Vec<String> = values.iter().map(|value| value.replace([',', '\n'], ";")).collect();
    let mut text = values.join(", ");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_row_keeps_its_columns() {
        assert_eq!(super::row(&["A", "gauge", "one, two"]), "A, gauge, one; two\n");
    }
}
