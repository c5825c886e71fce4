// Package assert says in one line what a test expects. That, Equal, Succeeds and ErrorIs let a failed test
// go on; Require, NoError and Must end it, so they work only in the goroutine of the test. Arguments of
// messages are evaluated even if nothing fails.
package assert

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// That fails the test with a message if a condition is false.
func That(t testing.TB, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Errorf(format, args...)
	}
}

// Require fails the test with a message and ends it if a condition is false.
func Require(t testing.TB, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// Equal fails the test if two values differ. The message says what they are.
func Equal[T any](t testing.TB, got, want T, format string, args ...any) {
	if diff := cmp.Diff(want, got); diff != "" {
		t.Helper()
		t.Errorf("%s: got %v, want %v (-want +got):\n%s", fmt.Sprintf(format, args...), got, want, diff)
	}
}

// Succeeds fails the test with a message if there is an error.
func Succeeds(t testing.TB, err error, format string, args ...any) {
	if err != nil {
		t.Helper()
		t.Errorf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// ErrorIs fails the test if an error is not the wanted one, as [errors.Is] says.
func ErrorIs(t testing.TB, err, want error, format string, args ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Errorf("%s: got %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// NoError ends the test if a step that it needs fails.
func NoError(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Must returns the value of a call that a test needs, when it is given the test. An error ends the test.
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		NoError(t, err)
		return value
	}
}
