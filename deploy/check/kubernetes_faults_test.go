package check_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// stopTime is how long the process takes to stop, in seconds. See docs/operations.md.
const stopTime = 10

// faults returns where objects do not fit together, although each is valid.
func (m manifests) faults() (found []string) {
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	serving := func(what string, s selector) []pod {
		pods := m.selected(s)
		if len(pods) != 1 || pods[0].workload != "commerce" {
			fault("%s selects %d workloads, want the service alone", what, len(pods))
		}
		return pods
	}
	for _, d := range m.of("Deployment") {
		serving("the Deployment", d.Spec.Selector)
		for _, spread := range d.Spec.Template.Spec.TopologySpreadConstraints {
			serving("a topology constraint", spread.LabelSelector)
		}
		admin := slices.IndexFunc(d.Spec.Template.Spec.Containers[0].Ports, func(port namedPort) bool { return port.Name == "admin" })
		if admin < 0 || fmt.Sprint(d.Spec.Template.Spec.Containers[0].Ports[admin].ContainerPort) != d.Spec.Template.Metadata.Annotations["prometheus.io/port"] {
			fault("the annotation of the port for Prometheus is not the admin port")
		}
	}
	for _, b := range m.of("PodDisruptionBudget") {
		serving("the disruption budget", b.Spec.Selector)
	}
	for _, s := range m.of("Service") {
		for _, p := range serving("the Service", s.Spec.Selector) {
			for _, port := range s.Spec.Ports {
				if !p.hasPort(port.TargetPort) {
					fault("the Service refers to the port %s, which does not exist", port.TargetPort)
				}
			}
		}
	}
	for _, h := range m.of("HorizontalPodAutoscaler") {
		if to := h.Spec.ScaleTargetRef; to.APIVersion != "apps/v1" || to.Kind != "Deployment" || to.Name != m.of("Deployment")[0].Metadata.Name {
			fault("the autoscaler scales %v, which does not exist", to)
		}
	}
	policies := map[string]int{} // by workload
	for _, n := range m.of("NetworkPolicy") {
		if !slices.Equal(n.Spec.PolicyTypes, []string{"Ingress", "Egress"}) {
			fault("the network policy %s leaves a direction open", n.Metadata.Name)
		}
		for _, p := range m.selected(n.Spec.PodSelector) {
			policies[p.workload]++
			for _, rule := range n.Spec.Ingress {
				for _, port := range rule.Ports {
					if !p.hasPort(port.Port) {
						fault("the network policy %s lets in the port %v, which does not exist", n.Metadata.Name, port.Port)
					}
				}
			}
		}
	}
	for _, p := range m.pods() {
		if policies[p.workload] != 1 {
			fault("%s has %d network policies, want one", p.workload, policies[p.workload])
		}
		for _, f := range m.podFaults(p) {
			fault("%s: %s", p.workload, f)
		}
	}
	return found
}

// podFaults checks that a pod has a service account without a token, that its probes reach a port,
// that it has time to stop, and that its secrets come from Secrets alone.
func (m manifests) podFaults(p pod) (found []string) {
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	account := slices.IndexFunc(m, func(o object) bool { return o.Kind == "ServiceAccount" && o.Metadata.Name == p.Spec.ServiceAccountName })
	switch {
	case account < 0:
		fault("the service account %q does not exist", p.Spec.ServiceAccountName)
	case m[account].AutomountServiceAccountToken:
		fault("it gets a token of its service account")
	case p.component == "database" && m[account].Metadata.Labels["app.kubernetes.io/component"] != "database":
		fault("its service account does not have its label, by which the migration is applied first")
	}
	for _, c := range p.Spec.Containers {
		if p.component == "database" && len(c.EnvFrom) > 0 {
			fault("it needs a ConfigMap, which is applied after the migration")
		}
		for _, probe := range []*probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil && !p.hasPort(probe.HTTPGet.Port) {
				fault("a probe of the port %s, which does not exist", probe.HTTPGet.Port)
			}
		}
		if c.LivenessProbe != nil && p.Spec.TerminationGracePeriodSeconds <= stopTime+c.Lifecycle.PreStop.Sleep.Seconds {
			fault("a grace period that is too short to stop")
		}
		for name, value := range m.env(c) {
			file, isFile := strings.CutSuffix(name, "_FILE")
			switch {
			case isFile && !p.mountsSecret(c, value):
				fault("%s is %s, where no Secret is mounted", name, value)
			case isFile && path.Base(value) != file:
				fault("%s is %s, want the key %s", name, value, file)
			case !isFile && secret(name):
				fault("%s is in a manifest instead of a Secret", name)
			}
		}
		for _, from := range c.EnvFrom {
			if m.configMap(from.ConfigMapRef.Name) == nil {
				fault("settings of a ConfigMap that does not exist")
			}
		}
	}
	return found
}

func secret(name string) bool {
	return name == "REDIS_URL" || name == "DATABASE_URL" || name == "DATABASE_REPLICA_URL" || strings.Contains(name, "SECRET") || strings.Contains(name, "PASSWORD") || strings.HasPrefix(name, "HANDOVER_KEY")
}

func (m manifests) env(c podContainer) map[string]string {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		maps.Copy(env, m.configMap(from.ConfigMapRef.Name))
	}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	return env
}

func (m manifests) configMap(name string) map[string]string {
	for _, c := range m.of("ConfigMap") {
		if c.Metadata.Name == name {
			return c.Data
		}
	}
	return nil
}

// mountsSecret reports whether a file of a container comes from a Secret.
func (p pod) mountsSecret(c podContainer, file string) bool {
	for _, mount := range c.VolumeMounts {
		for _, v := range p.Spec.Volumes {
			if v.Name == mount.Name && v.Secret.SecretName != "" && mount.ReadOnly && mount.MountPath == path.Dir(file) {
				return true
			}
		}
	}
	return false
}
