package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"commerce/deploy/assert"
)

// overlays are the folders that an operator applies.
var overlays = []string{"small", "cluster"}

type object struct {
	Kind                         string
	Metadata                     metadata
	Data                         map[string]string
	AutomountServiceAccountToken bool
	Spec                         struct {
		Selector, PodSelector    selector
		Template                 pod
		JobTemplate              struct{ Spec struct{ Template pod } }
		Ports                    []struct{ Name, TargetPort string }
		PolicyTypes              []string
		Ingress                  []struct{ Ports []struct{ Port any } }
		ScaleTargetRef           struct{ APIVersion, Kind, Name string }
		MinReplicas, MaxReplicas int
		Strategy                 struct{ RollingUpdate struct{ MaxSurge any } }
	}
}

type metadata struct {
	Name, Namespace     string
	Labels, Annotations map[string]string
}

type pod struct {
	workload  string
	component string // label of the workload itself
	Metadata  metadata
	Spec      struct {
		ServiceAccountName            string
		TerminationGracePeriodSeconds int
		TopologySpreadConstraints     []struct{ LabelSelector selector }
		Containers                    []podContainer
		Volumes                       []struct {
			Name   string
			Secret struct{ SecretName string }
		}
	}
}

type podContainer struct {
	Args         []string
	Ports        []namedPort
	Env          []struct{ Name, Value string }
	EnvFrom      []struct{ ConfigMapRef struct{ Name string } }
	VolumeMounts []struct {
		Name, MountPath string
		ReadOnly        bool
	}
	Lifecycle struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}
	LivenessProbe, ReadinessProbe, StartupProbe *probe
}

type namedPort struct {
	Name          string
	ContainerPort int
}

type probe struct {
	HTTPGet struct{ Path, Port string }
}

// schemas compiles schemas of testdata/kubernetes.json, which are those of one version of
// Kubernetes, and of testdata/pod.yaml.
var schemas = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"kubernetes.json", "pod.yaml"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			return nil, err
		}
		var schema any
		if err := yaml.Unmarshal(text, &schema); err != nil { // JSON is YAML
			return nil, err
		}
		if err := compiler.AddResource("/"+name, schema); err != nil {
			return nil, err
		}
	}
	return compiler, nil
})

var compiling sync.Mutex // a compiler is not safe for concurrent use

func validate(schema string, value any) error {
	compiling.Lock()
	defer compiling.Unlock()
	compiler, err := schemas()
	if err != nil {
		return err
	}
	compiled, err := compiler.Compile(schema)
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

type manifests []object

// decode refuses unknown kinds and members, and pods that break testdata/pod.yaml.
func decode(objects []tree) (m manifests, err error) {
	for _, o := range objects {
		group, version, grouped := strings.Cut(o["apiVersion"].(string), "/")
		if !grouped {
			group, version = "core", group
		}
		group, _, _ = strings.Cut(group, ".")
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if err := validate(fmt.Sprintf("/kubernetes.json#/definitions/io.k8s.api.%s.%s.%s", group, version, o["kind"]), value); err != nil {
			return nil, err
		}
		for _, template := range templates(value.(tree)) {
			if err := validate("/pod.yaml", template); err != nil {
				return nil, err
			}
		}
		var is object
		if err := json.Unmarshal(text, &is); err != nil {
			return nil, err
		}
		m = append(m, is)
	}
	return m, nil
}

func overlay(t *testing.T, name string) manifests {
	t.Helper()
	return assert.Must(decode(kustomized(t, "deploy/kubernetes/overlays/"+name)))(t)
}

func (m manifests) of(kind string) (found []object) {
	for _, o := range m {
		if o.Kind == kind {
			found = append(found, o)
		}
	}
	return found
}

func (m manifests) pods() (pods []pod) {
	for _, o := range m {
		p := o.Spec.Template
		if o.Kind == "CronJob" {
			p = o.Spec.JobTemplate.Spec.Template
		}
		if len(p.Spec.Containers) > 0 {
			p.workload, p.component = o.Metadata.Name, o.Metadata.Labels["app.kubernetes.io/component"]
			pods = append(pods, p)
		}
	}
	return pods
}

// selector is that of a Service, or has the only member matchLabels.
type selector map[string]any

// selected returns the pods that a selector matches. An empty selector matches all.
func (m manifests) selected(s selector) (found []pod) {
	if labels, is := s["matchLabels"].(tree); is && len(s) == 1 {
		s = labels
	}
next:
	for _, p := range m.pods() {
		for name, value := range s {
			if p.Metadata.Labels[name] != value {
				continue next
			}
		}
		found = append(found, p)
	}
	return found
}

func (p pod) hasPort(name any) bool {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == name {
				return true
			}
		}
	}
	return false
}

