SELECT concat_ws(' ', any_value(first_name), any_value(last_name)) AS customer, sum(amount) AS revenue
FROM orders
JOIN customers USING (customer_id)
WHERE status = 'completed' AND channel != 'staff'
GROUP BY customer_id
ORDER BY revenue DESC
LIMIT 5
