package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// writeArchive writes files to a compressed archive, in a folder of its own. All have the
// commit's time and the same owner, so that the archive depends on their content alone.
func writeArchive(file, folder string, tree source, entries []entry) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	defer func() { err = errors.Join(err, archive.Close(), compressed.Close(), out.Close()) }()
	for _, e := range entries {
		header := tar.Header{Name: path.Join(folder, e.name), Mode: e.mode, Size: int64(len(e.content)), ModTime: tree.committed, Format: tar.FormatUSTAR}
		err := archive.WriteHeader(&header)
		if err == nil {
			_, err = archive.Write(e.content)
		}
		if err != nil {
			return fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	return nil
}

// checksums is the file that every release has.
const checksums = "SHA256SUMS"

// writeChecksums writes the checksums, which `sha256sum -c` reads, for all files of a folder.
func writeChecksums(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return os.WriteFile(filepath.Join(folder, checksums), []byte(sums.String()), 0o644)
}
