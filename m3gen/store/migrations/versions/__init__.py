"""One revision of the schema a file. A released one never changes: add another and move `migrations.HEAD`."""
