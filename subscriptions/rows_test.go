package subscriptions

import (
	"errors"
	"slices"
	"testing"
)

func TestSortNewestFirst_SortsRowsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]int64{{}, {7}, {9, 7, 3}, {3, 7, 9}, {3, 9, 7}, {9, 3, 7}, {7, 9, 3}} {
		var rows []Subscription
		for _, id := range ids {
			rows = append(rows, Subscription{ID: id})
		}
		sortNewestFirst(rows)
		if !slices.IsSortedFunc(rows, func(a, b Subscription) int { return int(b.ID - a.ID) }) {
			t.Errorf("%v: %d, %d, %d", ids, rows[0].ID, rows[1].ID, rows[2].ID)
		}
	}
}

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
