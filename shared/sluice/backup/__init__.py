"""Back-ups of the journal's state: their files, and the records that a restore writes into an empty journal.

Nothing here reads or writes Kafka: a back-up is made of views, and a restore makes records.
"""
