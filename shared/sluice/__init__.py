"""Sluice: the controller of Pravega as event-sourced services."""
