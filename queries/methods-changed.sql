-- Methods that are slower or faster: the exclusive time of a trace (wall time where there is some), ms.
-- Traces whose tag --key has the value --new, against those where it has the value --old.
WITH measured AS (
  SELECT method_profile.method AS name, side.is_new, method_profile.trace_id,
         sum(coalesce(method_profile.wall_exclusive_ns, method_profile.cpu_exclusive_ns)) AS ns
  FROM method_profile JOIN side ON side.trace_id = method_profile.trace_id
  GROUP BY method_profile.method, side.is_new, method_profile.trace_id
),
-- include mann-whitney
SELECT * FROM compared
WHERE change_ms <> 0
ORDER BY p_value, abs(change_ms) DESC, name
LIMIT 40
