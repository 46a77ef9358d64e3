-- How long launches take on each day, for each value of the tag --key (default: build), ms.
SELECT tag.value AS tag_value,
       trace.day AS day,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY launch.dur) / 1e6 AS median_ms,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY launch.dur) / 1e6 AS p90_ms,
       count(*) AS launches
FROM launch
JOIN trace ON trace.trace_id = launch.trace_id
JOIN tag ON tag.trace_id = launch.trace_id
JOIN parameter ON parameter.tag_key = tag.key
GROUP BY tag.value, trace.day
ORDER BY tag.value, trace.day
