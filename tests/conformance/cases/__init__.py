"""The table, one module per subject (controller-grpc-api 5). Only data; nothing is called here."""
