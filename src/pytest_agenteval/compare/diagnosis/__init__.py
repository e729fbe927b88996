"""Say why two tables differ, in the words of the documented contract."""
