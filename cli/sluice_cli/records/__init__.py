"""What commands do with the topics beside `sluice.lookback`: followed, measured, backed up and restored."""
