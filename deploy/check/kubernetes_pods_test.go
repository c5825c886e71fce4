package check_test

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// stopTime is how long the process takes to stop, in seconds. See docs/operations.md.
const stopTime = 10

// faults returns what is wrong with the manifests, although their fields are all known.
func (m manifests) faults() (found []string) {
	for _, p := range m.pods() {
		for _, fault := range slices.Concat(p.securityFaults(), m.accountFaults(p), p.containerFaults(), m.settingFaults(p)) {
			found = append(found, p.workload+": "+fault)
		}
	}
	return append(found, m.connectionFaults()...)
}

// securityFaults judges a pod as a namespace does that enforces the restricted standard.
func (p pod) securityFaults() (found []string) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return []string{err.Error()}
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &p.ObjectMeta, &p.Spec)); !result.Allowed {
		found = append(found, "not restricted: "+result.ForbiddenDetail())
	}
	for _, c := range p.Spec.Containers {
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			found = append(found, "a writable root")
		}
	}
	return found
}

// accountFaults checks that a pod has a service account of its own, without a token.
func (m manifests) accountFaults(p pod) []string {
	disabled := func(mounts *bool) bool { return mounts != nil && !*mounts }
	i := slices.IndexFunc(of[*corev1.ServiceAccount](m), func(a *corev1.ServiceAccount) bool {
		return a.Name == p.Spec.ServiceAccountName
	})
	switch {
	case i < 0:
		return []string{fmt.Sprintf("the service account %q does not exist", p.Spec.ServiceAccountName)}
	case !disabled(p.Spec.AutomountServiceAccountToken) || !disabled(of[*corev1.ServiceAccount](m)[i].AutomountServiceAccountToken):
		return []string{"it gets a token of its service account"}
	}
	return nil
}

// containerFaults checks images, resources, probes and the time to stop.
func (p pod) containerFaults() (found []string) {
	for _, c := range p.Spec.Containers {
		if tag := tagOf(c.Image); tag == "" || tag == "latest" {
			found = append(found, "the image "+c.Image+" has no version")
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			found = append(found, "no limit of memory, or no request of memory and CPU")
		}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe != nil && !p.hasPort(probe.HTTPGet.Port.String()) {
				found = append(found, "a probe of the port "+probe.HTTPGet.Port.String()+", which does not exist")
			}
		}
		if c.LivenessProbe == nil { // it serves nobody
			continue
		}
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil {
			found = append(found, "no preStop hook, so it may stop before load balancers know")
		} else if *p.Spec.TerminationGracePeriodSeconds <= stopTime+c.Lifecycle.PreStop.Sleep.Seconds {
			found = append(found, "a grace period that is too short to stop")
		}
	}
	return found
}

// settingFaults checks that secrets come from Secrets alone, and that what settings refer to
// exists.
func (m manifests) settingFaults(p pod) (found []string) {
	for _, c := range p.Spec.Containers {
		for name, value := range m.env(c) {
			file, isFile := strings.CutSuffix(name, "_FILE")
			switch {
			case isFile && !p.mountsSecret(c, value):
				found = append(found, fmt.Sprintf("%s is %s, where no Secret is mounted", name, value))
			case isFile && path.Base(value) != file:
				found = append(found, fmt.Sprintf("%s is %s, want the key %s", name, value, file))
			case !isFile && secret(name):
				found = append(found, name+" is in a manifest instead of a Secret")
			}
		}
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef == nil || m.configMap(from.ConfigMapRef.Name) == nil {
				found = append(found, "settings of a ConfigMap that does not exist")
			}
		}
	}
	return found
}

// secret reports whether a setting holds credentials.
func secret(name string) bool {
	return name == "REDIS_URL" || name == "DATABASE_URL" || name == "DATABASE_REPLICA_URL" || strings.Contains(name, "SECRET") || strings.Contains(name, "PASSWORD")
}

// env returns the environment of a container, as far as it is in the manifests.
func (m manifests) env(c corev1.Container) map[string]string {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			for name, value := range m.configMap(from.ConfigMapRef.Name) {
				env[name] = value
			}
		}
	}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	return env
}

// configMap returns the data of a ConfigMap, nil if there is none of this name.
func (m manifests) configMap(name string) map[string]string {
	for _, c := range of[*corev1.ConfigMap](m) {
		if c.Name == name {
			return c.Data
		}
	}
	return nil
}

// mountsSecret reports whether a file of a container comes from a Secret.
func (p pod) mountsSecret(c corev1.Container, file string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(mount corev1.VolumeMount) bool {
		return mount.ReadOnly && mount.MountPath == path.Dir(file) && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == mount.Name && v.Secret != nil
		})
	})
}
