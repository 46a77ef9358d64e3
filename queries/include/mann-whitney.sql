-- What the Mann-Whitney test compares of `measured`, which holds name, is_new, ns, one row for each name and trace.
-- `compared` has a row for each name with at least three traces on each side. A query includes this between `measured`
-- and its SELECT. In place of the last two columns scripts/query prints p_value, and puts the smallest ones first.
summed AS (
  SELECT name,
         count(CASE WHEN NOT is_new THEN 1 END) AS n_old,
         count(CASE WHEN is_new THEN 1 END) AS n_new,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN is_new THEN NULL ELSE ns END) AS old_ns,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN is_new THEN ns END) AS new_ns,
         array_agg(CAST(ns AS BIGINT)) FILTER (WHERE NOT is_new) AS old_times,
         array_agg(CAST(ns AS BIGINT)) FILTER (WHERE is_new) AS new_times
  FROM measured
  GROUP BY name
),
compared AS (
  SELECT name,
         CAST(n_old AS INT) AS old_traces,
         CAST(n_new AS INT) AS new_traces,
         old_ns / 1e6 AS old_median_ms,
         new_ns / 1e6 AS new_median_ms,
         (new_ns - old_ns) / 1e6 AS change_ms,
         CASE WHEN old_ns > 0 THEN 100.0 * (new_ns - old_ns) / old_ns END AS change_percent,
         old_times,
         new_times
  FROM summed
  WHERE n_old >= 3 AND n_new >= 3
)
