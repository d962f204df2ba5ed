"""txn-manager: decides the requests on transactions, commits them in batches, ends those whose lease ran out."""
