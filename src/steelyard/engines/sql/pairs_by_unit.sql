-- Wins, losses and ties by unit and pair.
SELECT unit, first_item, second_item, CAST(SUM(CASE WHEN outcome > 0 THEN n ELSE 0 END) AS BIGINT) AS wins,
  CAST(SUM(CASE WHEN outcome < 0 THEN n ELSE 0 END) AS BIGINT) AS losses,
  CAST(SUM(CASE WHEN outcome = 0 THEN n ELSE 0 END) AS BIGINT) AS ties
FROM {ordered} GROUP BY unit, first_item, second_item
