"""`sluice verify`: the journal followed, the segment stores reached, findings printed."""
