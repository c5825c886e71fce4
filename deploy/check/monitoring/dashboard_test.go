package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"commerce/deploy/assert"
)

type dashboard struct {
	Panels []panel // those of collapsed rows too
}

type panel struct {
	Type        string // "row": a heading
	Collapsed   bool   // of a row
	Panels      []panel
	Title       string
	Links       []struct{ Title, URL string }
	Description string
	Targets     []target
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
}

type target struct {
	RefID, Expr string
}

func readDashboard(t testing.TB) dashboard {
	t.Helper()
	var d dashboard
	text := assert.Must(os.ReadFile(filepath.Join(root, "deploy/grafana/dashboards/commerce.json")))(t)
	assert.NoError(t, json.Unmarshal(text, &d))
	for at := 0; at < len(d.Panels); at++ {
		d.Panels = slices.Insert(d.Panels, at+1, d.Panels[at].Panels...)
	}
	return d
}

// withoutVariables replaces what Grafana replaces before it sends a query.
func withoutVariables(query string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", "commerce", "$instance", ".*").Replace(query)
}

// A panel that shows nothing while all is well looks broken, unless its description says why.
func TestDashboard_ShowsDataOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	s := staging{}.open(t)
	s.always(func() {
		for _, c := range everyCall(s.apiToken) {
			s.send(c)
		}
	})
	for _, p := range readDashboard(t).Panels {
		assert.That(t, p.Type == "row" || !(p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0),
			"%q lacks a title, a description, a unit or a query", p.Title)
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

// Each query of an open row runs at every visit. All others wait for whoever looks for them.
func TestDashboard_OpensTwoRowsAndLinksToTheRunbook(t *testing.T) {
	t.Parallel()
	rows, linked := 0, map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			rows++
			assert.That(t, p.Collapsed == (rows > 2), "row %d, %s, is collapsed: %v", rows, p.Title, p.Collapsed)
		}
		for _, link := range p.Links {
			name := strings.TrimPrefix(link.Title, "Runbook: ")
			assert.That(t, strings.HasSuffix(link.URL, "/docs/runbook.md#"+strings.ToLower(name)), "%s: %+v", p.Title, link)
			linked[name] = true
		}
	}
	for _, name := range alertNames(t) {
		assert.That(t, linked[name], "no panel links to the entry of %s", name)
		delete(linked, name)
	}
	assert.Equal(t, len(linked), 0, "links to alerts that do not exist: %v", linked)
}

// Grafana reads these files at its start. The paths are those in its container.
func TestGrafana_ProvisionsTheDashboardAndItsSource(t *testing.T) {
	t.Parallel()
	read := func(name string, into any) {
		text := assert.Must(os.ReadFile(filepath.Join(root, "deploy/grafana/provisioning", name)))(t)
		decoder := yaml.NewDecoder(strings.NewReader(string(text)))
		decoder.KnownFields(true)
		err := decoder.Decode(into)
		assert.Require(t, err == nil, "%s: %v", name, err)
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
	assert.That(t, len(sources.Datasources) == 1 && sources.Datasources[0].Type == "prometheus" && sources.Datasources[0].URL == "http://prometheus:9090",
		"data sources: %+v", sources)
	var providers struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type, Folder string
			Options            struct{ Path string }
		}
	}
	read("dashboards/commerce.yml", &providers)
	assert.That(t, len(providers.Providers) == 1 && providers.Providers[0].Type == "file" && providers.Providers[0].Options.Path == "/var/lib/grafana/dashboards",
		"providers: %+v", providers)
}
