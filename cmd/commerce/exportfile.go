package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gofrs/flock"

	"commerce/subscriptions"
)

// exportFile is the file of an export. Each Write is a page of the stream, which ends with
// its `next` line.
//
// The other lines of a page are on disk before its `next` line is written. So everything
// before a `next` line is complete, even after a crash of the machine.
type exportFile struct {
	file *os.File
	lock *flock.Flock
}

// openExport opens a file, and drops what an interrupted export has left after its last
// complete page. A file that cannot be continued stays as it is.
func openExport(name string, f subscriptions.Format, store int64) (*exportFile, subscriptions.Position, error) {
	e, err := lockExport(name)
	if err != nil {
		return nil, subscriptions.Position{}, err
	}
	at, err := e.resume(f, store)
	if err != nil {
		return nil, at, errors.Join(fmt.Errorf("%s %w", name, err), e.close())
	}
	return e, at, nil
}

// lockExport opens a file, unless another process exports to it.
func lockExport(name string) (*exportFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // it has data of customers
	if err != nil {
		return nil, err
	}
	e := &exportFile{file, flock.New(name)}
	locked, err := e.lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s is in use by another export", name)
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// resume drops what is after the last complete page.
func (e *exportFile) resume(f subscriptions.Format, store int64) (subscriptions.Position, error) {
	at, err := subscriptions.Resume(e.file, f, store)
	if err != nil {
		return at, fmt.Errorf("is %w, and was not changed", err)
	}
	if err := e.file.Truncate(at.End); err != nil {
		return at, err
	}
	_, err = e.file.Seek(at.End, io.SeekStart)
	return at, err
}

// Write appends a page.
func (e *exportFile) Write(page []byte) (n int, err error) {
	next := bytes.LastIndexByte(page[:len(page)-1], '\n') + 1
	if n, err = e.file.Write(page[:next]); err != nil {
		return n, err
	}
	if err := e.file.Sync(); err != nil {
		return n, err
	}
	last, err := e.file.Write(page[next:])
	return n + last, err
}

// close returns when all pages are on disk.
func (e *exportFile) close() error {
	return errors.Join(e.file.Sync(), e.file.Close(), e.lock.Close())
}
