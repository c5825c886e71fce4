package check_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// kustomization has the members that deploy/kubernetes uses. Others are errors.
type kustomization struct {
	APIVersion, Kind, Namespace string
	Resources                   []string
	Labels                      []struct {
		Pairs            map[string]string
		IncludeTemplates bool
	}
	ConfigMapGenerator []struct {
		Name, Behavior string
		Envs           []string
	}
	Images  []struct{ Name, NewName, NewTag string }
	Patches []struct {
		Target struct{ Kind, Name string }
		Patch  string
	}
}

type tree = map[string]any

// kustomized returns the objects of a folder, as `kubectl kustomize` prints them. Only the digest in
// the name of a ConfigMap, and the labels of a CronJob's jobs, are missing.
func kustomized(t *testing.T, dir string) (objects []tree) {
	t.Helper()
	var k kustomization
	strictly(t, documents(t, read(t, filepath.Join(dir, "kustomization.yaml")))[0], &k)
	for _, resource := range k.Resources {
		if name := filepath.Join(dir, resource); path.Ext(resource) == ".yaml" {
			objects = append(objects, documents(t, read(t, name))...)
		} else {
			objects = append(objects, kustomized(t, name)...)
		}
	}
	for _, generator := range k.ConfigMapGenerator {
		data := tree{}
		if generator.Behavior == "merge" {
			data = named(t, objects, "ConfigMap", generator.Name)["data"].(tree)
		} else {
			objects = append(objects, tree{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": generator.Name}, "data": data})
		}
		for _, file := range generator.Envs {
			for line := range strings.Lines(read(t, filepath.Join(dir, file))) {
				if name, value, is := strings.Cut(strings.TrimSpace(line), "="); is && !strings.HasPrefix(name, "#") {
					data[name] = value
				}
			}
		}
	}
	for _, object := range objects {
		k.transform(object)
	}
	for _, p := range k.Patches {
		patch(t, named(t, objects, p.Target.Kind, p.Target.Name), p.Patch)
	}
	return objects
}

// transform sets the namespace, the labels and the images of an object.
func (k kustomization) transform(object tree) {
	metadata := object["metadata"].(tree)
	if k.Namespace != "" && object["kind"] != "Namespace" {
		metadata["namespace"] = k.Namespace
	}
	for _, l := range k.Labels {
		label(metadata, l.Pairs)
		for _, template := range templates(object) {
			if l.IncludeTemplates {
				label(template["metadata"].(tree), l.Pairs)
			}
		}
	}
	for _, template := range templates(object) {
		for _, container := range template["spec"].(tree)["containers"].([]any) {
			for _, image := range k.Images {
				if container := container.(tree); container["image"] == image.Name {
					container["image"] = image.NewName + ":" + image.NewTag
				}
			}
		}
	}
}

func label(metadata tree, pairs map[string]string) {
	labels, _ := metadata["labels"].(tree)
	if labels == nil {
		labels = tree{}
		metadata["labels"] = labels
	}
	for name, value := range pairs {
		labels[name] = value
	}
}

func templates(object tree) []tree {
	spec, _ := object["spec"].(tree)
	if job, is := spec["jobTemplate"].(tree); is {
		spec, _ = job["spec"].(tree)
	}
	if template, is := spec["template"].(tree); is {
		return []tree{template}
	}
	return nil
}

func patch(t *testing.T, object tree, text string) {
	t.Helper()
	var operations any
	invalid := yaml.Unmarshal([]byte(text), &operations)
	encoded, _ := json.Marshal(operations) // what is read from YAML
	before, _ := json.Marshal(object)
	decoded, err := jsonpatch.DecodePatch(encoded)
	after, failed := decoded.Apply(before)
	if err := errors.Join(invalid, err, failed, json.Unmarshal(after, &object)); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
}

func named(t *testing.T, objects []tree, kind, name string) tree {
	t.Helper()
	for _, object := range objects {
		if object["kind"] == kind && object["metadata"].(tree)["name"] == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// documents returns the documents of a YAML file. Repeated members are errors.
func documents(t *testing.T, text string) (all []tree) {
	t.Helper()
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document tree
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(fmt.Errorf("%w in:\n%s", err, text))
		}
		all = append(all, document)
	}
}

// strictly converts a document. Members that into does not have are errors.
func strictly(t *testing.T, document tree, into any) {
	t.Helper()
	text, err := json.Marshal(document)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := errors.Join(err, decoder.Decode(into)); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
}
