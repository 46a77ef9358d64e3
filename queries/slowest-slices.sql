-- The slices that take the most exclusive time over all traces, ms.
SELECT name,
       count(*) AS slices,
       count(DISTINCT trace_id) AS traces,
       sum(exclusive_ns) / 1e6 AS exclusive_ms,
       max(exclusive_ns) / 1e6 AS longest_ms,
       sum(cpu_dur) / 1e6 AS cpu_ms
FROM slice
WHERE exclusive_ns IS NOT NULL
GROUP BY name
ORDER BY exclusive_ms DESC, name
LIMIT 40
