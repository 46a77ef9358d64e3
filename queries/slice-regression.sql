-- Slices that are slower or faster: the exclusive time of a trace, ms.
-- Traces whose tag --key has the value --new, against those where it has the value --old.
WITH measured AS (
  SELECT slice.name AS name, side.is_new, slice.trace_id, sum(slice.exclusive_ns) AS ns
  FROM slice JOIN side ON side.trace_id = slice.trace_id
  WHERE slice.exclusive_ns IS NOT NULL
  GROUP BY slice.name, side.is_new, slice.trace_id
),
-- include mann-whitney
SELECT * FROM compared
WHERE change_ms <> 0
ORDER BY p_value, abs(change_ms) DESC, name
LIMIT 40
