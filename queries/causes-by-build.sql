-- What launches spent their time on, for each value of the tag --key (default: build): the median of each cause over the
-- launches of an app, a launch without the cause having spent no time on it.
WITH spent AS (
    SELECT trace_id, ts_abs, cause, sum(ns) AS ns
    FROM cause
    WHERE span = 'launch'
    GROUP BY trace_id, ts_abs, cause
),
one_launch AS (
    SELECT tag.value AS tag_value, launch.app AS app, launch.trace_id AS trace_id, launch.ts_abs AS ts_abs, launch.dur AS dur
    FROM launch
    JOIN tag ON tag.trace_id = launch.trace_id
    JOIN parameter ON parameter.tag_key = tag.key
    WHERE EXISTS (SELECT 1 FROM spent WHERE spent.trace_id = launch.trace_id AND spent.ts_abs = launch.ts_abs)
),
kind AS (
    SELECT DISTINCT one_launch.tag_value AS tag_value, one_launch.app AS app, spent.cause AS cause
    FROM one_launch
    JOIN spent ON spent.trace_id = one_launch.trace_id AND spent.ts_abs = one_launch.ts_abs
)
SELECT one_launch.tag_value AS tag_value,
       one_launch.app AS app,
       kind.cause AS cause,
       count(*) AS launches,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY coalesce(spent.ns, 0)) / 1e6 AS median_ms,
       sum(coalesce(spent.ns, 0)) * 100.0 / sum(one_launch.dur) AS percent
FROM one_launch
JOIN kind ON kind.tag_value = one_launch.tag_value AND (kind.app = one_launch.app OR (kind.app IS NULL AND one_launch.app IS NULL))
LEFT JOIN spent ON spent.trace_id = one_launch.trace_id AND spent.ts_abs = one_launch.ts_abs AND spent.cause = kind.cause
GROUP BY one_launch.tag_value, one_launch.app, kind.cause
ORDER BY one_launch.tag_value, one_launch.app, median_ms DESC, kind.cause
