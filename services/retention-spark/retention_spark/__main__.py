"""`python -m retention_spark`."""

from retention_spark.main import main

main()
