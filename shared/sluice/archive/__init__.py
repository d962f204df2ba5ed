"""The archive: what topics held, as Parquet files that outlive the topics' records. docs/archive.md describes it."""
