package observe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"commerce/deploy/inspect"
	"commerce/deploy/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wrong is the worst level of each code that has findings other than OK.
type wrong map[string]inspect.Level

// findings observes and judges servers.
func findings(t *testing.T, c observe.Config, e inspect.Expect) []inspect.Finding {
	t.Helper()
	began := time.Now()
	seen, err := observe.Servers(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("took %v", took)
	}
	return inspect.Judge(seen, e)
}

// wantWrong checks that exactly these findings are not OK.
func wantWrong(t *testing.T, what string, got []inspect.Finding, want wrong) {
	t.Helper()
	is := wrong{}
	for _, f := range got { // the worst first
		if _, known := is[f.Code]; !known && f.Level != inspect.OK {
			is[f.Code] = f.Level
		}
		if (f.Setting == "") != (f.Level == inspect.OK) || f.Message == "" || f.Server == "" {
			t.Errorf("%s: %+v", what, f)
		}
	}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("%s (-want +got):\n%s%+v", what, diff, got)
	}
}

// wantOK checks that a check was made and found nothing wrong.
func wantOK(t *testing.T, got []inspect.Finding, codes ...string) {
	t.Helper()
	is := map[string]inspect.Level{}
	for _, f := range got {
		if _, known := is[f.Code]; !known {
			is[f.Code] = f.Level
		}
	}
	for _, code := range codes {
		if is[code] != inspect.OK {
			t.Errorf("%s is %q, want ok", code, is[code])
		}
	}
}
