package check_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// overlays are the folders that an operator applies.
var overlays = []string{"small", "cluster"}

// manifests are the objects that one overlay creates.
type manifests struct {
	objects []runtime.Object
}

// rendered returns an overlay as `kubectl kustomize` prints it.
func rendered(t *testing.T, overlay string) string {
	t.Helper()
	dir := filepath.Join(root, "deploy/kubernetes/overlays", overlay)
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decode reads manifests. Unknown kinds and unknown or repeated fields are errors.
func decode(text string) (manifests, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return manifests{}, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var m manifests
	for document := range strings.SplitSeq(text, "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			return manifests{}, fmt.Errorf("%w in:\n%s", err, document)
		}
		m.objects = append(m.objects, object)
	}
	return m, nil
}

// overlay returns the objects of an overlay.
func overlay(t *testing.T, name string) manifests {
	t.Helper()
	m, err := decode(rendered(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// of returns all objects of one kind.
func of[O runtime.Object](m manifests) (found []O) {
	for _, object := range m.objects {
		if o, ok := object.(O); ok {
			found = append(found, o)
		}
	}
	return found
}

// pod is the template of a workload's pods.
type pod struct {
	workload  string
	component string // label of the workload itself
	corev1.PodTemplateSpec
}

// pods returns the templates of all workloads.
func (m manifests) pods() (pods []pod) {
	add := func(meta metav1.ObjectMeta, template corev1.PodTemplateSpec) {
		pods = append(pods, pod{meta.Name, meta.Labels["app.kubernetes.io/component"], template})
	}
	for _, d := range of[*appsv1.Deployment](m) {
		add(d.ObjectMeta, d.Spec.Template)
	}
	for _, j := range of[*batchv1.Job](m) {
		add(j.ObjectMeta, j.Spec.Template)
	}
	for _, c := range of[*batchv1.CronJob](m) {
		add(c.ObjectMeta, c.Spec.JobTemplate.Spec.Template)
	}
	return pods
}

// selected returns the pods that a selector matches. An empty selector matches all.
func (m manifests) selected(selector *metav1.LabelSelector) ([]pod, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(m.pods(), func(p pod) bool { return !s.Matches(labels.Set(p.Labels)) }), nil
}

// hasPort reports whether the pod has a port of this name.
func (p pod) hasPort(name string) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == name })
	})
}

func TestKubernetes_ManifestsFitTogether(t *testing.T) {
	t.Parallel()
	for _, name := range overlays {
		m := overlay(t, name)
		if len(m.pods()) != 3 {
			t.Errorf("%s: %d workloads, want the service, the migration and the pruning", name, len(m.pods()))
		}
		for _, fault := range m.faults() {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// Each check finds what it is for.
func TestKubernetes_FaultsOfManifestsAreFound(t *testing.T) {
	t.Parallel()
	text := rendered(t, "small")
	for _, broken := range []struct{ from, to, want string }{
		{"image: commerce:1.0.0", "image: commerce:latest", "no version"},
		{"image: commerce:1.0.0", "image: example.com:5000/commerce", "no version"},
		{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "restricted"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "writable root"},
		{"serviceAccountName: commerce\n", "serviceAccountName: default\n", "service account"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: true", "token"},
		{"        app.kubernetes.io/component: serve\n        app.kubernetes.io/name: commerce\n    spec", "        app.kubernetes.io/component: served\n        app.kubernetes.io/name: commerce\n    spec", "selects"},
		{"targetPort: http", "targetPort: public", "port public"},
		{"    - port: admin\n", "    - port: metrics\n", "port metrics"},
		{"            port: admin\n", "            port: metrics\n", "port metrics"},
		{`prometheus.io/port: "9090"`, `prometheus.io/port: "9091"`, "annotation"},
		{"terminationGracePeriodSeconds: 20", "terminationGracePeriodSeconds: 15", "grace"},
		{"preStop:", "postStart:", "preStop"},
		{"    kind: Deployment\n    name: commerce\n", "    kind: Deployment\n    name: shop\n", "scales"},
		{"value: /etc/commerce/JWT_SECRET", "value: /run/secrets/JWT_SECRET", "no Secret"},
		{"  DRAIN_DELAY: 4s", "  DRAIN_DELAY: 4s\n  DATABASE_REPLICA_URL: postgres://replica", "DATABASE_REPLICA_URL"},
		{"  DRAIN_DELAY: 4s", "  DRAIN_DELAY: 4s\n  JWT_SECRET: " + strings.Repeat("x", 32), "JWT_SECRET"},
	} {
		m, err := decode(replaced(t, text, broken.from, broken.to))
		if err != nil {
			t.Errorf("with %q: %v", broken.to, err)
			continue
		}
		if got := strings.Join(m.faults(), "\n"); !strings.Contains(got, broken.want) {
			t.Errorf("with %q: faults %q, want %q", broken.to, got, broken.want)
		}
	}
	for _, misspelt := range []struct{ from, to string }{
		{"maxSurge", "maxSurges"}, {"kind: PodDisruptionBudget", "kind: DisruptionBudget"}, {"periodSeconds: 10", "periodSeconds: ten"},
	} {
		if _, err := decode(replaced(t, text, misspelt.from, misspelt.to)); err == nil {
			t.Errorf("accepted %q", misspelt.to)
		}
	}
}
