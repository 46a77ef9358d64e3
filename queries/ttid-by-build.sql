-- Times to initial and to full display for each value of the tag --key (default: build) and type of launch, ms.
SELECT tag.value AS tag_value,
       launch.app AS app,
       launch.type AS launch_type,
       count(*) AS launches,
       count(launch.ttid_ns) AS displayed,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY launch.ttid_ns) / 1e6 AS ttid_median_ms,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY launch.ttid_ns) / 1e6 AS ttid_p90_ms,
       count(launch.ttfd_ns) AS fully_drawn,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY launch.ttfd_ns) / 1e6 AS ttfd_median_ms
FROM launch
JOIN tag ON tag.trace_id = launch.trace_id
JOIN parameter ON parameter.tag_key = tag.key
GROUP BY tag.value, launch.app, launch.type
ORDER BY tag.value, launch.app, launch.type
