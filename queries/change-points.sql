-- The builds from which on launches are slower or faster than before, over the history of a tag, ms.
-- The history are the medians of the values of --key, in the order of their first traces. Each build is compared with
-- up to 10 builds before it and 10 from it on. The E-divisive statistic says where the change is, and Student's t-test
-- (p < 0.001) whether there is one, as in Apache Otava. queries/README.md says what this cannot find.
WITH build AS (
  SELECT coalesce(launch.app, 'unknown app') AS name, tag.value AS build, min(trace.day) AS day,
         min(trace.start_realtime) AS began, count(*) AS launches,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY launch.dur) / 1e6 AS ms
  FROM launch
  JOIN trace ON trace.trace_id = launch.trace_id
  JOIN tag ON tag.trace_id = launch.trace_id
  JOIN parameter ON parameter.tag_key = tag.key
  GROUP BY coalesce(launch.app, 'unknown app'), tag.value
),
point AS (
  SELECT *, row_number() OVER (PARTITION BY name ORDER BY day, began NULLS LAST, length(build), build) AS position
  FROM build
),
-- The builds around each build: those before it, and those from it on.
near AS (
  SELECT point.name, point.position, other.position AS other_position, other.ms,
         CASE WHEN other.position < point.position THEN other.ms END AS before_ms,
         CASE WHEN other.position >= point.position THEN other.ms END AS after_ms
  FROM point
  JOIN point AS other ON other.name = point.name
    AND other.position >= point.position - 10 AND other.position < point.position + 10
),
side AS (
  SELECT name, position,
         CAST(count(before_ms) AS DOUBLE) AS m, CAST(count(after_ms) AS DOUBLE) AS n,
         avg(before_ms) AS before_ms, avg(after_ms) AS after_ms,
         var_samp(before_ms) AS before_variance, var_samp(after_ms) AS after_variance
  FROM near
  GROUP BY name, position
),
-- The distances of each two of these builds.
distance AS (
  SELECT a.name, a.position,
         sum(CASE WHEN b.other_position < a.position THEN abs(a.ms - b.ms) ELSE 0.0 END) AS within_before,
         sum(CASE WHEN a.other_position >= a.position THEN abs(a.ms - b.ms) ELSE 0.0 END) AS within_after,
         sum(CASE WHEN a.other_position < a.position AND b.other_position >= a.position
                  THEN abs(a.ms - b.ms) ELSE 0.0 END) AS across
  FROM near AS a
  JOIN near AS b ON b.name = a.name AND b.position = a.position AND b.other_position > a.other_position
  GROUP BY a.name, a.position
),
scored AS (
  SELECT side.*, side.m + side.n - 2 AS freedom,
         side.m * side.n / (side.m + side.n)
           * (2 * distance.across / (side.m * side.n)
              - 2 * distance.within_before / (side.m * (side.m - 1))
              - 2 * distance.within_after / (side.n * (side.n - 1))) AS divergence,
         sqrt(((side.m - 1) * side.before_variance + (side.n - 1) * side.after_variance)
              / (side.m + side.n - 2) * (1 / side.m + 1 / side.n)) AS error_ms
  FROM side
  JOIN distance ON distance.name = side.name AND distance.position = side.position
  WHERE side.m >= 3 AND side.n >= 3
),
-- Student's t at p = 0.001 by its expansion for so many degrees of freedom.
changed AS (
  SELECT scored.*, 100.0 * (after_ms - before_ms) / before_ms AS change_percent,
         abs(after_ms - before_ms) / greatest(error_ms, 1e-9) AS t,
         3.29053 + 9.72973 / freedom + 26.13302 / (freedom * freedom) + 53.16861 / (freedom * freedom * freedom)
           + 79.36584 / (freedom * freedom * freedom * freedom) AS t_limit
  FROM scored
  WHERE before_ms > 0
),
found AS (
  SELECT changed.*
  FROM changed
  WHERE t > t_limit AND abs(change_percent) >= 1
)
SELECT point.name, point.build, point.day, point.launches,
       found.before_ms, found.after_ms, found.after_ms - found.before_ms AS change_ms, found.change_percent,
       CAST(found.m AS INT) AS builds_before, CAST(found.n AS INT) AS builds_after, found.t, found.t_limit
FROM found
JOIN point ON point.name = found.name AND point.position = found.position
-- Around a change its neighbours look changed too: the one with the largest statistic is it.
LEFT JOIN found AS better ON better.name = found.name AND abs(better.position - found.position) < 10
  AND (better.divergence > found.divergence
       OR (better.divergence = found.divergence AND better.position < found.position))
WHERE better.position IS NULL
ORDER BY point.name, point.position
