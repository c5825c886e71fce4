package cli

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// BadSetting is the error of a missing or invalid setting. The exit status is 2.
type BadSetting struct {
	Name string // as the user wrote it: a variable, a flag or an argument
	Err  error
}

func (b *BadSetting) Error() string {
	if strings.HasPrefix(b.Err.Error(), b.Name) { // the error already names the setting
		return b.Err.Error()
	}
	return b.Name + ": " + b.Err.Error()
}

// Unwrap returns what is wrong.
func (b *BadSetting) Unwrap() error { return b.Err }

// Faults are the bad settings of a command.
type Faults []*BadSetting

// Add records an error of a setting. It ignores nil.
func (f *Faults) Add(name string, err error) {
	if err != nil {
		*f = append(*f, &BadSetting{name, err})
	}
}

// Err returns an error with one line for each bad setting, sorted by name; nil if there is none.
// Of several faults of one setting it has the one that was added first. An unreadable NAME_FILE
// explains why NAME is missing.
func (f Faults) Err() error {
	faults := slices.DeleteFunc(slices.Clone(f), func(b *BadSetting) bool {
		return slices.ContainsFunc(f, func(file *BadSetting) bool { return file.Name == b.Name+"_FILE" })
	})
	slices.SortStableFunc(faults, func(a, b *BadSetting) int { return cmp.Compare(a.Name, b.Name) })
	faults = slices.CompactFunc(faults, func(a, b *BadSetting) bool { return a.Name == b.Name })
	all := make([]error, len(faults))
	for i, fault := range faults {
		all[i] = fault
	}
	return errors.Join(all...)
}
