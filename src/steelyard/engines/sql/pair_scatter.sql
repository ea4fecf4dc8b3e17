-- Gradient and information of the log-likelihood by unit and parameter (the items, and the tie parameter).
SELECT u.unit, t.item,
  SUM(u.wins * t.win_slope + u.losses * t.loss_slope + u.ties * t.tie_slope) AS slope,
  SUM(u.wins * t.win_curvature + u.losses * t.loss_curvature + u.ties * t.tie_curvature) AS information
FROM {by_unit} u JOIN {p}terms t ON u.first_item = t.first_item AND u.second_item = t.second_item
GROUP BY u.unit, t.item
