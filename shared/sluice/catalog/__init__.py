"""The catalogue of messages: what travels in which topic, as schemas, examples and an AsyncAPI document."""
