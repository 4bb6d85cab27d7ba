//! Plain tables for the terminal: columns with blanks between, fit for `grep` and `awk`.

use comfy_table::{ContentArrangement, Table, presets};

/// A heading and its rows. The cells are shown as they are: make foreign text safe before.
pub(crate) fn of<const N: usize>(heading: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heading);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
