"""The metrics of txn-manager, beside those all services share."""
