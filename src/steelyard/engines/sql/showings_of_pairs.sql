-- Every item of every pair with a value: that of the outcome for the left one, and its opposite for the right one.
SELECT unit, left_item AS item, {left_value} AS value, n FROM {pairs}
UNION ALL
SELECT unit, right_item AS item, {right_value} AS value, n FROM {pairs}
