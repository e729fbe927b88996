"""Build the jaffle shop: ``python shop.py`` writes shop.duckdb beside this file.

Two years of a small chain of sandwich shops: 1,300 customers, 60 products, 4,200 orders, about 4,300
payments. Every value comes from arithmetic on row numbers, so each build holds the same data. It has
what real shops have: NULLs, cents, codes with leading zeros, orders paid in two instalments, customers
who never bought, orders by the shop's own staff.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

import duckdb

DATABASE = Path(__file__).with_name("shop.duckdb")

# A die for row i: the same face in every build, no pattern across rows or between two dice.
DIE = """
CREATE TEMP MACRO die(i, which, faces) AS
    ((xor(i * 2654435761 + which * 97531, i * 40503 + which * 7) % 4294967296)
     * 69069 % 4294967296 // 4096) % faces
"""

PRODUCTS = """
CREATE TABLE products AS
SELECT lpad((i * 37 + 5)::VARCHAR, 5, '0') AS sku,
       ['Ham', 'Cheese', 'Veggie', 'Tuna', 'Apple', 'Berry', 'Nutty', 'Spicy', 'Lemon', 'Choco'][1 + i % 10]
           || ' ' || ['Jaffle', 'Salad', 'Soup', 'Juice', 'Cake', 'Platter'][1 + i // 10] AS name,
       ['jaffles', 'salads', 'soups', 'drinks', 'cakes', 'catering'][1 + i // 10] AS category,
       ([5, 6, 4, 3, 5, 41][1 + i // 10] + die(i, 1, 60) * 0.05)::DECIMAL(10, 2) AS price,
       CASE WHEN i % 13 = 7 THEN DATE '2025-06-30' - i::INTEGER END AS discontinued_on
FROM range(60) AS numbers(i)
"""

CUSTOMERS = """
CREATE TABLE customers AS
SELECT i::INTEGER AS customer_id,
       ['Ada', 'Ben', 'Chloe', 'Dan', 'Eva', 'Finn', 'Gia', 'Hugo', 'Ida', 'Jan', 'Kim'][1 + die(i, 2, 11)]
           AS first_name,
       ['Abel', 'Berg', 'Costa', 'Dietz', 'Evans', 'Fuchs', 'Gomez', 'Huber', 'Ito', 'Klein', 'Lopez',
           'Meyer'][1 + die(i, 3, 12)] AS last_name,
       'customer' || i || '@example.org' AS email,
       ['DE', 'US', 'FR', 'US', 'NL', 'US', 'DE'][1 + die(i, 4, 7)] AS country,
       lpad((501 + die(i, 5, 9300))::VARCHAR, 5, '0') AS zip,
       DATE '2023-11-01' + die(i, 6, 790)::INTEGER AS signed_up_on,
       CASE die(i, 7, 5) WHEN 0 THEN NULL WHEN 1 THEN 'friend' WHEN 2 THEN 'search' ELSE 'flyer' END
           AS referred_by
FROM range(1, 1301) AS numbers(i)
"""

# A customer whose number leaves 3 when divided by 9 never buys. The staff's own orders stand among the rest.
ORDERS = """
CREATE TABLE orders AS
SELECT order_id, customer_id, sku, ordered_at, channel, status, quantity, coupon,
       -- in whole cents, since releases of DuckDB round half a cent differently
       (((price * 100)::INTEGER * quantity * CASE WHEN coupon IS NULL THEN 10 ELSE 9 END + 5) // 10
           * 0.01)::DECIMAL(10, 2) AS amount
FROM (SELECT i::INTEGER AS order_id,
             (1 + die(i, 8, 144) * 9 + [0, 1, 3, 4, 5, 6, 7, 8][1 + die(i, 9, 8)])::INTEGER AS customer_id,
             lpad((die(i, 10, 60) * 37 + 5)::VARCHAR, 5, '0') AS sku,
             TIMESTAMP '2024-01-01 08:00:00' + to_seconds(i * 15020 - die(i, 11, 14000)) AS ordered_at,
             ['web', 'store', 'web', 'app', 'store', 'staff', 'web', 'app'][1 + die(i, 12, 8)] AS channel,
             CASE die(i, 13, 20) WHEN 0 THEN 'returned' WHEN 1 THEN 'cancelled' ELSE 'completed' END
                 AS status,
             (1 + die(i, 14, 4))::INTEGER AS quantity,
             CASE WHEN die(i, 15, 10) = 0 THEN lpad(die(i, 16, 7)::VARCHAR, 4, '0') END AS coupon
      FROM range(1, 4201) AS numbers(i))
JOIN products USING (sku)
ORDER BY order_id
"""

# One payment an order; two halves where it was paid in instalments; none for a cancelled one.
PAYMENTS = """
CREATE TABLE payments AS
SELECT row_number() OVER (ORDER BY order_id, part)::INTEGER AS payment_id,
       order_id,
       CASE WHEN parts = 2 THEN 'instalment'
            ELSE ['card', 'cash', 'card', 'gift card'][1 + die(order_id, 17, 4)] END AS method,
       (CASE WHEN parts = 1 THEN amount WHEN part = 1 THEN half ELSE amount - half END)::DECIMAL(10, 2)
           AS amount,
       ordered_at::DATE + (30 * (part - 1))::INTEGER AS paid_on
FROM (SELECT *, CASE WHEN die(order_id, 18, 29) = 0 THEN 2 ELSE 1 END AS parts,
             (amount * 100)::INTEGER // 2 * 0.01 AS half
      FROM orders WHERE status <> 'cancelled')
CROSS JOIN (VALUES (1), (2)) AS halves(part)
WHERE part <= parts
"""

STATEMENTS = (DIE, PRODUCTS, CUSTOMERS, ORDERS, PAYMENTS)


def build(path: Path = DATABASE) -> Path:
    """The database at ``path``, built unless it stands there already.

    Several processes may call this at once (``pytest -n 4``): one builds, the others wait, and a file
    under its final name is always complete. Another version of this script or of DuckDB builds anew.
    """
    recipe = "".join((duckdb.__version__, *STATEMENTS))
    version = hashlib.sha256(recipe.encode()).hexdigest()
    stamp = path.with_suffix(".version")
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists() and stamp.exists() and stamp.read_text() == version:
            return path
        unfinished = path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        with duckdb.connect(str(unfinished)) as connection:
            for statement in STATEMENTS:
                connection.execute(statement)
        os.replace(unfinished, path)
        stamp.write_text(version)
    return path


if __name__ == "__main__":
    print(build())
