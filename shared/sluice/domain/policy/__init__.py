"""When streams scale and where they are truncated: decisions on reports alone; stream-workflows carries them out."""
