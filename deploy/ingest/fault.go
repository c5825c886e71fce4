package ingest

import (
	"cmp"
	"fmt"
	"slices"
)

// Fault is a reason why a file cannot be imported.
type Fault struct {
	File   string
	Line   int64  // from 1
	Member string // such as plans[1].price; "" if the fault is not in one member
	Text   string
}

func (f Fault) String() string {
	if f.Member == "" {
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Member, f.Text)
}

// Faults is the error of files that cannot be imported.
type Faults struct {
	First []Fault // in the order of file names and lines, at most 100
	Total int64

	// ReferencesSkipped is true if some lines could not be read. References between lines
	// were then not checked, because they could refer to one of those.
	ReferencesSkipped bool
}

func (f *Faults) Error() string {
	if f.Total == 1 {
		return "1 fault"
	}
	return fmt.Sprintf("%d faults", f.Total)
}

const maxFaults = 100

// add counts a fault, and keeps it unless 100 others come before it.
func (f *Faults) add(fault Fault) {
	f.Total++
	f.First = append(f.First, fault)
	if len(f.First) == 2*maxFaults {
		f.trim()
	}
}

// trim sorts the faults and drops those that are not shown.
func (f *Faults) trim() {
	slices.SortStableFunc(f.First, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	f.First = f.First[:min(len(f.First), maxFaults)]
}
