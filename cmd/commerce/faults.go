package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// badSetting is the error of a missing or invalid setting. The process exits with
// status 2 before it listens.
type badSetting struct {
	name string
	err  error
}

func (b *badSetting) Error() string {
	if strings.HasPrefix(b.err.Error(), b.name) { // the error already names the setting
		return b.err.Error()
	}
	return b.name + ": " + b.err.Error()
}
func (b *badSetting) Unwrap() error { return b.err }

// faults collects the bad settings of a command. The one that is reported then does
// not depend on the order of the checks.
type faults []*badSetting

// add records an error of a setting. It ignores nil.
func (f *faults) add(name string, err error) {
	if err != nil {
		*f = append(*f, &badSetting{name, err})
	}
}

// first returns the fault of the setting whose name sorts first, nil if there is no
// fault. Of two faults of one setting it returns the one that was added first.
func (f faults) first() error {
	f = slices.DeleteFunc(slices.Clone(f), func(b *badSetting) bool { // an unreadable NAME_FILE explains why NAME is missing
		return slices.ContainsFunc(f, func(file *badSetting) bool { return file.name == b.name+"_FILE" })
	})
	if len(f) == 0 {
		return nil
	}
	return slices.MinFunc(f, func(a, b *badSetting) int { return cmp.Compare(a.name, b.name) })
}

// options make kong add a number, a duration or a secret's file that it cannot read
// to f. By default kong would stop at the first one.
func (f *faults) options() []kong.Option {
	return []kong.Option{
		kong.KindMapper(reflect.Int64, f.reader(readInt, "a whole number")),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), f.reader(readDuration, "a duration such as 30s or 720h")),
		kong.Resolvers(f.secretFiles()),
	}
}

func readInt(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }

func readDuration(s string) (int64, error) {
	d, err := time.ParseDuration(s)
	return int64(d), err
}

func (f *faults) reader(read func(string) (int64, error), wanted string) kong.MapperFunc {
	return func(c *kong.DecodeContext, target reflect.Value) error {
		token, err := c.Scan.PopValue(c.Value.Name)
		if err != nil {
			return err
		}
		n, err := read(token.String())
		if err != nil {
			f.add(settingName(c.Value), fmt.Errorf("%q is not %s", token.String(), wanted))
		}
		target.SetInt(n)
		return nil
	}
}

// settingName returns the name of a setting's environment variable, or of its flag or
// argument if it has none.
func settingName(v *kong.Value) string {
	switch {
	case len(v.Tag.Envs) > 0:
		return v.Tag.Envs[0]
	case v.Flag != nil:
		return "--" + v.Name
	}
	return "<" + v.Name + ">"
}

// secretFiles reads the file named by NAME_FILE for a secret whose NAME is not set.
func (f *faults) secretFiles() kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !flag.Tag.Has("secret") {
			return nil, nil
		}
		for _, name := range flag.Envs {
			path := os.Getenv(name + "_FILE")
			if path == "" || os.Getenv(name) != "" {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				f.add(name+"_FILE", err)
				return nil, nil
			}
			return strings.TrimRight(string(content), "\r\n"), nil
		}
		return nil, nil
	})
}

// oneOf checks that a setting is one of a few words. The empty word stands for an
// optional setting.
func oneOf(value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return fmt.Errorf("%q is not one of %s", value, strings.Join(words, ", "))
}

// within checks that a number is between two bounds, which are allowed.
func within(n, minimum, maximum int64) error {
	if n < minimum || n > maximum {
		return fmt.Errorf("must be from %d to %d", minimum, maximum)
	}
	return nil
}

var errRequired = errors.New("is required")
