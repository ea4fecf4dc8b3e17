"""Reading and writing items and judgments: CSV, TSV, JSON lines, Parquet, frames, and foreign logs."""

from steelyard.formats.conventional import judgment_table
from steelyard.formats.gold import read_gold
from steelyard.formats.items import item_table, read_items
from steelyard.formats.judgments import JudgmentFile, read_judgments
from steelyard.formats.tables import read_table, supported, write_table

__all__ = [
    "read_table",
    "read_gold",
    "write_table",
    "read_items",
    "item_table",
    "read_judgments",
    "judgment_table",
    "JudgmentFile",
    "supported",
]
