// Command release builds the service for several platforms from a commit of this
// repository. For each platform, it writes an archive with the program and the license texts
// of its modules, and a list of these modules in the CycloneDX format (an SBOM). The file
// SHA256SUMS has the checksums of all files.
//
// The files depend only on the commit, the version, and the version of Go, so anyone can
// build them again and compare.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := release{platforms: []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}}
	flag.StringVar(&r.repository, "repository", ".", "`folder` of the repository")
	flag.StringVar(&r.commit, "commit", "HEAD", "`commit` to build")
	flag.StringVar(&r.version, "version", "", "`version` of the release: X.Y.Z from docs/changelog.md, or any other name for a snapshot")
	flag.StringVar(&r.out, "out", "bin/release", "`folder` for the files; a release in it is replaced")
	flag.Parse()
	if err := r.make(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what to build.
type release struct {
	repository, commit, version, out string
	platforms                        []platform
}

// platform is an operating system and an architecture, as Go names them.
type platform struct{ system, architecture string }

func (p platform) String() string { return p.system + "_" + p.architecture }

// make builds everything in a new folder and moves it to the release's folder at the end, so
// that a failure leaves that as it was.
func (r release) make(ctx context.Context) error {
	if err := mayReplace(r.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	tree, err := checkOut(ctx, r.repository, r.commit, filepath.Join(work, "commerce"))
	if err != nil {
		return err
	}
	if err := tree.mayBecome(r.version); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.out), 0o755); err != nil {
		return err
	}
	files, err := os.MkdirTemp(filepath.Dir(r.out), ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	for _, p := range r.platforms {
		fmt.Println("building", p)
		if err := r.build(ctx, tree, p, files); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := writeChecksums(files); err != nil {
		return err
	}
	return replace(r.out, files)
}

// build writes the files of one platform.
func (r release) build(ctx context.Context, tree source, p platform, files string) error {
	program, err := tree.compile(ctx, r.version, p)
	if err != nil {
		return err
	}
	modules, err := modulesIn(program)
	if err != nil {
		return err
	}
	licenses, err := tree.licenses(ctx, modules)
	if err != nil {
		return err
	}
	name := "commerce_" + r.version + "_" + p.String()
	if err := writeSBOM(filepath.Join(files, name+".cdx.json"), program, r.version, tree, modules, licenses); err != nil {
		return err
	}
	entries := []entry{{"commerce", 0o755, program}, {"LICENSES.txt", 0o644, licenses.texts}}
	for _, page := range []string{"README.md", "docs/changelog.md"} {
		content, err := os.ReadFile(filepath.Join(tree.dir, page))
		if err != nil {
			return err
		}
		entries = append(entries, entry{filepath.Base(page), 0o644, content})
	}
	return writeArchive(filepath.Join(files, name+".tar.gz"), name, tree, entries)
}

// mayReplace returns an error if a folder has something else than a release.
func mayReplace(folder string) error {
	content, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(content) > 0 {
		_, err = os.Stat(filepath.Join(folder, checksums))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not empty and has no %s, so it is no release: remove it or name another folder", folder, checksums)
	}
	return err
}

// replace moves a new folder to the place of an old one, if there is one.
func replace(old, made string) error {
	if err := errors.Join(os.Chmod(made, 0o755), os.RemoveAll(old)); err != nil {
		return err
	}
	return os.Rename(made, old)
}
