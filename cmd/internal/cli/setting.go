package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"commerce/deploy/connect"
)

// Setting is an environment variable, such as ADDR, and the flag --addr, which takes precedence.
type Setting struct {
	// Name is that of the environment variable. A name in lower case, such as store, is a flag
	// without a variable, and a name such as <id> is an argument of the command.
	Name    string
	Hint    string // what help shows in place of the value. Default: the kind of the value
	Default string // as text; "": none
	Help    string
	Value   Value

	// Secret settings can also come from the file that the variable NAME_FILE names.
	Secret bool
	// Required settings must not be missing or empty.
	Required bool
}

var errRequired = errors.New("is required")

func (s Setting) flag() string { return strings.ToLower(strings.ReplaceAll(s.Name, "_", "-")) }

func (s Setting) hint() string { return cmp.Or(s.Hint, s.Value.kind) }

func (s Setting) isArgument() bool { return strings.HasPrefix(s.Name, "<") }

func (s Setting) isVariable() bool { return s.Name == strings.ToUpper(s.Name) && !s.isArgument() }

func (s Setting) shown() string {
	if s.isVariable() || s.isArgument() {
		return s.Name
	}
	return "--" + s.Name
}

func (s Setting) usage() string {
	help := strings.TrimSuffix(s.Help, ".")
	if s.isVariable() {
		help += " ($" + s.Name + ")"
	}
	return help
}

// read sets the value from the command line, the environment or the default, the first of them that
// there is. It adds what is wrong to faults.
func (s Setting) read(given *string, faults *Faults) {
	if given == nil && s.isVariable() {
		var err error
		if given, err = s.lookUp(); err != nil {
			faults.Add(s.Name+"_FILE", err)
			return
		}
	}
	text := s.Default
	if given != nil {
		text = *given
	}
	switch {
	case s.Required && text == "":
		faults.Add(s.shown(), errRequired)
	case given != nil || text != "":
		faults.Add(s.shown(), s.Value.set(text))
	}
}

func (s Setting) lookUp() (*string, error) {
	text, set := os.LookupEnv(s.Name)
	path := os.Getenv(s.Name + "_FILE")
	switch {
	case s.Secret && path != "" && text != "":
		return nil, fmt.Errorf("%s and %s_FILE are both set; set only one", s.Name, s.Name)
	case s.Secret && path != "":
		content, err := connect.ReadRegular(path)
		return new(strings.TrimRight(string(content), "\r\n")), err
	case set:
		return &text, nil
	}
	return nil, nil
}

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

func (b *BadSetting) Unwrap() error { return b.Err }

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
