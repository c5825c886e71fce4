package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// dashboard is the part of Grafana's format that the tests read.
type dashboard struct {
	UID        string
	Title      string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID          int
	Type        string // "row": a heading
	Title       string
	Description string
	GridPos     gridPos
	Datasource  struct{ Type, UID string }
	Targets     []target
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
}

// gridPos is the place of a panel. Rows are 24 wide.
type gridPos struct{ X, Y, W, H int }

type target struct {
	RefID        string
	Expr         string
	LegendFormat string
}

func readDashboard(t testing.TB) dashboard {
	t.Helper()
	var d dashboard
	text := must(os.ReadFile(filepath.Join(root, "deploy/grafana/dashboards/commerce.json")))(t)
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// withoutVariables replaces what Grafana replaces before it sends a query.
func withoutVariables(query string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", "commerce", "$instance", ".*").Replace(query)
}

func TestDashboard_IsComplete(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	for _, fault := range d.faults() {
		t.Error(fault)
	}
	if len(d.Panels) < 20 || d.UID == "" || d.Title == "" {
		t.Errorf("%d panels, uid %q, title %q", len(d.Panels), d.UID, d.Title)
	}
}

func TestFaultsOfDashboard_FindsWhatAPanelLacks(t *testing.T) {
	t.Parallel()
	d := dashboard{Panels: []panel{
		{ID: 1, Title: "A", Type: "timeseries", GridPos: gridPos{0, 0, 12, 8}, Targets: []target{{"A", `sum by (kind) (x)`, "{{route}}"}}},
		{ID: 1, Type: "stat", Description: "b", GridPos: gridPos{11, 7, 14, 8}},
	}}
	want := []string{
		"A: no description", "A: no unit", "A: its data source is not the variable of the dashboard",
		"A: its query does not filter by $job", "A: its legend names route, which its query does not return",
		": no title", ": no unit", ": its data source is not the variable of the dashboard", ": no queries",
		": its id is not unique", ": wider than the dashboard", ": overlaps A",
	}
	if diff := cmp.Diff(want, d.faults()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// faults returns what is wrong with the panels.
func (d dashboard) faults() (faults []string) {
	for i, p := range d.Panels {
		faults = append(faults, p.faults()...)
		if slices.ContainsFunc(d.Panels[:i], func(other panel) bool { return other.ID == p.ID }) {
			faults = append(faults, p.Title+": its id is not unique")
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			faults = append(faults, p.Title+": wider than the dashboard")
		}
		for _, other := range d.Panels[:i] {
			if p.GridPos.overlaps(other.GridPos) {
				faults = append(faults, fmt.Sprintf("%s: overlaps %s", p.Title, other.Title))
			}
		}
	}
	return faults
}

func (a gridPos) overlaps(b gridPos) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func (p panel) faults() (faults []string) {
	fault := func(text string) { faults = append(faults, p.Title+": "+text) }
	if p.Title == "" {
		fault("no title")
	}
	if p.Type == "row" {
		return faults
	}
	if p.Description == "" {
		fault("no description")
	}
	if p.FieldConfig.Defaults.Unit == "" {
		fault("no unit")
	}
	if p.Datasource.UID != "${datasource}" {
		fault("its data source is not the variable of the dashboard")
	}
	if len(p.Targets) == 0 {
		fault("no queries")
	}
	for _, target := range p.Targets {
		if !strings.Contains(target.Expr, `job="$job"`) {
			fault("its query does not filter by $job")
		}
		expr, err := promql().ParseExpr(withoutVariables(target.Expr))
		if err != nil {
			fault(err.Error())
			continue
		}
		for _, match := range regexp.MustCompile(`{{\s*(\w+)\s*}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
			if returned := labelsOf(expr); returned != nil && !slices.Contains(returned, match[1]) {
				fault("its legend names " + match[1] + ", which its query does not return")
			}
		}
	}
	return faults
}

// A panel that shows nothing while all is well looks broken, unless its description says why.
func TestDashboard_ShowsDataOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	s := staging{}.open(t)
	s.always(func(context.Context) {
		for _, c := range everyCall(s.apiToken) {
			c.send(s.client, s.instances[0].url())
		}
	})
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" || saysWhyEmpty.MatchString(p.Description) {
			continue
		}
		wait(t, "the panel "+p.Title+" shows data", func() string {
			for _, target := range p.Targets {
				query := strings.ReplaceAll(target.Expr, "$__rate_interval", "10s")
				if s.prometheus.values(t, withoutVariables(query)) > 0 {
					return ""
				}
			}
			return "all queries return nothing"
		})
	}
}

var saysWhyEmpty = regexp.MustCompile(`Empty |No data: | no line\b| only if `)

// Grafana reads these files at its start. The paths are those in its container.
func TestGrafana_ProvisionsTheDashboardAndItsSource(t *testing.T) {
	t.Parallel()
	read := func(name string, into any) {
		text := must(os.ReadFile(filepath.Join(root, "deploy/grafana/provisioning", name)))(t)
		decoder := yaml.NewDecoder(strings.NewReader(string(text)))
		decoder.KnownFields(true)
		if err := decoder.Decode(into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, UID, Access, URL string
			IsDefault                    bool           `yaml:"isDefault"`
			JSONData                     map[string]any `yaml:"jsonData"`
		}
	}
	read("datasources/prometheus.yml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" || sources.Datasources[0].URL != "http://prometheus:9090" {
		t.Errorf("data sources: %+v", sources)
	}
	var providers struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type, Folder string
			Options            struct{ Path string }
		}
	}
	read("dashboards/commerce.yml", &providers)
	if len(providers.Providers) != 1 || providers.Providers[0].Type != "file" || providers.Providers[0].Options.Path != "/var/lib/grafana/dashboards" {
		t.Errorf("providers: %+v", providers)
	}
}
