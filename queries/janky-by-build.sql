-- The share of late frames and androidx's percentiles for each value of the tag --key (default: build), %, ms.
SELECT tag.value AS tag_value,
       coalesce(frame.app, 'unknown app') AS app,
       count(*) AS frames,
       count(frame.overrun_ns) AS with_deadline,
       100.0 * sum(CASE WHEN frame.overrun_ns > 0 THEN 1 ELSE 0 END)
         / nullif(count(frame.overrun_ns), 0) AS janky_percent,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY frame.duration_cpu_ns) / 1e6 AS cpu_p50_ms,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY frame.duration_cpu_ns) / 1e6 AS cpu_p95_ms,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY frame.overrun_ns) / 1e6 AS overrun_p99_ms
FROM frame
JOIN tag ON tag.trace_id = frame.trace_id
JOIN parameter ON parameter.tag_key = tag.key
GROUP BY tag.value, coalesce(frame.app, 'unknown app')
ORDER BY tag.value, app
