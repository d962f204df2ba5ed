"""The cluster manager: which segment stores live, which container runs on which of them, who of our own is alive."""
