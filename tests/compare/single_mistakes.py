"""Single mistakes that real SQL makes over the jaffle shop, with the word and the sentence for each."""

from __future__ import annotations

from typing import Any, NamedTuple


class Mistake(NamedTuple):
    """What went wrong, the reference, what was run instead, the word, the start of its sentence, options."""

    what: str
    reference: str
    answer: str
    word: str
    says: str
    options: dict[str, Any]


MISTAKES = [
    Mistake(
        "status filter missing",
        (
            "SELECT channel, sum(amount) AS revenue FROM orders WHERE status='completed' AND "
            "channel<>'staff' GROUP BY 1"
        ),
        "SELECT channel, sum(amount) AS revenue FROM orders WHERE channel<>'staff' GROUP BY 1",
        "values_differ",
        "`revenue` differs in 3 of 3 rows",
        {},
    ),
    Mistake(
        "staff filter missing",
        (
            "SELECT channel, sum(amount) AS revenue FROM orders WHERE status='completed' AND "
            "channel<>'staff' GROUP BY 1"
        ),
        "SELECT channel, sum(amount) AS revenue FROM orders WHERE status='completed' GROUP BY 1",
        "rows_extra",
        "1 row too many; all 3 expected rows are there",
        {},
    ),
    Mistake(
        "avg for sum",
        (
            "SELECT channel, sum(amount) AS revenue FROM orders WHERE status='completed' AND "
            "channel<>'staff' GROUP BY 1"
        ),
        (
            "SELECT channel, avg(amount) AS revenue FROM orders WHERE status='completed' AND "
            "channel<>'staff' GROUP BY 1"
        ),
        "values_differ",
        "`revenue` differs in 3 of 3 rows",
        {},
    ),
    Mistake(
        "count for sum",
        (
            "SELECT channel, sum(amount) AS revenue FROM orders WHERE status='completed' AND "
            "channel<>'staff' GROUP BY 1"
        ),
        (
            "SELECT channel, count(*) AS revenue FROM orders WHERE status='completed' AND "
            "channel<>'staff' GROUP BY 1"
        ),
        "values_differ",
        "`revenue` differs in 3 of 3 rows",
        {},
    ),
    Mistake(
        "distinct too much",
        (
            "SELECT channel, count(*) AS n FROM orders WHERE status='completed' AND "
            "channel<>'staff' GROUP BY 1"
        ),
        (
            "SELECT channel, count(DISTINCT customer_id) AS n FROM orders WHERE status='completed' "
            "AND channel<>'staff' GROUP BY 1"
        ),
        "values_differ",
        "`n` differs in 3 of 3 rows",
        {},
    ),
    Mistake(
        "day for month",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS month, sum(amount) AS revenue FROM "
            "orders WHERE status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP "
            "BY 1"
        ),
        (
            "SELECT ordered_at::DATE AS month, sum(amount) AS revenue FROM orders WHERE "
            "status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP BY 1"
        ),
        "wrong_grain",
        (
            "365 rows where 12 are expected, but `revenue` sums to 49557.69 in both: other grain "
            "(other steps of `month`)"
        ),
        {},
    ),
    Mistake(
        "quarter for month",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS month, sum(amount) AS revenue FROM "
            "orders WHERE status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP "
            "BY 1"
        ),
        (
            "SELECT date_trunc('quarter',ordered_at)::DATE AS month, sum(amount) AS revenue FROM "
            "orders WHERE status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP "
            "BY 1"
        ),
        "wrong_grain",
        (
            "4 rows where 12 are expected, but `revenue` sums to 49557.69 in both: other grain "
            "(other steps of `month`)"
        ),
        {},
    ),
    Mistake(
        "year filter missing",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS month, sum(amount) AS revenue FROM "
            "orders WHERE status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP "
            "BY 1"
        ),
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS month, sum(amount) AS revenue FROM "
            "orders WHERE status='completed' AND channel<>'staff' GROUP BY 1"
        ),
        "rows_extra",
        "12 rows too many; all 12 expected rows are there",
        {},
    ),
    Mistake(
        "between cuts last month (Dec gone or partial)",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS month, sum(amount) AS revenue FROM "
            "orders WHERE status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP "
            "BY 1"
        ),
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS month, sum(amount) AS revenue FROM "
            "orders WHERE status='completed' AND channel<>'staff' AND ordered_at BETWEEN "
            "'2025-01-01' AND '2025-12-01' GROUP BY 1"
        ),
        "rows_missing",
        "1 row of 12 missing, the others are right",
        {},
    ),
    Mistake(
        "both years added up",
        (
            "SELECT month(ordered_at) AS month, sum(amount) AS revenue FROM orders WHERE "
            "status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP BY 1"
        ),
        (
            "SELECT month(ordered_at) AS month, sum(amount) AS revenue FROM orders WHERE "
            "status='completed' AND channel<>'staff' GROUP BY 1"
        ),
        "values_differ",
        "`revenue` differs in 12 of 12 rows",
        {},
    ),
    Mistake(
        "month off by one",
        (
            "SELECT month(ordered_at) AS month, sum(amount) AS revenue FROM orders WHERE "
            "status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP BY 1"
        ),
        (
            "SELECT month(ordered_at)-1 AS month, sum(amount) AS revenue FROM orders WHERE "
            "status='completed' AND channel<>'staff' AND year(ordered_at)=2025 GROUP BY 1"
        ),
        "column_offset",
        "`month`: all 12 values are off by -1 (12 of 12 rows",
        {},
    ),
    Mistake(
        "wrong denominator",
        "SELECT category, avg(amount) AS a FROM orders JOIN products USING (sku) GROUP BY 1",
        (
            "SELECT category, sum(amount)/count(DISTINCT customer_id) AS a FROM orders JOIN "
            "products USING (sku) GROUP BY 1"
        ),
        "values_differ",
        "`a` differs in 6 of 6 rows",
        {},
    ),
    Mistake(
        "median",
        "SELECT category, avg(amount) AS a FROM orders JOIN products USING (sku) GROUP BY 1",
        "SELECT category, median(amount) AS a FROM orders JOIN products USING (sku) GROUP BY 1",
        "values_differ",
        "`a` differs in 6 of 6 rows",
        {},
    ),
    Mistake(
        "rounded 1",
        "SELECT category, avg(amount) AS a FROM orders JOIN products USING (sku) GROUP BY 1",
        "SELECT category, round(avg(amount),1) AS a FROM orders JOIN products USING (sku) GROUP BY 1",
        "rounded",
        "`a`: rounded to 1 decimal (6 of 6 rows",
        {},
    ),
    Mistake(
        "floor",
        "SELECT category, avg(amount) AS a FROM orders JOIN products USING (sku) GROUP BY 1",
        "SELECT category, floor(avg(amount)) AS a FROM orders JOIN products USING (sku) GROUP BY 1",
        "truncated",
        "`a`: cut, not rounded, to whole numbers (6 of 6 rows",
        {},
    ),
    Mistake(
        "count of nullable",
        "SELECT country, count(*) AS n FROM customers GROUP BY 1",
        "SELECT country, count(referred_by) AS n FROM customers GROUP BY 1",
        "values_differ",
        "`n` differs in 4 of 4 rows",
        {},
    ),
    Mistake(
        "null group lost",
        "SELECT referred_by, count(*) AS n FROM customers GROUP BY 1",
        "SELECT referred_by, count(*) AS n FROM customers WHERE referred_by IS NOT NULL GROUP BY 1",
        "rows_missing",
        "1 row of 4 missing, the others are right",
        {},
    ),
    Mistake(
        "null as unknown",
        "SELECT referred_by, count(*) AS n FROM customers GROUP BY 1",
        "SELECT coalesce(referred_by,'unknown') AS referred_by, count(*) AS n FROM customers GROUP BY 1",
        "rows_differ",
        "1 of 4 expected rows not in the answer, 1 of 4 answered rows not expected",
        {},
    ),
    Mistake(
        "null group counts 0",
        "SELECT referred_by, count(*) AS n FROM customers GROUP BY 1",
        "SELECT referred_by, count(referred_by) AS n FROM customers GROUP BY 1",
        "values_differ",
        "`n` differs in 1 of 4 rows",
        {},
    ),
    Mistake(
        "inner join",
        (
            "SELECT customer_id, count(order_id) AS n FROM customers LEFT JOIN orders USING "
            "(customer_id) GROUP BY 1"
        ),
        (
            "SELECT customer_id, count(order_id) AS n FROM customers JOIN orders USING "
            "(customer_id) GROUP BY 1"
        ),
        "rows_missing",
        "182 rows of 1,300 missing, the others are right",
        {},
    ),
    Mistake(
        "count(*) counts 1 for none",
        (
            "SELECT customer_id, count(order_id) AS n FROM customers LEFT JOIN orders USING "
            "(customer_id) GROUP BY 1"
        ),
        ("SELECT customer_id, count(*) AS n FROM customers LEFT JOIN orders USING (customer_id) GROUP BY 1"),
        "values_differ",
        "`n` differs in 182 of 1,300 rows",
        {},
    ),
    Mistake(
        "null vs 0",
        (
            "SELECT customer_id, sum(amount) AS s FROM customers LEFT JOIN orders USING "
            "(customer_id) GROUP BY 1"
        ),
        (
            "SELECT customer_id, coalesce(sum(amount),0) AS s FROM customers LEFT JOIN orders "
            "USING (customer_id) GROUP BY 1"
        ),
        "null_vs_zero",
        "`s`: NULL on one side, 0 on the other (182 of 1,300 rows",
        {},
    ),
    Mistake(
        "join repeats some, drops cancelled",
        "SELECT order_id, amount FROM orders WHERE order_id<=100",
        "SELECT order_id, o.amount FROM orders o JOIN payments USING(order_id) WHERE order_id<=100",
        "duplicate_counts",
        (
            "every answered row is an expected one, but 5 rows of 100 should be another: rows "
            "repeated in their place"
        ),
        {},
    ),
    Mistake(
        "off by one",
        "SELECT order_id, amount FROM orders WHERE order_id<=100",
        "SELECT order_id, amount FROM orders WHERE order_id<100",
        "rows_missing",
        "1 row of 100 missing, the others are right",
        {},
    ),
    Mistake(
        "limit 50",
        "SELECT order_id, amount FROM orders WHERE order_id<=100",
        "SELECT order_id, amount FROM orders WHERE order_id<=100 LIMIT 50",
        "truncated_by_limit",
        "50 of 100 rows, the rest missing: looks like LIMIT 50",
        {},
    ),
    Mistake(
        "times quantity",
        "SELECT order_id, amount FROM orders WHERE order_id<=100",
        "SELECT order_id, quantity*amount AS amount FROM orders WHERE order_id<=100",
        "values_differ",
        "`amount` differs in 77 of 100 rows",
        {},
    ),
    Mistake(
        "leading zeros",
        "SELECT sku, name FROM products",
        "SELECT sku::INTEGER AS sku, name FROM products",
        "leading_zeros",
        "`sku`: leading zeros lost or added (60 of 60 rows",
        {},
    ),
    Mistake(
        "case",
        "SELECT sku, name FROM products",
        "SELECT sku, upper(name) AS name FROM products",
        "case",
        "`name`: upper and lower case differ (60 of 60 rows",
        {},
    ),
    Mistake(
        "wrong column",
        "SELECT sku, name FROM products",
        "SELECT sku, category AS name FROM products",
        "values_differ",
        "`name` differs in 60 of 60 rows",
        {},
    ),
    Mistake(
        "cents",
        "SELECT sku, name, price FROM products",
        "SELECT sku, name, price*100 AS price FROM products",
        "scaled",
        "`price`: all 60 values are 100 times the expected (60 of 60 rows",
        {},
    ),
    Mistake(
        "rounded whole",
        "SELECT sku, name, price FROM products",
        "SELECT sku, name, price::INTEGER AS price FROM products",
        "rounded",
        "`price`: rounded to whole numbers (60 of 60 rows",
        {},
    ),
    Mistake(
        "not distinct",
        "SELECT DISTINCT country FROM customers",
        "SELECT country FROM customers",
        "duplicates_extra",
        "the same 4 distinct rows, but 1,300 of them where 4 are expected: rows repeated",
        {},
    ),
    Mistake(
        "distinct too much",
        "SELECT country FROM customers WHERE customer_id<=20",
        "SELECT DISTINCT country FROM customers WHERE customer_id<=20",
        "duplicates_missing",
        "the same 3 distinct rows, but 3 of them where 20 are expected: DISTINCT too much",
        {},
    ),
    Mistake(
        "wrong count",
        "SELECT count(*) AS n FROM customers",
        "SELECT count(DISTINCT country) AS n FROM customers",
        "values_differ",
        "`n` differs in 1 of 1 row",
        {},
    ),
    Mistake(
        "filter missing scalar",
        "SELECT count(*) AS n FROM orders WHERE status='returned'",
        "SELECT count(*) AS n FROM orders",
        "values_differ",
        "`n` differs in 1 of 1 row",
        {},
    ),
    Mistake(
        "percent",
        "SELECT avg((status='returned')::INT) AS rate FROM orders",
        "SELECT 100*avg((status='returned')::INT) AS rate FROM orders",
        "scaled",
        "`rate`: the value is 100 times the expected (1 of 1 row",
        {},
    ),
    Mistake(
        "percent whole",
        "SELECT avg((status='returned')::INT) AS rate FROM orders",
        "SELECT round(100*avg((status='returned')::INT)) AS rate FROM orders",
        "values_differ",
        "`rate` differs in 1 of 1 row",
        {},
    ),
    Mistake(
        "percent 1 decimal",
        "SELECT channel, avg((status='returned')::INT) AS rate FROM orders GROUP BY 1",
        "SELECT channel, round(100*avg((status='returned')::INT),1) AS rate FROM orders GROUP BY 1",
        "scaled",
        "`rate`: all 4 values are 100 times the expected (4 of 4 rows",
        {},
    ),
    Mistake(
        "share of all instead of channel",
        "SELECT channel, avg((status='returned')::INT) AS rate FROM orders GROUP BY 1",
        (
            "SELECT channel, count(*) FILTER(status='returned')/(SELECT count(*) FROM orders) AS "
            "rate FROM orders GROUP BY 1"
        ),
        "values_differ",
        "`rate` differs in 4 of 4 rows",
        {},
    ),
    Mistake(
        "complement",
        "SELECT channel, avg((status='returned')::INT) AS rate FROM orders GROUP BY 1",
        "SELECT channel, 1-avg((status='returned')::INT) AS rate FROM orders GROUP BY 1",
        "values_differ",
        "`rate` differs in 4 of 4 rows",
        {},
    ),
    Mistake(
        "worst for top",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 10",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s ASC LIMIT 10",
        "rows_differ",
        "10 of 10 expected rows not in the answer, 10 of 10 answered rows not expected",
        {},
    ),
    Mistake(
        "5 of 10",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 10",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 5",
        "truncated_by_limit",
        "5 of 10 rows, the rest missing: looks like LIMIT 5",
        {},
    ),
    Mistake(
        "20 for 10",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 10",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 20",
        "rows_extra",
        "10 rows too many; all 10 expected rows are there",
        {},
    ),
    Mistake(
        "by count",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 10",
        "SELECT customer_id, count(*) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 10",
        "rows_differ",
        (
            "10 of 10 expected rows not in the answer, 10 of 10 answered rows not expected; 3 of "
            "these share `customer_id` with another row"
        ),
        {},
    ),
    Mistake(
        "not grouped",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 10",
        "SELECT customer_id, amount AS s FROM orders ORDER BY s DESC LIMIT 10",
        "rows_differ",
        (
            "10 of 10 expected rows not in the answer, 10 of 10 answered rows not expected; 1 of "
            "these shares `customer_id` with another row"
        ),
        {},
    ),
    Mistake(
        "ordered worst",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s DESC LIMIT 10",
        "SELECT customer_id, sum(amount) AS s FROM orders GROUP BY 1 ORDER BY s ASC LIMIT 10",
        "rows_differ",
        "10 of 10 expected rows not in the answer, 10 of 10 answered rows not expected",
        {"ordered": True, "order_by": ["s desc"]},
    ),
    Mistake(
        "reversed",
        ("SELECT category, sum(amount) AS s FROM orders JOIN products USING(sku) GROUP BY 1 ORDER BY s DESC"),
        "SELECT category, sum(amount) AS s FROM orders JOIN products USING(sku) GROUP BY 1 ORDER BY s",
        "order_reversed",
        "all 6 rows are there, in reverse order (sorted by `s`)",
        {"ordered": True, "order_by": ["s desc"]},
    ),
    Mistake(
        "by name",
        ("SELECT category, sum(amount) AS s FROM orders JOIN products USING(sku) GROUP BY 1 ORDER BY s DESC"),
        "SELECT category, sum(amount) AS s FROM orders JOIN products USING(sku) GROUP BY 1 ORDER BY 1",
        "order",
        "the same rows in another order (sorted by `s`): 5 out of place, the first at row 1",
        {"ordered": True, "order_by": ["s desc"]},
    ),
    Mistake(
        "date shift",
        "SELECT customer_id, signed_up_on FROM customers WHERE customer_id<30",
        "SELECT customer_id, signed_up_on+1 AS signed_up_on FROM customers WHERE customer_id<30",
        "date_shift",
        "`signed_up_on`: every date is off by +1 day (29 of 29 rows",
        {},
    ),
    Mistake(
        "tz shift",
        "SELECT order_id, ordered_at FROM orders WHERE order_id<30",
        "SELECT order_id, ordered_at + INTERVAL 2 HOUR AS ordered_at FROM orders WHERE order_id<30",
        "timezone_shift",
        "`ordered_at`: every time is off by +2 h: another time zone (29 of 29 rows",
        {},
    ),
    Mistake(
        "time lost",
        "SELECT order_id, ordered_at FROM orders WHERE order_id<30",
        "SELECT order_id, ordered_at::DATE AS ordered_at FROM orders WHERE order_id<30",
        "truncated",
        "`ordered_at`: the time of day is lost (29 of 29 rows",
        {},
    ),
    Mistake(
        "date format",
        "SELECT order_id, ordered_at FROM orders WHERE order_id<30",
        "SELECT order_id, strftime(ordered_at,'%d.%m.%Y') AS ordered_at FROM orders WHERE order_id<30",
        "date_format",
        "`ordered_at`: 29 values not written as YYYY-MM-DD",
        {},
    ),
    Mistake(
        "swapped",
        "SELECT method, sum(amount) AS total, count(*) AS n FROM payments GROUP BY 1",
        "SELECT method, count(*) AS total, sum(amount) AS n FROM payments GROUP BY 1",
        "columns_swapped",
        "`total` and `n` are exchanged: with the names swapped the tables match",
        {},
    ),
    Mistake(
        "missing column",
        "SELECT method, sum(amount) AS total, count(*) AS n FROM payments GROUP BY 1",
        "SELECT method, sum(amount) AS total FROM payments GROUP BY 1",
        "missing_column",
        "1 expected column not in the answer: `n`",
        {},
    ),
    Mistake(
        "distinct orders",
        "SELECT method, sum(amount) AS total, count(*) AS n FROM payments GROUP BY 1",
        "SELECT method, sum(amount) AS total, count(DISTINCT order_id) AS n FROM payments GROUP BY 1",
        "values_differ",
        "`n` differs in 1 of 4 rows",
        {},
    ),
    Mistake(
        "fan-out doubles one group",
        "SELECT method, sum(amount) AS total FROM payments GROUP BY 1",
        (
            "SELECT p.method, sum(p.amount) AS total FROM payments p JOIN orders USING(order_id) "
            "JOIN payments q USING(order_id) GROUP BY 1"
        ),
        "values_differ",
        "`total` differs in 1 of 4 rows",
        {},
    ),
    Mistake(
        "total row",
        "SELECT method, sum(amount) AS total FROM payments GROUP BY 1",
        "SELECT method, sum(amount) AS total FROM payments GROUP BY ROLLUP(1)",
        "total_row",
        "one row too many, holding the sums of the others: total = 124161.93",
        {},
    ),
    Mistake(
        "finer grain",
        "SELECT country, count(*) AS n FROM customers GROUP BY 1",
        "SELECT country, referred_by, count(*) AS n FROM customers GROUP BY 1,2",
        "wrong_grain",
        (
            "16 rows where 4 are expected, but `n` sums to 1300 in both: other grain (grouped by "
            "`referred_by` as well)"
        ),
        {},
    ),
    Mistake(
        "coarser grain",
        "SELECT country, referred_by, count(*) AS n FROM customers GROUP BY 1,2",
        "SELECT country, count(*) AS n FROM customers GROUP BY 1",
        "wrong_grain",
        "4 rows where 16 are expected, but `n` sums to 1300 in both: other grain (no `referred_by`)",
        {},
    ),
    Mistake(
        "pivot",
        "SELECT country, count(*) AS n FROM customers GROUP BY 1",
        "PIVOT (SELECT country FROM customers) ON country USING count(*)",
        "pivoted",
        "the values of `country` are columns in the answer: pivoted",
        {},
    ),
    Mistake(
        "running",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS m, sum(amount) AS r FROM orders GROUP "
            "BY 1 ORDER BY 1"
        ),
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS m, sum(sum(amount)) OVER (ORDER BY "
            "date_trunc('month',ordered_at)) AS r FROM orders GROUP BY "
            "date_trunc('month',ordered_at)"
        ),
        "cumulative",
        "`r`: running sums where single values are expected (23 of 24 rows",
        {},
    ),
    Mistake(
        "labelled next month",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS m, sum(amount) AS r FROM orders GROUP "
            "BY 1 ORDER BY 1"
        ),
        (
            "SELECT (date_trunc('month',ordered_at)+INTERVAL 1 MONTH)::DATE AS m, sum(amount) AS r "
            "FROM orders GROUP BY 1"
        ),
        "rows_differ",
        (
            "24 of 24 expected rows not in the answer, 24 of 24 answered rows not expected; 23 of "
            "these share `m` with another row"
        ),
        {},
    ),
    Mistake(
        "month text",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS m, sum(amount) AS r FROM orders GROUP "
            "BY 1 ORDER BY 1"
        ),
        "SELECT strftime(ordered_at,'%Y-%m') AS m, sum(amount) AS r FROM orders GROUP BY 1",
        "date_format",
        "`m`: 24 values not written as YYYY-MM-DD",
        {},
    ),
    Mistake(
        "lagged",
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS m, sum(amount) AS r FROM orders GROUP "
            "BY 1 ORDER BY 1"
        ),
        (
            "SELECT date_trunc('month',ordered_at)::DATE AS m, lag(sum(amount)) OVER (ORDER BY "
            "date_trunc('month',ordered_at)) AS r FROM orders GROUP BY "
            "date_trunc('month',ordered_at)"
        ),
        "values_differ",
        "`r` differs in 24 of 24 rows",
        {},
    ),
    Mistake(
        "wrong country",
        "SELECT customer_id, first_name FROM customers WHERE country='FR'",
        "SELECT customer_id, first_name FROM customers WHERE country='DE'",
        "rows_differ",
        "169 of 169 expected rows not in the answer, 385 of 385 answered rows not expected",
        {},
    ),
    Mistake(
        "two countries",
        "SELECT customer_id, first_name FROM customers WHERE country='FR'",
        "SELECT customer_id, first_name FROM customers WHERE country IN ('FR','DE')",
        "rows_extra",
        "385 rows too many; all 169 expected rows are there",
        {},
    ),
    Mistake(
        "last name",
        "SELECT customer_id, first_name FROM customers WHERE country='FR'",
        "SELECT customer_id, last_name AS first_name FROM customers WHERE country='FR'",
        "values_differ",
        "`first_name` differs in 169 of 169 rows",
        {},
    ),
    Mistake(
        "full name",
        "SELECT customer_id, first_name FROM customers WHERE country='FR'",
        "SELECT customer_id, first_name||' '||last_name AS first_name FROM customers WHERE country='FR'",
        "values_differ",
        "`first_name` differs in 169 of 169 rows",
        {},
    ),
    Mistake(
        "swapped names",
        "SELECT customer_id, first_name, last_name FROM customers WHERE country='FR'",
        (
            "SELECT customer_id, last_name AS first_name, first_name AS last_name FROM customers "
            "WHERE country='FR'"
        ),
        "columns_swapped",
        "`first_name` and `last_name` are exchanged: with the names swapped the tables match",
        {},
    ),
    Mistake(
        "negated",
        "SELECT order_id FROM orders WHERE coupon IS NOT NULL",
        "SELECT order_id FROM orders WHERE coupon IS NULL",
        "rows_differ",
        "419 of 419 expected rows not in the answer, 3,781 of 3,781 answered rows not expected",
        {},
    ),
    Mistake(
        "inverted",
        "SELECT order_id, coupon IS NOT NULL AS used FROM orders WHERE order_id<50",
        "SELECT order_id, coupon IS NULL AS used FROM orders WHERE order_id<50",
        "inverted",
        "`used`: true and false are exchanged (49 of 49 rows",
        {},
    ),
    Mistake(
        "min for max",
        "SELECT max(amount) AS x FROM orders",
        "SELECT min(amount) AS x FROM orders",
        "values_differ",
        "`x` differs in 1 of 1 row",
        {},
    ),
    Mistake(
        "sign",
        "SELECT sum(amount) AS x FROM orders",
        "SELECT -sum(amount) AS x FROM orders",
        "sign",
        "`x`: the sign differs (1 of 1 row",
        {},
    ),
    Mistake(
        "thousands",
        "SELECT sum(amount) AS x FROM orders",
        "SELECT sum(amount)/1000 AS x FROM orders",
        "scaled",
        "`x`: the value is 1/1000 of the expected (1 of 1 row",
        {},
    ),
    Mistake(
        "first for last",
        "SELECT customer_id, max(ordered_at) AS last FROM orders GROUP BY 1",
        "SELECT customer_id, min(ordered_at) AS last FROM orders GROUP BY 1",
        "values_differ",
        "`last` differs in 997 of 1,118 rows",
        {},
    ),
    Mistake(
        "list order",
        "SELECT channel, string_agg(DISTINCT status, ', ' ORDER BY status) AS s FROM orders GROUP BY 1",
        (
            "SELECT channel, string_agg(DISTINCT status, ', ' ORDER BY status DESC) AS s FROM "
            "orders GROUP BY 1"
        ),
        "list_order",
        "`s`: the same elements in another order (4 of 4 rows",
        {},
    ),
    Mistake(
        "separator",
        "SELECT channel, string_agg(DISTINCT status, ', ' ORDER BY status) AS s FROM orders GROUP BY 1",
        "SELECT channel, string_agg(DISTINCT status, '; ' ORDER BY status) AS s FROM orders GROUP BY 1",
        "values_differ",
        "`s` differs in 4 of 4 rows",
        {},
    ),
]
