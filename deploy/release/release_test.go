package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		noError(t, err)
		return value
	}
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error with %q", err, text)
	}
}

func TestRelease_IsTheSameWhenItIsBuiltAgain(t *testing.T) {
	t.Parallel()
	first, second := made(t, "1.0.0-test"), made(t, "1.0.0-test")
	if len(first) != 3 {
		t.Fatalf("a release for one platform has %d files, want an archive, an SBOM and checksums", len(first))
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs", name)
		}
	}

	base := "commerce_1.0.0-test_linux_" + runtime.GOARCH
	packed := unpacked(t, first[base+".tar.gz"])
	program := filepath.Join(t.TempDir(), "commerce")
	noError(t, os.WriteFile(program, packed[base+"/commerce"], 0o755))
	checkProgram(t, program, "1.0.0-test")
	checkLicenses(t, string(packed[base+"/LICENSES.txt"]))
	checkSBOM(t, first[base+".cdx.json"])

	delete(first, base+".tar.gz")
	for name := range first {
		if name != "SHA256SUMS" && !strings.Contains(string(first["SHA256SUMS"]), "  "+name+"\n") {
			t.Errorf("SHA256SUMS does not have %s", name)
		}
	}
}

// made returns the files of a release of HEAD that sha256sum has checked.
func made(t *testing.T, version string) map[string][]byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "release")
	r := release{repository: "../..", commit: "HEAD", version: version, out: out, platforms: []platform{{"linux", runtime.GOARCH}}}
	noError(t, r.make(t.Context()))
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = out
	if said, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v: %s", err, said)
	}
	files := map[string][]byte{}
	names := must(os.ReadDir(out))(t)
	for _, f := range names {
		files[f.Name()] = must(os.ReadFile(filepath.Join(out, f.Name())))(t)
	}
	return files
}

func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	compressed := must(gzip.NewReader(bytes.NewReader(archive)))(t)
	files := map[string][]byte{}
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		noError(t, err)
		files[header.Name] = must(io.ReadAll(r))(t)
	}
}

// checkProgram checks that a program is static, stripped and stamped.
func checkProgram(t *testing.T, program, version string) {
	t.Helper()
	binary := must(elf.Open(program))(t)
	defer binary.Close()
	for _, section := range []string{".symtab", ".debug_info", ".interp"} {
		if binary.Section(section) != nil {
			t.Errorf("the program has the section %s", section)
		}
	}
	said, err := exec.CommandContext(t.Context(), program, "version").Output()
	if err != nil || strings.TrimSpace(string(said)) != version {
		t.Errorf("commerce version prints %q (%v), want %s", said, err, version)
	}
	content := must(os.ReadFile(program))(t)
	if home, err := os.UserHomeDir(); err != nil || bytes.Contains(content, []byte(home+"/")) {
		t.Errorf("the program has paths of this machine's user (%v)", err)
	}
}

func checkLicenses(t *testing.T, texts string) {
	t.Helper()
	for _, want := range []string{"github.com/gin-gonic/gin v1.", "Permission is hereby granted", "std 1.", "Redistribution and use", "SIL OPEN FONT LICENSE"} {
		if !strings.Contains(texts, want) {
			t.Errorf("LICENSES.txt does not have %q", want)
		}
	}
}

// checkSBOM compares the components with the modules that docs/licenses.md lists for the
// program, which another test compares with the program's imports.
func checkSBOM(t *testing.T, text []byte) {
	t.Helper()
	var bom cyclonedx.BOM
	noError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.Name)
		if c.Version == "" || c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version || c.Licenses == nil {
			t.Errorf("component %s: version %q, purl %q, licenses %v", c.Name, c.Version, c.PackageURL, c.Licenses)
		}
	}
	page := must(os.ReadFile("../../docs/licenses.md"))(t)
	_, section, _ := strings.Cut(string(page), "\n## In the binary\n")
	section, _, _ = strings.Cut(section, "\n## ")
	want := append(slices.Collect(maps.Keys(listed(section))), "std")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components (-licenses.md +SBOM):\n%s", diff)
	}
	var raw struct{ SpecVersion, SerialNumber string }
	if err := json.Unmarshal(text, &raw); err != nil || raw.SpecVersion != "1.6" ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(raw.SerialNumber) {
		t.Errorf("SBOM begins with %+v (%v)", raw, err)
	}
}

func TestRelease_RefusesAVersionThatIsNotPrepared(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "release")
	for version, want := range map[string]string{
		"9.9.9":    "docs/changelog.md",
		"":         "version \"\"",
		"../other": "version \"../other\"",
		"1 0":      "version \"1 0\"",
	} {
		r := release{repository: "../..", commit: "HEAD", version: version, out: out}
		wantError(t, r.make(t.Context()), want)
	}
	r := release{repository: ".", commit: "no-such-commit", version: "test", out: out}
	wantError(t, r.make(t.Context()), "no-such-commit")
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused release left %s: %v", out, err)
	}
}

func TestRelease_ThatFailsLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "release")
	old := filepath.Join(out, "SHA256SUMS")
	noError(t, errors.Join(os.Mkdir(out, 0o755), os.WriteFile(old, []byte("old"), 0o644)))
	r := release{repository: "../..", commit: "HEAD", version: "test", out: out, platforms: []platform{{"linux", "no-such-architecture"}}}
	wantError(t, r.make(t.Context()), "no-such-architecture")
	if content, err := os.ReadFile(old); err != nil || string(content) != "old" {
		t.Errorf("the old release: %q, %v", content, err)
	}
}

func TestRelease_ReplacesOnlyARelease(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	kept := filepath.Join(out, "thesis.txt")
	noError(t, os.WriteFile(kept, nil, 0o644))
	r := release{repository: "../..", commit: "HEAD", version: "test", out: out} // for no platform
	wantError(t, r.make(t.Context()), out+" is not empty")
	if _, err := os.Stat(kept); err != nil {
		t.Fatalf("a file that is no release's is gone: %v", err)
	}
	noError(t, os.Remove(kept))
	if err := r.make(t.Context()); err != nil {
		t.Errorf("into an empty folder: %v", err)
	}
}

func TestSign_IsVerifiedAsDocumented(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/changelog.md"))(t)
	_, rest, _ := strings.Cut(string(page), "<!-- run-by: TestSign_IsVerifiedAsDocumented -->\n```sh\n")
	verify, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	run := func(script string) error {
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		t.Logf("%s", said)
		return err
	}
	repository := must(filepath.Abs("../.."))(t)
	sign := "make -C '" + repository + "' sign OUT=\"$PWD\" SIGNING_KEY=\"$PWD/key\"\n"
	for _, step := range []struct {
		script string
		ok     bool
	}{
		{"echo program >program; sha256sum program >SHA256SUMS; ssh-keygen -q -t ed25519 -N '' -f key\n" +
			"echo \"releases namespaces=\\\"commerce\\\" $(cat key.pub)\" >allowed_signers; " + sign + verify, true},
		{"echo other >program; " + verify, false},
		{"sha256sum program >SHA256SUMS; " + verify, false},
		{"rm SHA256SUMS.sig key key.pub; ssh-keygen -q -t ed25519 -N '' -f key; " + sign + verify, false},
	} {
		if err := run(step.script); (err == nil) != step.ok {
			t.Errorf("%s: %v", step.script, err)
		}
	}
}
