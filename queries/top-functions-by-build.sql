-- In which functions threads were when samples of them were taken, for each value of the tag --key (default: build): the
-- 20 functions with the most samples, and their share of all samples of that value. Samples of waiting threads do not count.
WITH taken AS (
  SELECT tag.value AS tag_value, sample.event AS event,
         coalesce(sample.own_function, '(no stack)') AS own_function, sample.trace_id AS trace_id
  FROM sample
  JOIN tag ON tag.trace_id = sample.trace_id
  JOIN parameter ON parameter.tag_key = tag.key
  WHERE NOT sample.is_off_cpu
),
total AS (
  SELECT tag_value, event, count(*) AS samples FROM taken GROUP BY tag_value, event
),
counted AS (
  SELECT tag_value, event, own_function, count(*) AS samples, count(DISTINCT trace_id) AS traces,
         row_number() OVER (PARTITION BY tag_value, event ORDER BY count(*) DESC, own_function) AS place
  FROM taken
  GROUP BY tag_value, event, own_function
)
SELECT counted.tag_value AS tag_value,
       counted.event AS event,
       counted.own_function AS own_function,
       counted.samples AS samples,
       counted.samples * 100.0 / total.samples AS percent,
       counted.traces AS traces
FROM counted
JOIN total ON total.tag_value = counted.tag_value AND total.event = counted.event
WHERE counted.place <= 20
ORDER BY counted.tag_value, counted.event, counted.place
