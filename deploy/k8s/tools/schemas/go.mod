// The definitions of custom resources that the chart makes objects of, and that are too large to be kept here. Nothing
// is built of them.
module sluice.io/deploy/k8s/tools/schemas

go 1.24.0

require (
	github.com/prometheus-operator/prometheus-operator v0.92.1
	sigs.k8s.io/gateway-api v1.4.1
)
