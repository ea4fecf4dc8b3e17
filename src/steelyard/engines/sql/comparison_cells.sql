-- Comparisons counted as they were written: a log has far fewer of these than rows.
SELECT left_item, right_item, winner, COUNT(*) AS n FROM {p}log GROUP BY left_item, right_item, winner
