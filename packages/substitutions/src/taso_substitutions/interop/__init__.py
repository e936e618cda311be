"""The rules of others: TASO and TENSAT, read, judged and written."""
