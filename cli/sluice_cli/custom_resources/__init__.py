"""Scopes and streams as custom resources of Kubernetes: what each says is kept so in Sluice."""
