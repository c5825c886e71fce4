package check_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// connectionFaults checks that selectors match the right pods, and that ports have the names
// by which others refer to them.
func (m manifests) connectionFaults() (found []string) {
	serving := func(what string, selector *metav1.LabelSelector) []pod {
		pods, err := m.selected(selector)
		if err != nil || len(pods) != 1 || pods[0].workload != "commerce" {
			found = append(found, fmt.Sprintf("%s selects %d workloads, want the service alone: %v", what, len(pods), err))
		}
		return pods
	}
	for _, d := range of[*appsv1.Deployment](m) {
		serving("the Deployment", d.Spec.Selector)
		for _, spread := range d.Spec.Template.Spec.TopologySpreadConstraints {
			serving("a topology constraint", spread.LabelSelector)
		}
		found = append(found, scrapeFaults(d.Spec.Template)...)
	}
	for _, b := range of[*policyv1.PodDisruptionBudget](m) {
		serving("the disruption budget", b.Spec.Selector)
	}
	for _, s := range of[*corev1.Service](m) {
		for _, p := range serving("the Service", metav1.SetAsLabelSelector(s.Spec.Selector)) {
			for _, port := range s.Spec.Ports {
				if !p.hasPort(port.TargetPort.String()) {
					found = append(found, "the Service refers to the port "+port.TargetPort.String()+", which does not exist")
				}
			}
		}
	}
	for _, h := range of[*autoscalingv2.HorizontalPodAutoscaler](m) {
		if !slices.ContainsFunc(of[*appsv1.Deployment](m), func(d *appsv1.Deployment) bool {
			return h.Spec.ScaleTargetRef == autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name}
		}) {
			found = append(found, "the autoscaler scales "+h.Spec.ScaleTargetRef.Name+", which does not exist")
		}
	}
	return append(found, m.networkFaults()...)
}

// scrapeFaults checks the annotations for Prometheus.
func scrapeFaults(template corev1.PodTemplateSpec) []string {
	for _, c := range template.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "admin" && fmt.Sprint(port.ContainerPort) == template.Annotations["prometheus.io/port"] {
				return nil
			}
		}
	}
	return []string{"the annotation of the port for Prometheus is not the admin port"}
}

// networkFaults checks that each pod has one policy for both directions, and that the ports
// which policies let in exist.
func (m manifests) networkFaults() (found []string) {
	policies := map[string]int{} // by workload
	for _, n := range of[*networkingv1.NetworkPolicy](m) {
		if !slices.Equal(n.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) {
			found = append(found, "the network policy "+n.Name+" leaves a direction open")
		}
		pods, err := m.selected(&n.Spec.PodSelector)
		if err != nil {
			found = append(found, err.Error())
		}
		for _, p := range pods {
			policies[p.workload]++
			for _, rule := range n.Spec.Ingress {
				for _, port := range rule.Ports {
					if port.Port.Type != intstr.String || !p.hasPort(port.Port.StrVal) {
						found = append(found, "the network policy "+n.Name+" lets in the port "+port.Port.String()+", which does not exist")
					}
				}
			}
		}
	}
	for _, p := range m.pods() {
		if policies[p.workload] != 1 {
			found = append(found, fmt.Sprintf("%s has %d network policies, want one", p.workload, policies[p.workload]))
		}
	}
	return found
}

// The migration, and all that it needs, can be applied before the rest by its label.
func TestKubernetes_MigrationCanBeAppliedFirst(t *testing.T) {
	t.Parallel()
	for _, name := range overlays {
		m := overlay(t, name)
		for _, p := range m.pods() {
			if p.component != "database" {
				continue
			}
			for _, a := range of[*corev1.ServiceAccount](m) {
				if a.Name == p.Spec.ServiceAccountName && a.Labels["app.kubernetes.io/component"] != "database" {
					t.Errorf("%s: the service account of %s is not labeled as %s is", name, p.workload, p.workload)
				}
			}
			for _, c := range p.Spec.Containers {
				if len(c.EnvFrom) != 0 {
					t.Errorf("%s: %s needs a ConfigMap, which is applied later", name, p.workload)
				}
			}
		}
	}
}

