package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

// What went wrong is printed last, however a package ends.
func TestResult_NamesAndShowsWhatFailed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events string
		want   string // of the output, after the verdicts of packages
	}{
		"a test fails": {
			`{"Action":"run","Package":"commerce/a","Test":"TestA"}
			{"Action":"output","Package":"commerce/a","Test":"TestA","Output":"=== RUN   TestA\n"}
			{"Action":"output","Package":"commerce/a","Test":"TestA","Output":"    a_test.go:5: no\n"}
			{"Action":"fail","Package":"commerce/a","Test":"TestA"}
			{"Action":"output","Package":"commerce/a","Output":"FAIL\n"}
			{"Action":"fail","Package":"commerce/a"}`,
			"\n=== a TestA\n    a_test.go:5: no\n\nFAIL  a TestA\n",
		},
		"a signal, a panic or a timeout ends the package": {
			`{"Action":"run","Package":"commerce/a","Test":"TestA"}
			{"Action":"output","Package":"commerce/a","Test":"TestB","Output":"=== RUN   TestB\n"}
			{"Action":"output","Package":"commerce/a","Test":"TestB","Output":"=== PAUSE TestB\n"}
			{"Action":"output","Package":"commerce/a","Test":"TestA","Output":"signal: killed\n"}
			{"Action":"output","Package":"commerce/a","Output":"FAIL\tcommerce/a\t0.014s\n"}
			{"Action":"fail","Package":"commerce/a"}`,
			"\n=== a TestA\nsignal: killed\n\nFAIL  a TestA\n",
		},
		"a package ends without a word": {
			`{"Action":"output","Package":"commerce/a","Output":"exit status 1\n"}
			{"Action":"fail","Package":"commerce/a"}`,
			"\nFAIL  a\n",
		},
		"a package does not compile": {
			`{"Action":"build-output","ImportPath":"commerce/a [commerce/a.test]","Output":"a_test.go:5: undefined: x\n"}
			{"Action":"build-fail","ImportPath":"commerce/a [commerce/a.test]"}
			{"Action":"fail","Package":"commerce/a"}`,
			"\n=== a [commerce/a.test]\na_test.go:5: undefined: x\n\nFAIL  a\nFAIL  a [commerce/a.test]\n",
		},
	} {
		var out strings.Builder
		p := newProgress(&out, 1)
		p.add(event{Action: "start", Package: "commerce/a"})
		for line := range strings.Lines(test.events) {
			var e event
			assert.NoError(t, json.Unmarshal([]byte(line), &e))
			p.add(e)
		}
		err := p.result(errors.New("exit status 1"))
		_, got, _ := strings.Cut(out.String(), "\n") // after the package's verdict
		assert.That(t, err != nil && got == test.want, "%s: %v, %q, want %q", name, err, got, test.want)
	}
}
