"""When streams scale and where they are truncated: decisions on reports alone, for whoever carries them out."""
