"""Statistics of streams by minute, hour and day: a Faust app in a process of its own, and what starts it anew."""
