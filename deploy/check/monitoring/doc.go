// Package monitoring tests the alerts in deploy/prometheus, the dashboard in deploy/grafana
// and docs/runbook.md against each other, and against a running service.
package monitoring
