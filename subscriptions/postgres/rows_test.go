package postgres

import (
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestText_IsTheOneOfEachRow(t *testing.T) {
	t.Parallel()
	var column text
	read := []byte("monthly") // the driver uses the same memory for the next row
	var rows []text
	for _, value := range []string{"monthly", "monthly", "yearly.", ""} {
		if err := column.ScanBytes(append(read[:0], value...)); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, column)
	}
	if want := []text{"monthly", "monthly", "yearly.", ""}; !slices.Equal(rows, want) {
		t.Errorf("rows have %q, want %q", rows, want)
	}
	if err := column.ScanBytes(nil); !errors.Is(err, errNull) {
		t.Errorf("null: %v", err)
	}
}
