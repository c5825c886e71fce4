package main

import (
	"regexp"
	"strings"
	"testing"

	"commerce/cmd/internal/cli"
)

// `commerce serve` accepts the settings that the pages show as files. It reads them from the
// environment, so this test is not parallel.
func TestSettings_OfThePagesAreAccepted(t *testing.T) {
	files := regexp.MustCompile("(?ms)^ *```ini\n(.*?)^ *```$")
	for page, want := range map[string]int{"docs/deploy.md": 1, "docs/operations.md": 2, "docs/citus.md": 1} {
		found := 0
		for _, file := range files.FindAllStringSubmatch(source(t, page), -1) {
			if strings.Contains(file[1], "[Service]") {
				continue // for systemd
			}
			found++
			t.Run(page, func(t *testing.T) {
				if fault := faultOf(t, file[1]); fault != nil {
					t.Errorf("%s: %v", file[1], fault)
				}
			})
		}
		if found != want {
			t.Errorf("%s has %d files with settings, want %d", page, found, want)
		}
	}
	if fault := faultOf(t, "TRUSTED_PROXIES=nonsense"); fault == nil {
		t.Error("no fault in a wrong setting")
	}
}

// faultOf returns what is wrong with the lines of a file with settings, next to those that every
// service needs.
func faultOf(t *testing.T, file string) error {
	t.Helper()
	settings := "DATABASE_URL=postgres://localhost/commerce\nREDIS_URL=redis://localhost\nJWT_SECRET=" + strings.Repeat("s", 32) + "\n" + file
	for line := range strings.Lines(settings) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(name, "#") {
			t.Setenv(name, value)
		}
	}
	return cli.Read(&serveCommand{}, func(cli.Setting) *string { return nil })
}
