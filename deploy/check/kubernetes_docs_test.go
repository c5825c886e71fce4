package check_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// What the pages and the examples say about the manifests.

// docs/deploy.md says how many connections Postgres must accept.
func TestKubernetes_ConnectionsToPostgresAreDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/deploy.md")
	for _, name := range overlays {
		m := overlay(t, name)
		bounds, deployment := m.of("HorizontalPodAutoscaler")[0].Spec, m.of("Deployment")[0].Spec
		env := m.env(deployment.Template.Spec.Containers[0])
		cpus := assert.Must(strconv.Atoi(env["GOMAXPROCS"]))(t)
		var surge int
		assert.Must(fmt.Sscan(fmt.Sprint(deployment.Strategy.RollingUpdate.MaxSurge), &surge))(t)
		if strings.HasSuffix(fmt.Sprint(deployment.Strategy.RollingUpdate.MaxSurge), "%") {
			surge = (bounds.MaxReplicas*surge + 99) / 100 // rounded up, as Kubernetes does
		}
		instances := bounds.MaxReplicas + surge
		// The pools in docs/operations.md.
		primary, replicas := 8*cpus+2+4+1+16+1, "none"
		if _, has := env["DATABASE_REPLICA_URL_FILE"]; has {
			primary++ // for checks of the replicas
			replicas = fmt.Sprint(instances * (8*cpus + 2 + 1))
		}
		row := fmt.Sprintf("| `%s` | %d to %d | %d | %d | %s |", name, bounds.MinReplicas, bounds.MaxReplicas, instances, instances*primary, replicas)
		assert.That(t, strings.Contains(page, row+"\n"), "docs/deploy.md lacks the row %q", row)
	}
}

// decode accepts only what the oldest version that docs/deploy.md names knows.
func TestKubernetes_SchemasAreOfTheDocumentedVersion(t *testing.T) {
	t.Parallel()
	schema := read(t, "deploy/check/testdata/kubernetes.json")
	version := regexp.MustCompile(`You need Kubernetes (\S+) or later`).FindStringSubmatch(read(t, "docs/deploy.md"))
	assert.That(t, version != nil && strings.Contains(schema[:200], " from Kubernetes v"+version[1]+".0,"), "docs/deploy.md names %q, and the schemas %.80s", version, schema)
}

// The examples refer to what the base has.
func TestKubernetes_ExamplesReferToTheService(t *testing.T) {
	t.Parallel()
	m := overlay(t, "small")
	service := m.of("Service")[0]
	example := documents(t, read(t, "deploy/kubernetes/examples/ingress.yaml"))
	assert.Must(decode(example))(t)
	text, err := json.Marshal(example)
	want := fmt.Sprintf(`"backend":{"service":{"name":%q,"port":{"name":%q}}}`, service.Metadata.Name, service.Spec.Ports[0].Name)
	assert.That(t, err == nil && strings.Count(string(text), want) == 1, "the Ingress does not refer to %s: %s", want, text)
	// The types of the Prometheus Operator are not part of Kubernetes.
	var monitor struct {
		APIVersion, Kind string
		Metadata         metadata
		Spec             struct {
			JobLabel            string
			Selector            selector
			PodMetricsEndpoints []struct{ Port, Path, Interval string }
		}
	}
	strictly(t, documents(t, read(t, "deploy/kubernetes/examples/podmonitor.yaml"))[0], &monitor)
	pods := m.selected(monitor.Spec.Selector)
	assert.Require(t, len(pods) == 1 && pods[0].hasPort(monitor.Spec.PodMetricsEndpoints[0].Port),
		"the PodMonitor selects %d workloads, or another port", len(pods))
	assert.That(t, pods[0].Metadata.Labels[monitor.Spec.JobLabel] == "commerce",
		"the PodMonitor takes the job name from the label %q, want one with the value that the rules expect, commerce", monitor.Spec.JobLabel)
	assert.Equal(t, monitor.Metadata.Namespace, service.Metadata.Namespace, "the PodMonitor is in the namespace")
}
