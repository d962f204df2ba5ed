"""What people ask about the state, now or then: nothing of it decides, so nothing of the domain imports it. Pure."""
