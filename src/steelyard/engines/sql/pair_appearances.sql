-- Each item of each pair, with the value of the outcome from its side.
SELECT unit, left_item AS item, {left_value} AS value, n FROM {pairs}
UNION ALL
SELECT unit, right_item AS item, {right_value} AS value, n FROM {pairs}
