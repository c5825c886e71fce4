package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// licenses are those of a program's modules, and of what else it embeds.
type licenses struct {
	names map[string]string // SPDX identifiers by the module's path, as in docs/licenses.md
	texts []byte            // all texts, which must accompany the program
}

// listed returns the licenses that docs/licenses.md, or a section of it, lists, by name. A line such
// as "- MIT:" is before the names, each on a line of its own.
func listed(page string) map[string]string {
	names, licenses := map[string]string{}, ""
	for line := range strings.Lines(page) {
		if group, ok := strings.CutPrefix(line, "- "); ok {
			licenses, _, _ = strings.Cut(group, ":")
		} else if name, ok := strings.CutPrefix(line, "  `"); ok {
			name, _, _ = strings.Cut(name, "`")
			names[name] = licenses
		}
	}
	return names
}

// embedded are the folders of the works of others that the program embeds, with their licenses:
// fonts, and the viewer of the API reference.
var embedded = []string{"docs/playground/fonts", "docs/reference"}

// licenses collects the license texts of a program's modules, and of what else it embeds.
func (s source) licenses(ctx context.Context, modules []*debug.Module) (licenses, error) {
	page, err := os.ReadFile(filepath.Join(s.dir, "docs/licenses.md"))
	if err != nil {
		return licenses{}, err
	}
	l := licenses{names: listed(string(page))}
	l.names["std"] = "BSD-3-Clause"
	dirs, err := s.folders(ctx, modules)
	if err != nil {
		return licenses{}, err
	}
	for _, m := range modules {
		if l.names[m.Path] == "" {
			return licenses{}, fmt.Errorf("%s is not in docs/licenses.md", m.Path)
		}
		err = errors.Join(err, l.add(m.Path+" "+m.Version, dirs[m.Path]))
	}
	for _, folder := range embedded {
		err = errors.Join(err, l.add(folder, filepath.Join(s.dir, folder)))
	}
	return l, err
}

// folders returns the folders of modules, by path.
func (s source) folders(ctx context.Context, modules []*debug.Module) (map[string]string, error) {
	root, err := output(ctx, s.dir, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{"std": strings.TrimSpace(root)}
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for _, m := range modules[1:] { // the first is std
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

// add adds the legal files of a folder, each after a line that says whose it is.
func (l *licenses) add(whose, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("license of %s: %w", whose, err)
	}
	before := len(l.texts)
	for _, f := range files {
		if f.IsDir() || !legal.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		l.texts = fmt.Appendf(l.texts, "%s, %s\n\n%s\n\n%s\n\n", whose, f.Name(), bytes.TrimSpace(text), strings.Repeat("-", 72))
	}
	if len(l.texts) == before {
		return fmt.Errorf("license of %s: no license file in %s", whose, dir)
	}
	return nil
}
