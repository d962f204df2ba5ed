"""The settings of Pravega's own controller, and what becomes of each here. Imports nothing of the services."""
