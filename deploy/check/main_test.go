package check_test

import (
	"fmt"
	"os"
	"testing"
)

const root = "../.."

// scratch is a folder for what the tests of this process share. It is removed at the end.
var scratch string

func TestMain(m *testing.M) {
	status, err := inScratch(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func inScratch(m *testing.M) (status int, err error) {
	// Other users need to enter the folder.
	if scratch, err = os.MkdirTemp("", "commerce-check-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o711); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
