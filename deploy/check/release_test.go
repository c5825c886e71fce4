package check_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// release makes a release of the last commit for one platform, and returns what the script prints.
func release(t *testing.T, version, out, platform string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "deploy/release.sh"), version, out)
	cmd.Env = append(os.Environ(), "PLATFORMS="+platform)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func TestRelease_IsTheSameWhenItIsBuiltAgain(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	first, second := released(t), released(t)
	base := "commerce_1.0.0-test_linux_" + runtime.GOARCH
	assert.That(t, len(first) == 4 && bytes.Contains(first["SHA256SUMS"], []byte(base+".tar.gz")) &&
		bytes.Contains(first["SHA256SUMS"], []byte(base+".cdx.json")), "%d files with the checksums\n%s", len(first), first["SHA256SUMS"])
	for name, content := range first {
		assert.That(t, bytes.Equal(content, second[name]), "%s differs", name)
	}
	packed := unpacked(t, first[base+".tar.gz"])
	for _, name := range []string{"commerce", "LICENSES.txt", "README.md", "changelog.md"} {
		assert.That(t, len(packed[base+"/"+name]) > 0, "the archive does not have %s", name)
	}
	checkProgram(t, packed[base+"/commerce"], "1.0.0-test")
	for _, want := range []string{"github.com/gin-gonic/gin v1.", "Permission is hereby granted", "std 1.", "Redistribution and use", "SIL OPEN FONT LICENSE"} {
		assert.That(t, bytes.Contains(packed[base+"/LICENSES.txt"], []byte(want)), "LICENSES.txt does not have %q", want)
	}
	checkSBOM(t, first[base+".cdx.json"])
	client := unpacked(t, first["commerce-storefront_1.0.0-test.tgz"])
	for name, want := range map[string]string{
		"package.json": `"type": "module"`, "storefront.js": "export function createCart(", "storefront.d.ts": "export function createCart(", "openapi.d.ts": "AddRequest: {",
	} {
		assert.That(t, bytes.Contains(client["package/"+name], []byte(want)), "%s of the npm package does not have %s", name, want)
	}
	assert.That(t, !bytes.Contains(client["package/storefront.js"], []byte("import.meta")), "the npm package has import.meta, which React Native cannot read")
}

// released returns the files of a release that sha256sum has checked.
func released(t *testing.T) map[string][]byte {
	t.Helper()
	out := t.TempDir() // an empty folder may be replaced
	said, err := release(t, "1.0.0-test", out, "linux/"+runtime.GOARCH)
	assert.Require(t, err == nil, "%v: %s", err, said)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = out
	sums, err := check.CombinedOutput()
	assert.That(t, err == nil, "sha256sum: %v: %s", err, sums)
	files := map[string][]byte{}
	for _, f := range assert.Must(os.ReadDir(out))(t) {
		files[f.Name()] = assert.Must(os.ReadFile(filepath.Join(out, f.Name())))(t)
	}
	return files
}

func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(assert.Must(gzip.NewReader(bytes.NewReader(archive)))(t)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		assert.NoError(t, err)
		files[header.Name] = assert.Must(io.ReadAll(r))(t)
	}
}

// checkProgram checks that a program is static, stripped and stamped.
func checkProgram(t *testing.T, program []byte, version string) {
	t.Helper()
	binary := assert.Must(elf.NewFile(bytes.NewReader(program)))(t)
	for _, section := range []string{".symtab", ".debug_info", ".interp"} {
		assert.That(t, binary.Section(section) == nil, "the program has the section %s", section)
	}
	file := filepath.Join(t.TempDir(), "commerce")
	assert.NoError(t, os.WriteFile(file, program, 0o755))
	said, err := exec.CommandContext(t.Context(), file, "version").Output()
	assert.That(t, err == nil && strings.TrimSpace(string(said)) == version, "commerce version prints %q (%v)", said, err)
	home, err := os.UserHomeDir()
	assert.That(t, err == nil && !bytes.Contains(program, []byte(home+"/")), "the program has paths of this machine's user (%v)", err)
}

// checkSBOM compares the components with the modules that docs/licenses.md lists for the
// program, which another test compares with the program's imports.
func checkSBOM(t *testing.T, text []byte) {
	t.Helper()
	var bom cyclonedx.BOM
	assert.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.Name)
		assert.That(t, c.Version != "" && c.PackageURL == "pkg:golang/"+c.Name+"@"+c.Version && c.Licenses != nil && len(*c.Licenses) > 0,
			"component %+v", c)
	}
	_, section, _ := strings.Cut(read(t, "docs/licenses.md"), "\n## In the binary\n")
	section, _, _ = strings.Cut(section, "\n## ")
	want := []string{"std"}
	for _, name := range regexp.MustCompile("(?m)^  `([^`]+)`").FindAllStringSubmatch(section, -1) {
		want = append(want, name[1])
	}
	assert.Equal(t, slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)), "components")
	serial := regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	assert.That(t, bom.SpecVersion == cyclonedx.SpecVersion1_6 && serial.MatchString(bom.SerialNumber),
		"version %v, serial number %s", bom.SpecVersion, bom.SerialNumber)
}

func TestRelease_RefusesAVersionThatIsNotPrepared(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "release")
	for version, want := range map[string]string{
		"9.9.9":    "docs/changelog.md",
		"":         `version ""`,
		"../other": `version "../other"`,
		"1 0":      `version "1 0"`,
	} {
		said, err := release(t, version, out, "linux/no-such-architecture")
		assert.That(t, err != nil && strings.Contains(said, want), "version %q: %v, %s", version, err, said)
	}
	_, err := os.Stat(out)
	assert.That(t, errors.Is(err, os.ErrNotExist), "a refused release left %s: %v", out, err)
}

func TestRelease_ThatFailsLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	old := filepath.Join(out, "SHA256SUMS")
	assert.NoError(t, os.WriteFile(old, []byte("old"), 0o644))
	said, err := release(t, "test", out, "linux/no-such-architecture")
	assert.That(t, err != nil && strings.Contains(said, "no-such-architecture"), "%v: %s", err, said)
	content, err := os.ReadFile(old)
	assert.That(t, string(content) == "old", "the old release: %q, %v", content, err)
	left := assert.Must(filepath.Glob(filepath.Join(filepath.Dir(out), ".release-*")))(t)
	assert.That(t, len(left) == 0, "it left %v", left)
}

func TestRelease_ReplacesOnlyARelease(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	kept := filepath.Join(out, "thesis.txt")
	assert.NoError(t, os.WriteFile(kept, nil, 0o644))
	said, err := release(t, "test", out, "linux/"+runtime.GOARCH)
	assert.That(t, err != nil && strings.Contains(said, out+" is not empty"), "%v: %s", err, said)
	_, err = os.Stat(kept)
	assert.That(t, err == nil, "a file that is no release's is gone: %v", err)
}

func TestSign_IsVerifiedAsDocumented(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "docs/changelog.md"), "<!-- run-by: TestSign_IsVerifiedAsDocumented -->\n```sh\n")
	verify, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	sign := "make -C '" + assert.Must(filepath.Abs(root))(t) + "' sign OUT=\"$PWD\" SIGNING_KEY=\"$PWD/key\"\n"
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
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", step.script)
		cmd.Dir = dir
		said, err := cmd.CombinedOutput()
		assert.That(t, (err == nil) == step.ok, "%s: %v: %s", step.script, err, said)
	}
}
