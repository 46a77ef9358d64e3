-- Slices that are slower or faster: the exclusive time of a trace, ms.
-- Traces whose tag --key has the value --new, against those where it has the value --old.
WITH taken AS (
  SELECT slice.name AS name, side.is_new, slice.trace_id, sum(slice.exclusive_ns) AS ns
  FROM slice JOIN side ON side.trace_id = slice.trace_id
  WHERE slice.exclusive_ns IS NOT NULL
  GROUP BY slice.name, side.is_new, slice.trace_id
),
-- A trace with others that lacks this one spent no time in it.
measured AS (
  SELECT names.name, traces.is_new, traces.trace_id, coalesce(taken.ns, 0) AS ns
  FROM (SELECT DISTINCT name FROM taken) AS names
       CROSS JOIN (SELECT DISTINCT is_new, trace_id FROM taken) AS traces
       LEFT JOIN taken ON taken.name = names.name AND taken.trace_id = traces.trace_id
),
-- include mann-whitney
SELECT * FROM compared
WHERE change_ms <> 0
ORDER BY abs(change_ms) DESC, name
-- rows 40
