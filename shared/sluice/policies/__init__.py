"""Scaling and retention policies: rules as steps over reports, how operators write them, their replay. Pure."""
