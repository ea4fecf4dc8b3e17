-- The half (0 or 1) of each judgment in each trial. Judgments are ranked within their unit by
-- (multiplier * hash + shift)^5 modulo 2^31 - 1; if their number is odd, the coin decides which half is larger.
SELECT ranked.*, CASE WHEN 2 * position_in_unit < size + size % 2 * (2 * (
  coin_square * coin_square % 2147483647 * coin_x % 2147483647 % 2) - 1) THEN 0 ELSE 1 END AS half
FROM (
  SELECT scrambled.*, ROW_NUMBER() OVER (
    PARTITION BY trial, {unit} ORDER BY random_key, annotator_hash, {content})
    - 1 AS position_in_unit
  FROM (
    SELECT squared.*, square * square % 2147483647 * x % 2147483647 AS random_key
    FROM (
      SELECT mixed.*, x * x % 2147483647 AS square, coin_x * coin_x % 2147483647 AS coin_square
      FROM (
        SELECT e.*, t.trial, (e.entry * t.multiplier + t.shift) % 2147483647 AS x,
          (e.coin * t.multiplier + t.shift) % 2147483647 AS coin_x
        FROM {entries} e CROSS JOIN {p}split_trials t) AS mixed) AS squared) AS scrambled) AS ranked
