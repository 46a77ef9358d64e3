-- Frames that ended after their deadline, and slow ones (more than 20 ms of CPU time), by app and layer.
SELECT coalesce(app, 'unknown') AS app,
       layer,
       count(*) AS frames,
       count(overrun_ns) AS with_deadline,
       sum(CASE WHEN overrun_ns > 0 THEN 1 ELSE 0 END) AS late,
       sum(CASE WHEN cpu_ns > 20000000 THEN 1 ELSE 0 END) AS slow,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_cpu_ns) / 1e6 AS cpu_p95_ms,
       max(overrun_ns) / 1e6 AS latest_ms
FROM frame
GROUP BY coalesce(app, 'unknown'), layer
ORDER BY late DESC, app, layer
