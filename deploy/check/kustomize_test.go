package check_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// tree is an object of Kubernetes, or a part of it.
type tree = map[string]any

// kustomized returns the objects of a folder, as `kubectl kustomize` prints them.
func kustomized(t *testing.T, dir string) []tree {
	t.Helper()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, string(text))
}

// templates returns the template of the pods of an object, if it has one.
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

// patch changes an object by a JSON Patch, in YAML.
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

// named returns an object. The name of a ConfigMap also has a digest of its content.
func named(t *testing.T, objects []tree, kind, name string) tree {
	t.Helper()
	for _, object := range objects {
		is := object["metadata"].(tree)["name"].(string)
		if object["kind"] == kind && (is == name || kind == "ConfigMap" && strings.HasPrefix(is, name+"-")) {
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
