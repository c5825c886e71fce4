package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// licenses are those of a program's modules, and of what else it embeds.
type licenses struct {
	names map[string]string // SPDX identifiers by the module's path, as in docs/licenses.md
	texts string            // a file with all texts, which must accompany the program
}

// row is a line of a table in docs/licenses.md.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|$")

// embedded are the folders of the works of others that the program embeds, with their licenses:
// fonts, and the viewer of the API reference.
var embedded = []string{"docs/playground/fonts", "docs/reference"}

// licenses collects the license texts of a program's modules, and of what else it embeds, in one
// file.
func (s source) licenses(ctx context.Context, p platform, modules []*debug.Module) (licenses, error) {
	page, err := os.ReadFile(filepath.Join(s.dir, "docs/licenses.md"))
	if err != nil {
		return licenses{}, err
	}
	l := licenses{names: map[string]string{"std": "BSD-3-Clause"}, texts: filepath.Join(s.dir, "bin", "LICENSES_"+p.String()+".txt")}
	for _, found := range row.FindAllStringSubmatch(string(page), -1) {
		l.names[found[1]] = found[2]
	}
	dirs, err := s.folders(ctx, modules)
	if err != nil {
		return licenses{}, err
	}
	file, err := os.Create(l.texts)
	if err != nil {
		return licenses{}, err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	for _, m := range modules {
		if l.names[m.Path] == "" {
			return licenses{}, fmt.Errorf("%s is not in docs/licenses.md", m.Path)
		}
		if err := copyLicense(w, m.Path+" "+m.Version, dirs[m.Path]); err != nil {
			return licenses{}, fmt.Errorf("license of %s: %w", m.Path, err)
		}
	}
	for _, folder := range embedded {
		if err := copyLicense(w, folder, filepath.Join(s.dir, folder)); err != nil {
			return licenses{}, fmt.Errorf("license of %s: %w", folder, err)
		}
	}
	return l, errors.Join(w.Flush(), file.Close())
}

// folders returns the folders of modules, by path.
func (s source) folders(ctx context.Context, modules []*debug.Module) (map[string]string, error) {
	dirs := map[string]string{}
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for _, m := range modules {
		if m.Path == "std" {
			root, err := output(ctx, s.dir, nil, "go", "env", "GOROOT")
			if err != nil {
				return nil, err
			}
			dirs[m.Path] = strings.TrimSpace(root)
			continue
		}
		args = append(args, m.Path)
	}
	list, err := output(ctx, s.dir, nil, "go", args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[path] = dir
	}
	return dirs, nil
}

// legal matches the names of files that must be passed on with a copy of their folder.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice|patents)([.-].*)?$`)

// copyLicense writes the legal files of a folder, each after a line that says whose it is.
func copyLicense(w io.Writer, whose, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, f := range files {
		if f.IsDir() || !legal.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		found = true
		if _, err := fmt.Fprintf(w, "%s, %s\n\n%s\n\n%s\n\n", whose, f.Name(), strings.TrimSpace(string(text)), strings.Repeat("-", 72)); err != nil {
			return err
		}
	}
	if !found {
		return errors.New("no license file in " + dir)
	}
	return nil
}
