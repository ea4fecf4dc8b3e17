-- Labels as integer codes, with the gold class (or -1) and fold (or -1) of each item.
SELECT i.code AS item, i.gold, i.fold, a.code AS annotator, c.code AS label
FROM {p}log l JOIN {p}items i ON l.item = i.id JOIN {p}annotators a ON l.annotator = a.id
  JOIN {p}classes c ON l.label = c.id
