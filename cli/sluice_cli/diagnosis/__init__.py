"""What a bug report needs, in one archive without secrets."""
