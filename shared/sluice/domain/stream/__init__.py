"""The stream aggregate: its state, the decisions on it, its history of epochs and the queries on it."""