func TestKubernetes_ManifestsFitTogether(t *testing.T) {
	t.Parallel()
	for _, name := range overlays {
		m := overlay(t, name)
		assert.That(t, len(m.pods()) == 3, "%s: %d workloads, want the service, the migration and the pruning", name, len(m.pods()))
		for _, fault := range m.faults() {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// Each check finds what it is for.
func TestKubernetes_FaultsOfManifestsAreFound(t *testing.T) {
	t.Parallel()
	const container = "/spec/template/spec/containers/0"
	for _, test := range []struct{ kind, op, path, value, want string }{ // of commerce, or of another name after -
		{"Deployment", "replace", container + "/image", "commerce:latest", "/image"},
		{"Deployment", "replace", container + "/image", "example.com:5000/commerce", "/image"},
		{"Deployment", "replace", container + "/securityContext/allowPrivilegeEscalation", "true", "allowPrivilegeEscalation"},
		{"Deployment", "replace", container + "/securityContext/readOnlyRootFilesystem", "false", "readOnlyRootFilesystem"},
		{"Deployment", "replace", container + "/securityContext/capabilities/drop", "[]", "capabilities/drop"},
		{"Deployment", "add", container + "/securityContext/capabilities/add", "[NET_ADMIN]", "capabilities/add"},
		{"Deployment", "replace", "/spec/template/spec/securityContext/runAsNonRoot", "false", "runAsNonRoot"},
		{"Deployment", "remove", "/spec/template/spec/securityContext/seccompProfile", "", "seccompProfile"},
		{"Deployment", "add", "/spec/template/spec/hostNetwork", "true", "hostNetwork"},
		{"Deployment", "add", "/spec/template/spec/volumes/-", "{name: root, hostPath: {path: /}}", "hostPath"},
		{"Deployment", "remove", container + "/resources/limits/memory", "", "memory"},
		{"Deployment", "replace", "/spec/template/spec/automountServiceAccountToken", "true", "automountServiceAccountToken"},
		{"Deployment", "remove", container + "/lifecycle/preStop", "", "preStop"},
		{"ServiceAccount", "replace", "/automountServiceAccountToken", "true", "token"},
		{"Deployment", "replace", "/spec/template/spec/serviceAccountName", "default", "service account"},
		{"Deployment", "replace", "/spec/template/metadata/labels/app.kubernetes.io~1component", "served", "selects"},
		{"ServiceAccount-database", "remove", "/metadata/labels/app.kubernetes.io~1component", "", "its label"},
		{"Job-migrate", "add", container + "/envFrom", "[{configMapRef: {name: commerce}}]", "needs a ConfigMap"},
		{"Service", "replace", "/spec/ports/0/targetPort", "public", "port public"},
		{"NetworkPolicy", "replace", "/spec/ingress/1/ports/0/port", "metrics", "port metrics"},
		{"NetworkPolicy", "replace", "/spec/policyTypes", "[Ingress]", "open"},
		{"Deployment", "replace", container + "/readinessProbe/httpGet/port", "metrics", "port metrics"},
		{"Deployment", "replace", "/spec/template/metadata/annotations/prometheus.io~1port", `"9091"`, "annotation"},
		{"Deployment", "replace", "/spec/template/spec/terminationGracePeriodSeconds", "15", "grace"},
		{"HorizontalPodAutoscaler", "replace", "/spec/scaleTargetRef/name", "shop", "scales"},
		{"Deployment", "replace", container + "/env/2/value", "/run/secrets/JWT_SECRET", "no Secret"},
		{"ConfigMap", "add", "/data/DATABASE_REPLICA_URL", "postgres://replica", "DATABASE_REPLICA_URL"},
		{"ConfigMap", "add", "/data/JWT_SECRET", strings.Repeat("x", 32), "JWT_SECRET"},
		{"Deployment", "add", "/spec/strategy/rollingUpdate/maxSurges", "1", "maxSurges"}, // the rest is misspelt
		{"PodDisruptionBudget", "replace", "/kind", "DisruptionBudget", "DisruptionBudget"},
		{"Deployment", "replace", container + "/readinessProbe/periodSeconds", "ten", "periodSeconds"},
	} {
		objects := kustomized(t, "deploy/kubernetes/overlays/small")
		kind, further, _ := strings.Cut(test.kind, "-")
		broken := named(t, objects, kind, strings.TrimSuffix("commerce-"+further, "-"))
		patch(t, broken, fmt.Sprintf("[{op: %s, path: %q, value: %s}]", test.op, test.path, test.value))
		m, err := decode(objects)
		got := fmt.Sprint(err, m.faults())
		assert.That(t, strings.Contains(got, test.want), "with %s at %s: faults %q, want %q", test.value, test.path, got, test.want)
	}
}

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
		primary, replicas := 8*cpus+2+4+1+16+2+1, "none"
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
