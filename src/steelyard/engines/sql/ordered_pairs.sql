-- Pairs with the alphabetically lower item id first.
SELECT unit, LEAST(left_item, right_item) AS first_item, GREATEST(left_item, right_item) AS second_item, n,
  CASE WHEN left_item < right_item THEN outcome ELSE -outcome END AS outcome
FROM {pairs}
