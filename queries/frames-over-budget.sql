-- Frames that took longer than 16.7 ms, by process.
SELECT coalesce(process.name, 'unknown') AS process,
       count(*) AS frames,
       sum(CASE WHEN slice.dur > 16700000 THEN 1 ELSE 0 END) AS over_budget,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY slice.dur) / 1e6 AS p95_ms,
       max(slice.dur) / 1e6 AS longest_ms
FROM slice
LEFT JOIN process ON process.trace_id = slice.trace_id AND process.pid = slice.pid
WHERE slice.kind = 'thread' AND slice.name LIKE 'Choreographer#doFrame%'
GROUP BY coalesce(process.name, 'unknown')
ORDER BY over_budget DESC, process
