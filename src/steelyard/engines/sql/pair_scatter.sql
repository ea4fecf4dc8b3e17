-- The gradient by unit and item: what each comparison says, by its outcome, to either item and to the tie parameter.
SELECT u.unit, t.item,
  SUM(u.wins * t.win_slope + u.losses * t.loss_slope + u.ties * t.tie_slope) AS slope,
  SUM(u.wins * t.win_bend + u.losses * t.loss_bend + u.ties * t.tie_bend) AS information
FROM {by_unit} u JOIN {p}terms t ON u.first_item = t.first_item AND u.second_item = t.second_item
GROUP BY u.unit, t.item