// docs/deploy.md says how many connections Postgres must accept.
func TestKubernetes_ConnectionsToPostgresAreDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/deploy.md")
	for _, name := range overlays {
		m := overlay(t, name)
		bounds := of[*autoscalingv2.HorizontalPodAutoscaler](m)[0].Spec
		deployment := of[*appsv1.Deployment](m)[0].Spec
		surge, err := intstr.GetScaledValueFromIntOrPercent(deployment.Strategy.RollingUpdate.MaxSurge, int(bounds.MaxReplicas), true)
		if err != nil {
			t.Fatal(err)
		}
		env := m.env(deployment.Template.Spec.Containers[0])
		cpus, err := strconv.Atoi(env["GOMAXPROCS"])
		if err != nil {
			t.Fatal(err)
		}
		instances := int(bounds.MaxReplicas) + surge
		_, replicas := env["DATABASE_REPLICA_URL_FILE"]
		primary, replica := connectionsOf(cpus, replicas)
		each := "none"
		if replicas {
			each = fmt.Sprint(instances * replica)
		}
		row := fmt.Sprintf("| `%s` | %d to %d | %d | %d | %s |", name, *bounds.MinReplicas, bounds.MaxReplicas, instances, instances*primary, each)
		if !strings.Contains(page, row+"\n") {
			t.Errorf("docs/deploy.md lacks the row %q", row)
		}
	}
}

// connectionsOf returns how many connections an instance opens at most to the primary of
// Postgres, and to each replica: those of the table in docs/operations.md, and one for LISTEN.
func connectionsOf(cpus int, replicas bool) (primary, replica int) {
	primary = 8*cpus + 2 + 4 + 1 + 16 + 1
	if replicas {
		primary++ // for checks of the replicas
		replica = 8*cpus + 2 + 1
	}
	return primary, replica
}

// The examples refer to what the base has.
func TestKubernetes_ExamplesReferToTheService(t *testing.T) {
	t.Parallel()
	m := overlay(t, "small")
	example, err := decode(read(t, "deploy/kubernetes/examples/ingress.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	backend := of[*networkingv1.Ingress](example)[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service
	service := of[*corev1.Service](m)[0]
	if backend.Name != service.Name || backend.Port.Name != service.Spec.Ports[0].Name {
		t.Errorf("the Ingress refers to %v, want the Service %s", backend, service.Name)
	}
	// The types of the Prometheus Operator are not part of Kubernetes.
	var monitor struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Spec       struct {
			JobLabel            string               `json:"jobLabel"`
			Selector            metav1.LabelSelector `json:"selector"`
			PodMetricsEndpoints []struct {
				Port     string          `json:"port"`
				Path     string          `json:"path"`
				Interval metav1.Duration `json:"interval"`
			} `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/kubernetes/examples/podmonitor.yaml")), &monitor); err != nil {
		t.Fatal(err)
	}
	pods, err := m.selected(&monitor.Spec.Selector)
	if err != nil || len(pods) != 1 || !pods[0].hasPort(monitor.Spec.PodMetricsEndpoints[0].Port) {
		t.Errorf("the PodMonitor selects %d workloads, or another port: %v", len(pods), err)
	}
	if len(pods) == 1 && pods[0].Labels[monitor.Spec.JobLabel] != "commerce" {
		t.Errorf("the PodMonitor takes the job name from the label %q, want one with the value that the rules expect, commerce", monitor.Spec.JobLabel)
	}
	if monitor.Metadata.Namespace != service.Namespace {
		t.Errorf("the PodMonitor is in the namespace %q, want %q", monitor.Metadata.Namespace, service.Namespace)
	}
}
