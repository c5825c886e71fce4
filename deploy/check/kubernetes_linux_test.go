package check_test

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"commerce/deploy/ephemeral"
)

// Each workload runs in the image with the environment and the files of its manifest. Only
// the secrets are the test's own.
func TestKubernetes_WorkloadsRunInTheImage(t *testing.T) {
	t.Parallel()
	redis := map[string]string{"small": ephemeral.Redis(t), "cluster": ephemeral.Cluster(t)}
	for _, name := range overlays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := ephemeral.StartPostgres(t).URL // roles belong to the whole server
			assignRoles(t, composeProject(t).Services["roles"], database)
			service := moved(t, "postgres://commerce_service@postgres", database)
			secrets := map[string]map[string]string{ // as docs/deploy.md has them
				"commerce":       {"REDIS_URL": redis[name], "DATABASE_URL": service, "JWT_SECRET": strings.Repeat("s", 32)},
				"commerce-owner": {"DATABASE_URL": database},
			}
			if name == "cluster" {
				secrets["commerce"]["DATABASE_REPLICA_URL"] = service
			}
			m := overlay(t, name)
			for _, workload := range []string{"commerce-migrate", "commerce-prune", "commerce"} {
				p := m.pod(t, workload)
				spec := p.Spec.Containers[0]
				c := builtImage(t).container(t, p.secretFiles(secrets))
				env := entries(m.env(spec))
				if workload != "commerce" {
					c.run(t, env, spec.Args...)
					continue
				}
				s := c.serve(t, env, spec.Args...)
				s.want(t, http.StatusOK, s.admin+spec.LivenessProbe.HTTPGet.Path)
				s.want(t, http.StatusOK, s.admin+spec.ReadinessProbe.HTTPGet.Path)
				s.want(t, http.StatusOK, s.admin+p.Metadata.Annotations["prometheus.io/path"])
				s.want(t, http.StatusBadRequest, s.public+"/cart") // there is no store yet
				s.wantStops(t)
			}
		})
	}
}

// pod returns the template of a workload.
func (m manifests) pod(t *testing.T, workload string) pod {
	t.Helper()
	pods := m.pods()
	i := slices.IndexFunc(pods, func(p pod) bool { return p.workload == workload })
	if i < 0 {
		t.Fatalf("there is no %s", workload)
	}
	return pods[i]
}

// secretFiles returns the content of the files that the first container of a pod mounts.
func (p pod) secretFiles(secrets map[string]map[string]string) map[string]string {
	files := map[string]string{}
	for _, mount := range p.Spec.Containers[0].VolumeMounts {
		for _, v := range p.Spec.Volumes {
			for key, value := range secrets[v.Secret.SecretName] {
				if v.Name == mount.Name {
					files[path.Join(mount.MountPath, key)] = value + "\n"
				}
			}
		}
	}
	return files
}

// entries returns an environment as entries, NAME=value.
func entries(env map[string]string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return all
}
