-- How long launches take for each value of the tag --key (default: build), ms.
SELECT tag.value AS tag_value,
       count(*) AS launches,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY launch.dur) / 1e6 AS median_ms,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY launch.dur) / 1e6 AS p90_ms,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY launch.dur) / 1e6 AS p95_ms,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY launch.bind_ns) / 1e6 AS bind_median_ms,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY launch.ttid_ns) / 1e6 AS ttid_median_ms
FROM launch
JOIN tag ON tag.trace_id = launch.trace_id
JOIN parameter ON parameter.tag_key = tag.key
GROUP BY tag.value
ORDER BY tag.value
