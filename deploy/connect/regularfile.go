package connect

import (
	"errors"
	"os"
)

// ReadRegular reads a regular file. Others, such as a device or a pipe, may never end or block
// the process.
func ReadRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.ReadFile(path)
}
