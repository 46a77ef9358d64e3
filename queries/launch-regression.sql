-- Whether launches are slower or faster, by app and type, ms.
-- Traces whose tag --key has the value --new, against those where it has the value --old.
WITH measured AS (
  SELECT coalesce(launch.app, 'unknown app') || coalesce(' (' || launch.type || ')', '') AS name, side.is_new, launch.trace_id, sum(launch.dur) AS ns
  FROM launch JOIN side ON side.trace_id = launch.trace_id
  GROUP BY coalesce(launch.app, 'unknown app') || coalesce(' (' || launch.type || ')', ''), side.is_new, launch.trace_id
),
-- include mann-whitney
SELECT * FROM compared
ORDER BY name
