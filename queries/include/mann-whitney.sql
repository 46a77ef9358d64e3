-- The Mann-Whitney test of what `measured` holds: name, is_new, ns, one row for each name and trace. `compared` has a
-- row for each name with at least three traces on each side. A query includes this between `measured` and its SELECT.
ranked AS (
  SELECT *,
         rank() OVER (PARTITION BY name ORDER BY ns)
           + (count(*) OVER (PARTITION BY name, ns) - 1) / 2.0 AS position,
         count(*) OVER (PARTITION BY name, ns) AS ties
  FROM measured
),
summed AS (
  SELECT name,
         CAST(sum(CASE WHEN is_new THEN 0 ELSE 1 END) AS DOUBLE) AS n_old,
         CAST(sum(CASE WHEN is_new THEN 1 ELSE 0 END) AS DOUBLE) AS n_new,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN is_new THEN NULL ELSE ns END) AS old_ns,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY CASE WHEN is_new THEN ns END) AS new_ns,
         sum(CASE WHEN is_new THEN position ELSE 0 END) AS ranks_new,
         sum(CAST(ties AS DOUBLE) * ties - 1) AS tied
  FROM ranked
  GROUP BY name
),
tested AS (
  SELECT *,
         n_new * n_old / 12.0
           * ((n_new + n_old + 1) - tied / ((n_new + n_old) * (n_new + n_old - 1))) AS variance,
         ranks_new - n_new * (n_new + 1) / 2.0 - n_new * n_old / 2.0 AS distance
  FROM summed
  WHERE n_old >= 3 AND n_new >= 3
),
scored AS (
  SELECT *,
         CASE WHEN variance > 0
              THEN greatest(abs(distance) - 0.5, 0.0) / sqrt(variance) ELSE 0.0 END AS z
  FROM tested
),
compared AS (
  SELECT name,
         CAST(n_old AS INT) AS old_traces,
         CAST(n_new AS INT) AS new_traces,
         old_ns / 1e6 AS old_median_ms,
         new_ns / 1e6 AS new_median_ms,
         (new_ns - old_ns) / 1e6 AS change_ms,
         CASE WHEN old_ns > 0 THEN 100.0 * (new_ns - old_ns) / old_ns END AS change_percent,
         2.0 / (1.0 + exp(1.5976 * z + 0.070565992 * z * z * z)) AS p_value
  FROM scored
)
